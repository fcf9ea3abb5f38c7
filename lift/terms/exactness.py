"""Integers that pass through floats: which operations must be exact, so that what becomes an integer again is right.

    i32 -> f32        exact where |x| < 2^24        x + y, sum(x)     exact where the (partial) result is
    x * 0.5           a multiple of 1/2: exact where 2 |x| < 2^24         x / 3, sqrt(x)    never known to be exact

Rounding is not modelled: a result that is real is near the real number. A result that is an integer, a truth value or
an index is not, so that what it is made of must be exact if no real data is in it. Numbers are followed from where they
are made (`Flow.step`) to where they are read as integers or compared (`Flow.sink`); on the way back every operation
that rounds is marked. A number that may be real data or an integer (`where(m, y, x.to(f32))`) is both, each followed
through what is computed of it.

A float of real data that is cast to fewer digits, or computed in fewer than f32 has, is not near any more: what is
made of it and compared, or read as an integer, is another (`Flow.roundings`).

An IEEE format with p digits has every integer up to 2^p, and every multiple of 2^-s up to 2^(p - s).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

DIGITS = {"f64": 53, "f32": 24, "f16": 11, "bf16": 8, "f8E4M3FN": 4, "f8E4M3FNUZ": 4, "f8E4M3B11FNUZ": 4, "f8E5M2": 3,
          "f8E5M2FNUZ": 3, "f8e4m3fn": 4, "f8e4m3fnuz": 4, "f8e5m2": 3, "f8e5m2fnuz": 3}  # fmt: skip
TF32_DIGITS = 11
SMALL = {53: 1022, 24: 126, 11: 14, 8: 126, 4: 6, 3: 14}  # by digits: e of the least number 2^-e that keeps them
FRACTION_BITS = 24  # a number with more bits behind the point is of unknown digits

CONSTANT, INTEGERS, DATA = range(3)  # what a number is made of: the largest of its parts


@dataclass(frozen=True, slots=True)
class Origin:
    """`kind`: of what it is made. `scale`: it is a multiple of 2^-scale, `least`: it is 0 or at least 2^-least, None
    where that is not known. `nonnegative`, and `sign_kept`: its sign, and whether it is 0, survive rounding. `number`:
    of a constant. `converted`: an integer
    was converted for it. `beside`: of real data that may also be a number without any, its origin then."""

    kind: int = CONSTANT
    scale: int | None = 0
    least: int | None = 0
    nonnegative: bool = True
    sign_kept: bool = True
    number: float | None = None
    converted: bool = False
    beside: Origin | None = None

    @property
    def is_zero(self) -> bool:
        return self.number == 0

    @property
    def without_data(self) -> Origin | None:
        """Its origin where no real data is in it."""
        return self.beside if self.kind == DATA else self

    @property
    def integers(self) -> Origin | None:
        """Its origin where it must be exact: that of an integer, or of one beside real data."""
        if self.kind == DATA:
            return self.beside if self.beside is not None and self.beside.converted else None
        return self if self.kind == INTEGERS else None


def constant(number: float) -> Origin:
    """The origin of a number that is written."""
    least = 1 - math.frexp(number)[1] if number and math.isfinite(number) else 0
    return Origin(CONSTANT, fraction_bits(number), least, number >= 0, True, number)


def fraction_bits(number: float) -> int | None:
    """The least s for which number * 2^s is whole; 0 of infinities, which no rounding changes."""
    if not math.isfinite(number):
        return 0
    bits = float(number).as_integer_ratio()[1].bit_length() - 1
    return bits if bits <= FRACTION_BITS else None


def _most(xs: Iterable[int | None]) -> int | None:
    """The largest, None where one is not known."""
    every = [*xs]
    return None if None in every else max(x for x in every if x is not None)


def _total(xs: Iterable[int | None], most: int) -> int | None:
    """The sum, None where a part is not known or it is more than `most`."""
    total = 0
    for x in xs:
        if x is None or (total := total + x) > most:
            return None
    return total


def _joined(*xs: Origin) -> Origin:
    """One of several: which of several constants is as good as an integer, which counts."""
    if not xs:
        return Origin()
    known, least = _most(x.scale for x in xs), _most(x.least for x in xs)
    same = xs[0].number if all(x.number == xs[0].number for x in xs) else None
    kept, positive = all(x.sign_kept for x in xs), all(x.nonnegative for x in xs)
    kind = max(INTEGERS if same is None and len(xs) > 1 else CONSTANT, *(x.kind for x in xs))
    return Origin(kind, known, least, positive, kept, same, any(x.converted for x in xs))


def _parts(x: Origin) -> list[Origin]:
    """The number, and the integer that it may be beside real data."""
    return [x] if x.kind != DATA or x.integers is None else [x, x.integers]


def _either(*ways: Origin) -> Origin:
    """Of a number that is made in several ways."""
    out = _joined(*ways)
    parts = [w.without_data for w in ways]
    integers = [x for x in parts if x is not None]
    return replace(out, beside=_joined(*integers) if integers and out.kind == DATA else None)


def _largest(*xs: Origin) -> Origin:
    return replace(_joined(*xs), nonnegative=any(x.nonnegative for x in xs))


def _added(*xs: Origin) -> Origin:
    parts = [x for x in xs if not x.is_zero]
    if len(parts) < 2:
        return replace(_joined(*xs), number=None) if not parts else parts[0]
    out = _computed(*parts)
    return replace(out, sign_kept=out.sign_kept and out.nonnegative)


def _computed(*xs: Origin) -> Origin:
    """One of several, rounded: what is computed of constants is as good as an integer."""
    out = _joined(*xs)
    return replace(out, kind=max(INTEGERS, out.kind), number=None)


def _difference(x: Origin, y: Origin) -> Origin:
    return x if y.is_zero else replace(_computed(x, y), sign_kept=False, nonnegative=False)


def _product(*xs: Origin) -> Origin:
    scale, least = _total((x.scale for x in xs), FRACTION_BITS), _total((x.least for x in xs), SMALL[53])
    return replace(_computed(*xs), scale=scale, least=least)


def _negative(x: Origin) -> Origin:
    return replace(x, nonnegative=False, number=None if x.number is None else -x.number)


def _quotient(x: Origin, y: Origin) -> Origin:
    """By a power of two a product; of others the digits are not known."""
    power = y.number is not None and y.number != 0 and abs(math.frexp(y.number)[0]) == 0.5
    return _product(x, constant(1 / y.number)) if power and y.number else _opaque(x, y)


def _opaque(*xs: Origin) -> Origin:
    """Of unknown digits and sign."""
    return replace(_computed(*xs), scale=None, least=None, nonnegative=False, sign_kept=False)


def _whole(*xs: Origin) -> Origin:
    return replace(_joined(*xs), scale=0, least=0, number=None)


_CONVERTED = Origin(INTEGERS, nonnegative=False, converted=True)
_BITS = replace(_CONVERTED, scale=None, least=None, sign_kept=False)
_DATA = Origin(DATA, None, None, False, False)
SIZED = 64  # `least` of a number that is made of sizes


@dataclass(frozen=True, slots=True)
class Rule:
    """`origin`: of the result. `rounds`: whether the result is rounded, so that it must fit its digits; `known`:
    whether it can be exact at all. `asks`: whether its operands must be exact if it is."""

    origin: Callable[..., Origin]
    rounds: bool = True
    known: bool = True
    asks: bool = True


RULES: dict[str, Rule] = {
    "data": Rule(lambda *_: _DATA, rounds=False, asks=False),
    "convert": Rule(lambda *_: _CONVERTED, asks=False),  # an integer as a float
    "count": Rule(lambda *_: replace(_CONVERTED, nonnegative=True), asks=False),  # one that is not negative
    "bits": Rule(lambda *_: _BITS, known=False, asks=False),  # the bits of one as a float
    "sized": Rule(lambda *_: replace(_CONVERTED, scale=None, least=SIZED), known=False, asks=False),  # of sizes: 1 / N
    "given": Rule(lambda *_: Origin(CONSTANT, None, None, False, False), rounds=False, asks=False),  # several numbers
    "same": Rule(_joined, rounds=False),
    "cast": Rule(_joined),
    "narrow": Rule(_joined),  # a cast to a format of fewer digits
    "max": Rule(_largest, rounds=False),
    "add": Rule(_added),
    "sub": Rule(_difference),
    "mul": Rule(_product),
    "neg": Rule(_negative, rounds=False),
    "abs": Rule(lambda x: replace(x, nonnegative=True), rounds=False),
    "div": Rule(_quotient),
    "dot": Rule(lambda a, b, *c: _added(_product(a, b), *c)),
    "whole": Rule(_whole, rounds=False, asks=False),  # floor and its like: their operand is read as an integer
    "opaque": Rule(_opaque, known=False, asks=False),
    "atomic": Rule(lambda *xs: replace(_added(*xs, *xs), scale=None), known=False, asks=False),  # a sum in any order
}  # fmt: skip


COMPUTED = {"add", "sub", "mul", "div", "dot", "opaque"}
ANY_OF = {"same", "max", "opaque", "atomic", "whole"}  # rules that say something of the inputs that are known so far
ONE_OF = {"same", "max", "cast", "narrow", "neg", "abs"}  # rules whose result may be an integer though others are not


@dataclass(frozen=True, slots=True)
class Step:
    """One way in which a number is made. `digits` of its format; `tag`: what is marked if it must be exact."""

    rule: str
    inputs: tuple[Hashable, ...] = ()
    digits: int = 24
    tag: Hashable = None
    number: float | None = None

    @property
    def rounds_much(self) -> bool:
        """Whether digits that f32 would have are lost here."""
        computed = self.rule in COMPUTED and self.digits < DIGITS["f32"]
        return self.number is None and (computed or self.rule == "narrow")


def _result(s: Step, given: Sequence[Origin]) -> Origin:
    """The origin of what a step makes, with that of an integer beside real data."""
    if s.number is not None:
        return constant(s.number)
    rule = RULES[s.rule]
    round_ = (lambda x: _rounded(x, s.digits)) if rule.rounds else (lambda x: x)
    out = round_(rule.origin(*given))
    parts = [x.without_data for x in given]
    integers = [x for x in parts if x is not None]
    known = integers and (s.rule in ONE_OF or len(integers) == len(parts))
    return replace(out, beside=round_(rule.origin(*integers)) if known and out.kind == DATA else None)


def _rounded(x: Origin, digits: int) -> Origin:
    """The number in a format: one that is too small for it may become 0, and a constant of known digits that it does
    not hold is another number."""
    small = x.least is None or x.least > SMALL.get(digits, 0)
    x = replace(x, sign_kept=x.sign_kept and not small)
    if x.kind != CONSTANT or x.number is None or x.scale is None or holds(x.number, digits):
        return x
    return replace(x, kind=INTEGERS, number=None)


def holds(number: float, digits: int) -> bool:
    """Whether a format with these digits has the number, its exponent aside."""
    return not math.isfinite(number) or (math.frexp(number)[0] * 2.0**digits).is_integer()


Marks = dict[Hashable, int | None]  # tag -> n: the result must be less than 2^n; None: it is not known to be exact


@dataclass
class Flow:
    """Numbers and how they are made. One that is made in several ways (a loop variable, memory) may be any of them."""

    steps: dict[Hashable, list[Step]] = field(default_factory=dict)
    sinks: list[tuple[Hashable, Hashable | None]] = field(default_factory=list)

    def step(
        self, key: Hashable, rule: str, inputs: Sequence[Hashable] = (), digits: int = 24, tag: Hashable = None,
        number: float | None = None,
    ) -> None:  # fmt: skip
        """The number `key` may be made so."""
        self.steps.setdefault(key, []).append(Step(rule, tuple(inputs), digits, tag, number))

    def number(self, key: Hashable, number: float, digits: int, tag: Hashable) -> None:
        """A number that is written or passed: another one where its digits are known and the format has fewer."""
        if fraction_bits(number) is None or holds(number, digits):
            return self.step(key, "same", number=number)
        return self.step(key, "opaque", (), digits, tag)

    def sink(self, key: Hashable, against: Hashable | None = None) -> None:
        """The number is read as an integer, or compared (with the number `against`)."""
        self.sinks.append((key, against))

    def marks(self) -> Marks:
        """The operations that must be exact."""
        if not self.sinks:
            return {}
        origins = self.origins()
        out: Marks = {}
        seen: set[Hashable] = set()
        todo = [key for key, against in self.sinks if not self._as_real(key, against, origins)]
        while todo:
            key = todo.pop()
            if key in seen:
                continue
            seen.add(key)
            for s in self.steps.get(key, ()):
                todo += self._asked(s, origins, out)
        return out

    def _as_real(self, key: Hashable, against: Hashable | None, origins: dict[Hashable, Origin]) -> bool:
        """Whether a comparison is with itself, with 0 where rounding changes nothing, or of a number of unknown digits
        with real data or an infinity, which is as good as one of real numbers."""
        other = origins.get(against) if against is not None else None
        if other is None:
            return False
        own = origins.get(key, Origin())
        pairs = product(_parts(own), _parts(other))
        return key == against or all(self._compares_as_real(x, y) for x, y in pairs)

    def _compares_as_real(self, own: Origin, other: Origin) -> bool:
        if other.kind == DATA and own.scale is None:
            return True
        if other.number is not None and math.isinf(other.number):
            return own.scale is None and own.number is None
        return other.is_zero and (own.sign_kept or own.kind == DATA)

    def _asked(self, s: Step, origins: dict[Hashable, Origin], out: Marks) -> Sequence[Hashable]:
        """Marks one step; what must be exact as well."""
        rule, given = RULES[s.rule], [origins.get(k, Origin()) for k in s.inputs]
        whole = _result(s, given)
        made = whole.integers
        if whole.kind == DATA and s.rule in ONE_OF:
            return s.inputs
        if made is None:
            return ()
        if rule.rounds or not rule.known:
            exact = rule.known and made.scale is not None and s.digits > made.scale
            bits = s.digits - made.scale if exact and made.scale is not None else None
            before = out.get(s.tag, bits)
            out[s.tag] = None if bits is None or before is None else min(bits, before)
            if bits is None:
                return ()
        return s.inputs if rule.asks else ()

    def roundings(self) -> dict[Hashable, None]:
        """The operations on real data that round it to few digits, with a truth value, an index or an integer that
        depends on that: a comparison with 0 too, for 1e-8 is 0 in f16. Constants that are not known to have few digits
        count as data."""
        if not any(s.rounds_much for steps in self.steps.values() for s in steps):
            return {}
        origins = self.origins()
        todo = [key for key, against in self.sinks if key != against]
        out: dict[Hashable, None] = {}
        seen: set[Hashable] = set()
        while todo:
            key = todo.pop()
            made = origins.get(key, Origin())
            if key in seen or (made.kind != DATA and made.scale is not None):
                continue
            seen.add(key)
            for s in self.steps.get(key, ()):
                if s.rounds_much:
                    out[s.tag] = None
                todo += s.inputs
        return out

    def origins(self) -> dict[Hashable, Origin]:
        """The origin of each number: the least solution, found by rounds."""
        found: dict[Hashable, Origin] = {}
        changed = True
        while changed:
            changed = False
            for key, steps in self.steps.items():
                ways = [self._made(s, found) for s in steps]
                known = [w for w in ways if w is not None]
                if known and (new := _either(*known, *([found[key]] if key in found else []))) != found.get(key):
                    found[key], changed = new, True
        return found

    def _made(self, s: Step, found: dict[Hashable, Origin]) -> Origin | None:
        """The origin of one way; None where its inputs have none yet."""
        given = [found[k] for k in s.inputs if k in found]
        if s.inputs and (not given or (len(given) < len(s.inputs) and s.rule not in ANY_OF)):
            return None
        return _result(s, given)
