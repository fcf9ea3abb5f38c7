"""Arithmetic of indices: integer terms as polynomials, with 0 <= i < N known for every axis i of size N.

Just enough to keep views clean: (i*N + j) // N is i and (i*N + j) % N is j when j is an axis of size N. Sizes are at
least 1 here, because an index is only ever formed where there is an element to index.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import product

from ..runtime.session import memo
from . import construct as T
from .ranges import Interval, Ranges
from .term import Term, TermLike

Monomial = tuple[int, ...]  # sorted ids of atoms; () is the constant
Poly = dict[Monomial, int]


def _plus(*polys: Poly) -> Poly:
    out: Poly = {}
    for p in polys:
        for m, c in p.items():
            out[m] = out.get(m, 0) + c
    return {m: c for m, c in out.items() if c}


def _times(p: Poly, q: Poly) -> Poly:
    return _plus(*({tuple(sorted(m + n)): c * d} for (m, c), (n, d) in product(p.items(), q.items())))


def _scale(p: Poly, k: int) -> Poly:
    return {m: c * k for m, c in p.items()}


@memo
def _poly(t: Term) -> Poly:
    if t.op == "const" and isinstance(t.attr, int):
        return {(): int(t.attr)} if t.attr else {}
    if t.op == "add":
        return _plus(*map(_poly, t.args))
    if t.op == "mul":
        out: Poly = {(): 1}
        for a in t.args:
            out = _times(out, _poly(a))
        return out
    return {(t.id,): 1}


def _term(p: Poly) -> Term:
    return T.add(*(T.mul(c, *(T.TERMS[i] for i in m)) for m, c in sorted(p.items())), 0)


def normal(t: TermLike) -> Term:
    """The term multiplied out, with x // d * d + x % d put together again as x."""
    return _term(_recombined(_poly(T.const(t))))


def _recombined(p: Poly) -> Poly:
    for m, c in p.items():
        for atom in (T.TERMS[i] for i in m if T.TERMS[i].op == "mod"):
            x, d = atom.args
            around = {_without(m, atom.id): c}
            quotient = _times(around, _times(_poly(d), _poly(floordiv(x, d))))
            if quotient and all(p.get(n) == k for n, k in quotient.items()):
                rest = _plus(p, {m: -c}, _scale(quotient, -1))
                return _recombined(_plus(rest, _times(around, _poly(x))))
    return p


def _without(m: Monomial, atom: int) -> Monomial:
    k = m.index(atom)
    return m[:k] + m[k + 1 :]


# ---- bounds ---------------------------------------------------------------------------------------------------------
_assumed: dict[str, Interval] = {}  # what is known of the elements of integer tensors


@contextmanager
def assuming(known: Mapping[str, Interval]) -> Iterator[None]:
    """Within: the elements of these integer tensors lie in these intervals."""
    before = dict(_assumed)
    _assumed.update(known)
    try:
        yield
    finally:
        _assumed.clear()
        _assumed.update(before)


def interval(t: Term) -> Interval:
    """Numbers that an integer term cannot leave."""
    return Ranges(_assumed).of(t)


def _nonnegative_atom(t: Term) -> bool:
    match t.op:
        case "read":
            return _assumed.get(t.attr, (-1, 0))[0] >= 0
        case "argmax" | "argmin":
            return True
        case "size" | "axis":
            return True
        case "floordiv" | "mod":
            return all(nonnegative(a) for a in t.args)
        case "min" | "max":
            return all(nonnegative(a) for a in t.args)
        case "where":
            return all(nonnegative(a) for a in t.args[1:])
    return False


def _greatest(t: Term) -> Poly | None:
    """An upper bound of an atom, as a polynomial in sizes."""
    match t.op:
        case "axis":
            return _plus(_poly(t.attr.size), {(): -1})
        case "mod" if nonnegative(t.args[1]):
            return _plus(_poly(t.args[1]), {(): -1})
        case "size":
            return _poly(t)
    return {(t.id,): 1} if not t.free and not T.reads(t) else None


def _upper(p: Poly) -> Poly | None:
    """An upper bound in which only sizes occur; None when there is none that we see. A monomial of sizes stays, unless
    it is a positive multiple of what is never negative: then each atom may grow."""
    out: list[Poly] = []
    for m, c in p.items():
        atoms = [T.TERMS[i] for i in m]
        of_sizes, growing = all(not a.free and not T.reads(a) for a in atoms), all(map(_nonnegative_atom, atoms))
        if of_sizes and (c < 0 or not growing):
            out.append({m: c})
            continue
        if not growing:
            return None
        if c < 0:
            continue  # -c * something non-negative is at most 0
        top: Poly = {(): c}
        for a in atoms:
            g = _greatest(a)
            if g is None:
                return None
            top = _times(top, g)
        out.append(top)
    return _plus(*out)


