"""Sums over few values as the sums of those values.

sum[v] where(l <= v & v < l + 2 & g(v), f(v), 0)  =  where(g(l), f(l), 0) + where(g(l + 1), f(l + 1), 0)

A kernel that is written without the loop (tl.static_range) has the right side within exp or a quotient, where the
comparison of sums does not look.
"""

from __future__ import annotations

from lift import term as T
from lift.term import Axis, Term

from .algebra import Algebra, Context, Undecided
from .folds import Fold, open_fold
from .variables import bounds

FEW = 8


def unrolled(a: Algebra, t: Term, ctx: Context) -> Term:
    """A term in normal form with every outermost sum of which a variable has at most FEW values opened there; the term
    itself if there is none."""

    def opened(s: Term) -> Term | None:
        if s.op != "sum":
            return None
        try:
            f = open_fold(a, s, ctx)
        except Undecided:
            return None
        return next((_values(f, v, low, n) for v in f.variables for low, n in _few(f, v)), None)

    return T.rewrite(t, opened)


def _few(f: Fold, v: Axis) -> list[tuple[Term, int]]:
    """(l, n) where the guards say l <= v < l + n for a number n."""
    low, high, _ = bounds(f, v)
    found = [(lo.term, (hi - lo).constant) for _, lo in low for _, hi in high]
    return [(lo, d + 1) for lo, d in found if isinstance(d, int) and 0 <= d < FEW]


def _values(f: Fold, v: Axis, low: Term, n: int) -> Term:
    term = T.where(T.make("and", T.const(True), *sorted(f.guards, key=lambda g: g.id)), f.body.term, 0)
    for w in f.variables:
        if w != v:
            term = T.fold("sum", w, term)
    return T.add(*(T.substitute(term, {v: T.add(low, k)}) for k in range(n)))
