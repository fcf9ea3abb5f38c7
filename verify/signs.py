"""Signs: which polynomials are positive, or not negative, for all values of what is in them."""

from __future__ import annotations

from lift import term as T
from lift.term import Term

from .algebra import Algebra, Context, is_infinite
from .choices import integer_literal, is_index
from .folds import open_fold
from .poly import ONE_KEY, POLYS, Monomial, Poly, Power, atom
from .variables import bounds


def sign(a: Algebra, p: Poly, ctx: Context) -> int | None:
    """1 where p > 0 for all, -1 where p < 0 for all, else None."""
    if is_infinite(p) or not p.terms:
        return None
    for s in (1, -1):
        if positive(a, p if s > 0 else -p, ctx):
            return s
    return None


def positive(a: Algebra, p: Poly, ctx: Context) -> bool:
    """p > 0: no monomial is negative, and one is positive; or an integer that the facts bound."""
    if all(_nonnegative(a, m, ctx) and c > 0 for m, c in p.terms.items()):
        return any(_positive(a, m, ctx) for m in p.terms)
    return is_index(p) and a.implied(ctx, integer_literal("lt", p))


def nonnegative(a: Algebra, p: Poly, ctx: Context) -> bool:
    """p >= 0, likewise."""
    if all(c > 0 and _nonnegative(a, m, ctx) for m, c in p.terms.items()):
        return True
    return is_index(p) and a.implied(ctx, integer_literal("le", p))


def _positive(a: Algebra, m: Monomial, ctx: Context) -> bool:
    return all(_atom_positive(a, T.TERMS[b], ctx) for b, _ in m[0])


def _nonnegative(a: Algebra, m: Monomial, ctx: Context) -> bool:
    return all(_even(k) or _half(k) or _atom_nonnegative(a, T.TERMS[b], ctx) for b, k in m[0])


def _even(k: Power) -> bool:
    return int(k) == k and int(k) % 2 == 0


def _half(k: Power) -> bool:
    return int(k) != k


def _atom_positive(a: Algebra, t: Term, ctx: Context) -> bool:
    """Whether an atom is positive."""
    if t.type == T.INT:
        return bool(a.implied(ctx, integer_literal("lt", atom(t))))
    if T.make("lt", 0, t) in ctx.facts:
        return True
    if t.op == "sum":
        f = open_fold(a, t, ctx)
        return positive(a, f.body, a.given(ctx, *f.guards)) and _inhabited(a, t, ctx)
    if t.op in ("add", "mul"):
        from .folds import structural

        return positive(a, structural(t), ctx)
    return False


def _atom_nonnegative(a: Algebra, t: Term, ctx: Context) -> bool:
    if t.op in ("positive?", "zero?", "holds?", "abs", "random") or T.make("lt", 0, t) in ctx.facts:
        return True
    if t.type == T.INT:
        return bool(a.implied(ctx, integer_literal("le", atom(t))))
    if t.op == "sum":
        f = open_fold(a, t, ctx)
        return nonnegative(a, f.body, a.given(ctx, *f.guards))
    if t.op in ("add", "mul"):
        from .folds import structural

        return nonnegative(a, structural(t), ctx)
    return False


def _inhabited(a: Algebra, t: Term, ctx: Context) -> bool:
    """Whether some values meet the guards of a fold: its variables at their lower bounds do."""
    from .maxima import _at_lowest

    f = open_fold(a, t, ctx)
    if any(not bounds(f, v)[0] for v in f.variables):
        return False
    left = _at_lowest(a, f, ctx)
    return left is not None and all(a.implied(ctx, g) for g in left)


__all__ = ["POLYS", "ONE_KEY", "is_index", "nonnegative", "positive", "sign"]