def _at_least_zero(p: Poly) -> bool:
    """True when p >= 0 for all sizes >= 1: every size written as 1 + s, no coefficient may be negative."""
    if any(not _nonnegative_atom(T.TERMS[i]) for m in p for i in m):
        return False
    out: Poly = {}
    for m, c in p.items():
        shifted: Poly = {(): c}
        for i in m:
            shifted = _times(shifted, {(): 1, (i,): 1} if T.TERMS[i].op == "size" else {(i,): 1})
        out = _plus(out, shifted)
    return all(c >= 0 for c in out.values())


def nonnegative(t: TermLike) -> bool:
    """True when t >= 0 is certain for all sizes >= 1 and all indices in range."""
    return _at_least_zero(_poly(T.const(t)))


def _below(p: Poly, limit: Term) -> bool:
    """0 <= p < limit is certain."""
    top = _upper(p)
    return _at_least_zero(p) and top is not None and _at_least_zero(_plus(_poly(limit), _scale(top, -1), {(): -1}))


def below(t: TermLike, limit: TermLike) -> bool:
    """True when 0 <= t < limit is certain."""
    return _below(_poly(T.const(t)), T.const(limit))


def less(a: TermLike, b: TermLike) -> Term:
    """a < b as a term: True or False where that is certain."""
    a, b = normal(a), normal(b)
    gap = _plus(_poly(b), _scale(_poly(a), -1), {(): -1})  # b - a - 1
    low = _upper(_scale(gap, -1))
    if low is not None and _at_least_zero(_scale(low, -1)):
        return T.const(True)
    high = _upper(gap)
    if high is not None and _at_least_zero(_plus(_scale(high, -1), {(): -1})):
        return T.const(False)
    return T.make("lt", a, b)


# ---- division -------------------------------------------------------------------------------------------------------
def _divided_monomial(m: Monomial, divisor: Monomial) -> Monomial | None:
    """m without the atoms of divisor; None when they are not all in it."""
    for atom in divisor:
        if atom not in m:
            return None
        m = _without(m, atom)
    return m


def _divided(t: Term, d: Term) -> tuple[Poly, Poly]:
    """(q, r) with t = q*d + r, where r has no monomial that is a multiple of the monomial d."""
    quotient: Poly = {}
    rest: Poly = {}
    [(divisor, k)] = _poly(d).items() if len(_poly(d)) == 1 else [((d.id,), 1)]
    for m, c in _poly(t).items():
        left = _divided_monomial(m, divisor)
        if c % k == 0 and left is not None:
            quotient = _plus(quotient, {left: c // k})
        else:
            rest[m] = c
    return quotient, rest


def _nearest(t: Term, d: Term) -> tuple[Poly, Poly]:
    """(q, r) with t = q*d + r, and 0 <= r < d where that can be seen."""
    q, r = _divided(t, d)
    for step in (0, -1, 1):
        moved = _plus(r, _scale(_poly(d), -step))
        if not moved or _below(moved, d):
            return _plus(q, {(): step}), moved
    return q, r


def floordiv(t: TermLike, d: TermLike) -> Term:
    """t // d, with (q*d + r) // d = q + r // d, and r // d = 0 when 0 <= r < d is certain; floor(t / d) of reals."""
    t, d = normal(t), normal(d)
    if not (T.is_whole(t) and T.is_whole(d)):
        return T.make("floordiv", t, d)
    if d.op == "const" and d.attr == 1:
        return t
    q, r = _nearest(t, d)
    if not r or _below(r, d):
        return _term(q)
    inner = _term(r)
    if inner.op == "floordiv":  # x // a // b = x // (a*b)
        inner, d = inner.args[0], normal(T.mul(inner.args[1], d))
    return T.add(_term(q), T.make("floordiv", inner, d))


def mod(t: TermLike, d: TermLike) -> Term:
    """t % d, with (q*d + r) % d = r % d, and r % d = r when 0 <= r < d is certain; t - d * floor(t / d) of reals."""
    t, d = normal(t), normal(d)
    if not (T.is_whole(t) and T.is_whole(d)):
        return T.make("mod", t, d)
    _, r = _nearest(t, d)
    if not r or _below(r, d):
        return _term(r)
    return T.make("mod", _term(r), d)


def quotient(t: TermLike, d: TermLike) -> Term:
    """t / d for a d that is known to divide t (the -1 of a view)."""
    q, r = _divided(normal(t), normal(d))
    return _term(q) if not r else floordiv(t, d)


# ---- shapes ---------------------------------------------------------------------------------------------------------
def numel(shape: tuple[Term, ...]) -> Term:
    return normal(T.mul(1, *shape))


def linear(index: tuple[Term, ...], shape: tuple[Term, ...]) -> Term:
    """The row-major position of an element."""
    out: Term = T.const(0)
    for i, n in zip(index, shape, strict=True):
        out = normal(out * n + i)
    return out


def unravel(position: Term, shape: tuple[Term, ...]) -> tuple[Term, ...]:
    """The index at a row-major position below numel(shape)."""
    out: list[Term] = []
    for k in range(len(shape)):
        inner = numel(shape[k + 1 :])
        index = floordiv(position, inner)
        out.append(index if below(index, shape[k]) or k == 0 else mod(index, shape[k]))
    return tuple(out)
