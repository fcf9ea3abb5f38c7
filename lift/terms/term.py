"""Terms: the one language of the project, hash-consed.

A term is a scalar expression. A *spec* element is a term whose leaves are single elements `read(x, 3, 5)` of the case's
inputs; a *formula* is a term whose leaves are indexed by axes, `read(x, i, k)`, and which may bind axes:

    e ::= const(v) | size(N) | scalar(eps) | axis(i) | read(x, e...) | undef(label)
        | op(e...)                       an elementwise operation, a row of lift.terms.ops
        | fold(axis, e)                  sum, prod, amax, amin, argmax, argmin of e over the axis, which it binds
        | name(e...) | name(axis, e...)  a known name, a row of lift.language.definitions; mean binds its axis,
        softmax does not

A tensor is a term together with its free axes: named axes broadcast by name, as in xarray. Binding is lexical, and a
bound axis may have the name of a free one outside: softmax(x, n) is exp(x[m,n]) / sum(n, exp(x[m,n])).

Real numbers are the semantics. Constants are Python int, float (inf allowed) or bool. `node` makes a term as it stands;
`lift.terms.construct` normalises, and has all names of this module too.

Terms are equal exactly when they are the same object (`is`); `t.id` is the key in `TERMS`, never used for another term,
and tiles of terms are numpy arrays of ids (int32, so that numpy raises OverflowError at the 2^31st term of a process):
a tile operation works on distinct ids and not on elements. Sessions own the tables (`lift.runtime.session`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any, Protocol

from ..runtime.session import EndedSession, pin, table

REAL, INT, BOOL = "real", "int", "bool"
FOLDS = {"sum": "add", "prod": "mul", "amax": "max", "amin": "min", "argmax": "argmax_of", "argmin": "argmin_of"}
COMMUTATIVE = {"add", "mul", "max", "min", "and", "or"}  # n-ary, flat, sorted by id
# lift.language.definitions fills both: known name -> does it bind its axis (mean does, softmax does not), what it means
NAMED: dict[str, bool] = {}
UNFOLD: dict[str, Callable[[Term], Term]] = {}
# lift.terms.ops fills it with its rows
OPERATIONS: dict[str, Operation] = {}
# lift.terms.construct fills it: what the operators of Python make of terms
OPERATORS: dict[str, Callable[..., Term]] = {}
LAZY = {"where", "and", "or", "pick", "argmax_of", "argmin_of"}  # may have a value though an argument has none
UNIT = {"add": 0, "mul": 1, "max": -math.inf, "min": math.inf, "and": True, "or": False}


class Operation(Protocol):
    """The part of an operation that construction needs: the type of its result, "same" for the widest of the
    arguments, and its value on numbers, None where it has none."""

    @property
    def type(self) -> str: ...

    def on_numbers(self, *args: Any) -> Any: ...


@dataclass(frozen=True, slots=True)
class Axis:
    """A named axis; `size` is a term over dims (a constant while lifting at one shape)."""

    name: str
    size: Term

    def __repr__(self) -> str:
        return self.name


class Term:
    """One hash-consed node. `attr`: the value of a const, the name of a size, scalar, read or undef, the Axis of an
    axis or fold; None for operations that need none."""

    __slots__ = ("op", "args", "attr", "type", "id", "free")
    op: str
    args: tuple[Term, ...]
    attr: Any
    type: str
    id: int
    free: frozenset[Axis]  # free axes

    def __hash__(self) -> int:
        """The id: a set of terms is then met in the same order in every process, as it is not by their addresses."""
        return self.id

    def __add__(self, o: TermLike) -> Term:
        return OPERATORS["add"](self, o)

    def __radd__(self, o: TermLike) -> Term:
        return OPERATORS["add"](o, self)

    def __sub__(self, o: TermLike) -> Term:
        return OPERATORS["sub"](self, o)

    def __rsub__(self, o: TermLike) -> Term:
        return OPERATORS["sub"](o, self)

    def __mul__(self, o: TermLike) -> Term:
        return OPERATORS["mul"](self, o)

    def __rmul__(self, o: TermLike) -> Term:
        return OPERATORS["mul"](o, self)

    def __truediv__(self, o: TermLike) -> Term:
        return OPERATORS["div"](self, o)

    def __rtruediv__(self, o: TermLike) -> Term:
        return OPERATORS["div"](o, self)

    def __neg__(self) -> Term:
        return OPERATORS["mul"](-1, self)

    @property
    def is_const(self) -> bool:
        return self.op == "const"

    def __repr__(self) -> str:
        match self.op:
            case "const":
                return repr(self.attr)
            case "size" | "scalar":
                return str(self.attr)
            case "axis":
                return str(self.attr.name)
            case "undef":
                return f"undefined({self.attr})"
            case "read":
                return f"{self.attr}[{', '.join(map(repr, self.args))}]"
        head = f"{self.op}[{self.attr}]" if self.attr is not None else self.op
        parts = map(repr, self.args)
        return f"{head}({', '.join(sorted(parts) if self.op in COMMUTATIVE else parts)})"

    def walk(self) -> Iterator[Term]:
        """Every distinct subterm once, arguments first."""
        seen: set[int] = set()
        stack: list[tuple[Term, bool]] = [(self, False)]
        while stack:
            t, done = stack.pop()
            if done:
                yield t
            elif t.id not in seen:
                seen.add(t.id)
                stack.append((t, True))
                stack.extend((a, False) for a in reversed(t.args) if a.id not in seen)


NOTHING: frozenset[Axis] = frozenset()
TermLike = Term | int | float | bool
TERMS: dict[int, Term] = table("terms.by_id", {})
_TABLE: dict[tuple[Any, ...], Term] = table("terms.by_node", {})
_INTEGERS: dict[int, Term] = table("terms.integers", {})
UNBOUNDED: set[str] = table("terms.unbounded", set())  # tensors whose elements may be infinite or NaN
_ids = count()  # over all sessions: no id is used twice


def _key(v: object) -> object:
    if isinstance(v, float):
        return ("f", "nan" if math.isnan(v) else v, math.copysign(1, v))
    return (type(v).__name__, v)


def node(op: str, args: tuple[Term, ...] = (), attr: Any = None, of_type: str = REAL) -> Term:
    """The hash-consed node, as it stands: no normalisation. Use `make` unless the node is known to be normal."""
    key = (op, of_type, None if attr is None else _key(attr), *[a.id for a in args])
    t = _TABLE.get(key)
    if t is None:
        _check_alive(args, attr)
        t = object.__new__(Term)
        t.op, t.args, t.attr, t.type, t.id = op, args, attr, of_type, next(_ids)
        free = NOTHING.union(*frees) if (frees := [a.free for a in args if a.free]) else NOTHING
        if op == "axis":
            free = frozenset((attr,))
        elif op in FOLDS or NAMED.get(op):
            free = free - {attr} | attr.size.free
        t.free = free
        TERMS[t.id] = t
        _TABLE[key] = t
    return t


def _check_alive(args: tuple[Term, ...], attr: Any) -> None:
    """Arguments of a session that has ended are strangers to the terms of this one."""
    for a in args:
        if a.id not in TERMS:
            raise EndedSession(f"{f'a term {a.op}(...)' if a.args else a} was made in a session that has ended")
    if type(attr) is Axis and attr.size.id not in TERMS:
        raise EndedSession(f"the size of the axis {attr} was made in a session that has ended")


def pinned(t: Term) -> Term:
    """The term, which with all its parts outlives every session: for the constants of modules."""
    for s in t.walk():
        if isinstance(s.attr, Axis):
            pinned(s.attr.size)
        pin(TERMS, s.id)
        pin(_TABLE, (s.op, s.type, None if s.attr is None else _key(s.attr), *[a.id for a in s.args]))
    return t


def const(v: TermLike) -> Term:
    """A constant: bool, int, or float. A float that is a whole number stays real but prints as the integer."""
    if isinstance(v, Term):
        return v
    if type(v) is int:
        t = _INTEGERS.get(v)
        if t is None:
            t = _INTEGERS[v] = node("const", (), v, INT)
        return t
    if isinstance(v, bool):
        return node("const", (), v, BOOL)
    if isinstance(v, int):
        return node("const", (), int(v), INT)
    v = float(v)
    if v.is_integer() and abs(v) < 2**53:
        return node("const", (), int(v), INT)  # 2 and 2.0 are the same number
    return node("const", (), v, REAL)


def size(name: str) -> Term:
    return node("size", (), name, INT)


def scalar(name: str, of_type: str = REAL) -> Term:
    return node("scalar", (), name, of_type)


def axis(a: Axis) -> Term:
    """The index along an axis, as an integer (iota)."""
    return node("axis", (), a, INT)


def read(tensor: str, index: Iterable[TermLike], of_type: str = REAL) -> Term:
    """x[index...]: one element of an input tensor; an index may itself be a read (a gather). Of `UNBOUNDED` tensors
    it is given(x[index...]), which may be infinite or NaN."""
    element = node("read", tuple(const(i) for i in index), tensor, of_type)
    return node("given", (element,)) if tensor in UNBOUNDED and of_type == REAL else element


@contextmanager
def unbounded(tensors: Iterable[str]) -> Iterator[None]:
    """Context manager: real elements of these tensors are read as numbers that may be infinite or NaN."""
    added = set(tensors) - UNBOUNDED
    UNBOUNDED.update(added)
    try:
        yield
    finally:
        UNBOUNDED.difference_update(added)


def undef(label: str, of_type: str = REAL) -> Term:
    """A value nobody defined: a masked lane without `other`, an uninitialised element. `label` says which."""
    return node("undef", (), label, of_type)


def fold(op: str, over: Axis, body: TermLike) -> Term:
    """sum, prod, amax, amin, argmax, argmin of `body` for `over` in 0..size-1. An empty sum is 0, empty amax -inf."""
    body = const(body)
    return node(op, (body,), over, INT if op.startswith("arg") else body.type)


for _v in (0, 1, -1, True, False, math.inf, -math.inf):
    pinned(const(_v))


def fresh_axis(like: Axis, taken: set[str]) -> Axis:
    """An axis of the same size whose name is not taken: n, n', n'' ..."""
    name = like.name
    while name in taken:
        name += "'"
    return Axis(name, like.size)


def reads(t: Term) -> set[str]:
    """Names of the tensors that the term reads."""
    return {s.attr for s in t.walk() if s.op == "read"}
