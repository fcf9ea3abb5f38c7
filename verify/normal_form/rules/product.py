"""Products over guarded variables."""

from __future__ import annotations

import math

from trilift.lift.terms import construct as T
from trilift.lift.terms.term import Axis, Term

from .. import poly as P
from ..algebra import Algebra, Context, Undecided, is_infinite, rule
from ..literals import integer_literal
from ..piecewise import condition, require
from ..poly import ONE, ONE_KEY, POLYS, ZERO, Poly, atom, number
from ..variables import bounds, merged, pinned, replaced, shifted, trimmed
from .fold import Fold, close, open_fold, pieces
from .sum import sum_over


@rule("prod")
def _(a: Algebra, t: Term, ctx: Context) -> Poly:
    out = ONE
    for f in pieces(a, t, ctx):
        out = a.product(out, product_over(a, f, ctx), ctx)
    return out


def product_over(a: Algebra, f: Fold, ctx: Context) -> Poly:
    """prod f g = prod f prod g, prod exp(e) = exp(sum e), prod c = exp(log(c) sum 1) for c > 0."""
    if is_infinite(f.body):
        raise Undecided("a product of infinities")
    if len(f.body.terms) != 1:
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
        return _pin(a, f, *pin, ctx)
    for v in f.variables:
        if (g := shifted(a, f, v, ctx)) is not f:
            return product_over(a, g, ctx)
    if (m := merged(a, f, ctx)) is not None:
        return ONE if T.const(False) in m.guards else _product_of(a, m, ctx)
    before, f = f, trimmed(a, f, ctx)
    if f.guards != before.guards:
        return _product_of(a, f, ctx)
    last = _last(f)
    return atom(close("prod", f)) if last is None else _without_last(a, f, *last, ctx)


def _pin(a: Algebra, f: Fold, v: Axis, value: Poly, ctx: Context) -> Poly:
    """The product with v at its only value."""
    new = replaced(a, f, v, value.term, ctx, tuple(x for x in f.variables if x != v))
    if new is None:
        return ONE
    if new.variables:
        return product_over(a, new, ctx)
    return new.body if all(require(a, g, ctx) for g in sorted(new.guards, key=lambda g: g.id)) else ONE


def _without_last(a: Algebra, f: Fold, v: Axis, top_guard: Term, hi: Poly, ctx: Context) -> Poly:
    """prod[v <= hi] f = f(hi) prod[v <= hi - 1] f, without f(hi) where its guards do not hold."""
    less = Fold(f.variables, f.guards - {top_guard} | {integer_literal("le", hi - ONE - atom(T.axis(v)))}, f.body)
    guards = [
        condition(a, T.substitute(x, {v: hi.term}), ctx) for x in sorted(f.guards - {top_guard}, key=lambda x: x.id)
    ]
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
