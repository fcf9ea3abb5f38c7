"""Sums in normal form: what no variable is in moves out, inner sums join, windows merge, constants are counted."""

from __future__ import annotations

import math
from collections.abc import Iterable

from trilift.lift.terms import construct as T
from trilift.lift.terms.term import Axis, Term

from .. import poly as P
from ..algebra import ALL, Algebra, Context, Split, Undecided, is_infinite, rule
from ..literals import integer_literal, opposite
from ..piecewise import divided, require
from ..poly import ONE, POLYS, ZERO, Poly, atom
from ..variables import bounds, equated, merged, pinned, replaced, shifted, simple, trimmed
from .fold import Fold, close, open_fold, pieces
from .inhabitance import vacant
from .maximum import inhabited

MANY = 12  # guards of a sum that is split no further
MAXIMA = {"amax", "amin", "max", "min"}
INFINITE = {math.inf, -math.inf}
Factors = tuple[tuple[int, P.Power], ...]  # atoms, each with its power


def sum_over(a: Algebra, f: Fold, ctx: Context) -> Poly:
    """The sum of a polynomial, monomial by monomial."""
    if is_infinite(f.body):
        return _of_infinite(a, f, ctx)
    return P.total((c, _sum_of(a, Fold(f.variables, f.guards, P.monomial(m)), ctx)) for m, c in f.body.terms.items())


def _of_infinite(a: Algebra, f: Fold, ctx: Context) -> Poly:
    """The sum of what is -inf, +inf or NaN wherever the guards hold: that, or 0 over nothing."""
    if a.impossible(a.given(ctx, *f.guards)) or vacant(a, f, ctx):
        return ZERO
    if not f.variables:
        return f.body if _all_hold(a, f.guards, ctx) else ZERO
    if inhabited(a, f, ctx):
        return f.body
    raise Undecided("a sum of infinities over perhaps nothing")


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
    mine, loose = _loosened(mine, bound)
    found = _settle(a, Fold(f.variables, f.guards | loose, P.product_with_exponential(mine, e_in)), ctx)
    return a.product(outside, found, ctx)


def _loosened(factors: Factors, bound: set[Axis]) -> tuple[Factors, frozenset[Term]]:
    """sum[i] m sum[j: g(j), c(i)] x = sum[i: c(i)] m sum[j: g(j)] x: the factors without conditions on the outer
    variables alone, and these."""
    out: dict[int, P.Power] = {}
    loose: set[Term] = set()
    for b, k in factors:
        t = T.TERMS[b]
        own = [] if t.op != "sum" or k <= 0 else _outer_conditions(t, bound)
        if own and len(own) < len(_conditions(t)):
            loose |= {*own}
            b = T.rewrite(t, {c: T.const(True) for c in own}.get).id
        out[b] = out.get(b, 0) + k
    return tuple(sorted((b, k) for b, k in out.items() if k)), frozenset(loose)


def _outer_conditions(t: Term, bound: set[Axis]) -> list[Term]:
    """The guards of a sum in normal form that are conditions on outer variables alone; in a normal form the names of
    inner ones begin with %."""
    return [c for c in _conditions(t) if c.free & bound and not any(x.name.startswith("%") for x in c.free)]


def _conditions(t: Term) -> list[Term]:
    """The guards of a sum in normal form; none where it is written otherwise, such as where(c, 0, x)."""
    while t.op == "sum" and t.attr.size is ALL:
        t = t.args[0]
    if t.op != "where" or t.args[2] is not T.const(0) or t.args[1].is_const:
        return []
    c = t.args[0]
    return [*c.args] if c.op == "and" else [c]


def _settle(a: Algebra, f: Fold, ctx: Context) -> Poly:
    """A sum whose monomial depends on its variables. A condition on them that is open splits the sum:
    sum[g] m = sum[g, c] m + sum[g, not c] m."""
    try:
        return _settled(a, f, ctx)
    except Split as split:
        if not split.literal.free & set(f.variables) or len(f.guards) > MANY:
            raise
        literal = split.literal
    halves = (Fold(f.variables, f.guards | {c}, f.body) for c in (literal, opposite(literal)))
    return P.total((1, _settle(a, half, ctx)) for half in halves)


