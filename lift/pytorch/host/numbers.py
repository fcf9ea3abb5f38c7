"""Numbers that remember how they came to be: an integer and a real, each a number and the term that it is.

The host function computes with them as with Python's. A comparison of one is a decision of the run; a use that takes
the number out (hash, float(), an index, a text) loses the term, and the record says so.
"""

from __future__ import annotations

import math
import numbers
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeGuard

import numpy as np
import torch

from ...capture.places import host_place
from ...errors import Unsupported
from ...terms import construct as T
from ...terms import index as I
from ...terms.term import Term
from .. import roundings
from ..roundings import WHOLE, WHY, WIDE, Rounded, Rounding, compared, constant, converted

if TYPE_CHECKING:
    from torch.fx.experimental.sym_node import SymNode

    from .record import Record

EXACT = Rounded()
Plain = int | float | bool
OnNumbers = Callable[[Plain, Plain], Plain | complex]
OnTerms = Callable[[Term, Term], Term | None]  # None: no term says it


def integer(record: Record, t: Term, v: int) -> Integer:
    """The integer v, which is t; a Python integer if t is one."""
    return int(t.attr) if t.is_const else Int(record, t, v)


def real(
    record: Record, t: Term, v: float, quotient: tuple[Term, Term] | None = None, rounded: Rounded = EXACT
) -> Real | float:
    """The real v, which is t; a Python float if t is a number and v has not been rounded."""
    known = t.is_const and rounded.rounding is Rounding.NONE
    return float(t.attr) if known else Real(record, t, v, quotient, rounded)


def truth(record: Record, t: Term, v: bool) -> bool:
    """The truth v, which is t, decided where it is made: Python has one True, so that a stand-in for one, of which host
    code asks `is True` anywhere, would lead elsewhere."""
    return bool(t.attr) if t.is_const else record.decide(t, v)


class Int(torch.SymInt):  # type: ignore[misc]
    """An integer. PyTorch sees a SymInt, `isinstance` an int, and C code asks `__index__`, which is recorded."""

    def __init__(self, record: Record, term: Term, value: int) -> None:
        self.record, self.term, self.value = record, term, int(value)

    @property
    def node(self) -> SymNode:  # type: ignore[misc, override]
        return self.record.symbol(self.term, self.value).node

    @property  # type: ignore[misc]
    def __class__(self) -> type[int]:  # type: ignore[misc, override]
        return int

    def __index__(self) -> int:
        return int(self.record.lose(self.term, self.value))

    __int__ = __index__

    def __float__(self) -> float:
        return float(self.record.lose(self.term, self.value))

    def __hash__(self) -> int:
        return hash(self.record.lose(self.term, self.value))

    def __bool__(self) -> bool:
        return bool(self != 0)

    def __repr__(self) -> str:
        return repr(self.record.spell(self.term, self.value))

    def __str__(self) -> str:
        return str(self.record.spell(self.term, self.value))

    def __format__(self, spec: str) -> str:
        return format(self.record.spell(self.term, self.value), spec)

    def __neg__(self) -> Integer:
        return integer(self.record, I.normal(T.mul(-1, self.term)), -self.value)

    def __pos__(self) -> Int:
        return self

    def __abs__(self) -> Integer:
        return self if self >= 0 else -self

    def __invert__(self) -> Integer:
        return -self - 1

    def __trunc__(self) -> Int:
        return self

    __floor__ = __ceil__ = __trunc__

    def __round__(self, ndigits: int | None = None) -> Integer:
        if ndigits is not None and ndigits < 0:
            return round(self.record.lose(self.term, self.value), ndigits)
        return self

    def bit_length(self) -> Integer:
        """ceil(log2(n + 1)) of n >= 0."""
        if self < 0:
            return (-self).bit_length()
        return integer(self.record, bits(I.normal(T.add(self.term, 1))), self.value.bit_length())

    def is_integer(self) -> bool:
        return True

    def conjugate(self) -> Int:
        return self

    def __deepcopy__(self, memo: object) -> Int:
        return self

    def __copy__(self) -> Int:
        return self

    @property
    def real(self) -> Int:
        return self

    @property
    def numerator(self) -> Int:
        return self

    @property
    def denominator(self) -> int:
        return 1


