"""floor, ceil, trunc and round of numbers that are whole: of integers, their sums and products, and counts."""

from __future__ import annotations

from trilift.lift.terms import construct as T
from trilift.lift.terms.term import Term

from .. import poly as P
from ..algebra import INDICATORS, Algebra, Context, finite, is_infinite, opaque, rule
from ..poly import Poly, atom

WHOLE = {"trunc", "floor", "ceil", "round", *INDICATORS}
KEEPING = {"add", "mul", "max", "min", "where", "sum", "prod", "amax", "amin", "abs"}


@rule("trunc", "floor", "ceil", "round")
def rounded(a: Algebra, t: Term, ctx: Context) -> Poly:
    """ceil(x) = -floor(-x), and floor(x + n) = floor(x) + n of whole n. Infinities and NaN are their own floor."""
    p = finite(a, t.args[0], ctx)
    if is_infinite(p) or is_whole(p.term):
        return p
    if t.op not in ("floor", "ceil"):
        return atom(T.node(t.op, (p.term,), None, t.type))
    side = 1 if t.op == "floor" else -1
    parts = [P.monomial(m, c) for m, c in P.scaled(p, side).terms.items()]
    whole = P.total((1, q) for q in parts if is_whole(q.term))
    rest = P.scaled(p, side) - whole
    return P.scaled(atom(T.node("floor", (rest.term,), None, t.type)) + whole, side)


@rule("fmod")
def remainder(a: Algebra, t: Term, ctx: Context) -> Poly:
    """x - y * trunc(x / y), of reals."""
    x, y = (finite(a, s, ctx) for s in t.args)
    if is_infinite(x) or is_infinite(y):
        return opaque(a, t, ctx)
    return a.normal(T.add(x.term, T.mul(-1, y.term, T.make("trunc", T.div(x.term, y.term)))), ctx)


def is_whole(t: Term) -> bool:
    """Whether every value of a term is an integer: w ::= integer | [c] | floor(x) | w + w | w * w | sum(w) ..."""
    if t.type in (T.INT, T.BOOL) or t.op in WHOLE:
        return True
    return t.op in KEEPING and all(map(is_whole, t.args[1:] if t.op == "where" else t.args))