def _settled(a: Algebra, f: Fold, ctx: Context) -> Poly:
    """Pinned, shifted, merged, counted, and at last an atom."""
    if not f.variables:
        return f.body if _all_hold(a, f.guards, ctx) else ZERO
    if a.impossible(a.given(ctx, *f.guards)) or vacant(a, f, ctx):
        return ZERO
    pin = pinned(a, f, ctx)
    if pin is not None:
        v, value = pin
        return _pin(a, f, v, value, ctx)
    known = equated(a, f, ctx)
    if known is not f:
        return sum_over(a, known, ctx)
    for v in f.variables:
        g = shifted(a, f, v, ctx)
        if g is not f and (g.guards, g.body) not in a.shifting:  # two origins may each look better from the other
            a.shifting.append((f.guards, f.body))
            try:
                return sum_over(a, g, ctx) if len(g.body.terms) != 1 or g.body is not f.body else _settle(a, g, ctx)
            finally:
                a.shifting.pop()
    m = merged(a, f, ctx)
    if m is not None:
        return ZERO if T.const(False) in m.guards else _settle(a, m, ctx)
    before, f = f, trimmed(a, f, ctx)
    if f.guards != before.guards:
        return _settle(a, f, ctx)
    if (body := _relieved(a, f, ctx)) is not None:
        return sum_over(a, Fold(f.variables, f.guards, body), ctx)
    idle = (v for v in f.variables if v not in f.body.term.free)
    counted = next((c for v in idle if (c := _counted(a, f, v, ctx)) is not None), None)
    return atom(close("sum", f)) if counted is None else counted


def _relieved(a: Algebra, f: Fold, ctx: Context) -> Poly | None:
    """sum[i: c(i)] F(sum[j: g(j), c(i)] x) = sum[i: c(i)] F(sum[j: g(j)] x), at any depth: the body less the conditions
    of inner sums that the guards imply; None where there is none."""
    bound = set(f.variables)
    inner = {c for s in f.body.term.walk() if s.op == "sum" for c in _outer_conditions(s, bound)}
    here = a.given(a.context(filter(simple, ctx.facts)), *f.guards) if inner else ctx
    gone = {c: T.const(True) for c in sorted(inner, key=lambda c: c.id) if a.implied(here, c)}
    return a.normal(T.rewrite(f.body.term, gone.get), a.given(ctx, *f.guards)) if gone else None


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


def addends(t: Term) -> list[Term]:
    """The bodies whose sums add up to the sum of a body: where(c, x + y, 0) = where(c, x, 0) + where(c, y, 0)."""
    if t.op == "add":
        return [s for x in t.args for s in addends(x)]
    if t.op == "where" and t.args[2] is T.const(0):
        parts = addends(t.args[1])
        return [T.where(t.args[0], x, t.args[2]) for x in parts] if len(parts) > 1 else [t]
    return [t]


def by_rows(a: Algebra, t: Term, ctx: Context) -> Term | None:
    """sum[r < p d] f(r // d, r % d) = sum[q < p] sum[m < d] f(q, m) for d > 0, no number; None where no body is so."""
    r = T.axis(t.attr)
    if t.attr.size is ALL:
        return None
    divisors = {s.args[1] for s in t.args[0].walk() if s.op in ("floordiv", "mod") and s.args[0] is r}
    for d in sorted((d for d in divisors if not d.free and not d.is_const), key=lambda d: d.id):
        width = a.normal(d, ctx)
        rows, rest = divided(a.normal(t.attr.size, ctx), width)
        if rest is not ZERO or not a.implied(ctx, integer_literal("lt", width)):
            continue
        q, m = Axis(f"{t.attr.name}/", rows.term), Axis(f"{t.attr.name}%", d)
        at = T.add(T.mul(d, T.axis(q)), T.axis(m))
        return T.fold(t.op, q, T.fold(t.op, m, T.substitute(t.args[0], {t.attr: at})))
    return None


@rule("sum")
def _(a: Algebra, t: Term, ctx: Context) -> Poly:
    """Sums addend by addend if no addend can be infinite: a condition that is open for one addend then does not split
    the others."""
    if (rows := by_rows(a, t, ctx)) is not None:
        return a.normal(rows, ctx)
    parts = addends(t.args[0])
    if len(parts) > 1 and not any(s.op in MAXIMA or (s.is_const and s.attr in INFINITE) for s in t.walk()):
        return a.add(a.normal(T.fold("sum", t.attr, x), ctx) for x in parts)
    return a.add(sum_over(a, f, ctx) for f in pieces(a, t, ctx))