class Real(torch.SymFloat):  # type: ignore[misc]
    """A real. `quotient`: the integers of which it is the quotient, whose floor and ceiling are integers of ours;
    `rounded`: how far `value` may be from it."""

    def __init__(
        self, record: Record, term: Term, value: float, quotient: tuple[Term, Term] | None = None,
        rounded: Rounded = EXACT,
    ) -> None:  # fmt: skip
        self.record, self.term, self.value, self.quotient = record, term, float(value), quotient
        self.rounded = rounded

    @property
    def node(self) -> SymNode:  # type: ignore[misc, override]
        return self.record.symbol(self.term, self.value).node

    @property  # type: ignore[misc]
    def __class__(self) -> type[float]:  # type: ignore[misc, override]
        return float

    def __float__(self) -> float:
        return float(self.record.lose(self.term, self.value))

    def __hash__(self) -> int:
        return hash(self.record.lose(self.term, self.value))

    def __bool__(self) -> bool:
        return bool(self != 0)

    def __repr__(self) -> str:
        return repr(self.record.spell(self.term, self.value))

    def __str__(self) -> str:
        return str(self.record.spell(self.term, self.value))

    def __format__(self, spec: str) -> str:
        return format(self.record.spell(self.term, self.value), spec)

    def __neg__(self) -> Real | float:
        return real(self.record, T.mul(-1, self.term), -self.value, rounded=self.rounded)

    def __pos__(self) -> Real:
        return self

    def __abs__(self) -> Real | float:
        return real(self.record, T.make("abs", self.term), abs(self.value), rounded=self.rounded)

    def __floor__(self) -> Integer:
        self._followed()
        if self.quotient is None:
            return integer(self.record, whole("floor", self.term), math.floor(self.value))
        a, b = self.quotient
        return integer(self.record, I.floordiv(a, b), math.floor(self.value))

    def __ceil__(self) -> Integer:
        self._followed()
        if self.quotient is None:
            of = self.term.args[0] if self.term.op == "log2" else None
            t = bits(of) if of is not None and of.type == T.INT else whole("ceil", self.term)
            return integer(self.record, t, math.ceil(self.value))
        a, b = self.quotient
        return integer(self.record, I.floordiv(I.normal(T.add(a, b, -1)), b), math.ceil(self.value))

    def __trunc__(self) -> Integer:
        return math.floor(self) if self >= 0 else math.ceil(self)

    def __int__(self) -> int:
        return int(self.record.lose(self.term, self.value))

    def __round__(self, ndigits: int | None = None) -> Integer | Real | float:
        if ndigits is not None:
            return round(self.record.lose(self.term, self.value), ndigits)
        self._followed()
        if self.quotient is not None and self.quotient[1] is T.const(1):
            return integer(self.record, self.quotient[0], round(self.value))
        return integer(self.record, whole("round", self.term), round(self.value))

    def _followed(self) -> None:
        """Raises Unsupported where rounding may give another integer."""
        if not converted(self.rounded):
            raise _rounding("an integer made of a rounded number")

    def is_integer(self) -> bool:
        return bool(self.record.lose(self.term, self.value).is_integer())

    def hex(self) -> str:
        return str(float(self).hex())

    def conjugate(self) -> Real:
        return self

    def __deepcopy__(self, memo: object) -> Real:
        return self

    def __copy__(self) -> Real:
        return self


Known = (Int, Real)
Ours = Int | Real
Integer = Int | int
Number = Ours | int | float  # of ours, or of Python's

# ---- arithmetic ------------------------------------------------------------------------------------------------------


def bits(n: Term) -> Term:
    """ceil(log2(n)) of a positive integer: the exponent of the next power of two."""
    return whole("ceil", T.make("log2", n))


def whole(op: str, t: Term) -> Term:
    return T.make("to_int", T.make(op, t))


def _exponent_of(t: Term) -> Term | None:
    """n of ceil(log2(n))."""
    if t.op == "to_int" and t.args[0].op == "ceil" and t.args[0].args[0].op == "log2":
        return t.args[0].args[0].args[0]
    return None


def _floordiv(a: Term, b: Term) -> Term:
    return I.floordiv(a, b)


def _power(a: Term, b: Term) -> Term | None:
    if b.is_const and b.type == T.INT and 0 <= b.attr <= 8:
        return I.normal(T.mul(1, *[a] * int(b.attr)))
    if a.is_const and a.attr == 2 and (n := _exponent_of(b)) is not None:
        return T.make("next_power_of_2", n)
    return None


def _bitand(a: Term, b: Term) -> Term | None:
    for x, mask in ((a, b), (b, a)):
        if mask.is_const and mask.attr >= 0 and (mask.attr & (mask.attr + 1)) == 0:
            return I.mod(x, int(mask.attr) + 1)
    return T.make("bitand", a, b)


