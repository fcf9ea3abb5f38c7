"""A formula with changed inputs, and whether it is proved to be equal to another term.

f(x + c)    every x[e] is x[e] + c[e]          f(f(x))    every x[e] is f at e
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from trilift.lift.cases.declaration import Case
from trilift.lift.errors import TriliftError
from trilift.lift.runtime.budget import BUDGETS, Meter
from trilift.lift.terms import construct as T
from trilift.lift.terms.spec import Formula
from trilift.lift.terms.term import Term

from ..integers.bounded_solver import BoundedSolver
from ..integers.solver import Solver
from ..loops.invariant import agree
from ..normal_form.algebra import Algebra, Context, Split
from ..normal_form.poly import structural
from ..normal_form.signs import nonnegative, positive, sign
from .symmetries import exchanged, with_bound

Index = tuple[Term, ...]


@dataclass
class Equations:
    """Answers whether terms are equal for all inputs and all sizes that the case allows. `meter`: of
    all equations."""

    case: Case
    facts: frozenset[Term]
    meter: Meter
    algebra: Algebra = field(init=False)

    def __post_init__(self) -> None:
        from ..configurations.launches import bounds

        known: Mapping[str, tuple[Term | None, Term | None]] = _by_dtype(self.case) | dict(bounds(self.case))
        inner = Solver(resources=BUDGETS.tests.question_resources)
        self.algebra = Algebra(BoundedSolver(inner=inner, bounds=known), meter=self.meter)

    def equal(self, left: Term, right: Term, *facts: Term) -> bool:
        """Whether they are shown to be equal where the facts hold and the free axes are within their sizes. The
        assumptions, divisors that are not 0 and roots of nonnegative numbers, are shown as well."""
        if self.meter.exhausted:
            return False
        ends = ((T.make("le", 0, T.axis(a)), T.make("lt", T.axis(a), a.size)) for a in left.free | right.free)
        ctx = self.algebra.context((*self.facts, *(x for pair in ends for x in pair), *facts))
        try:
            with self.algebra.collecting() as side_conditions:
                shown = agree(self.algebra, left, right, ctx)
            return shown and all(self._discharged(k, t, c) for (k, t, _), c in side_conditions.items())
        except (TriliftError, Split, RecursionError):
            return False

    def _discharged(self, kind: str, t: Term, ctx: Context) -> bool:
        """Whether what a normal form used without proof is so."""
        p = structural(t)
        if kind == "nonzero":
            return sign(self.algebra, p, ctx) is not None or self.algebra.implied(ctx, T.make("ne", t, 0))
        return kind == "nonneg" and (nonnegative(self.algebra, p, ctx) or positive(self.algebra, p, ctx))


def _by_dtype(case: Case) -> dict[str, tuple[Term | None, Term | None]]:
    """The bounds that the type of an integer input gives its elements."""
    out: dict[str, tuple[Term | None, Term | None]] = {}
    for name, s in case.tensors.items():
        if s.dtype == "bool":
            out[name] = (T.const(0), T.const(2))
        elif not s.is_float:
            bits = int(s.dtype[1:])
            low, high = (0, 1 << bits) if s.dtype[0] == "u" else (-(1 << bits - 1), 1 << bits - 1)
            out[name] = (T.const(low), T.const(high))
    return out


def changed(t: Term, x: str, value: Callable[[Term, Index], Term]) -> Term:
    """The term with `value(x[e], e)` for every element x[e] of an input."""
    return exchanged(t, lambda s: value(s, s.args) if s.op == "read" and s.attr == x else None)


def shifted(t: Term, x: str, dim: int | None, name: str) -> Term:
    """f(x + c) for numbers c, one for each index of the dimensions but `dim`; None: one for all."""
    return changed(t, x, lambda s, e: T.add(s, offset(name, e, dim)))


def offset(name: str, index: Sequence[Term], dim: int | None) -> Term:
    """c at an index of x."""
    return T.read(name, [] if dim is None else [e for d, e in enumerate(index) if d != dim])


def scaled(t: Term, xs: Iterable[str], by: Term) -> Term:
    """f(c * x)."""
    for x in xs:
        t = changed(t, x, lambda s, e: T.mul(by, s))
    return t


def replaced(t: Term, x: str, dim: int, where: Callable[[Term], Term], name: str) -> Term:
    """f of x with other elements at the indices of a dimension that meet a condition."""
    return changed(t, x, lambda s, e: T.where(where(e[dim]), T.read(name, e, s.type), s))


def twice(f: Formula, x: str) -> Term:
    """f(f(x)) of a canonical formula: the bound axes of the inner one have other names."""
    inner = with_bound("$", f.term)
    axes = [T.axis(a) for a in f.axes]
    return changed(f.term, x, lambda s, e: exchanged(inner, dict(zip(axes, e, strict=True)).get))
