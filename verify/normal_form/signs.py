"""Signs: which polynomials are positive, or not negative, for all values of what is in them."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from trilift.lift.terms import construct as T
from trilift.lift.terms.term import Term

from .algebra import Algebra, Context, answer, is_infinite
from .literals import integer_literal
from .piecewise import is_index
from .poly import ONE_KEY, POLYS, Monomial, Number, Poly, Power, atom, poly, scaled, structural, tidy, total
from .rules.fold import open_fold
from .rules.inhabitance import known
from .variables import at_lowest, bounds

SIGNS = 2  # indicators in a polynomial whose values are tried


@answer("sign")
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
    if is_index(p):
        return bool(a.implied(ctx, integer_literal("lt", p)))
    return _by_sign(a, p, ctx, positive)


def nonnegative(a: Algebra, p: Poly, ctx: Context) -> bool:
    """p >= 0, likewise."""
    if all(c > 0 and _nonnegative(a, m, ctx) for m, c in p.terms.items()):
        return True
    if is_index(p):
        return bool(a.implied(ctx, integer_literal("le", p)))
    return _by_sign(a, p, ctx, nonnegative)


Test = Callable[[Algebra, Poly, Context], bool]


def _by_sign(a: Algebra, p: Poly, ctx: Context, test: Test) -> bool:
    """Where [t > 0] is 1, and where it is 0: |t| = -t + 2 t [t > 0] >= 0, max(x, c) = c + (x - c) [x - c > 0] > 0."""
    found = {i for factors, _ in p.terms for i, _ in factors if T.TERMS[i].op == "positive?"}
    if not 0 < len(found) <= SIGNS:
        return False
    t, low = structural(T.TERMS[min(found)].args[0]), p
    rest: list[tuple[Number, Poly]] = []
    for (factors, e), c in p.terms.items():
        others = tuple(f for f in factors if f[0] != min(found))
        if others != factors:
            rest.append((c, poly({(others, e): 1})))
            low -= poly({(factors, e): c})
    return _where(a, total([(1, low), *rest]), t, ctx, test) and _where(a, low, -t, ctx, test)


def _where(a: Algebra, p: Poly, t: Poly, ctx: Context, test: Test) -> bool:
    """Where t >= 0: p passes, or p - k t for a number k > 0."""
    if test(a, p, ctx):
        return True
    pairs = [(p.terms[m], c) for m, c in t.terms.items() if m in p.terms]
    ks = {Fraction(n) / Fraction(c) for n, c in pairs if n * c > 0 and not isinstance(n * c, float)}
    return any(test(a, p - scaled(t, tidy(k)), ctx) for k in sorted(ks))


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
    if t.type == T.INT and a.implied(ctx, integer_literal("lt", atom(t))):
        return True
    if t.type == T.INT and t.op != "sum":
        return False
    if T.make("lt", 0, t) in ctx.facts:
        return True
    if t.op == "sum":
        f = open_fold(a, t, ctx)
        return positive(a, f.body, a.given(ctx, *f.guards)) and _inhabited(a, t, ctx)
    if t.op in ("add", "mul", "max"):
        return any(positive(a, structural(s), ctx) for s in (t.args if t.op == "max" else (t,)))
    return False


def _atom_nonnegative(a: Algebra, t: Term, ctx: Context) -> bool:
    if t.op in ("positive?", "zero?", "holds?", "abs", "random") or T.make("lt", 0, t) in ctx.facts:
        return True
    if t.type == T.INT and a.implied(ctx, integer_literal("le", atom(t))):
        return True
    if t.type == T.INT and t.op != "sum":
        return False
    if t.op == "sum":
        f = open_fold(a, t, ctx)
        return nonnegative(a, f.body, a.given(ctx, *f.guards))
    if t.op in ("add", "mul", "max"):
        return any(nonnegative(a, structural(s), ctx) for s in (t.args if t.op == "max" else (t,)))
    return False


def _inhabited(a: Algebra, t: Term, ctx: Context) -> bool:
    """Whether some values meet the guards of a fold: facts say so, or its variables at their lower bounds do."""
    f = open_fold(a, t, ctx)
    if known(a, f, ctx):
        return True
    if any(not bounds(f, v)[0] for v in f.variables):
        return False
    left = at_lowest(a, f, ctx)
    return left is not None and all(a.implied(ctx, g) for g in left)


__all__ = ["POLYS", "ONE_KEY", "is_index", "nonnegative", "positive", "sign"]
