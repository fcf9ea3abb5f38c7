"""Intervals of the integer terms of a program: `lift.terms.ranges`, with what lanes, iterations and facts say besides.

0 <= axis < size        0 <= pid < grid        0 <= argmax(axis, e) < size        1 <= N from a fact
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from trilift.lift.terms import term as T
from trilift.lift.terms.ranges import ALL, Facts, Interval, Ranges
from trilift.lift.terms.term import Term

from ..model.program import PIDS


class Intervals(Ranges):
    """Numbers that integer terms cannot leave, in a program of the grid, where the facts hold."""

    exact = True

    def __init__(self, facts: Iterable[Term], grid: Iterable[Term], inputs: Mapping[str, Interval]) -> None:
        super().__init__(inputs)
        self.known = dict(super().facts(*facts))
        for pid, count in zip(PIDS, grid, strict=True):
            self.known[pid.id] = (0, self.of(count)[1] - 1)

    def _of(self, t: Term, facts: Facts) -> Interval:
        low, high = super()._of(t, facts)
        for more in (self.known.get(t.id, ALL), self._own(t)):
            low, high = max(low, more[0]), min(high, more[1])
        return low, high

    def _own(self, t: Term) -> Interval:
        """The interval that follows from the operation alone."""
        match t.op:
            case "axis" | "argmax" | "argmin":
                return 0, self.of(t.attr.size)[1] - 1
            case "amax" | "amin" if t.type == T.INT:
                return self.of(t.args[0])
            case "trips":
                return 0, math.inf
            case "address":
                return 1, math.inf
        return ALL
