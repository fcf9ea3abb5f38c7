"""Integer conditions: the only file that imports z3."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from lift.errors import Place
from lift.term import Term

from .verdict import Condition

Facts = frozenset[Term]


@dataclass
class Solver:
    """Answers questions about integers; every answer that a proof relies on is recorded."""

    timeout: float = 2.0
    records: list[Condition] = field(default_factory=list)

    def implies(self, facts: Iterable[Term], goal: Term, what: str = "", place: Place | None = None) -> bool:
        """True only when every assignment of integers that meets the facts meets the goal."""
        raise NotImplementedError

    def contradictory(self, facts: Iterable[Term]) -> bool:
        """True only when nothing meets all facts."""
        raise NotImplementedError

    def model(self, facts: Iterable[Term]) -> dict[str, int] | None:
        """Numbers for the symbols that meet all facts, small ones where possible; None if none was found."""
        raise NotImplementedError
