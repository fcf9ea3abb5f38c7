"""Numbers that have met conditions before: what they meet is not a contradiction, and no solver need be asked.

Every set of numbers answers for symbols that it has not seen as well, with a small number of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from trilift.lift.terms import term as T
from trilift.lift.terms.term import Term

from .conditions import evaluated, interpreted

SETS = 48  # kept at most
STARTS = 3  # of a search
Value = int | bool | None


@dataclass(eq=False)
class Numbers:
    """Values of symbols, and of the terms evaluated so far; None where a divisor is 0."""

    symbols: Mapping[Term, int]
    other: int
    values: dict[int, Value] = field(default_factory=dict)

    def value(self, t: Term) -> Value:
        """The value of a core term."""
        if t.id not in self.values:
            self.values[t.id] = self._value(t)
        return self.values[t.id]

    def _value(self, t: Term) -> Value:
        if t.op == "const":
            return t.attr  # type: ignore[no-any-return]
        if not interpreted(t):
            found = self.symbols.get(t, self.other)
            return bool(found) if t.type == T.BOOL else found
        return evaluated(t.op, [self.value(a) for a in t.args])


Search = Callable[[Sequence[Term], Numbers], dict[Term, int] | None]


@dataclass
class Pool:
    """The sets of numbers, the last useful one first."""

    sets: list[Numbers] = field(default_factory=list)
    added: int = 0

    def meets(self, literals: Sequence[Term]) -> bool:
        """Whether some numbers meet all core terms."""
        for k, numbers in enumerate(self.sets):
            if all(numbers.value(t) is True for t in reversed(literals)):
                self.sets.insert(0, self.sets.pop(k))
                return True
        return False

    def approached(self, literals: Sequence[Term], nearby: Search) -> bool:
        """Whether a search finds numbers that meet all core terms near some that nearly do."""
        starts = self.sets[:STARTS] or [Numbers({}, 1)]
        found = next((n for start in starts if (n := nearby(literals, start)) is not None), None)
        if found is not None:
            self.add(found)
        return found is not None

    def add(self, symbols: Mapping[Term, int]) -> None:
        """Numbers that a solver found."""
        self.sets.insert(0, Numbers(dict(symbols), self.added % 3))
        self.added += 1
        del self.sets[SETS:]
