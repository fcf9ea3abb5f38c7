"""Tiles: the value of an SSA value of the IR as a function of its lanes, so that no lane is ever enumerated.

    make_range(a, b)[i] = a + i          expand_dims(x, d)[.., i_d, ..] = x[.., ..]      trans(x)[i] = x[i permuted]
    splat(x)[i] = x                      broadcast(x)[i] = x[i], 0 where x has one       reshape(x)[i] = x[i // .. % ..]
    (x op y)[i] = x[i] op y[i]           join(x, y)[.., i] = x if i = 0 else y           split(x)[k][..] = x[.., k]

A lane of a dimension of size 1 is the constant 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from trilift.lift.interpreter.handlers.compare import choose_by
from trilift.lift.interpreter.registry import signed_term
from trilift.lift.terms import construct as T
from trilift.lift.terms.ranges import Ranges
from trilift.lift.terms.term import Axis, Term
from trilift.lift.ttir.ir import Type

from ..model.program import POINTER, pointer, term_type
from .indexing import Extent, reindexed

Lanes = tuple[Term, ...]
ZERO = T.const(0)
NARROW = 16  # bits of the widest integers that are known up to multiples of 2^bits only


class Tile:
    """A value of IR type `type`; `at(lanes)` is its element, one term per dimension. Made once per index tuple.
    `sources`: tiles that the element needs at the same lanes. `whole`: a tile with the same elements in its own order,
    of which this one is a row."""

    __slots__ = ("type", "element", "sources", "memo", "whole")

    def __init__(self, of_type: Type, element: Callable[[Lanes], Term], sources: Sequence[Tile] = ()) -> None:
        self.type, self.element, self.sources = of_type, element, sources
        self.memo: dict[Lanes, Term] = {}
        self.whole: Tile | None = None

    @property
    def shape(self) -> tuple[Extent, ...]:
        """Numbers, or terms in block sizes."""
        return self.type.shape

    def at(self, lanes: Sequence[Term] = ()) -> Term:
        """The element at the lanes."""
        key = tuple([ZERO if n == 1 else lane for n, lane in zip(self.shape, lanes, strict=True)])
        found = self.memo.get(key)
        if found is None:
            self._prepare(key)
            found = self.memo[key] = self.element(key)
        return found

    def _prepare(self, key: Lanes) -> None:
        """The elements of all sources, the furthest first: long chains of operations need no deep recursion."""
        todo = list(self.sources)
        while todo:
            x = todo[-1]
            at = key if x.shape else ()
            missing = [y for y in x.sources if (key if y.shape else ()) not in y.memo] if at not in x.memo else []
            if not missing:
                todo.pop()
                x.at(at)
            todo.extend(missing)


def scalar(t: Type) -> Type:
    """The type of one element."""
    return Type(t.element, (), t.pointee, t.element if t.shape else t.text)


def constant(of_type: Type, term: Term) -> Tile:
    """The same term in every lane."""
    return Tile(of_type, lambda lanes: term)


def pointwise(of_type: Type, f: Callable[..., Term], *tiles: Tile) -> Tile:
    """f of the elements; scalars go with every lane."""
    return Tile(of_type, lambda lanes: f(*[x.at(lanes if x.shape else ()) for x in tiles]), tiles)


def generic(shape: Sequence[Extent]) -> tuple[Axis, ...]:
    """The axes that stand for any lane of this shape."""
    return tuple(Axis(f"l{d}_{n}", T.const(n)) for d, n in enumerate(shape))


def terms(axes: Sequence[Axis]) -> Lanes:
    return tuple([T.axis(a) for a in axes])


# ---- choices and pointers --------------------------------------------------------------------------------------------


def select(c: Term, a: Term, b: Term, of_type: Type) -> Term:
    """where(c, a, b) of elements of a type; pointers with one base stay pointers."""
    if a is b:
        return a
    kind = term_type(of_type)
    if kind == POINTER:
        return _select_pointer(c, a, b)
    if kind == T.BOOL:
        return c if c.op == "undef" else choose_by(c, a, b)
    return T.where(c, a, b)


def _select_pointer(c: Term, a: Term, b: Term) -> Term:
    if c.is_const:
        return a if c.attr else b
    if a.op == b.op == "pointer" and a.attr == b.attr:
        return pointer(a.attr, T.where(c, a.args[0], b.args[0]))
    return T.node("where", (c, a, b), None, POINTER)


def signed(ranges: Ranges, x: Tile) -> Tile:
    """The same tile; of 8 and 16 bits, whose elements are known up to multiples of 2^bits, the signed numbers."""
    t = x.type
    return Tile(t, lambda i: signed_term(ranges, x.at(i), t.bits)) if t.is_int and t.bits <= NARROW else x


def advance(p: Term, offset: Term) -> Term:
    """p + offset, into both branches of a choice. Of a pointer that is not known: the node `advance`."""
    if p.op == "pointer":
        return pointer(p.attr, T.add(p.args[0], offset))
    if p.op == "where":
        return _select_pointer(p.args[0], advance(p.args[1], offset), advance(p.args[2], offset))
    return T.node("advance", (p, offset), None, POINTER)


def offset(p: Term) -> Term:
    """The offset of a pointer: o of where(c, p + o, q + o'), under c."""
    if p.op == "where":
        return T.where(p.args[0], offset(p.args[1]), offset(p.args[2]))
    return p.args[0]


def at_offset(p: Term, o: Term) -> Term:
    """A pointer with another offset in every branch; the branches stay apart."""
    if p.op == "where":
        return T.node("where", (p.args[0], at_offset(p.args[1], o), at_offset(p.args[2], o)), None, POINTER)
    return pointer(p.attr, o) if p.op == "pointer" else p


def alternatives(p: Term) -> list[tuple[Term, Term]]:
    """where(c, a, b) as a pointer is a under c and b under ~c."""
    if p.op != "where":
        return [(T.const(True), p)]
    c, a, b = p.args
    out = [(T.make("and", c, k), x) for k, x in alternatives(a)]
    return out + [(T.make("and", T.make("not", c), k), x) for k, x in alternatives(b)]


def base(x: Tile) -> Term | None:
    """The pointer without its offsets: what memory it points into. None if that is unknown or x is not a pointer."""
    if term_type(x.type) != POINTER:
        return None
    p = x.at(terms(generic(x.shape)))
    known = all(q.op == "pointer" for _, q in alternatives(p))
    return at_offset(p, ZERO) if known else None


# ---- lanes to lanes --------------------------------------------------------------------------------------------------


def moved(of_type: Type, x: Tile, lanes_of: Callable[[Lanes], Sequence[Term]]) -> Tile:
    """The elements of x elsewhere: lane i shows x at lanes_of(i)."""
    return Tile(of_type, lambda lanes: x.at(lanes_of(lanes)))


def with_lane(lanes: Lanes, axis: int, lane: Term) -> Lanes:
    """The lanes with one more dimension at `axis`."""
    return (*lanes[:axis], lane, *lanes[axis:])


def replaced(lanes: Lanes, axis: int, lane: Term) -> Lanes:
    return (*lanes[:axis], lane, *lanes[axis + 1 :])


def expand_dims(of_type: Type, x: Tile, axis: int) -> Tile:
    return moved(of_type, x, lambda lanes: (*lanes[:axis], *lanes[axis + 1 :]))


def trans(of_type: Type, x: Tile, order: Sequence[int]) -> Tile:
    """Dimension d of the result is dimension order[d] of x."""
    return moved(of_type, x, lambda lanes: [lanes[list(order).index(d)] for d in range(len(order))])


def join(of_type: Type, a: Tile, b: Tile) -> Tile:
    first = lambda lanes: T.make("eq", lanes[-1], 0)  # noqa: E731
    return Tile(of_type, lambda lanes: select(first(lanes), a.at(lanes[:-1]), b.at(lanes[:-1]), of_type))


def split(of_type: Type, x: Tile, k: int) -> Tile:
    return moved(of_type, x, lambda lanes: (*lanes, T.const(k)))


def reshape(of_type: Type, x: Tile, ranges: Ranges) -> Tile:
    """Row-major."""
    return moved(of_type, x, lambda lanes: reindexed(lanes, of_type.shape, x.shape, ranges))
