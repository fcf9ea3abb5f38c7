"""Bound variables: pinned, shifted, merged, and the guards on them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction

from trilift.lift.language.infix import spelling
from trilift.lift.terms import construct as T
from trilift.lift.terms.term import Axis, Term

from . import poly as P
from .algebra import Algebra, Context
from .literals import integer_literal, is_integer
from .piecewise import condition, divided, is_index
from .poly import ONE, POLYS, ZERO, Monomial, Poly, atom, structural
from .rules.fold import Fold


def linear(p: Poly, v: Axis) -> tuple[Poly, Poly] | None:
    """(k, r) with p = k v + r, v in neither; None where v occurs otherwise."""
    i = T.axis(v).id
    k: dict[Monomial, P.Number] = {}
    r: dict[Monomial, P.Number] = {}
    for (factors, e), c in p.terms.items():
        mine = [(b, j) for b, j in factors if b == i]
        others = tuple((b, j) for b, j in factors if b != i)
        if any(v in T.TERMS[b].free for b, _ in others) or (e and v in POLYS[e].term.free):
            return None
        if not mine:
            r[(factors, e)] = c
        elif mine[0][1] == 1:
            k[(others, e)] = c
        else:
            return None
    return P.poly(k), P.poly(r)


def replaced(a: Algebra, f: Fold, v: Axis, value: Term, ctx: Context, new: tuple[Axis, ...]) -> Fold | None:
    """The fold with a value for v, over the variables `new`; None if no guard set is left that can hold."""
    here = a.given(ctx, *(g for g in f.guards if v not in g.free))
    guards: set[Term] = set()
    for g in f.guards:
        g2 = condition(a, T.substitute(g, {v: value}), here) if v in g.free else g
        guards |= set(g2.args) if g2.op == "and" else {g2}
    if T.const(False) in guards:
        return None
    guards.discard(T.const(True))
    kept = frozenset(guards)
    inside = a.given(ctx, *kept)
    if a.impossible(inside):
        return None
    body = a.normal(T.substitute(f.body.term, {v: value}), inside)
    return Fold(new, kept, body)


def bounds(f: Fold, v: Axis) -> tuple[list[tuple[Term, Poly]], list[tuple[Term, Poly]], list[Term]]:
    """Guards v >= l, guards v <= u, and the others that mention v."""
    low, high, other = [], [], []
    for g in sorted(f.guards, key=lambda g: g.id):
        if v not in g.free:
            continue
        kr = linear(structural(g.args[1]), v) if g.op == "le" and g.args[0] is T.const(0) else None
        k = kr[0].constant if kr else None
        if kr and k == 1:
            low.append((g, -kr[1]))
        elif kr and k == -1:
            high.append((g, kr[1]))
        else:
            other.append(g)
    return low, high, other


def pinned(a: Algebra, f: Fold, ctx: Context) -> tuple[Axis, Poly] | None:
    """A variable that the guards, with the facts about sizes, allow one value only."""
    for v in f.variables:
        for g in f.guards:
            if g.op == "eq" and v in g.free and is_integer(g):
                kr = linear(structural(g.args[0]) - structural(g.args[1]), v)
                if kr and kr[0].constant in (1, -1):
                    return v, P.scaled(kr[1], -kr[0].constant)  # type: ignore[operator]
        low, high, _ = bounds(f, v)
        for _, lo in low:
            for _, hi in high:
                d = hi - lo
                if d is ZERO or (not d.term.free and a.implied(ctx, integer_literal("eq", d))):
                    return v, lo
    return None


def equated(a: Algebra, f: Fold, ctx: Context) -> Fold:
    """sum[j: i[j] = e, ...] f(i[j]) = sum[j: i[j] = e, ...] f(e) for an e without variables."""
    found: dict[Term, Term] = {}
    for g in sorted(f.guards, key=lambda g: g.id):
        if g.op == "eq" and is_integer(g) and g.free & set(f.variables):
            p = structural(g.args[0]) - structural(g.args[1])
            for (factors, e), c in p.terms.items():
                t = T.TERMS[factors[0][0]] if factors else None
                if t is None or e or len(factors) != 1 or factors[0][1] != 1 or t.op != "read" or c not in (1, -1):
                    continue
                value = P.scaled(p - P.scaled(atom(t), c), -c).term
                if t.free & set(f.variables) and not value.free & set(f.variables):
                    found[t] = value
    if not found or not any(s in found for s in f.body.term.walk()):
        return f
    body = a.normal(T.rewrite(f.body.term, found.get), a.given(ctx, *f.guards))
    return f if body is f.body else Fold(f.variables, f.guards, body)


def trimmed(a: Algebra, f: Fold, ctx: Context) -> Fold:
    """Without guards that the other guards and the simple facts imply. Others, n < trips or the case at hand, would
    make a fold look different where it moves out of them."""
    ctx = a.context(x for x in ctx.facts if simple(x))
    guards = set(f.guards)
    for g in sorted(f.guards, key=lambda g: (-len(g.free), g.id)):
        rest = guards - {g}
        if rest and not (g.free & set(f.variables)):
            if a.implied(ctx, g):
                guards = rest
        elif rest and a.implied(a.given(ctx, *rest), g) and _bounded(f, rest):
            guards = rest
    return Fold(f.variables, frozenset(guards), f.body)


def simple(fact: Term) -> bool:
    """A fact about sizes only, or a bound of one variable by a number."""
    return not fact.free or (len(fact.free) == 1 and all(s.op != "size" for s in fact.walk()))


def _bounded(f: Fold, guards: set[Term]) -> bool:
    return all(any(v in g.free for g in guards) for v in f.variables)


def at_lowest(a: Algebra, f: Fold, ctx: Context) -> list[Term] | None:
    """The guards that remain when every variable takes its lower bound, without those that are true. None if a variable
    has no lower bound."""
    guards = list(f.guards)
    for v in f.variables:
        low, _, _ = bounds(Fold(f.variables, frozenset(guards), f.body), v)
        if not low:
            return None
        value = low[0][1].term
        for _, other in low[1:]:
            if a.implied(ctx, integer_literal("le", other - structural(value))):
                value = other.term
        guards = [condition(a, T.substitute(g, {v: value}), ctx) if v in g.free else g for g in guards]
    out = [x for g in guards for x in (g.args if g.op == "and" else (g,))]
    return [] if all(g is T.const(True) for g in out) else [g for g in out if g is not T.const(True)]


def shifted(a: Algebra, f: Fold, v: Axis, ctx: Context) -> Fold:
    """v replaced by w so that what is read first is read at w; without reads w starts at its lower bound."""
    found = shift(a, f, v)
    if found is None:
        return f
    w = a.variable(ctx, f.variables, f.body.term.free, *(g.free for g in f.guards))
    sign, delta = found  # w = sign * v + delta, so v = sign * (w - delta)
    value = P.scaled(atom(T.axis(w)) - delta, sign).term
    new = replaced(a, f, v, value, ctx, tuple(w if x == v else x for x in f.variables))
    return new if new is not None else f


def shift(a: Algebra, f: Fold, v: Axis) -> tuple[int, Poly] | None:
    candidates = []
    for t in _reads(f.body):
        for position, index in enumerate(t.args):
            if v not in index.free:
                continue
            kr = linear(structural(index), v)
            if kr is None:
                continue
            k, rest = kr
            inner = index.free - f.body.term.free  # what an inner fold binds
            if k.term.free & inner:
                continue
            rest = P.poly({m: c for m, c in rest.terms.items() if not P.as_term(m).free & inner})
            candidates.append(((str(t.attr), position, spelling(k.term)), k, rest))
    if not candidates:
        low, high, other = bounds(f, v)
        if v not in f.body.term.free and (step := _joint(f, v, [lo for _, lo in low], high)) is not None:
            return 1, step
        if deltas := [_passed(k, r) for k, r in _slopes(f, v)]:
            delta = ZERO if ZERO in deltas else min(deltas, key=lambda d: spelling(d.term))
            return (1, delta) if delta is not ZERO else None
        starts = [lo for _, lo in low if lo is not ZERO and not lo.term.free & set(f.variables)]
        return (1, -starts[0]) if len(low) == 1 and starts else None
    k, delta = _origin(a, candidates, set(f.variables))
    if all(c < 0 for c in k.terms.values()):
        return -1, -delta
    return (1, delta) if delta is not ZERO else None


def _slopes(f: Fold, v: Axis) -> Iterator[tuple[Poly, Poly]]:
    """(k, r) of each k v + r that is a body without reads, or an exponent of it: k is one monomial and no number."""
    for p in (f.body, *(POLYS[e] for _, e in f.body.terms)):
        kr = linear(p, v)
        if kr is not None and len(kr[0].terms) == 1 and kr[0].constant is None:
            ((_, e),) = kr[0].terms
            if not e and not kr[0].term.free & set(f.variables):
                yield kr


def _passed(k: Poly, r: Poly) -> Poly:
    """delta of r = k delta + r', an index: k v + r = k (v + delta) + r'."""
    (((factors, _), c),) = k.terms.items()
    out: dict[Monomial, P.Number] = {}
    for (others, e), n in r.terms.items():
        left = dict(others)
        for b, j in factors:
            left[b] = left.get(b, 0) - j
        found = P.poly({(tuple(sorted((b, j) for b, j in left.items() if j)), 0): P.tidy(Fraction(n) / Fraction(c))})
        if not e and is_index(found):
            out |= found.terms
    return P.poly(out)


def _origin(
    a: Algebra, reads: list[tuple[tuple[str, int, str], Poly, Poly]], variables: set[Axis]
) -> tuple[Poly, Poly]:
    """(k, delta) of the read that becomes the origin: the one from which all reads look least, so that a fold that was
    shifted by anything chooses the same one; among equals not one that moves with other variables of the fold, if there
    is another."""
    ordered = sorted(reads, key=lambda c: (c[0], spelling(c[2].term)), reverse=True)
    deltas = {_step(a.strides.get(key[0], frozenset()), k, rest): k for key, k, rest in ordered}
    if len(deltas) > 1:
        seen = {d: sorted((key, spelling((r - _times(k, d)).term)) for key, k, r in reads) for d in deltas}
        best = min(seen.values())
        deltas = {d: k for d, k in deltas.items() if seen[d] == best}
        deltas = {d: k for d, k in deltas.items() if not d.term.free & variables} or deltas
    delta = ZERO if ZERO in deltas else min(deltas, key=lambda d: spelling(d.term))
    return deltas[delta], delta


def _times(k: Poly, d: Poly) -> Poly:
    """The product with one monomial of integers."""
    return P.total((c * e, _monomials(m, n)) for m, c in k.terms.items() for n, e in d.terms.items())


def _monomials(m: Monomial, n: Monomial) -> Poly:
    powers = dict(m[0])
    for b, j in n[0]:
        powers[b] = powers.get(b, 0) + j
    return P.monomial((tuple(sorted(powers.items())), 0))


def _joint(f: Fold, v: Axis, low: list[Poly], high: list[tuple[Term, Poly]]) -> Poly | None:
    """The part c t that a guard adds to v, with t over other variables of the fold and 0 <= v < c, so that v + c t is
    an index of its own. None if no guard does."""
    others = set(f.variables) - {v}
    if ZERO not in low or not any(hi.constant is not None for _, hi in high):
        return None
    for _, hi in high:  # v <= hi
        mine = P.poly({m: c for m, c in hi.terms.items() if P.as_term(m).free & others})
        if mine is not ZERO and all(len(m[0]) > 1 or abs(c) > 1 for m, c in mine.terms.items()):
            return -mine
    return None


def _step(strides: frozenset[Term], k: Poly, rest: Poly) -> Poly:
    """The part of rest that moves v: rest = k * delta + what steps between the rows of the tensor."""
    mine = {m: c for m, c in rest.terms.items() if not any(_is_row(m, s, k) for s in strides)}
    return divided(P.poly(mine), k)[0] if len(k.terms) == 1 else ZERO


def _is_row(m: Monomial, stride: Term, k: Poly) -> bool:
    """Whether a monomial is a multiple of a stride other than k's own, not the stride itself."""
    factors = {b for b, _ in m[0]}
    ks = {b for (fs, _) in k.terms for b, _ in fs}
    mine = {stride.id} if stride.op != "mul" else {s.id for s in stride.args if not s.is_const}
    return mine < factors and not mine <= ks


