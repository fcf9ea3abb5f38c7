"""floor, ceil, trunc and round of numbers that are whole: of integers, their sums and products, and counts."""

from __future__ import annotations

from trilift.lift.terms import construct as T
from trilift.lift.terms.term import Term

from ..algebra import INDICATORS, Algebra, Context, finite, is_infinite, rule
from ..poly import Poly, atom

WHOLE = {"trunc", "floor", "ceil", "round", *INDICATORS}
KEEPING = {"add", "mul", "max", "min", "where", "sum", "prod", "amax", "amin", "abs"}


@rule("trunc", "floor", "ceil", "round")
def _(a: Algebra, t: Term, ctx: Context) -> Poly:
    p = finite(a, t.args[0], ctx)
    if is_infinite(p) or is_whole(p.term):
        return p  # -inf, inf and NaN are their own floor
    return atom(T.node(t.op, (p.term,), None, t.type))


def is_whole(t: Term) -> bool:
    """Whether every value of a term is an integer: w ::= integer | [c] | floor(x) | w + w | w * w | sum(w) ..."""
    if t.type in (T.INT, T.BOOL) or t.op in WHOLE:
        return True
    return t.op in KEEPING and all(map(is_whole, t.args[1:] if t.op == "where" else t.args))