def _shl(a: Term, b: Term) -> Term | None:
    if b.is_const and 0 <= b.attr < 64:
        return I.normal(T.mul(a, 1 << int(b.attr)))
    n = _exponent_of(b)
    return None if n is None else I.normal(T.mul(a, T.make("next_power_of_2", n)))


def _shr(a: Term, b: Term) -> Term | None:
    return I.floordiv(a, 1 << int(b.attr)) if b.is_const and 0 <= b.attr < 64 else None


INTEGERS: dict[str, tuple[OnNumbers, OnTerms]] = {
    "add": (operator.add, lambda a, b: I.normal(T.add(a, b))),
    "sub": (operator.sub, lambda a, b: I.normal(T.sub(a, b))),
    "mul": (operator.mul, lambda a, b: I.normal(T.mul(a, b))),
    "floordiv": (operator.floordiv, _floordiv),
    "mod": (operator.mod, I.mod),
    "pow": (operator.pow, _power),
    "lshift": (operator.lshift, _shl),
    "rshift": (operator.rshift, _shr),
    "and": (operator.and_, _bitand),
    "or": (operator.or_, lambda a, b: T.make("bitor", a, b)),
    "xor": (operator.xor, lambda a, b: T.make("bitxor", a, b)),
}
REALS: dict[str, tuple[OnNumbers, OnTerms]] = {
    "add": (operator.add, T.add),
    "sub": (operator.sub, T.sub),
    "mul": (operator.mul, T.mul),
    "truediv": (operator.truediv, T.div),
    "pow": (operator.pow, lambda a, b: _real_power(a, b)),
}
COMPARISONS: dict[str, tuple[Callable[[Plain, Plain], bool], Callable[[Term, Term], Term]]] = {
    "lt": (operator.lt, lambda a, b: T.make("lt", a, b)),
    "le": (operator.le, lambda a, b: T.make("le", a, b)),
    "gt": (operator.gt, lambda a, b: T.make("lt", b, a)),
    "ge": (operator.ge, lambda a, b: T.make("le", b, a)),
    "eq": (operator.eq, lambda a, b: T.make("eq", a, b)),
    "ne": (operator.ne, lambda a, b: T.make("not", T.make("eq", a, b))),
}
PYTHON: dict[str, Callable[..., Plain | complex]] = {
    **{n: f for table in (INTEGERS, REALS) for n, (f, _) in table.items()},
    **{n: f for n, (f, _) in COMPARISONS.items()},
}
MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
DIVIDING = {"floordiv", "mod", "truediv"}


def _real_power(a: Term, b: Term) -> Term | None:
    from ..aten.elementwise import power

    if a.is_const and a.attr == 2:
        return T.make("exp2", b)
    return power(a, b) if b.is_const else None


def binary(name: str, x: object, y: object) -> object:
    """x <name> y, one of them a number of ours."""
    record = next(n.record for n in (x, y) if isinstance_of(n))
    a, b = operand(record, x), operand(record, y)
    if a is None or b is None:
        return _beside(PYTHON[name], record, x, y)
    (s, v), (t, w) = a, b
    if name in DIVIDING:
        _nonzero(record, t, w)
    integers = s.type == T.INT and t.type == T.INT
    rounded = roundings.binary(name, rounded_of(record, x), rounded_of(record, y))
    if name == "truediv" and integers:
        return real(record, T.div(s, t), v / w, (s, t) if _positive(record, t, w) else None, rounded)
    f, make = (INTEGERS if integers and name in INTEGERS else REALS).get(name, (PYTHON[name], _unknown))
    out = f(v, w)
    if isinstance(out, complex):
        return f(record.lose(s, v), record.lose(t, w))
    if name == "pow" and integers and isinstance(out, float):  # a negative exponent
        make = _real_power
    if name == "pow" and not t.is_const:
        record.decide(T.make("le", 0, t), bool(w >= 0))
    term = make(s, t)
    if term is None:
        return f(record.lose(s, v), record.lose(t, w))
    return integer(record, term, out) if isinstance(out, int) else real(record, term, out, rounded=rounded)


def _beside(f: Callable[..., object], record: Record, x: object, y: object) -> object:
    """f of a number of ours and something else: of another kind of number (an IntEnum, a Fraction), which knows
    Python's numbers alone, with our number taken out."""
    other = y if isinstance_of(x) else x
    if not isinstance(other, numbers.Number):
        return NotImplemented
    return f(*(record.lose(e.term, e.value) if isinstance_of(e) else e for e in (x, y)))


def _rounding(what: str) -> Unsupported:
    """The error for a question that rounding may answer."""
    place = host_place()
    return Unsupported(what + (f" at line {place.line}" if place is not None else ""), place, WHY)