def _reads(p: Poly) -> Iterable[Term]:
    seen: set[int] = set()
    for i in p.atoms:
        for s in T.TERMS[i].walk():
            if s.op == "read" and s.id not in seen:
                seen.add(s.id)
                yield s


def merged(a: Algebra, f: Fold, ctx: Context) -> Fold | None:
    """sum[t, j: g, 0 <= j - c t < c] f(j)  =  sum[j: g'] f(j): every j has one t, j // c, if the body has no t."""
    for t in f.variables:
        if t in f.body.term.free or len(f.variables) < 2:
            continue
        found = _window(a, f, t, ctx)
        if found is None:
            continue
        c, w, used = found
        guards = set()
        for g in f.guards - used:
            if t not in g.free:
                guards.add(g)
                continue
            kr = linear(structural(g.args[1]), t) if g.op == "le" and g.args[0] is T.const(0) else None
            if kr is None or kr[0].constant not in (1, -1):
                break
            below = kr[0].constant == 1  # t >= -r: w >= c * -r;  t <= r: w <= c r + c - 1
            d = w + a.product(c, kr[1], ctx) if below else a.product(c, kr[1] + ONE, ctx) - ONE - w
            literal = integer_literal("le", d)
            if literal is T.const(False):
                return Fold(f.variables, frozenset([literal]), f.body)
            if literal is not T.const(True):
                guards.add(literal)
        else:
            rest = tuple(v for v in f.variables if v != t)
            if guards and all(any(v in g.free for g in guards) for v in rest):
                return Fold(rest, frozenset(guards), f.body)
    return None


