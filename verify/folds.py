"""Sums and maxima over variables that guards restrict.

    sum[j, k: g(j, k)] m          amax[j: g(j)] p          g is a set of literals, no range; any number of variables

As terms they are nested folds over axes of unlimited size, where(g, m, unit), with bound names %1, %2 ... by height.
In normal form a variable is shifted so that it is the index of what is read:

    sum[l: 0 <= l < B] x[t B + l]               =  sum[j: t B <= j < t B + B] x[j]
    sum[t: 0 <= t < T] sum[j: t B <= j < t B + B] f(j)  =  sum[j: 0 <= j < T B] f(j)
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import permutations

from lift import term as T
from lift.term import Axis, Term

from . import poly as P
from .algebra import (
    ALL,
    MINUS_INF,
    PLUS_INF,
    Algebra,
    Context,
    Facts,
    Split,
    Undecided,
    is_infinite,
    negated_infinity,
    rule,
)
from .choices import (
    condition,
    conjunction,
    divided,
    floor_division,
    indicator,
    integer_literal,
    is_integer,
    real_literal,
    require,
    truth,
    undecided,
)
from .poly import ONE, ONE_KEY, POLYS, ZERO, Monomial, Poly, atom, number

UNIT = {"sum": 0, "amax": -math.inf, "prod": 1, "argmax": -math.inf, "argmin": math.inf}


@dataclass(frozen=True, slots=True)
class Fold:
    """The body for all values of the variables that meet the guards."""

    variables: tuple[Axis, ...]
    guards: Facts
    body: Poly


# ---- terms and folds -------------------------------------------------------------------------------------------------


def close(kind: str, f: Fold) -> Term:
    """The fold as a term: bound names by height, the order of variables by the text of what results."""
    if len(f.variables) == 1:
        return _nested(kind, f, f.variables)
    orders = permutations(f.variables) if len(f.variables) <= 3 else [f.variables]
    return min((_nested(kind, f, order) for order in orders), key=repr)


def _nested(kind: str, f: Fold, order: tuple[Axis, ...]) -> Term:
    inside = T.node("where", (T.make("and", *f.guards) if len(f.guards) > 1 else next(iter(f.guards)),
                              f.body.term, T.const(UNIT[kind])), None, f.body.term.type)  # fmt: skip
    base = height(inside)
    names = [Axis(f"%{base + k + 1}", ALL) for k in range(len(order))]
    t = T.substitute(inside, {v: T.axis(n) for v, n in zip(reversed(order), names, strict=True)})
    for n in names:
        t = T.fold(kind, n, t)
    return t


_HEIGHT: dict[int, int] = {}


def height(t: Term) -> int:
    """The greatest k of a name %k bound in the term."""
    found = _HEIGHT.get(t.id)
    if found is None:
        own = int(t.attr.name[1:]) if t.op in T.FOLDS and t.attr.name[0] == "%" else 0
        found = _HEIGHT[t.id] = max([own, *(height(a) for a in t.args)])
    return found


def open_fold(a: Algebra, t: Term, ctx: Context, *avoid: Iterable[Axis]) -> Fold:
    """A fold in normal form with variables in place of its bound ones that nobody else has."""
    kind = t.op
    variables = []
    while t.op == kind and t.attr.size is ALL:
        v = a.variable(ctx, t.free, variables, *avoid)
        t = T.substitute(t.args[0], {t.attr: T.axis(v)})
        variables.append(v)
    if t.op != "where":
        raise Undecided("a fold without guards")
    c, x, y = t.args
    if x.is_const and x.attr == UNIT[kind] and not y.is_const:
        c, x = T.make("not", c), y
    return Fold(tuple(variables), frozenset(c.args if c.op == "and" else (c,)), structural(x))


_STRUCTURAL: dict[int, Poly] = {}


def structural(t: Term) -> Poly:
    """The polynomial of a term in normal form, perhaps with variables renamed: its atoms stay as they are."""
    found = _STRUCTURAL.get(t.id)
    if found is None:
        found = _STRUCTURAL[t.id] = _structural(t)
    return found


def _structural(t: Term) -> Poly:
    if t.op == "const":
        return number(int(t.attr) if isinstance(t.attr, bool) else t.attr)
    if t.op == "add":
        return P.total((1, structural(s)) for s in t.args)
    if t.op == "mul":
        out: dict[int, P.Power] = {}
        e, c = ZERO, 1
        for s in t.args:
            p = structural(s)
            if len(p.terms) != 1:
                return atom(t)
            ((factors, f), d) = next(iter(p.terms.items()))
            c = c * d  # type: ignore[assignment]
            e = e + POLYS[f]
            for b, k in factors:
                out[b] = out.get(b, 0) + k
        return P.product_with_exponential(tuple(sorted((b, k) for b, k in out.items() if k)), e, c)
    if t.op == "exp":
        return P.exponential(structural(t.args[0]))
    if t.op in ("recip", "sqrt"):
        inner = structural(t.args[0])
        k: P.Power = -1 if t.op == "recip" else P.HALF
        if t.op == "recip" and len(inner.terms) == 1:
            ((factors, e_), c_) = next(iter(inner.terms.items()))
            if c_ == 1 and not e_:
                return P.poly({(tuple((b, -j) for b, j in factors), 0): 1})
        return atom(t.args[0], k)
    return atom(t)


# ---- variables -------------------------------------------------------------------------------------------------------


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


def trimmed(a: Algebra, f: Fold, ctx: Context) -> Fold:
    """Without guards that the other guards and the simple facts imply. Others, n < trips or the case at hand, would make
    a fold look different where it moves out of them."""
    ctx = a.context(x for x in ctx.facts if _simple(x))
    guards = set(f.guards)
    for g in sorted(f.guards, key=lambda g: (-len(g.free), g.id)):
        rest = guards - {g}
        if rest and not (g.free & set(f.variables)):
            if a.implied(ctx, g):
                guards = rest
        elif rest and a.implied(a.given(ctx, *rest), g) and _bounded(f, rest):
            guards = rest
    return Fold(f.variables, frozenset(guards), f.body)


def _simple(fact: Term) -> bool:
    """A fact about sizes only, or a bound of one variable by a number."""
    return not fact.free or (len(fact.free) == 1 and all(s.op != "size" for s in fact.walk()))


def _bounded(f: Fold, guards: set[Term]) -> bool:
    return all(any(v in g.free for g in guards) for v in f.variables)


def shifted(a: Algebra, f: Fold, v: Axis, ctx: Context) -> Fold:
    """v replaced by w so that what is read first is read at w; without reads w starts at its lower bound."""
    found = _shift(a, f, v)
    if found is None:
        return f
    w = a.variable(ctx, f.variables, f.body.term.free, *(g.free for g in f.guards))
    sign, delta = found  # w = sign * v + delta, so v = sign * (w - delta)
    value = P.scaled(atom(T.axis(w)) - delta, sign).term
    new = replaced(a, f, v, value, ctx, tuple(w if x == v else x for x in f.variables))
    return new if new is not None else f


def _shift(a: Algebra, f: Fold, v: Axis) -> tuple[int, Poly] | None:
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
            candidates.append(((str(t.attr), position, repr(k.term)), k, rest))
    if not candidates:
        low, high, other = bounds(f, v)
        if v not in f.body.term.free and (step := _joint(f, v, [lo for _, lo in low], high)) is not None:
            return 1, step
        starts = [lo for _, lo in low if lo is not ZERO and not lo.term.free & set(f.variables)]
        return (1, -starts[0]) if len(low) == 1 and starts else None
    k, delta = _origin(a, candidates)
    if k.constant == -1:
        return -1, -delta
    return (1, delta) if delta is not ZERO else None


def _origin(a: Algebra, reads: list[tuple[tuple[str, int, str], Poly, Poly]]) -> tuple[Poly, Poly]:
    """(k, delta) of the read that becomes the origin: the one from which all reads look least, so that a fold that was
    shifted by anything chooses the same one."""
    deltas = {_step(a, k, rest): k for _, k, rest in sorted(reads, key=lambda c: (c[0], repr(c[2].term)), reverse=True)}
    if len(deltas) > 1:
        seen = {d: sorted((key, repr((r - _times(k, d)).term)) for key, k, r in reads) for d in deltas}
        best = min(seen.values())
        deltas = {d: k for d, k in deltas.items() if seen[d] == best}
    delta = ZERO if ZERO in deltas else min(deltas, key=lambda d: repr(d.term))
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
    """What a guard adds to v, 0 <= v < c, in other variables: v + c t is an index of its own."""
    others = set(f.variables) - {v}
    if ZERO not in low or not any(hi.constant is not None for _, hi in high):
        return None
    for _, hi in high:  # v <= hi
        mine = P.poly({m: c for m, c in hi.terms.items() if P.as_term(m).free & others})
        if mine is not ZERO and all(len(m[0]) > 1 or abs(c) > 1 for m, c in mine.terms.items()):
            return -mine
    return None


def _step(a: Algebra, k: Poly, rest: Poly) -> Poly:
    """The part of rest that moves v: rest = k * delta + what steps between rows."""
    mine = {}
    for m, c in rest.terms.items():
        rows = any(_is_row(a, m, s, k) for s in a.strides)
        if not rows:
            mine[m] = c
    return divided(P.poly(mine), k)[0] if len(k.terms) == 1 else ZERO


def _is_row(a: Algebra, m: Monomial, stride: Term, k: Poly) -> bool:
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
            if kr[0].constant == 1:  # t >= -r: w >= c * -r
                d = w + a.product(c, kr[1], ctx)
            else:  # t <= r: w <= c r + c - 1
                d = a.product(c, kr[1] + ONE, ctx) - ONE - w
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
            if h is not g and k2 is c and r2 is c - ONE - r:
                if a.implied(ctx, integer_literal("lt", c)):
                    return c, r, {g, h}
    return None


# ---- sums ------------------------------------------------------------------------------------------------------------


def sum_over(a: Algebra, f: Fold, ctx: Context) -> Poly:
    """The sum of a polynomial, monomial by monomial."""
    if is_infinite(f.body):
        raise Undecided("a sum of infinities")
    return P.total((c, _sum_of(a, Fold(f.variables, f.guards, P.monomial(m)), ctx)) for m, c in f.body.terms.items())


def _sum_of(a: Algebra, f: Fold, ctx: Context) -> Poly:
    """sum of one monomial: factors that no variable is in move out, an inner sum joins."""
    ((factors, e), _) = next(iter(f.body.terms.items()))
    bound = set(f.variables)
    out = tuple((b, k) for b, k in factors if not (T.TERMS[b].free & bound))
    mine = tuple((b, k) for b, k in factors if T.TERMS[b].free & bound)
    terms = POLYS[e].terms.items()
    e_out = P.poly({m: c for m, c in terms if not (P.as_term(m).free & bound)})
    e_in = P.poly({m: c for m, c in terms if P.as_term(m).free & bound})
    outside = P.product_with_exponential(out, e_out)
    sums = [(b, k) for b, k in mine if T.TERMS[b].op == "sum"]
    if len(sums) == 1 and sums[0][1] == 1:
        inner = open_fold(a, T.TERMS[sums[0][0]], ctx, f.variables, f.body.term.free, *(g.free for g in f.guards))
        rest = P.product_with_exponential(tuple(x for x in mine if x != sums[0]), e_in)
        inside = a.given(ctx, *f.guards, *inner.guards)
        body = a.product(rest, inner.body, inside)
        joined = Fold((*f.variables, *inner.variables), f.guards | inner.guards, body)
        return a.product(outside, sum_over(a, joined, ctx), ctx)
    found = _settle(a, Fold(f.variables, f.guards, P.product_with_exponential(mine, e_in)), ctx)
    return a.product(outside, found, ctx)


def _settle(a: Algebra, f: Fold, ctx: Context) -> Poly:
    """A sum whose monomial depends on its variables: pinned, shifted, merged, counted, and at last an atom."""
    if not f.variables:
        return f.body if _all_hold(a, f.guards, ctx) else ZERO
    if a.impossible(a.given(ctx, *f.guards)):
        return ZERO
    pin = pinned(a, f, ctx)
    if pin is not None:
        v, value = pin
        return _pin(a, f, v, value, ctx)
    for v in f.variables:
        g = shifted(a, f, v, ctx)
        if g is not f:
            return sum_over(a, g, ctx) if len(g.body.terms) != 1 or g.body is not f.body else _settle(a, g, ctx)
    m = merged(a, f, ctx)
    if m is not None:
        return ZERO if T.const(False) in m.guards else _settle(a, m, ctx)
    before, f = f, trimmed(a, f, ctx)
    if f.guards != before.guards:
        return _settle(a, f, ctx)
    for v in f.variables:
        if v not in f.body.term.free:
            counted = _counted(a, f, v, ctx)
            if counted is not None:
                return counted
    return atom(close("sum", f))


def _pin(a: Algebra, f: Fold, v: Axis, value: Poly, ctx: Context) -> Poly:
    new = replaced(a, f, v, value.term, ctx, tuple(x for x in f.variables if x != v))
    if new is None:
        return ZERO
    if new.variables:
        return sum_over(a, new, ctx)
    return new.body if _all_hold(a, new.guards, ctx) else ZERO


def _counted(a: Algebra, f: Fold, v: Axis, ctx: Context) -> Poly | None:
    """sum[v: l <= v <= u] m = (u - l + 1) m, for l <= u + 1, if m has no v."""
    low, high, other = bounds(f, v)
    if other or len(low) != 1 or len(high) != 1:
        return None
    rest_guards = f.guards - {low[0][0], high[0][0]}
    count = high[0][1] - low[0][1] + ONE
    literal = integer_literal("le", count)
    here = a.given(ctx, *rest_guards)
    if not a.implied(here, literal):
        if a.implied(here, T.make("not", literal)):
            return ZERO
        if literal.free & set(f.variables):
            return None
        raise Split(literal)
    rest = tuple(x for x in f.variables if x != v)
    if not rest:
        return a.product(count, f.body, ctx) if _all_hold(a, rest_guards, ctx) else ZERO
    return sum_over(a, Fold(rest, rest_guards, a.product(count, f.body, here)), ctx)


def _all_hold(a: Algebra, guards: Iterable[Term], ctx: Context) -> bool:
    """Whether guards that no variable is in hold. Split where the facts leave one open."""
    return all(require(a, g, ctx) for g in sorted(guards, key=lambda g: g.id))


def pieces(a: Algebra, t: Term, ctx: Context) -> list[Fold]:
    """The body of a fold term by cases, each with its guards."""
    v = a.variable(ctx, t.free, t.args[0].free)
    guards: list[Term] = []
    body = T.substitute(t.args[0], {t.attr: T.axis(v)})
    if t.attr.size is not ALL:
        n = a.normal(t.attr.size, ctx)
        i = atom(T.axis(v))
        guards = [integer_literal("le", i), integer_literal("lt", n - i)]
    here = a.given(ctx, *guards)
    unit = T.const(UNIT.get(t.op, 0))
    while body.op == "where" and body.args[2] is unit and t.op in ("sum", "amax", "prod", "argmax"):
        c = condition(a, body.args[0], here)
        literals = c.args if c.op == "and" else (c,)
        if not all(is_integer(x) or x.is_const for x in literals):
            break
        guards += [x for x in literals if x is not T.const(True)]
        here = a.given(ctx, *guards)
        body = body.args[1]
    if T.const(False) in guards or a.impossible(here):
        return []
    mine = lambda literal: v in literal.free  # noqa: E731
    return [
        Fold((v,), frozenset([*guards, *literals]), p)
        for literals, p in a.cases(body, here, mine)
        if not (t.op == "sum" and p is ZERO)
    ]


@rule("sum")
def _(a: Algebra, t: Term, ctx: Context) -> Poly:
    return P.total((1, sum_over(a, f, ctx)) for f in pieces(a, t, ctx))


# ---- maxima ----------------------------------------------------------------------------------------------------------


@rule("amax")
def _(a: Algebra, t: Term, ctx: Context) -> Poly:
    return extremum(a, [f for f in pieces(a, t, ctx) if f.body is not MINUS_INF], ctx)


@rule("amin")
def _(a: Algebra, t: Term, ctx: Context) -> Poly:
    """amin f = -amax -f."""
    p = a.normal(T.fold("amax", t.attr, T.mul(-1, t.args[0])), ctx)
    return negated_infinity(p) if is_infinite(p) else -p


def lattice(a: Algebra, ps: list[Poly], ctx: Context) -> Poly:
    """max of polynomials: with folds one set of elements; without, indicators."""
    ps = [p for p in dict.fromkeys(ps) if p is not MINUS_INF]
    if not ps:
        return MINUS_INF
    if PLUS_INF in ps:
        return PLUS_INF
    if len(ps) == 1:
        return ps[0]
    if any(_maximum_in(p) is not None for p in ps):
        return extremum(a, [Fold((), frozenset(), p) for p in ps], ctx)
    out = ps[0]
    for p in ps[1:]:
        out = _larger(a, out, p, ctx)
    return out


def _larger(a: Algebra, p: Poly, q: Poly, ctx: Context) -> Poly:
    """max(p, q) = q + [0 < p - q] (p - q)."""
    d = p - q
    literal = real_literal(a, "lt", d, ctx)
    known = truth(a, literal, ctx)
    if known is not None:
        return p if known else q
    if literal.op == "lt" and literal.args[0] is not T.const(0):
        d, q = -d, p
        literal = real_literal(a, "lt", d, ctx)
    weight = indicator(literal) if literal.op == "lt" else conjunction(a, literal, ctx)
    return a.add([q, a.product(weight, d, ctx)])


def _maximum_in(p: Poly) -> tuple[int, P.Number] | None:
    """(atom, c) where p is c > 0 times the atom of a maximum, up to addends."""
    found = [(b, c) for (factors, e), c in p.terms.items() if c > 0 and not e and len(factors) == 1
             for b, k in factors if k == 1 and T.TERMS[b].op in ("amax", "max")]  # fmt: skip
    return found[0] if len(found) == 1 else None


def elements(a: Algebra, t: Term, ctx: Context, *avoid: Iterable[Axis]) -> list[Fold]:
    """The elements of a maximum in normal form."""
    if t.op == "max":
        return [f for s in t.args for f in elements(a, s, ctx, *avoid)]
    return (
        [open_fold(a, t, ctx, *avoid)]
        if t.op == "amax" and t.attr.size is ALL
        else [Fold((), frozenset(), structural(t))]
    )


def extremum(a: Algebra, folds: list[Fold], ctx: Context) -> Poly:
    """The maximum of everything in the folds: inner maxima opened, variables shifted."""
    out: dict[Term, Fold] = {}
    todo = list(folds)
    while todo:
        f = todo.pop()
        if f.body is MINUS_INF or a.impossible(a.given(ctx, *f.guards)):
            continue
        if is_infinite(f.body):
            if not _inhabited(a, f, ctx):
                raise Undecided("infinity for some values of a variable, perhaps for none")
            return PLUS_INF
        inner = _maximum_in(f.body)
        if inner is not None:
            i, c = inner
            rest = f.body - P.scaled(atom(T.TERMS[i]), c)
            todo += [Fold((*f.variables, *g.variables), f.guards | g.guards, rest + P.scaled(g.body, c))
                     for g in elements(a, T.TERMS[i], ctx, f.variables, f.body.term.free, *(x.free for x in f.guards))]  # fmt: skip
            continue
        f = _normal_element(a, f, ctx)
        if f.variables and not f.body.term.free & set(f.variables) and _inhabited(a, f, ctx):
            f = Fold((), frozenset(), f.body)  # the maximum of a constant over something
        if f.variables and not f.guards:
            raise Undecided("a maximum without guards")
        out[close("amax", f) if f.variables else f.body.term] = f
    if not out:
        return MINUS_INF
    if len(out) == 1:
        return _single(a, next(iter(out.values())))
    k, *more = {_scale(f.body) for f in out.values()}
    if not more and k != 1:  # max(k f, k g) = k max(f, g) for k > 0
        folds_ = [Fold(f.variables, f.guards, P.scaled(f.body, _inverse(k))) for f in out.values()]
        out = {close("amax", f) if f.variables else f.body.term: f for f in folds_}
        return P.scaled(_set(out), k)
    return _set(out)


def _set(out: Iterable[Term]) -> Poly:
    return atom(T.node("max", tuple(sorted(out, key=lambda t: t.id)), None, T.REAL))


def _scale(p: Poly) -> P.Number:
    """The size of the first coefficient."""
    return abs(p.terms[min(p.terms, key=lambda m: repr(P.as_term(m)))]) if p.terms else 1


def _inverse(k: P.Number) -> P.Number:
    return P.tidy(1 / k if isinstance(k, float) else P.Fraction(1) / P.Fraction(k))


def _normal_element(a: Algebra, f: Fold, ctx: Context) -> Fold:
    if not f.variables:
        return f
    if (pin := pinned(a, f, ctx)) is not None:
        new = replaced(a, f, pin[0], pin[1].term, ctx, tuple(x for x in f.variables if x != pin[0]))
        if new is not None and new.variables:
            return _normal_element(a, new, ctx)
        if new is not None:
            for g in sorted(new.guards, key=lambda g: g.id):
                require(a, g, ctx)
            return Fold((), frozenset(), new.body if all(truth(a, g, ctx) for g in new.guards) else MINUS_INF)
    for v in f.variables:
        g = shifted(a, f, v, ctx)
        if g is not f:
            return _normal_element(a, g, ctx)
    m = merged(a, f, ctx)
    if m is not None:
        return _normal_element(a, m, ctx)
    dropped = trimmed(a, f, ctx)
    if dropped.guards != f.guards:
        return _normal_element(a, dropped, ctx)
    for v in dropped.variables:
        if v not in dropped.body.term.free and len(dropped.variables) > 1:
            low, high, other = bounds(dropped, v)
            if not other and len(low) == len(high) == 1:
                guards = dropped.guards - {low[0][0], high[0][0]}
                if a.implied(a.given(ctx, *guards), integer_literal("le", high[0][1] - low[0][1])):
                    rest = tuple(x for x in dropped.variables if x != v)
                    return _normal_element(a, Fold(rest, guards, dropped.body), ctx)
    return dropped


def _single(a: Algebra, f: Fold) -> Poly:
    """amax(k f + c) = k amax(f) + c for a number k > 0 and c without variables."""
    if not f.variables:
        return f.body
    bound = set(f.variables)
    outside = P.poly({m: c for m, c in f.body.terms.items() if not (P.as_term(m).free & bound)})
    inside = f.body - outside
    if inside is ZERO:
        return atom(close("amax", Fold(f.variables, f.guards, ZERO))) + outside
    k = _scale(inside)
    scaled = P.scaled(inside, _inverse(k))
    return P.scaled(atom(close("amax", Fold(f.variables, f.guards, scaled))), k) + outside


def nonempty(a: Algebra, t: Term, ctx: Context) -> bool:
    """Whether a maximum is over something. Split on a condition that would tell."""
    open_: list[Term] = []
    for f in elements(a, t, ctx):
        found = _emptiness(a, f, ctx)
        if found is True:
            return True
        open_ += found or []
    if open_:
        raise Split(min(open_, key=lambda g: g.id))
    return False


def _emptiness(a: Algebra, f: Fold, ctx: Context) -> bool | list[Term]:
    """True where something meets the guards; else the open conditions for the lowest values to meet them."""
    literals = _at_lowest(a, f, ctx) if f.variables else []
    if literals is None:
        return False
    answers = [truth(a, g, ctx) for g in literals]
    if all(answers):
        return True
    if False in answers:
        return False
    open_ = [g for g, known in zip(literals, answers, strict=True) if known is None]
    return [x for g in open_ for x in undecided(a, g, ctx) if is_integer(x)]


def _inhabited(a: Algebra, f: Fold, ctx: Context) -> bool:
    found = _emptiness(a, f, ctx)
    if found and found is not True:
        raise Split(min(found, key=lambda g: g.id))
    return found is True


def _at_lowest(a: Algebra, f: Fold, ctx: Context) -> list[Term] | None:
    """What is left of the guards where every variable has its lower bound."""
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


# ---- products --------------------------------------------------------------------------------------------------------


@rule("prod")
def _(a: Algebra, t: Term, ctx: Context) -> Poly:
    out = ONE
    for f in pieces(a, t, ctx):
        out = a.product(out, product_over(a, f, ctx), ctx)
    return out


def product_over(a: Algebra, f: Fold, ctx: Context) -> Poly:
    """prod f g = prod f prod g, prod exp(e) = exp(sum e), prod c = exp(log(c) sum 1) for c > 0."""
    if len(f.body.terms) != 1 or is_infinite(f.body):
        return _product_of(a, f, ctx)
    ((factors, e), c) = next(iter(f.body.terms.items()))
    out = ONE
    exponent = POLYS[e] if c <= 0 or c == 1 else POLYS[e] + number(math.log(c))
    if exponent is not ZERO:
        out = P.exponential(sum_over(a, Fold(f.variables, f.guards, exponent), ctx))
    if c < 0:
        out = a.product(out, _product_of(a, Fold(f.variables, f.guards, number(c)), ctx), ctx)
    for b, k in factors:
        whole = isinstance(k, int) and k > 0
        one = _product_of(a, Fold(f.variables, f.guards, atom(T.TERMS[b], 1 if whole else k)), ctx)
        for _ in range(int(k) if whole else 1):
            out = a.product(out, one, ctx)
    return out


def _product_of(a: Algebra, f: Fold, ctx: Context) -> Poly:
    """A product that does not fall apart: an inner one joined, pinned, shifted, merged, its last factor taken out."""
    if not f.variables:
        return f.body
    if a.impossible(a.given(ctx, *f.guards)):
        return ONE
    inner = _inner_product(f.body)
    if inner is not None:
        g = open_fold(a, inner, ctx, f.variables, f.body.term.free, *(x.free for x in f.guards))
        return _product_of(a, Fold((*f.variables, *g.variables), f.guards | g.guards, g.body), ctx)
    if (pin := pinned(a, f, ctx)) is not None:
        new = replaced(a, f, pin[0], pin[1].term, ctx, tuple(x for x in f.variables if x != pin[0]))
        if new is None:
            return ONE
        if new.variables:
            return product_over(a, new, ctx)
        return new.body if all(require(a, g, ctx) for g in sorted(new.guards, key=lambda g: g.id)) else ONE
    for v in f.variables:
        if (g := shifted(a, f, v, ctx)) is not f:
            return product_over(a, g, ctx)
    if (m := merged(a, f, ctx)) is not None:
        return ONE if T.const(False) in m.guards else _product_of(a, m, ctx)
    before, f = f, trimmed(a, f, ctx)
    if f.guards != before.guards:
        return _product_of(a, f, ctx)
    last = _last(f)
    if last is None:
        return atom(close("prod", f))
    v, top_guard, hi = last
    less = Fold(f.variables, f.guards - {top_guard} | {integer_literal("le", hi - ONE - atom(T.axis(v)))}, f.body)
    guards = [condition(a, T.substitute(x, {v: hi.term}), ctx) for x in sorted(f.guards - {top_guard}, key=lambda x: x.id)]
    if not all(require(a, x, ctx) for x in guards):
        return _product_of(a, less, ctx)
    top = a.normal(T.substitute(f.body.term, {v: hi.term}), ctx)
    return a.product(top, _product_of(a, less, ctx), ctx)


def _inner_product(p: Poly) -> Term | None:
    """The product that p is."""
    found = next((T.TERMS[b] for b in p.atoms if T.TERMS[b].op == "prod"), None)
    return found if found is not None and p is atom(found) else None


def _last(f: Fold) -> tuple[Axis, Term, Poly] | None:
    """(v, v <= hi, hi) where hi is n, n + 1 or n + 2: it becomes n - 1, prod[s < n + 1] f = f(n) prod[s < n] f."""
    if len(f.variables) != 1:
        return None
    v = f.variables[0]
    for g, hi in bounds(f, v)[1]:
        c = hi.terms.get(ONE_KEY, 0)
        if hi.constant is None and 0 <= c <= 2 and all(abs(k) == 1 for m, k in hi.terms.items() if m != ONE_KEY):
            return v, g, hi
    return None


# ---- where the maximum is --------------------------------------------------------------------------------------------


@rule("argmax")
def _(a: Algebra, t: Term, ctx: Context) -> Poly:
    """The first index of the maximum. It moves with the variable: argmax[v] f(v + d) = argmax[w] f(w) - d."""
    parts = [f for f in pieces(a, t, ctx) if f.body is not MINUS_INF]
    if len(parts) > 1:
        raise Undecided("argmax of a choice")
    if not parts or not _inhabited(a, parts[0], ctx):
        if t.attr.size is ALL or (parts and not a.impossible(a.given(ctx, *parts[0].guards))):
            raise Undecided("argmax may be over nothing")
        return ZERO
    return index_of_maximum(a, parts[0], ctx)


def index_of_maximum(a: Algebra, f: Fold, ctx: Context) -> Poly:
    """argmax over something: the variable shifted so that what is read first is read at it, or at its negative."""
    (v,) = f.variables
    if (pin := pinned(a, f, ctx)) is not None:
        return pin[1]
    found = _shift(a, f, v)
    offset = ZERO if found is None else -found[1] if found[0] == 1 else found[1]
    if offset is not ZERO:
        w = a.variable(ctx, f.variables, f.body.term.free, *(g.free for g in f.guards))
        new = replaced(a, f, v, (atom(T.axis(w)) + offset).term, ctx, (w,))
        if new is None:
            raise Undecided("argmax may be over nothing")
        return index_of_maximum(a, new, ctx) + offset
    f = trimmed(a, f, ctx)
    bound = set(f.variables)
    inside = P.poly({m: c for m, c in f.body.terms.items() if P.as_term(m).free & bound})
    inside = P.scaled(inside, _inverse(_scale(inside))) if inside is not ZERO else ZERO
    return atom(close("argmax", Fold(f.variables, f.guards, inside)))


@rule("argmin")
def _(a: Algebra, t: Term, ctx: Context) -> Poly:
    """argmin f = argmax -f."""
    return a.normal(T.fold("argmax", t.attr, T.mul(-1, t.args[0])), ctx)


__all__ = ["Fold", "close", "elements", "floor_division", "nonempty", "open_fold", "structural", "sum_over"]
_ = ONE_KEY
