"""Axes taken apart, so that tensors are read and written at axes only.

    sum[c](f(c)) = sum[h](sum[d](f(h D + d)))            c < H D, where c // D or c % D occurs
    sum[l](f(l)) = sum[p](f(p)) + sum[j](f(B + j))       l < L, p < B, j < L - B, where l < B is asked; 0 <= B <= L

The same of products, maxima and minima. Of the axes of an output the first makes two, the second a piece of it for each
part. The rest of c // D, c % D and l < B is then a digit, true or false. A boundary B of which 0 <= B <= L is not
certain for all sizes stays a condition; so does one that is not the same for all elements, as of a causal mask."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b

from trilift.lift.language.definitions import DEFINITIONS
from trilift.lift.language.unfolding import unfold
from trilift.lift.runtime.session import memo
from trilift.lift.simplify.saturation import tidy
from trilift.lift.terms import construct as T
from trilift.lift.terms import index as I
from trilift.lift.terms.spec import Formula
from trilift.lift.terms.term import Axis, Term

COMBINERS = {"sum": "add", "prod": "mul", "amax": "max", "amin": "min"}  # of folds over parts
NONE, ONE = T.const(0), T.const(1)


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of an output: its own axes, where in the output each dimension is, as terms over them, its elements."""

    axes: tuple[Axis, ...]
    index: tuple[Term, ...]
    term: Term


@dataclass(frozen=True, slots=True)
class Share:
    """The replacement of an axis in one part: a term over new axes, of which it takes all values in order."""

    axes: tuple[Axis, ...]
    value: Term


def pieces(f: Formula, hoist: bool = True) -> list[Piece]:
    """The formula in pieces whose axes, and those of the folds in them, are taken apart. `hoist`: factors that do not
    depend on a sum's axis stand before it."""
    formed = tidy if hoist else lambda t: t
    start = Piece(f.axes, tuple(T.axis(a) for a in f.axes), formed(settled(_unfolded(f.term))))
    todo, out = [start], []
    while todo:
        piece = todo.pop()
        found = ((a, shares) for a in piece.axes if (shares := _shares(a, piece.term)))
        a, shares = next(found, (None, []))
        if a is None:
            out.append(Piece(piece.axes, piece.index, formed(_folds_apart(piece.term))))
        todo += [_replaced(piece, a, s) for s in reversed(shares) if a is not None]
    return out


def _replaced(piece: Piece, a: Axis, s: Share) -> Piece:
    k = piece.axes.index(a)
    axes = (*piece.axes[:k], *s.axes, *piece.axes[k + 1 :])
    index = tuple(I.normal(T.substitute(i, {a: s.value})) for i in piece.index)
    return Piece(axes, index, settled(T.substitute(piece.term, {a: s.value})))


def _folds_apart(t: Term) -> Term:
    """The term with the axes of its folds taken apart, from the outside in."""

    @cache
    def apart(t: Term) -> Term:
        shares = _shares(t.attr, t.args[0]) if t.op in COMBINERS else []
        if not shares:
            return T.rebuild(t, tuple(map(apart, t.args)))
        return T.make(COMBINERS[t.op], *(apart(_folded(t, s)) for s in shares))

    return apart(t)


def _folded(t: Term, s: Share) -> Term:
    """The fold over a share of its axis."""
    body = settled(T.substitute(t.args[0], {t.attr: s.value}))
    for a in reversed(s.axes):
        body = _fold(t.op, a, body)
    return body


def _fold(op: str, a: Axis, body: Term) -> Term:
    """The fold; a sum of what is the same everywhere is a multiple of it."""
    return T.mul(a.size, body) if op == "sum" and a not in body.free else T.fold(op, a, body)


# ---- shares of an axis -----------------------------------------------------------------------------------------------


def _shares(a: Axis, t: Term) -> list[Share]:
    """The replacement of the axis in a term; nothing where it may stay."""
    if a.size is ONE:
        return [Share((), NONE)]
    inside = list(_below(a, t))
    for d in sorted(filter(None, (_divisor(a, s) for s in inside)), key=lambda d: -len(list(d.walk()))):
        high, low = _axis(a, I.floordiv(a.size, d), "high", t), _axis(a, d, "low", t)
        return [Share((high, low), I.normal(T.axis(high) * d + T.axis(low)))]
    for b in filter(None, (_boundary(a, s) for s in sorted(inside, key=mark))):
        below, above = _axis(a, b, "below", t), _axis(a, I.normal(a.size - b), "above", t)
        return [Share((below,), T.axis(below)), Share((above,), I.normal(b + T.axis(above)))]
    return []


