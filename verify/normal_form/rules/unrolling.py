"""Sums in other forms, for where the comparison of sums does not look: within exp, or a quotient.

sum[v] where(l <= v & v < l + 2 & g(v), f(v), 0)  =  where(g(l), f(l), 0) + where(g(l + 1), f(l + 1), 0)     few values
sum[v] where(g(v), f(v) sum[w] where(h(v, w), k(v, w), 0), 0)
                                                  =  sum[v, w] where(g(v) & h(v, w), f(v) k(v, w), 0)       products
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from trilift.lift.terms import construct as T
from trilift.lift.terms.term import Axis, Term

from .. import poly as P
from ..algebra import ALL, Algebra, Context, Undecided
from ..poly import Poly
from ..variables import bounds
from .fold import Fold, open_fold

UNROLLED_TERMS = 8


def unrolled(a: Algebra, t: Term, ctx: Context) -> Term:
    """A term in normal form with every sum of which a variable has at most UNROLLED_TERMS values opened there; the term
    itself if there is none."""

    def opened(f: Fold) -> Term | None:
        return next((_values(f, v, low, n) for v in f.variables for low, n in _few(f, v)), None)

    return _each_sum(a, t, ctx, opened)


def multiplied_out(a: Algebra, t: Term, ctx: Context) -> Term:
    """A term in normal form with every product of sums in a sum as one sum over all variables; the term itself if there
    is none."""

    def opened(f: Fold) -> Term | None:
        parts = [_one_sum(a, f, P.monomial(m, c), ctx) for m, c in f.body.terms.items()]
        return T.add(*map(_closed, parts)) if any(g.variables != f.variables for g in parts) else None

    return _each_sum(a, t, ctx, opened)


def _each_sum(a: Algebra, t: Term, ctx: Context, opened: Callable[[Fold], Term | None]) -> Term:
    def one(s: Term) -> Term | None:
        if s.op != "sum":
            return None
        try:
            return opened(open_fold(a, s, ctx))
        except Undecided:
            return None

    return T.rewrite(t, one)


def _few(f: Fold, v: Axis) -> list[tuple[Term, int]]:
    """(l, n) where the guards say l <= v < l + n for a number n."""
    low, high, _ = bounds(f, v)
    found = [(lo.term, (hi - lo).constant) for _, lo in low for _, hi in high]
    return [(lo, d + 1) for lo, d in found if isinstance(d, int) and 0 <= d < UNROLLED_TERMS]


def _values(f: Fold, v: Axis, low: Term, n: int) -> Term:
    """The sum over the others where v is low, low + 1, ...; low may mention the others."""
    others = [w for w in f.variables if w != v]
    return T.add(*(_over(others, T.substitute(_inside(f), {v: T.add(low, k)})) for k in range(n)))


def _one_sum(a: Algebra, f: Fold, m: Poly, ctx: Context) -> Fold:
    """The sum of one monomial, sums among its factors joined with it."""
    (((factors, e), c),) = m.terms.items()
    inner = [T.TERMS[i] for i, k in factors if k == 1 and T.TERMS[i].op == "sum" and T.TERMS[i].attr.size is ALL]
    ids = {t.id for t in inner}
    found = Fold(f.variables, f.guards, P.monomial((tuple(x for x in factors if x[0] not in ids), e), c))
    for t in inner:
        g = open_fold(a, t, ctx, found.variables, m.term.free, *(x.free for x in found.guards))
        body = a.product(found.body, g.body, ctx)
        found = Fold((*found.variables, *g.variables), found.guards | g.guards, body)
    return found


def _closed(f: Fold) -> Term:
    return _over(f.variables, _inside(f))


def _inside(f: Fold) -> Term:
    guards = sorted(f.guards, key=lambda g: g.id)
    return T.where(T.make("and", T.const(True), *guards), f.body.term, 0)


def _over(variables: Iterable[Axis], t: Term) -> Term:
    for w in variables:
        t = T.fold("sum", w, t)
    return t