def flat(a: Algebra, f: Fold, ctx: Context) -> Fold | None:
    """fold[i, j: 0 <= j < c] f(c i + j)  =  fold[k] f(k), with c times the bounds of i; None where that is not so."""
    for v in f.variables:
        low, high, _ = bounds(f, v)
        tops = [(g, hi) for g, hi in high if not hi.term.free & set(f.variables)]
        start = next((g for g, lo in low if lo is ZERO), None)
        if start is None:
            continue
        for (g, hi), t in ((x, t) for x in tops for t in f.variables if t != v):
            c = hi + ONE
            w = a.variable(ctx, f.variables, f.body.term.free, *(x.free for x in f.guards))
            value = (atom(T.axis(w)) - a.product(c, atom(T.axis(t)), ctx)).term
            others = tuple(w if x == v else x for x in f.variables)
            moved = replaced(a, Fold(f.variables, f.guards - {start, g}, f.body), v, value, ctx, others)
            if moved is None or t in moved.body.term.free:
                continue
            inside = structural(value)
            window = {integer_literal("le", inside), integer_literal("le", hi - inside)}
            found = merged(a, Fold(others, moved.guards | window, moved.body), ctx)
            if found is not None and T.const(False) not in found.guards:
                return found
    return None


def _window(a: Algebra, f: Fold, t: Axis, ctx: Context) -> tuple[Poly, Poly, set[Term]] | None:
    """(c, w, guards) with the guards 0 <= w - c t and w - c t <= c - 1, c > 0."""
    forms = []
    for g in f.guards:
        if t in g.free and g.op == "le" and g.args[0] is T.const(0):
            kr = linear(structural(g.args[1]), t)
            if kr is not None:
                forms.append((g, *kr))
    for g, k, r in sorted(forms, key=lambda x: x[0].id):
        c = -k  # 0 <= r - c t
        if not any(v in r.term.free for v in f.variables if v != t):
            continue
        for h, k2, r2 in forms:
            if h is not g and k2 is c and r2 is c - ONE - r and a.implied(ctx, integer_literal("lt", c)):
                return c, r, {g, h}
    return None
