"""Functions of elements, and what makes rows of them: broadcasting, the result's type, truth values as 0 and 1."""

from __future__ import annotations

import math
from collections.abc import Callable

from ...terms import construct as T
from ...terms.ops import OPS
from ...terms.term import Term, TermLike
from ..symbolic_tensor import SymbolicTensor, full, kind, number, pointwise, truth

Number = TermLike
Operand = SymbolicTensor | TermLike


def operand(x: Operand) -> SymbolicTensor:
    """A number is a tensor of rank 0."""
    return x if isinstance(x, SymbolicTensor) else full((), x)


def op(name: str) -> Callable[..., Term]:
    return OPS[name].on_terms


def numeric(f: Callable[..., TermLike]) -> Callable[..., Term]:
    """f with truth values taken as 0 and 1."""
    return lambda *ts: T.const(f(*map(number, ts)))


# ---- from functions of elements to functions of tensors -------------------------------------------------------------
def elementwise(f: Callable[..., TermLike], *xs: Operand, of_type: str | None = None) -> SymbolicTensor:
    """f of the elements as numbers, with broadcasting. The result is at least an integer."""
    tensors = [operand(x) for x in xs]
    return pointwise(numeric(f), *tensors, of_type=of_type or (T.INT if kind(tensors) == T.BOOL else kind(tensors)))


def real(f: Callable[..., TermLike]) -> Callable[..., SymbolicTensor]:
    """f on tensors; the result is real."""
    return lambda *xs: elementwise(f, *xs, of_type=T.REAL)


def same(f: Callable[..., TermLike]) -> Callable[..., SymbolicTensor]:
    """f on tensors; the result has the widest type of the arguments."""
    return lambda *xs: elementwise(f, *xs)


def predicate(f: Callable[..., TermLike]) -> Callable[..., SymbolicTensor]:
    """f on tensors; the result is a truth value."""
    return lambda *xs: elementwise(f, *xs, of_type=T.BOOL)


def logic(name: str) -> Callable[..., SymbolicTensor]:
    """An operation on truth values; a number is true when it is not 0."""
    return lambda *xs: pointwise(lambda *ts: op(name)(*map(truth, ts)), *map(operand, xs), of_type=T.BOOL)


def bitwise(on_bool: str, on_int: str) -> Callable[[Operand, Operand], SymbolicTensor]:
    """An operation on bits, which on truth values is logic."""

    def meaning(a: Operand, b: Operand) -> SymbolicTensor:
        xs = [operand(a), operand(b)]
        return logic(on_bool)(*xs) if kind(xs) == T.BOOL else elementwise(op(on_int), *xs, of_type=T.INT)

    return meaning


def equality(name: str) -> Callable[[Operand, Operand], SymbolicTensor]:
    """== and !=. A truth value compared with 0 or 1 is itself or its negation."""

    def compare(a: Term, b: Term) -> Term:
        if a.type == b.type == T.BOOL:
            return op(name)(a, b)
        for t, c in ((a, b), (b, a)):
            if t.type == T.BOOL and c.is_const and c.attr in (0, 1):
                return t if (c.attr == 1) == (name == "eq") else T.make("not", t)
        return op(name)(number(a), number(b))

    return lambda a, b: pointwise(compare, operand(a), operand(b), of_type=T.BOOL)


# ---- functions of elements ------------------------------------------------------------------------------------------
exp, log, sqrt, tanh, erf = (op(name) for name in ("exp", "log", "sqrt", "tanh", "erf"))
maximum, minimum, where, absolute, floor, trunc = (op(n) for n in ("max", "min", "where", "abs", "floor", "trunc"))
gt, ge, lt, le, eq, ne = (op(name) for name in ("gt", "ge", "lt", "le", "eq", "ne"))


def sigmoid(x: Term) -> Term:
    return T.recip(1 + exp(-x))


def power(x: TermLike, n: TermLike) -> Term:
    """x ** n: small whole powers are products, halves are roots."""
    x, n = T.const(x), T.const(n)
    match n.attr if n.is_const else None:
        case int(k) if 0 < k <= 4:
            return T.mul(*[x] * k)
        case int(k) if -4 <= k < 0:
            return T.recip(T.mul(*[x] * -k))
        case 0:
            return T.const(1)
        case 0.5:
            return sqrt(x)
        case -0.5:
            return T.recip(sqrt(x))
        case float(k) if 0 < k < 4 and 2 * k == int(2 * k):
            return T.mul(*[x] * int(k), sqrt(x))
        case float(k) if -4 < k < 0 and 2 * k == int(2 * k):
            return T.recip(power(x, -k))
    return op("pow")(x, n)


def gelu(x: Term, approximate: str = "none") -> Term:
    if approximate == "tanh":
        return 0.5 * x * (1 + tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))
    return 0.5 * x * (1 + erf(x * math.sqrt(0.5)))


def gelu_slope(x: Term, approximate: str = "none") -> Term:
    """d gelu / dx."""
    if approximate == "tanh":
        t = tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x))
        return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * math.sqrt(2 / math.pi) * (1 + 3 * 0.044715 * x * x)
    return 0.5 * (1 + erf(x * math.sqrt(0.5))) + x * exp(-0.5 * x * x) / math.sqrt(2 * math.pi)


def mish_slope(x: Term) -> Term:
    """d mish / dx, where mish(x) = x * tanh(log(1 + exp(x)))."""
    inner = tanh(log(1 + exp(x)))
    return inner + x * sigmoid(x) * (1 - inner * inner)
