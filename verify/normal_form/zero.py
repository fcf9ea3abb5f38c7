"""Whether a polynomial is 0 under facts: the strategies of equality, in the order in which they are tried.

A row is called with (algebra, polynomial, context, depth). Rows that come early decide or simplify; then each looks for
one reason. Questions about parts come back here by `Algebra.zero`, one deeper.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

from trilift.lift.runtime.strategy import Strategy, decide

from . import equality as E
from . import numbers as numbers  # answers what the rules of comparisons ask
from .algebra import Algebra, Context, answer, has_infinity
from .literals import integer_literal
from .numeric_refuter import refuted
from .poly import ZERO, Poly
from .rules.argmax import same_index
from .signs import is_index

Rewriting = Callable[[Algebra, Poly, Context, int], Poly]
Reason = Callable[[Algebra, Poly, Context, int], bool]


@answer("zero")
def zero(a: Algebra, p: Poly, ctx: Context, depth: int = 0) -> bool:
    """Whether p is 0 for all values that meet the facts. False: not shown."""
    return decide(a.closed, EQUALITY, a, p, ctx, depth)


def _identical(a: Algebra, p: Poly, ctx: Context, depth: int) -> bool | None:
    """The polynomial is 0: both sides have one normal form."""
    return True if p is ZERO else None


def _impossible(a: Algebra, p: Poly, ctx: Context, depth: int) -> bool | None:
    """A number other than 0 is 0 where nothing is; so is what nobody looks at any more, and what has infinities."""
    stop = has_infinity(p) or depth > E.DEEP or p.constant is not None or a.impossible(ctx)
    return a.impossible(ctx) if stop else None


def _integers(a: Algebra, p: Poly, ctx: Context, depth: int) -> bool | None:
    """An index: what the facts about integers imply decides, unless it has folds."""
    if is_index(p) and (a.implied(ctx, integer_literal("eq", p)) or not E.has_folds(p)):
        known = a.implied(ctx, integer_literal("eq", p))
        return known or (E.is_product(p) and E.zero_where_pinned(a, p, ctx, depth))
    return None


def _numbers(a: Algebra, p: Poly, ctx: Context, depth: int) -> bool | None:
    """It is not 0 at some numbers that meet the facts: nothing need be tried."""
    return False if refuted(p, ctx) else None


def _rewritten(rewriting: Rewriting) -> Callable[..., bool | Poly | None]:
    """A row that goes on with another polynomial."""

    @wraps(rewriting)
    def attempt(a: Algebra, p: Poly, ctx: Context, depth: int) -> bool | Poly | None:
        q = rewriting(a, p, ctx, depth)
        return True if q is ZERO else None if q is p else q

    return attempt


def _again(rewriting: Rewriting) -> Callable[..., bool | None]:
    """A row that starts again with another polynomial, and has the last word on it."""

    @wraps(rewriting)
    def attempt(a: Algebra, p: Poly, ctx: Context, depth: int) -> bool | None:
        q = rewriting(a, p, ctx, depth)
        return None if q is p else zero(a, q, ctx, depth + 1)

    return attempt


def _shown(reason: Reason) -> Callable[..., bool | None]:
    """A row that returns True if the reason closes the goal, else None; it never returns False."""

    @wraps(reason)
    def attempt(a: Algebra, p: Poly, ctx: Context, depth: int) -> bool | None:
        return reason(a, p, ctx, depth) or None

    return attempt


def _cleared(a: Algebra, p: Poly, ctx: Context, depth: int) -> Poly:
    """p times its denominators, which are not 0."""
    return E.cleared(a, p, ctx)


def _flattened(a: Algebra, p: Poly, ctx: Context, depth: int) -> Poly:
    """p with one index for what a fold says of all rows and columns of a matrix."""
    return E.flattened(a, p, ctx) if depth <= E.SHALLOW else p


def _row(name: str, attempt: Callable[..., bool | Poly | None], source: str, example: str) -> Strategy:
    return Strategy(name, "equality", attempt, source, example)


UNIFIED = _row(
    "unify", _rewritten(E.unified), "congruence closure: Nelson, Oppen 1980", "f(i + j) - f(j + i): one atom, with i, j"
)
EQUALITY = (
    _row("identical", _identical, "hash-consing: Filliatre, Conchon 2006", "both sides have one normal form"),
    _row("impossible", _impossible, "ex falso", "a case whose facts contradict each other"),
    _row("integers", _integers, "Presburger arithmetic", "the index i * N + j - (j + N * i)"),
    _row("refute-by-numbers", _numbers, "Schwartz 1980, Zippel 1979", "x[0] - 2 y[0] is not 0 at x = 1, y = 1"),
    UNIFIED,
    _row("clear-denominators", _rewritten(_cleared), "a / b = c / b if a = c", "layer_norm: 1 / (s / N) = N / s"),
    UNIFIED,
    _row("pointwise", _shown(E.pointwise), "sum f - sum g = sum (f - g)", "a tiled sum and the sum over all"),
    _row("argmax", _shown(same_index), "ours", "corpus/operators: argmax"),
    _row("parts-of-a-sum", _again(E.related), "sum over U + V of disjoint U, V", "corpus/operators: attention_causal"),
    _row("pin-symbols", _again(E.pinned), "substitution of equals", "N where the facts say N = 1"),
    _row("rows-as-one", _again(_flattened), "fold[i, j] f(c i + j) = fold[k] f(k)", "a maximum over a matrix"),
    _row("gather-sums", _shown(E.gathered), "linearity of sums", "sum x + sum y - sum (x + y)"),
    _row("signs", _shown(E.by_signs), "case analysis on [q > 0]", "corpus/operators: argmax"),
)
