"""For which arguments an operation on real numbers gives a number, and which terms are numbers whatever is read.

    1 / x: x /= 0      sqrt(x): 0 <= x      log(x): 0 < x      asin(x): -1 <= x <= 1      x ** k: by the exponent

Inputs are numbers. Elsewhere an operation gives an infinity or NaN (IEEE 754-2019, 6.1, 7.2, 7.3), and NaN is where a
comparison, a maximum and a minimum stop being those of numbers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from itertools import islice

from ..errors import Place
from ..runtime.session import table
from . import construct as T
from .bits import FORMATS
from .extended import ANYTHING, EXTENDED, FINITE, NAN, NOT_A_NUMBER, NUMBER, ZERO, Classes, classes_of, folded, power
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


def left_undefined_at(label: str) -> Place | None:
    """The operation in the label of an undefined value, "masked load at kernel.py:31:17"; None where no operation left
    it undefined: memory that nobody has written, NaN."""
    at = re.search(r" at (.+?):(\d+)(?::(\d+))?$", label)
    return Place(at[1], int(at[2]), int(at[3] or 0)) if at else None


def total(*_: Term) -> Term:
    """Defined for all arguments."""
    return T.const(True)


FLAGS = NAN_FLAG, PLUS_FLAG, MINUS_FLAG = "nan?", "plus_infinity?", "minus_infinity?"  # what a given number is

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
         "floor", "ceil", "trunc", "round", "asinh", "cbrt", "signbit", "to_int",
         "max", "min", "eq", "ne", "lt", "le", "argmax_of", "argmin_of", "pick", "and", "or", "not", "given", *FLAGS,
         "next_power_of_2", "bitand", "bitor", "bitxor", "shl", "shr", "random_bits", "random",
         "wrap8", "wrap16", "wrap32", *(f"{way}_{f}" for f in FORMATS for way in ("bits", "from_bits"))), total),
})  # fmt: skip
DEFINED.derive(("where",), "what its branches need, where they are taken")
OF_NON_EMPTY = {"amax", "amin", "argmax", "argmin"}
DEFINED.derive(FOLDS, "what its body needs for all of the axis; OF_NON_EMPTY an axis that is not empty")

OF_POSITIVE = {"recip", "sqrt", "log", "log2", "log10"}  # finite there
POLES = {"recip", "log", "log2", "log10"}  # infinite at 0: whoever compares owes that it is not there
SEARCHED_TERMS = 500  # subterms among which the condition of a branch is looked for
_CLASSES: dict[int, Classes] = table("definedness.classes", {})


def is_number(t: Term) -> bool:
    """Whether a real term is never NaN, whatever is read: it may be infinite as a maximum over nothing is. Conditions
    and integers are numbers; of an element that nobody defined nothing is known."""
    return not classes(t) & NAN


def sign_is_of_value(t: Term) -> bool:
    """Whether the sign bit of `t` is that of its value: of a zero it may be either, and so it may of a NaN."""
    return t.type != T.REAL or not classes(t) & (NAN | ZERO)


def is_finite(t: Term) -> bool:
    """Whether a real term is a finite number whatever is read."""
    return classes(t) | FINITE == FINITE


def classes(t: Term) -> Classes:
    """Which classes of extended numbers (`lift.terms.extended`) a term may be in, whatever is read."""
    if t.id not in _CLASSES:
        for s in t.walk():
            _CLASSES[s.id] = _classes(s)
    return _CLASSES[t.id]


def _classes(t: Term) -> Classes:
    if t.op == "const":
        return classes_of(t.attr)
    if t.op == "scalar" and t.attr == NOT_A_NUMBER:
        return NAN
    if t.op == "undef" or t.op in NAMED or t.op.startswith("from_bits") or _is_of_memory(t):
        return ANYTHING
    if t.op == "scalar" and not str(t.attr).isidentifier():
        return NUMBER  # stands for an operand of a combiner, or a loop's variable: -inf may be meant
    if t.type != REAL or not t.args or t.op == "read":
        return FINITE
    known = [_CLASSES[a.id] for a in t.args]
    if t.op in OF_POSITIVE and _is_positive(t.args[0]):
        return FINITE
    if t.op == "where":
        c = t.args[0]
        return _under(t.args[1], c, known[1]) | _under(t.args[2], T.make("not", c), known[2])
    if t.op in FOLDS:
        return folded(t.op, known[0], inhabited=t.attr.size.is_const and t.attr.size.attr > 0)
    if t.op == "pow":
        return power(known[0], t.args[1])
    row = EXTENDED.get(t.op)
    pole = NAN if t.op in POLES and known[0] & ZERO else 0
    return row(*known) | pole if row is not None else _of_total(t, known)


def _is_positive(t: Term) -> bool:
    """Whether it is made of sizes, which are at least 1 wherever something is claimed, so that it is more than 0."""
    if t.op == "size":
        return str(t.attr).isidentifier()  # a stride may be 0
    if t.is_const:
        return bool(t.attr > 0)
    return t.op in ("add", "mul", "sqrt", "recip") and all(map(_is_positive, t.args))


def _is_of_memory(t: Term) -> bool:
    """Whether it is what a load finds in memory, before it is known what that is: `x@3`, no element of an input."""
    return t.op == "read" and t.type == REAL and not str(t.attr).isidentifier()


def _under(t: Term, c: Term, known: Classes) -> Classes:
    """The classes of a branch where its condition is true: max(where(c, x, -inf), ...) is finite if c is."""
    if known | FINITE == FINITE or not t.args or c.is_const:
        return known
    inside = set(islice(t.walk(), SEARCHED_TERMS))
    if c not in inside or any(s.op != "axis" and s.attr in c.free for s in inside):  # an axis that is bound there
        return known
    return classes(T.rewrite(t, lambda s: T.const(True) if s is c else None))


def _of_total(t: Term, known: list[Classes]) -> Classes:
    """Finite, of finite arguments at which the operation is defined as far as they are written down."""
    needs = DEFINED.rows.get(t.op)
    defined = needs is total or (needs is not None and needs(*t.args) is T.const(True))
    return FINITE if defined and all(k | FINITE == FINITE for k in known) else ANYTHING


T.NUMBERS.append(is_number)
T.FINITE.append(is_finite)

# ---- where a term is NaN, and where it is not finite -----------------------------------------------------------------

STRICT = {"abs", "exp", "exp2", "tanh", "floor", "ceil", "trunc", "round"}  # NaN of NaN only
OUTSIDE: dict[str, Callable[[Term], Term]] = dict.fromkeys(("asin", "acos"), lambda u: T.make("not", _within_one(u)))


def decided(t: Term) -> Term | None:
    """The condition on the arguments of z under which z != z, z == z, |z| < inf, |z| == inf or |z| != inf holds, and
    z == inf of a given z; None for other comparisons, and where the table does not say."""
    a, b = t.args
    if t.op in ("eq", "ne") and (known := _is_infinity(*t.args) or _is_infinity(*t.args[::-1])) is not None:
        return known if t.op == "eq" else T.make("not", known)
    if a is b and t.op in ("eq", "ne"):
        found = nan_where(a)
        return found if found is None or t.op == "ne" else T.make("not", found)
    z = next((x.args[0] for x, y in ((a, b), (b, a)) if x.op == "abs" and y.is_const and y.attr == math.inf), None)
    beyond, nan = (None, None) if z is None else (not_finite_where(z), nan_where(z))
    if z is None or beyond is None or (t.op == "lt" and a.op != "abs") or t.op == "le":
        return None
    if t.op == "lt":
        return T.make("not", beyond)
    infinite = None if nan is None else T.make("and", beyond, T.make("not", nan))
    return infinite if infinite is None or t.op == "eq" else T.make("not", infinite)


def _is_infinity(z: Term, infinity: Term) -> Term | None:
    """The flag of a given number that is compared with an infinity."""
    if z.op != "given" or not infinity.is_const or not math.isinf(infinity.attr):
        return None
    return T.make(PLUS_FLAG if infinity.attr > 0 else MINUS_FLAG, z)


def nan_where(t: Term) -> Term | None:
    """Where a real term is NaN; None where the table does not say. Of finite u: 1 / u never, u / v where both are 0,
    sqrt(u) and log(u) for u < 0."""
    if is_number(t):
        return T.const(False)
    if t.op == "given":
        return T.make(NAN_FLAG, t)
    if t.op == "where":
        return _by_branch(t, nan_where)
    if t.op == "mul":
        return _nan_of_product(t)
    if t.op == "recip" or t.op in STRICT:
        return nan_where(t.args[0])
    if t.op == "add":
        doubtful = [s for s in t.args if not is_finite(s)]
        return nan_where(doubtful[0]) if len(doubtful) == 1 else None
    if not t.args or not is_finite(t.args[0]):
        return None
    if t.op in OUTSIDE:
        return OUTSIDE[t.op](t.args[0])
    return _lt(t.args[0], 0) if t.op in ("sqrt", "log", "log2", "log10") else None


def not_finite_where(t: Term) -> Term | None:
    """Where a real term is NaN or infinite; None where the table does not say."""
    if is_finite(t) or t.is_const:
        return T.const(not is_finite(t))
    if t.op == "given":
        return T.make("or", *(T.make(flag, t) for flag in FLAGS))
    if t.op == "where":
        return _by_branch(t, not_finite_where)
    if t.op in ("mul", "add", "abs"):  # 0 * inf and inf - inf are NaN
        parts = [not_finite_where(s) for s in t.args]
        return None if None in parts else T.make("or", T.const(False), *filter(None, parts))
    if not t.args:
        return None
    u = t.args[0]
    root = t.op == "recip" and u.op == "sqrt"
    if not is_finite(u.args[0] if root else u):
        return None
    if root:
        return _le(u.args[0], 0)
    tests = {
        "recip": _zero,
        "sqrt": lambda u: _lt(u, 0),
        **dict.fromkeys(("log", "log2", "log10"), lambda u: _le(u, 0)),
    }
    return tests[t.op](u) if t.op in tests else OUTSIDE[t.op](u) if t.op in OUTSIDE else None


def _zero(u: Term) -> Term:
    return T.make("eq", u, 0)


def _by_branch(t: Term, where: Callable[[Term], Term | None]) -> Term | None:
    c, x, y = t.args
    yes, no = where(x), where(y)
    if yes is None or no is None:
        return None
    return T.make("or", T.make("and", c, yes), T.make("and", T.make("not", c), no))


def _nan_of_product(t: Term) -> Term | None:
    """u / v is NaN where u = v = 0, u / sqrt(v) also where v < 0; u * s where s is, and at 0 times infinity."""
    numbers = [s for s in t.args if is_finite(s)]
    others = [s for s in t.args if not is_finite(s)]
    zero = _zero(T.mul(1, *numbers))
    if len(others) == 1:
        nan, beyond = nan_where(others[0]), not_finite_where(others[0])
        return None if nan is None or beyond is None else T.make("or", nan, T.make("and", zero, beyond))
    inner = [s.args[0].args[0] if s.args[0].op == "sqrt" else s.args[0] for s in others if s.op == "recip"]
    if len(inner) < len(others) or not all(map(is_finite, inner)):
        return None
    negative = [_lt(s.args[0].args[0], 0) for s in others if s.args[0].op == "sqrt"]
    return T.make("or", T.make("and", zero, T.make("or", T.const(False), *map(_zero, inner))), *negative)
