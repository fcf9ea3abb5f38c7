"""A solver that knows what the case says of integer tensors: low <= read(x, o) < high, wherever x is read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import combinations

from trilift.lift.errors import Place
from trilift.lift.terms import construct as T
from trilift.lift.terms.term import Term

from ..model.verdict import Condition
from .quotient import between
from .solver import Facts, Solver

Bounds = Mapping[str, tuple[Term | None, Term | None]]
ELEMENTS_APART = 6  # of which every two are told apart


@dataclass
class BoundedSolver(Solver):
    """`inner` answers; questions get the bounds of the integer elements that they mention."""

    inner: Solver = field(default_factory=Solver)
    bounds: Bounds = field(default_factory=dict)
    mentioned: dict[int, frozenset[Term]] = field(default_factory=dict)

    def elements(self, t: Term) -> frozenset[Term]:
        """The elements of bounded tensors that a term reads, outside of folds."""
        found = self.mentioned.get(t.id)
        if found is None:
            own = {t} if t.op == "read" and t.attr in self.bounds else set()
            inner = () if t.op in T.FOLDS else t.args
            found = self.mentioned[t.id] = frozenset(own).union(*(self.elements(s) for s in inner))
        return found

    def with_bounds(self, facts: Iterable[Term], goal: Term | None = None) -> Facts:
        """The facts, and what is known of the elements that they and the goal mention."""
        facts = frozenset(facts)
        terms = self.elements(goal) if goal is not None else frozenset()
        for f in facts:
            terms |= self.elements(f)
        if not terms:
            return facts
        more = set()
        for t in sorted(terms, key=lambda t: t.id):
            low, high = self.bounds[str(t.attr)]
            more |= {T.make("le", low, t)} if low is not None else set()
            more |= {T.make("lt", t, high)} if high is not None else set()
        return facts | more | self.apart(terms)

    def apart(self, elements: Iterable[Term]) -> Facts:
        """Of two elements of a tensor without two equal ones: where they are equal, they are one."""
        mine = sorted((t for t in elements if t.attr in self.distinct), key=lambda t: t.id)[:ELEMENTS_APART]
        return frozenset(self._apart(s, t) for s, t in combinations(mine, 2) if s.attr == t.attr)

    def _apart(self, s: Term, t: Term) -> Term:
        i, j, n = s.args[0], t.args[0], self.distinct[str(s.attr)].number
        outside = (T.make("not", between(x, n)) for x in (i, j))
        return T.make("or", T.make("ne", s, t), T.make("eq", i, j), *outside)

    def implies(self, facts: Iterable[Term], goal: Term, what: str = "", place: Place | None = None) -> bool:
        return self.inner.implies(self.with_bounds(facts, goal), goal, what, place)

    def contradictory(self, facts: Iterable[Term]) -> bool:
        return self.inner.contradictory(self.with_bounds(facts))

    def model(self, facts: Iterable[Term]) -> dict[str, int] | None:
        return self.inner.model(self.with_bounds(facts))

    @property
    def answered(self) -> list[Condition]:
        """The questions asked with a purpose."""
        return self.inner.records
