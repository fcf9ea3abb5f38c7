"""Arrays for the reader of text: a term whose free axes stand at positions, None where the dimension is 1.

The rules are numpy's (dimensions are aligned at the end, @ contracts the last two), except that a reduced dimension
stays with size 1, and that a result need not have it. One that `None` makes, ONE, is a dimension of the result. Every
element read has axes of its own; where two arrays meet, the axes of one take the names of the other's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count

from ..errors import CaseError
from ..terms import construct as T
from ..terms.expansion import expand
from ..terms.term import Axis, Term
from .definitions import DEFINITIONS
from .idioms import SCANS

_fresh = count()
ONE = Axis("_one", T.const(1))


@dataclass(frozen=True, slots=True)
class Array:
    term: Term
    dims: tuple[Axis | None, ...] = ()


def new_axis(size: Term) -> Axis:
    return Axis(f"_{next(_fresh)}", size)


def tensor(name: str, sizes: Sequence[Term], of_type: str = T.REAL) -> Array:
    axes = tuple(new_axis(s) for s in sizes)
    return Array(T.read(name, map(T.axis, axes), of_type), axes)


def arange(size: Term) -> Array:
    a = new_axis(size)
    return Array(T.axis(a), (a,))


def rename(t: Term, axes: dict[Axis, Axis]) -> Term:
    """Other names for free axes; softmax keeps its name, which lift.terms.construct.substitute would unfold."""
    if not axes.keys() & t.free:
        return t
    if t.op == "axis":
        return T.axis(axes.get(t.attr, t.attr))
    attr = axes.get(t.attr, t.attr) if t.op in DEFINITIONS and isinstance(t.attr, Axis) else t.attr
    args = tuple(rename(a, axes) for a in t.args)
    return T.make(t.op, *args, attr=attr) if t.op != "read" else T.node("read", args, t.attr, t.type)


def renamed(x: Array, axes: dict[Axis, Axis]) -> Array:
    return Array(rename(x.term, axes), tuple(axes.get(a, a) if a else None for a in x.dims))


def together(*xs: Array) -> tuple[list[Term], tuple[Axis | None, ...]]:
    """The terms of arrays that meet elementwise, over common axes."""
    rank = max((len(x.dims) for x in xs), default=0)
    dims: list[Axis | None] = [ONE] * rank
    terms: list[Term] = []
    for x in xs:
        change: dict[Axis, Axis] = {}
        for p, a in enumerate(x.dims, rank - len(x.dims)):
            have = dims[p]
            if a is None or a is ONE:
                dims[p] = a if have is ONE else have
            elif have is None or have is ONE:
                dims[p] = a
            else:
                _same(have, a)
                change[a] = have
        terms.append(rename(x.term, change))
    return terms, tuple(dims)


def _same(a: Axis, b: Axis) -> None:
    if a.size is not b.size:
        raise CaseError(f"dimensions of size {a.size} and {b.size} do not match")


def apply(f: Callable[..., Term], *xs: Array) -> Array:
    """An elementwise operation."""
    terms, dims = together(*xs)
    return Array(f(*terms), dims)


def over(op: str, x: Array, dim: int, *rest: Array) -> Array:
    """A fold or a known name over one dimension."""
    at = dim if dim >= 0 else dim + len(x.dims)
    if not 0 <= at < len(x.dims) or (a := x.dims[at]) is None:
        raise CaseError(f"{op} over dimension {dim}, which does not exist")
    behind = len(x.dims) - at - 1
    terms, dims = together(x, *(_without(r, behind) for r in rest))
    keeps = op in DEFINITIONS and not DEFINITIONS[op].binds
    term = T.node(op, tuple(terms), a) if op in DEFINITIONS else T.make(op, terms[0], attr=a)
    at += len(dims) - len(x.dims)
    return Array(term, dims if keeps else (*dims[:at], None, *dims[at + 1 :]))


def _without(x: Array, behind: int) -> Array:
    """An array that has no dimension for the axis, which has `behind` dimensions after it."""
    at = len(x.dims) - behind
    return Array(x.term, (*x.dims[:at], None, *x.dims[at:])) if at > 0 else x


def scan(op: str, x: Array, dim: int) -> Array:
    """cumsum and its like: the fold over the elements up to this one."""
    n = _there(x.dims[dim])
    k = new_axis(n.size)
    unit = SCANS[op][1]
    return Array(T.fold(op, k, T.where(T.make("le", T.axis(k), T.axis(n)), rename(x.term, {n: k}), unit)), x.dims)


def one_hot(x: Array, size: Term) -> Array:
    """1 at the element that the index says, 0 elsewhere, along a new last dimension."""
    v = arange(size)
    hit = apply(lambda s, t: T.make("eq", s, t), index(x, [*[slice(None)] * len(x.dims), None]), v)
    return Array(T.where(hit.term, 1, 0), hit.dims)


def cat(x: Array, y: Array, dim: int) -> Array:
    """The elements of x and then those of y along one dimension."""
    a, b = _there(x.dims[dim]), _there(y.dims[dim])
    n = new_axis(expand(a.size + b.size))
    first = Array(T.substitute(x.term, {a: T.axis(n)}), tuple(n if d == a else d for d in x.dims))
    second = Array(T.substitute(y.term, {b: T.axis(n) - a.size}), tuple(n if d == b else d for d in y.dims))
    return apply(lambda s, t: T.where(T.make("lt", T.axis(n), a.size), s, t), first, second)


def matmul(x: Array, y: Array) -> Array:
    """x @ y as numpy has it, for vectors, matrices and batches of them."""
    left = x if len(x.dims) > 1 else Array(x.term, (None, *x.dims))
    right = y if len(y.dims) > 1 else Array(y.term, (*y.dims, None))
    k, other = left.dims[-1], right.dims[-2]
    if k is None or other is None or ONE in (k, other):
        raise CaseError("@ needs a dimension to sum over")
    _same(k, other)
    right = renamed(right, {other: k})
    (a, b), dims = together(
        Array(left.term, (*left.dims[:-1], None)), Array(right.term, (*right.dims[:-2], None, right.dims[-1]))
    )
    keep = [*dims[:-2], *dims[-2:-1] * (len(x.dims) > 1), *dims[-1:] * (len(y.dims) > 1)]
    return Array(T.fold("sum", k, T.mul(a, b)), tuple(keep))


def permute(x: Array, order: Sequence[int]) -> Array:
    return Array(x.term, tuple(x.dims[p] for p in order))


def index(x: Array, parts: Sequence[Array | slice | int | None]) -> Array:
    """x[:, None, :K, H:, 0, ids]: slices, new dimensions, numbers, and index arrays (one of them, or all
    dimensions)."""
    parts = [*parts, *[slice(None)] * (len(x.dims) - sum(p is not None for p in parts))]
    old = iter(x.dims)
    dims: list[Axis | None] = []
    change: dict[Axis, Term] = {}
    for part in parts:
        if part is None:
            dims.append(ONE)
            continue
        a = next(old)
        match part:
            case slice(start=None, stop=None):
                dims.append(a)
            case slice(start=start, stop=stop):
                b = new_axis(
                    expand((_there(a).size if stop is None else stop) - (T.const(0) if start is None else start))
                )
                change[_there(a)] = T.axis(b) if start is None else T.axis(b) + start
                dims.append(b)
            case int():
                change[_there(a)] = T.const(part)
            case Array(term=t, dims=more):
                change[_there(a)] = t
                dims += more
    return Array(T.substitute(x.term, change), tuple(dims))


def _there(a: Axis | None) -> Axis:
    if a is None or a is ONE:
        raise CaseError("an index into a dimension of size 1")
    return a
