"""Where the first maximum is, from what is known of maxima.

U = B + R,  amax[B] f > amax[R] f                          argmax[U] f = argmax[B] f
U = B + R,  amax[B] f >= amax[R] f,  R lies behind B       argmax[U] f = argmax[B] f
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from trilift.lift.terms import construct as T
from trilift.lift.terms.term import Axis, Term

from .. import poly as P
from ..algebra import Algebra, Context, Facts, Split, Undecided
from ..equality import aligned, empty, matching
from ..literals import integer_literal
from ..piecewise import condition, real_literal, truth
from ..poly import ZERO, Poly, atom, structural
from .fold import Fold, open_fold
from .maximum import extremum


def same_index(a: Algebra, p: Poly, ctx: Context, depth: int) -> bool:
    """Whether p = c (argmax[U] f - e) is 0 because the maximum over U is at e."""
    for (factors, e), c in p.terms.items():
        if e or len(factors) != 1 or factors[0][1] != 1:
            continue
        t = T.TERMS[factors[0][0]]
        if t.op == "argmax":
            rest = P.scaled(p - P.scaled(atom(t), c), P.tidy(-1 / Fraction(c)))
            if t.id not in rest.atoms and _is_at(a, t, rest, ctx, depth):
                return True
    return False


def _is_at(a: Algebra, t: Term, e: Poly, ctx: Context, depth: int) -> bool:
    """argmax[U] f = e, where e is argmax[B] f, or one index."""
    f = open_fold(a, t, ctx, e.term.free)
    if len(f.variables) != 1:
        return False
    v = f.variables[0]
    best = _over(a, f, e, ctx, depth)
    if best is None:
        return False
    inside = a.given(ctx, *best)
    if not all(a.implied(inside, g) for g in f.guards):
        return False
    here = a.given(ctx, *f.guards)
    for rest in dict.fromkeys(_alternatives(a, f, ctx, depth)):
        if empty(a, here, [best, rest]) and _beats(a, f, v, best, rest, ctx):
            return True
    return False


def _over(a: Algebra, f: Fold, e: Poly, ctx: Context, depth: int) -> Facts | None:
    """The guards of B."""
    indices = [T.TERMS[i] for i in e.atoms if T.TERMS[i].op == "argmax"]
    if not indices:
        return frozenset([integer_literal("eq", atom(T.axis(f.variables[0])) - e)])
    if len(indices) > 1 or e is not atom(indices[0]):
        return None
    g = aligned(a, f, open_fold(a, indices[0], ctx, f.variables, f.body.term.free), ctx, depth, fixed=True)
    return None if g is None else g.guards


def _alternatives(a: Algebra, f: Fold, ctx: Context, depth: int) -> Iterator[Facts]:
    """Guards of the maxima, and single elements, that facts about reals compare."""
    for fact in ctx.facts:
        if fact.op not in ("lt", "le") or all(s.type != T.REAL for s in fact.args):
            continue
        for s in fact.args:
            q = structural(s)
            for i in sorted(q.atoms):
                if T.TERMS[i].op == "amax":
                    g = aligned(a, f, open_fold(a, T.TERMS[i], ctx, f.variables, f.body.term.free), ctx, depth)
                    if g is not None:
                        yield g.guards
                    elif (h := _mirrored(a, f, T.TERMS[i], ctx, depth)) is not None:
                        yield h.guards
            values = matching(f, q)
            if values is not None:
                yield frozenset(integer_literal("eq", atom(T.axis(v)) - x) for v, x in values.items())


def _mirrored(a: Algebra, f: Fold, t: Term, ctx: Context, depth: int) -> Fold | None:
    """The fold of a maximum over the negative of its variable."""
    g = open_fold(a, t, ctx, f.variables, f.body.term.free)
    if len(g.variables) != 1:
        return None
    (v,) = g.variables
    flip = {v: T.mul(-1, T.axis(v))}
    guards = [condition(a, T.substitute(x, flip), ctx) for x in g.guards]
    flat = frozenset(y for x in guards for y in (x.args if x.op == "and" else (x,)))
    try:
        body = a.normal(T.substitute(g.body.term, flip), a.given(ctx, *flat))
    except (Split, Undecided):
        return None
    return aligned(a, f, Fold(g.variables, flat, body), ctx, depth)


def _beats(a: Algebra, f: Fold, v: Axis, best: Facts, rest: Facts, ctx: Context) -> bool:
    try:
        d = extremum(a, [Fold(f.variables, best, f.body)], ctx) - extremum(a, [Fold(f.variables, rest, f.body)], ctx)
    except (Split, Undecided):
        return False
    if d is ZERO:
        return False
    known = {op: truth(a, real_literal(a, op, d, ctx), ctx) for op in ("lt", "le", "eq")}
    if known["lt"] or (known["le"] and known["eq"] is False):
        return True
    if not (known["le"] or known["eq"]):
        return False
    w = a.variable(ctx, f.variables, f.body.term.free, *(g.free for g in (*best, *rest)))
    behind = [T.substitute(g, {v: T.axis(w)}) for g in rest]
    return a.impossible(a.given(ctx, *best, *behind, T.make("le", T.axis(w), T.axis(v))))
