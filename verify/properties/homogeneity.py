"""How a term changes with some of its inputs, by the rules of its operations; None where no rule says.

    degree      t(c x) = c^k t(x) for all c > 0           k of a sum: that of each addend; of a product: the sum
    parity      t(-x) = t(x) or t(-x) = -t(x)             1 or -1
    linearity   t(x + y) = t(x) + t(y), or t is without x  1 or 0
    slope       x <= y implies t(x) <= t(y), or >=         1 or -1; 0 without x

0 has every degree, parity and linearity: ANY. Terms are without known names.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from trilift.lift.terms.meanings import Domain, meaning
from trilift.lift.terms.term import Term

from ..normal_form.enclosure import Enclosure

ANY = "any"
Value = Any  # Fraction, ANY or None
Rule = Callable[[Term, Sequence[Value]], Value]

ODD = ("sin", "tan", "tanh", "sinh", "asin", "atan", "asinh", "atanh", "erf", "erfinv", "cbrt", "trunc", "round",
       "sign")  # fmt: skip
EVEN = ("abs", "cos", "cosh")
COMPARISONS = ("lt", "le", "eq", "ne")
GROWING = ("exp", "exp2", "log", "log2", "log10", "sqrt", "tanh", "sinh", "asinh", "atan", "erf", "erfinv", "asin",
           "atanh", "acosh", "cbrt", "floor", "ceil", "trunc", "round", "sign", "to_int")  # fmt: skip
DEGREE = Domain("degree", missing="opaque", says="k in t(c x) = c^k t(x)")
PARITY = Domain("parity", missing="opaque", says="s in t(-x) = s t(x)")
LINEARITY = Domain("linearity", missing="opaque", says="whether t(x + y) = t(x) + t(y)")
SLOPE = Domain("slope", missing="opaque", says="whether t grows or falls with x")


@dataclass(frozen=True, slots=True)
class Way:
    """One of the ways of changing. `read`: the value of a changed element, `other`: of what is without changed inputs;
    `numbers`: constants with every value."""

    read: int
    other: int
    numbers: tuple[float, ...]
    rules: Domain


def _same(t: Term, values: Sequence[Value]) -> Value:
    """The value that all have."""
    found = {v for v in values if v != ANY}
    return None if None in found or len(found) > 1 else next(iter(found), ANY)


def _unchanged(other: int) -> Rule:
    """Only of arguments that do not change."""
    return lambda t, values: other if all(v in (other, ANY) for v in values) else None


def _choice(other: int) -> Rule:
    """where(c, a, b) with a condition that does not change; pick(k, a, b ...) likewise."""
    return lambda t, values: _same(t, values[1:]) if values[0] in (other, ANY) else None


def _total(t: Term, values: Sequence[Value]) -> Value:
    return None if None in values else ANY if ANY in values else sum(values)


def _times(k: Fraction) -> Rule:
    return lambda t, values: values[0] if values[0] is None else Fraction(0) if values[0] == ANY else values[0] * k


def _power(t: Term, values: Sequence[Value]) -> Value:
    if not t.args[1].is_const or None in values:
        return _unchanged(0)(t, values)
    return None if values[0] == ANY else values[0] * Fraction(t.args[1].attr)


def _loses(t: Term, values: Sequence[Value]) -> Value:
    """An operation that compares the sizes of its arguments, or only their sign, does not change."""
    return None if _same(t, values) is None else Fraction(0)


def _order_of_signs(t: Term, values: Sequence[Value]) -> Value:
    """The sign of x is that of c x."""
    return None if values[0] is None else Fraction(0)


_KEEP = ("add", "sum", "max", "min", "amax", "amin")
DEGREE.fill(
    dict.fromkeys(_KEEP, _same)
    | {"mul": _total, "pow": _power, "sign": _order_of_signs, "abs": _times(Fraction(1)), "recip": _times(Fraction(-1)),
       "sqrt": _times(Fraction(1, 2)), "cbrt": _times(Fraction(1, 3))}
    | dict.fromkeys(("where", "pick"), _choice(0))
    | dict.fromkeys((*COMPARISONS, "argmax", "argmin", "argmax_of", "argmin_of"), _loses)
)  # fmt: skip


def _sign_product(t: Term, values: Sequence[Value]) -> Value:
    if None in values:
        return None
    out = 1
    for v in values:
        if v == ANY:
            return ANY
        out *= v
    return out


def _parity_power(t: Term, values: Sequence[Value]) -> Value:
    """(-a)^k for an integer k."""
    k = t.args[1]
    if not (k.is_const and float(k.attr).is_integer()) or values[0] is None:
        return _unchanged(1)(t, values)
    return 1 if k.attr % 2 == 0 or values[0] == ANY else values[0]


def _equality(t: Term, values: Sequence[Value]) -> Value:
    """-a = -b exactly where a = b."""
    return None if _same(t, values) is None else 1


PARITY.fill(
    dict.fromkeys(("add", "sum", "recip", *ODD), _same)
    | {"mul": _sign_product, "pow": _parity_power}
    | dict.fromkeys(EVEN, lambda t, values: None if values[0] is None else 1)
    | dict.fromkeys(("where", "pick"), _choice(1))
    | dict.fromkeys(("eq", "ne"), _equality)
)  # fmt: skip


def _one_factor(t: Term, values: Sequence[Value]) -> Value:
    """A product with at most one factor that changes."""
    found = _total(t, values)
    return found if found in (0, 1, ANY) else None


LINEARITY.fill(
    dict.fromkeys(("add", "sum"), _same) | {"mul": _one_factor} | dict.fromkeys(("where", "pick"), _choice(0))
)

WAYS = {
    "degree": Way(1, 0, (0, float("inf"), -float("inf")), DEGREE),
    "parity": Way(-1, 1, (0,), PARITY),
    "linearity": Way(1, 0, (0,), LINEARITY),
}


def found(way: str, t: Term, changed: Collection[str]) -> Fraction | None:
    """The value of t when the elements of the inputs `changed` change together: None if no rule says, or t is 0."""
    value = _values(WAYS[way], t, frozenset(changed))
    return None if value in (None, ANY) else Fraction(value)


def _values(way: Way, t: Term, changed: frozenset[str]) -> Value:
    done: dict[int, Value] = {}
    for s in t.walk():
        if s.op == "undef":
            done[s.id] = None
        elif s.op == "read":
            free = all(done[a.id] in (way.other, ANY) for a in s.args)
            done[s.id] = None if not free else way.read if s.attr in changed else way.other
        elif s.is_const:
            done[s.id] = ANY if s.attr in way.numbers and not isinstance(s.attr, bool) else way.other
        elif not s.args:
            done[s.id] = way.other
        else:
            values = [done[a.id] for a in s.args]
            done[s.id] = (way.rules.get(s.op) or _unchanged(way.other))(s, values)
    return done[t.id]


# ---- slopes ----------------------------------------------------------------------------------------------------------


def slope(t: Term, changed: Collection[str], enclosure: Enclosure) -> int | None:
    """1 where t grows with the inputs `changed`, -1 where it falls, 0 where it is without them."""
    done: dict[int, int | None] = {}
    for s in t.walk():
        done[s.id] = _slope(s, [done[a.id] for a in s.args], changed, enclosure)
    return done[t.id]


def _slope(t: Term, slopes: Sequence[int | None], changed: Collection[str], enclosure: Enclosure) -> int | None:
    if t.op == "undef" or None in slopes:
        return None
    if t.op == "read":
        return None if any(slopes) else int(t.attr in changed)
    moving = {s for s in slopes if s}
    if not moving:
        return 0
    rule: SlopeRule | None = SLOPE.get(t.op)
    return None if rule is None else rule(t, slopes, moving, enclosure)


# What moves is in `slopes`, with 0 for what does not, and in `moving` without 0; it is not empty.
SlopeRule = Callable[[Term, Sequence[int | None], set[int], Enclosure], int | None]


@meaning(SLOPE, *_KEEP)
def _one_way(t: Term, slopes: Sequence[int | None], moving: set[int], enclosure: Enclosure) -> int | None:
    """The way in which all go."""
    return next(iter(moving)) if len(moving) == 1 else None


@meaning(SLOPE, *GROWING)
def _along(t: Term, slopes: Sequence[int | None], moving: set[int], enclosure: Enclosure) -> int | None:
    return slopes[0]


@meaning(SLOPE, "where")
def _branches(t: Term, slopes: Sequence[int | None], moving: set[int], enclosure: Enclosure) -> int | None:
    """A condition that does not change."""
    return None if slopes[0] else _one_way(t, slopes, moving, enclosure)


@meaning(SLOPE, "recip")
def _against(t: Term, slopes: Sequence[int | None], moving: set[int], enclosure: Enclosure) -> int | None:
    """1 / a falls on each side of 0."""
    low, high = enclosure.of(t.args[0])
    return -slopes[0] if slopes[0] and (low >= 0 or high <= 0) else None


@meaning(SLOPE, "mul")
def _signed(t: Term, slopes: Sequence[int | None], moving: set[int], enclosure: Enclosure) -> int | None:
    """One factor that changes, and factors whose signs are known."""
    if sum(map(bool, slopes)) != 1:
        return None
    rest = [enclosure.of(a) for a, s in zip(t.args, slopes, strict=True) if not s]
    if not all(low >= 0 or high <= 0 for low, high in rest):
        return None
    sign = 1
    for low, _ in rest:
        sign *= 1 if low >= 0 else -1
    return sign * next(iter(moving))
