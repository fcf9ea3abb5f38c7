"""For which arguments an operation on real numbers gives a number, and which terms are numbers whatever is read.

    1 / x: x /= 0      sqrt(x): 0 <= x      log(x): 0 < x      asin(x): -1 <= x <= 1      x ** k: by the exponent

Inputs are numbers. Elsewhere an operation gives an infinity or NaN (IEEE 754-2019, 6.1, 7.2, 7.3), and NaN is where a
comparison, a maximum and a minimum stop being those of numbers.
"""

from __future__ import annotations

import math

from ..runtime.session import table
from . import term as T
from .bits import FORMATS
from .meanings import Domain
from .term import FOLDS, NAMED, REAL, Term

_lt, _le, _ne = (lambda a, b, op=op: T.make(op, a, b) for op in ("lt", "le", "ne"))
_within_one = lambda a: T.make("and", _le(-1, a), _le(a, 1))  # noqa: E731
_inside_one = lambda a: T.make("and", _lt(-1, a), _lt(a, 1))  # noqa: E731


def _power(a: Term, b: Term) -> Term:
    """a ** n for an integer n >= 0 is total; for n < 0 it needs a != 0; other exponents a positive base."""
    if b.is_const and isinstance(b.attr, int):
        return T.const(True) if b.attr >= 0 else _ne(a, 0)
    return _le(0, a) if b.is_const and b.attr > 0 else _lt(0, a)


def total(*args: Term) -> Term:
    """Defined for all arguments."""
    return T.const(True)


DEFINED = Domain("definedness", missing="error", says="for which arguments it is defined")
DEFINED.fill({
    "recip": lambda a: _lt(0, a.args[0]) if a.op == "sqrt" else _ne(a, 0),
    "sqrt": lambda a: _le(0, a),
    **dict.fromkeys(("log", "log2", "log10"), lambda a: _lt(0, a)),
    **dict.fromkeys(("asin", "acos"), _within_one),
    **dict.fromkeys(("atanh", "erfinv"), _inside_one),
    "acosh": lambda a: _le(1, a),
    "tan": lambda a: _ne(T.make("cos", a), 0),
    "lgamma": lambda a: T.make("or", _lt(0, a), _ne(a, T.make("floor", a))),
    "pow": _power,
    **dict.fromkeys(("floordiv", "mod", "truncdiv", "truncmod", "fmod"), lambda a, b: _ne(b, 0)),
    **dict.fromkeys(
        ("add", "mul", "abs", "sign", "exp", "exp2", "sin", "cos", "atan", "atan2", "sinh", "cosh", "tanh", "erf",
         "floor", "ceil", "trunc", "round", "asinh", "cbrt", "copysign", "to_int",
         "max", "min", "eq", "ne", "lt", "le", "argmax_of", "argmin_of", "pick", "and", "or", "not",
         "next_power_of_2", "bitand", "bitor", "bitxor", "shl", "shr", "random_bits", "random",
         "wrap8", "wrap16", "wrap32", *(f"{way}_{f}" for f in FORMATS for way in ("bits", "from_bits"))), total),
})  # fmt: skip
DEFINED.derive(("where",), "what its branches need, where they are taken")
OF_NON_EMPTY = {"amax", "amin", "argmax", "argmin"}
DEFINED.derive(FOLDS, "what its body needs for all of the axis; OF_NON_EMPTY an axis that is not empty")

_NUMBERS: dict[int, bool] = table("definedness.numbers", {})
_FINITE: dict[int, bool] = table("definedness.finite", {})


def is_number(t: Term) -> bool:
    """Whether a real term is no NaN whatever is read: it may be infinite as a maximum over nothing is. Conditions and
    integers are numbers; of an element that nobody defined nothing is known."""
    return _every(t, _NUMBERS, False)


def is_finite(t: Term) -> bool:
    """Whether a real term is a finite number whatever is read."""
    return _every(t, _FINITE, True)


def _every(t: Term, known: dict[int, bool], finite: bool) -> bool:
    if t.id not in known:
        for s in t.walk():
            known[s.id] = _holds(s, known, finite)
    return known[t.id]


def _holds(t: Term, known: dict[int, bool], finite: bool) -> bool:
    if t.op == "const":
        return not math.isnan(t.attr) and not (finite and math.isinf(t.attr))
    if t.op == "undef" or t.op in NAMED or t.op.startswith("from_bits"):
        return False
    if t.type != REAL or not t.args or t.op == "read":
        return True
    if t.op in OF_NON_EMPTY and finite and not (t.attr.size.is_const and t.attr.size.attr > 0):
        return False
    values = t.args[1:] if t.op in ("where", "pick") else t.args
    return all(known[a.id] for a in values) and _is_total(t)


def _is_total(t: Term) -> bool:
    """Whether the operation is defined at these arguments, as far as they are written down."""
    if t.op == "where" or t.op in FOLDS:
        return True
    needs = DEFINED.rows.get(t.op)
    return needs is total or (needs is not None and needs(*t.args) is T.const(True))


T.NUMBERS.append(is_number)
