"""Which of six classes of extended numbers a term may be: negative, 0, positive, -inf, +inf, NaN.

    -inf + inf = NaN      0 * inf = NaN      1 / 0 = -inf or +inf      exp(-inf) = 0      amax over nothing = -inf

A row is a function from the classes that each argument may have to those of the result (IEEE 754-2019, 6.1, 6.2, 7.2);
numbers are real, so that exp of a finite number is positive and finite. An operation without a row may be anything if
an argument may leave the numbers.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator
from functools import reduce

from .meanings import Domain
from .term import Term

Classes = int  # a set of the six, as bits
NEGATIVE, ZERO, POSITIVE, MINUS, PLUS, NAN = CLASSES = tuple(1 << k for k in range(6))
FINITE: Classes = NEGATIVE | ZERO | POSITIVE
NUMBER: Classes = FINITE | MINUS | PLUS
ANYTHING: Classes = NUMBER | NAN
NOT_A_NUMBER = "not a number"  # the scalar that stands for NaN in normal forms

EXTENDED = Domain("extended reals", missing="unbounded", says="which of 0, positive, infinite, NaN it may be")


def each(c: Classes) -> Iterator[Classes]:
    """The single classes of a set."""
    return (one for one in CLASSES if c & one)


def classes_of(v: float) -> Classes:
    """The class of a number."""
    if isinstance(v, float) and math.isnan(v):
        return NAN
    if isinstance(v, float) and math.isinf(v):
        return PLUS if v > 0 else MINUS
    return ZERO if v == 0 else POSITIVE if v > 0 else NEGATIVE


Row = Callable[..., Classes]


def _by_class(table: dict[Classes, Classes]) -> Row:
    """A function of one argument: for each class of it the classes of the result; NaN of NaN."""
    return lambda a: reduce(lambda out, one: out | (NAN if one == NAN else table.get(one, ANYTHING)), each(a), 0)


def _pairwise(pair: Callable[[Classes, Classes], Classes]) -> Row:
    """An associative function of several arguments from that of two single classes."""
    two = lambda a, b: reduce(lambda out, c: out | c, (pair(x, y) for x in each(a) for y in each(b)), 0)  # noqa: E731
    return lambda *xs: reduce(two, xs)


def _plus(a: Classes, b: Classes) -> Classes:
    if (a | b) & NAN or a | b == MINUS | PLUS:
        return NAN
    if (a | b) & (MINUS | PLUS):
        return (a | b) & (MINUS | PLUS)
    if ZERO in (a, b):
        return a | b if a == b else (a | b) & ~ZERO
    return a if a == b else FINITE


def _times(a: Classes, b: Classes) -> Classes:
    if (a | b) & NAN or (ZERO in (a, b) and (a | b) & (MINUS | PLUS)):
        return NAN
    if ZERO in (a, b):
        return ZERO
    negative = (a in (NEGATIVE, MINUS)) != (b in (NEGATIVE, MINUS))
    if (a | b) & (MINUS | PLUS):
        return MINUS if negative else PLUS
    return NEGATIVE if negative else POSITIVE


def _larger(a: Classes, b: Classes) -> Classes:
    """The maximum: NaN and a number give NaN in one program and the number in another."""
    order = (MINUS, NEGATIVE, ZERO, POSITIVE, PLUS)
    return a | b if (a | b) & NAN else max(a, b, key=order.index)


def _smaller(a: Classes, b: Classes) -> Classes:
    order = (MINUS, NEGATIVE, ZERO, POSITIVE, PLUS)
    return a | b if (a | b) & NAN else min(a, b, key=order.index)


def _odd(finite: bool) -> Row:
    """A function with the sign of its argument; of infinity a `finite` one has a limit."""
    ends = {MINUS: NEGATIVE, PLUS: POSITIVE} if finite else {MINUS: MINUS, PLUS: PLUS}
    return _by_class({NEGATIVE: NEGATIVE, ZERO: ZERO, POSITIVE: POSITIVE, **ends})


def _everywhere_finite(*xs: Classes) -> Classes:
    """Finite of finite arguments; else it may be anything."""
    return FINITE if all(x | FINITE == FINITE for x in xs) else ANYTHING


def _divided(a: Classes, b: Classes) -> Classes:
    return _everywhere_finite(a, b) if not b & ZERO else ANYTHING


LOGARITHM = _by_class({NEGATIVE: NAN, ZERO: MINUS, POSITIVE: FINITE, MINUS: NAN, PLUS: PLUS})
EXPONENTIAL = _by_class({NEGATIVE: POSITIVE, ZERO: POSITIVE, POSITIVE: POSITIVE, MINUS: ZERO, PLUS: PLUS})
ABSOLUTE = _by_class({NEGATIVE: POSITIVE, ZERO: ZERO, POSITIVE: POSITIVE, MINUS: PLUS, PLUS: PLUS})
WAVE = _by_class({NEGATIVE: FINITE, ZERO: FINITE, POSITIVE: FINITE, MINUS: NAN, PLUS: NAN})
DOWN = _by_class({NEGATIVE: NEGATIVE, ZERO: ZERO, POSITIVE: ZERO | POSITIVE, MINUS: MINUS, PLUS: PLUS})
UP = _by_class({NEGATIVE: NEGATIVE | ZERO, ZERO: ZERO, POSITIVE: POSITIVE, MINUS: MINUS, PLUS: PLUS})
TOWARDS_ZERO = _by_class({NEGATIVE: NEGATIVE | ZERO, ZERO: ZERO, POSITIVE: ZERO | POSITIVE, MINUS: MINUS, PLUS: PLUS})

EXTENDED.fill({
    "add": _pairwise(_plus), "mul": _pairwise(_times), "max": _pairwise(_larger), "min": _pairwise(_smaller),
    "recip": _by_class({NEGATIVE: NEGATIVE, ZERO: MINUS | PLUS, POSITIVE: POSITIVE, MINUS: ZERO, PLUS: ZERO}),
    "sqrt": _by_class({NEGATIVE: NAN, ZERO: ZERO, POSITIVE: POSITIVE, MINUS: NAN, PLUS: PLUS}),
    **dict.fromkeys(("log", "log2", "log10"), LOGARITHM),
    **dict.fromkeys(("exp", "exp2"), EXPONENTIAL),
    **dict.fromkeys(("tanh", "erf", "atan", "sign"), _odd(finite=True)),
    **dict.fromkeys(("asinh", "cbrt", "sinh"), _odd(finite=False)),
    **dict.fromkeys(("sin", "cos"), WAVE),
    "abs": ABSOLUTE, "floor": DOWN, "ceil": UP, "trunc": TOWARDS_ZERO, "round": TOWARDS_ZERO,
    "cosh": _by_class({NEGATIVE: POSITIVE, ZERO: POSITIVE, POSITIVE: POSITIVE, MINUS: PLUS, PLUS: PLUS}),
    "given": lambda _: ANYTHING,
    "where": lambda _, a, b: a | b,
    "pick": lambda _, *xs: reduce(operator.or_, xs),
    **dict.fromkeys(("floordiv", "mod", "truncdiv", "truncmod", "fmod"), _divided),
    **dict.fromkeys(("atan2", "random"), _everywhere_finite),
})  # fmt: skip

EXTENDED.derive(("sum", "prod", "amax", "amin"), "by `folded`, from the classes of the body")
EXTENDED.derive(("pow",), "by `power`, for integer exponents and positive bases")


def folded(op: str, body: Classes, inhabited: bool) -> Classes:
    """The classes of a fold: of nothing its unit, of more what its body may be together."""
    if op in ("amax", "amin"):
        return body | (0 if inhabited else MINUS if op == "amax" else PLUS)
    if op not in ("sum", "prod"):
        return ANYTHING
    out, pair = (ZERO, _plus) if op == "sum" else (POSITIVE, _times)
    while (more := out | _pairwise(pair)(out, body)) != out:
        out = more
    return out


def power(a: Classes, k: Term) -> Classes:
    """The classes of a ** k for an integer k >= 0, or a positive base; else it may be anything."""
    if k.is_const and isinstance(k.attr, int) and k.attr >= 0:
        return _pairwise(_times)(*[a] * min(k.attr, 2 + k.attr % 2)) if k.attr else POSITIVE
    return POSITIVE if a == POSITIVE else ANYTHING


__all__ = [
    "ANYTHING", "CLASSES", "EXTENDED", "FINITE", "MINUS", "NAN", "NEGATIVE", "NOT_A_NUMBER", "NUMBER", "PLUS",
    "POSITIVE", "ZERO", "classes_of", "each", "folded", "power",
]  # fmt: skip