def _axis(a: Axis, size: Term, which: str, t: Term) -> Axis:
    return T.fresh_axis(Axis(f"{a.name}.{which}", size), {x.name for x in t.free})


def _below(a: Axis, t: Term) -> Iterator[Term]:
    """The terms in t that the axis is free in, each once."""
    seen, stack = {t.id}, [t] if a in t.free else []
    while stack:
        s = stack.pop()
        yield s
        fresh = [x for x in s.args if a in x.free and x.id not in seen]
        seen |= {x.id for x in fresh}
        stack += fresh


def _divisor(a: Axis, s: Term) -> Term | None:
    """D of a // D or a % D where the size of the axis is a multiple of it."""
    if s.op not in ("floordiv", "mod") or s.args[0] is not T.axis(a) or not _constant(s.args[1]):
        return None
    d = I.normal(s.args[1])
    exact = I.normal(I.floordiv(a.size, d) * d) is I.normal(a.size)
    return d if exact and d is not ONE and d is not I.normal(a.size) else None


def _boundary(a: Axis, s: Term) -> Term | None:
    """B where the condition is a < B or B <= a, and 0 <= B <= size is certain."""
    if s.op not in ("lt", "le") or s.type != T.BOOL or not all(_plain(x) for x in s.args):
        return None
    gap = I.normal(s.args[1] - s.args[0] - (1 if s.op == "lt" else 0))  # the condition is 0 <= gap
    for sign in (1, -1):
        rest = I.normal(gap - sign * T.axis(a))
        if _constant(rest):
            b = I.normal(-rest if sign == 1 else rest + 1)
            return b if I.nonnegative(b) and I.nonnegative(a.size - b) and b is not NONE else None
    return None


def _constant(t: Term) -> bool:
    """Whether a term is the same for all elements."""
    return not t.free and not T.reads(t)


def _plain(t: Term) -> bool:
    """Whether a term is an integer of indices and sizes."""
    return t.type == T.INT and not T.reads(t)


# ---- an order of terms -----------------------------------------------------------------------------------------------


@memo
def mark(t: Term) -> bytes:
    """A number of the term that does not depend on which terms were made before it."""
    marks = [mark(a) for a in in_order(t)]
    return blake2b(repr((t.op, str(t.attr), marks)).encode(), digest_size=8).digest()


def in_order(t: Term) -> list[Term]:
    """The arguments; where any order is the same, by their marks."""
    return sorted(t.args, key=mark) if t.op in T.COMMUTATIVE or t.op in ("eq", "ne") else list(t.args)


def ordered(t: Term) -> list[Term]:
    """All terms in the term, each once, arguments first."""
    seen: dict[Term, None] = {}

    def visit(s: Term) -> None:
        if s not in seen:
            for a in in_order(s):
                visit(a)
            seen[s] = None

    visit(t)
    return list(seen)


# ---- terms that are settled ------------------------------------------------------------------------------------------


def settled(t: Term) -> Term:
    """The term with indices in normal form, and conditions on indices as true or false where that is certain."""
    return T.rewrite(t, _settled)


def _settled(s: Term) -> Term | None:
    if s.op in ("floordiv", "mod") and all(map(_plain, s.args)):
        return (I.floordiv if s.op == "floordiv" else I.mod)(*s.args)
    if s.op in ("lt", "le") and all(map(_plain, s.args)):
        said = I.less(*s.args) if s.op == "lt" else T.make("not", I.less(s.args[1], s.args[0]))
        return said if said.is_const else None
    if s.op == "read":
        return T.read(s.attr, [I.normal(a) if _plain(a) else a for a in s.args], s.type)
    return _fold("sum", s.attr, s.args[0]) if s.op == "sum" else None


def _unfolded(t: Term) -> Term:
    """The term without known names over an axis."""

    def meaning(s: Term) -> Term | None:
        return _unfolded(unfold(s)) if s.op in DEFINITIONS and s.attr is not None else None

    return T.rewrite(t, meaning)
