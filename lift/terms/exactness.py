"""Integers that pass through floats: which operations must be exact, so that what becomes an integer again is right.

    i32 -> f32        exact where |x| < 2^24        x + y, sum(x)     exact where the (partial) result is
    x * 0.5           a multiple of 1/2: exact where 2 |x| < 2^24         x / 3, sqrt(x)    never known to be exact

Rounding is not modelled: a result that is real is near the real number. A result that is an integer, a truth value or
an index is not, so that what it is made of must be exact if no real data is in it. Numbers are followed from where they
are made (`Flow.step`) to where they are read as integers or compared (`Flow.sink`); on the way back every operation
that rounds is marked.

A float of real data that is cast to fewer digits, or computed in fewer than f32 has, is not near any more: what is
made of it and compared, or read as an integer, is another (`Flow.roundings`).

An IEEE format with p digits has every integer up to 2^p, and every multiple of 2^-s up to 2^(p - s).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace

DIGITS = {"f64": 53, "f32": 24, "f16": 11, "bf16": 8, "f8E4M3FN": 4, "f8E4M3FNUZ": 4, "f8E4M3B11FNUZ": 4, "f8E5M2": 3,
          "f8E5M2FNUZ": 3, "f8e4m3fn": 4, "f8e4m3fnuz": 4, "f8e5m2": 3, "f8e5m2fnuz": 3}  # fmt: skip
TF32_DIGITS = 11
LEAST_FACTOR = 2.0**-20  # several of which do not make a number of f32 too small
FRACTION_BITS = 24  # a number with more bits behind the point is of unknown digits

CONSTANT, INTEGERS, DATA = range(3)  # what a number is made of: the largest of its parts


@dataclass(frozen=True, slots=True)
class Origin:
    """`kind`: of what it is made. `scale`: it is a multiple of 2^-scale, None where that is not known. `nonnegative`,
    and `sign_kept`: its sign, and whether it is 0, survive rounding. `number`: of a constant."""

    kind: int = CONSTANT
    scale: int | None = 0
    nonnegative: bool = True
    sign_kept: bool = True
    number: float | None = None

    @property
    def is_zero(self) -> bool:
        return self.number == 0


def constant(number: float) -> Origin:
    """The origin of a number that is written."""
    return Origin(CONSTANT, fraction_bits(number), number >= 0, True, number)


def fraction_bits(number: float) -> int | None:
    """The least s for which number * 2^s is whole; 0 of infinities, which no rounding changes."""
    if not math.isfinite(number):
        return 0
    bits = float(number).as_integer_ratio()[1].bit_length() - 1
    return bits if bits <= FRACTION_BITS else None


def _joined(*xs: Origin) -> Origin:
    """One of several: which of several constants is as good as an integer, which counts."""
    if not xs:
        return Origin()
    scales = [x.scale for x in xs]
    known = None if None in scales else max(s for s in scales if s is not None)
    same = xs[0].number if all(x.number == xs[0].number for x in xs) else None
    kept, positive = all(x.sign_kept for x in xs), all(x.nonnegative for x in xs)
    kind = max(INTEGERS if same is None and len(xs) > 1 else CONSTANT, *(x.kind for x in xs))
    return Origin(kind, known, positive, kept, same)


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
    scales = [x.scale for x in xs]
    total = None if None in scales else sum(s for s in scales if s is not None)
    known = total if total is not None and total <= FRACTION_BITS else None
    out = _computed(*xs)
    return replace(out, scale=known, sign_kept=out.sign_kept and all(_keeps_signs(x) for x in xs))


def _keeps_signs(x: Origin) -> bool:
    """Whether a product with the number is not 0 for the number being too small."""
    return x.number is None or x.scale is not None or abs(x.number) >= LEAST_FACTOR


def _negative(x: Origin) -> Origin:
    return replace(x, nonnegative=False, number=None if x.number is None else -x.number)


def _quotient(x: Origin, y: Origin) -> Origin:
    """By a power of two a product; of others the digits are not known."""
    power = y.number is not None and y.number != 0 and abs(math.frexp(y.number)[0]) == 0.5
    return _product(x, constant(1 / y.number)) if power and y.number else _opaque(x, y)


def _opaque(*xs: Origin) -> Origin:
    return Origin(max((x.kind for x in xs), default=CONSTANT), None, False, False)


def _whole(*xs: Origin) -> Origin:
    return replace(_joined(*xs), scale=0, number=None)


@dataclass(frozen=True, slots=True)
class Rule:
    """`origin`: of the result. `rounds`: whether the result is rounded, so that it must fit its digits; `known`:
    whether it can be exact at all. `asks`: whether its operands must be exact if it is."""

    origin: Callable[..., Origin]
    rounds: bool = True
    known: bool = True
    asks: bool = True


RULES: dict[str, Rule] = {
    "data": Rule(lambda *_: Origin(DATA, None, False, False), rounds=False, asks=False),
    "convert": Rule(lambda *_: Origin(INTEGERS, 0, False, True), asks=False),  # an integer as a float
    "count": Rule(lambda *_: Origin(INTEGERS, 0, True, True), asks=False),  # one that is not negative
    "bits": Rule(lambda *_: Origin(INTEGERS, None, False, False), known=False, asks=False),  # its bits as a float
    "sized": Rule(lambda *_: Origin(INTEGERS, None, False, True), known=False, asks=False),  # made of sizes: 1 / N
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
        other, own = origins.get(against) if against is not None else None, origins.get(key, Origin())
        if other is None:
            return False
        if other.kind == DATA and own.scale is None:
            return True
        if other.number is not None and math.isinf(other.number):
            return own.scale is None and own.number is None
        return key == against or (other.is_zero and (own.sign_kept or own.kind == DATA))

    def _asked(self, s: Step, origins: dict[Hashable, Origin], out: Marks) -> Sequence[Hashable]:
        """Marks one step; what must be exact as well."""
        rule, given = RULES[s.rule], [origins.get(k, Origin()) for k in s.inputs]
        made = rule.origin(*given)
        if made.kind != INTEGERS:
            return s.inputs if s.rule in ONE_OF and made.kind == DATA else ()
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
                if known and (new := _joined(*known, *([found[key]] if key in found else []))) != found.get(key):
                    found[key], changed = new, True
        return found

    def _made(self, s: Step, found: dict[Hashable, Origin]) -> Origin | None:
        """The origin of one way; None where its inputs have none yet."""
        if s.number is not None:
            return constant(s.number)
        given = [found[k] for k in s.inputs if k in found]
        if s.inputs and (not given or (len(given) < len(s.inputs) and s.rule not in ANY_OF)):
            return None
        return RULES[s.rule].origin(*given)