def rounded_of(record: Record, x: object) -> Rounded:
    """How far a number may be from its term."""
    if type(x) is torch.SymFloat:
        x = record.number(x)
    if isinstance(x, np.generic):
        x = x.item()
    if type(x) is Real:
        return x.rounded
    if type(x) is Int and record.wide and any(s.attr in record.wide for s in x.term.walk() if s.op == "size"):
        return WIDE
    return constant(x) if type(x) is float or type(x) is int else WHOLE


def _unknown(_: Term, __: Term) -> None:
    return None


def _nonzero(record: Record, t: Term, w: Plain) -> None:
    while t.op == "sqrt":
        t = t.args[0]
    if not t.is_const:
        record.decide(T.make("eq", t, 0), bool(w == 0))


def _positive(record: Record, t: Term, w: Plain) -> bool:
    return w > 0 if t.is_const else record.decide(T.make("lt", 0, t), bool(w > 0))


def compare(name: str, x: object, y: object) -> object:
    """x <name> y as a truth."""
    record = next(n.record for n in (x, y) if isinstance_of(n))
    a, b = operand(record, x), operand(record, y)
    f, make = COMPARISONS[name]
    if a is None or b is None:
        return _beside(f, record, x, y)
    (s, v), (t, w) = a, b
    if any(isinstance(n, float) and not math.isfinite(n) for n in (v, w)):
        return f(v, w)  # sizes and scalars are finite
    if not compared(rounded_of(record, x), rounded_of(record, y)):
        raise _rounding("a comparison of rounded numbers")
    return truth(record, _of_exponents(name, s, t) or make(s, t), f(v, w))


def _of_exponents(name: str, s: Term, t: Term) -> Term | None:
    """ceil(log2(n)) <= k is n <= 2^k, for a number k; the other comparisons of it likewise."""
    if s.is_const and name in MIRRORED:
        return _of_exponents(MIRRORED[name], t, s)
    n = _exponent_of(s)
    if n is None or not t.is_const or not 1 <= t.attr <= 62 or name not in MIRRORED:
        return None
    k = int(t.attr) if name in ("le", "gt") else int(t.attr) - 1
    below = T.make("le", n, 1 << k)
    return below if name in ("le", "lt") else T.make("not", below)


def isinstance_of(x: object) -> TypeGuard[Ours]:
    """Whether it is a number of ours: `isinstance` would take what they pretend to be."""
    return type(x) in Known


def operand(record: Record, x: object) -> tuple[Term, Plain] | None:
    """The term and the number of something that a number of ours meets; None if it is not a number."""
    if type(x) is Int or type(x) is Real:
        return x.term, x.value
    if type(x) in (torch.SymInt, torch.SymFloat):
        return operand(record, record.number(x))
    if type(x) is torch.SymBool:
        return operand(record, int(bool(x)))
    if isinstance(x, np.generic):
        x = x.item()
    if isinstance(x, int) and type(x).__eq__ is int.__eq__:  # a truth, a member of an IntEnum
        x = int.__int__(x)
    return (T.const(x), x) if type(x) is int or type(x) is float else None


def _install() -> None:
    for name in (*INTEGERS, "truediv"):
        for kind in (Int, Real):
            setattr(kind, f"__{name}__", lambda x, y, n=name: binary(n, x, y))
            setattr(kind, f"__r{name}__", lambda x, y, n=name: binary(n, y, x))
    for kind in (Int, Real):
        kind.__pow__ = _power_of  # type: ignore[attr-defined]
        kind.__divmod__ = lambda x, y: (x // y, x % y)  # type: ignore[attr-defined]
        kind.__rdivmod__ = lambda x, y: (y // x, y % x)  # type: ignore[attr-defined]
        for name in COMPARISONS:
            setattr(kind, f"__{name}__", lambda x, y, n=name: compare(n, x, y))


def _has_power(x: Number, y: float) -> None:
    """Raises what Python raises of 0 to a negative power; TypeError for roots of negative numbers."""
    if y < 0 and not x != 0:
        raise ZeroDivisionError(f"0 to the power of {y}")
    if y != math.trunc(y) and not x >= 0:
        raise TypeError(f"a negative number to the power of {y} is complex")


def _power_of(x: Number, y: Number, modulus: Number | None = None) -> object:
    if modulus is None:
        if type(y) in (int, float):
            _has_power(x, y)
        return binary("pow", x, y)
    if type(y) is int and y >= 0:
        return binary("mod", binary("pow", x, y), modulus)
    return pow(int(x), int(y), int(modulus))


_install()
