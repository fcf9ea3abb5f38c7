"""The most programs that a launch may have along the axes y and z of its grid: CUDA refuses more (CUDA C++ Programming
Guide, compute capabilities, technical specifications)."""

from __future__ import annotations

from collections.abc import Iterator

from trilift.lift.terms import construct as T

from ..integers.solver import Solver
from ..model.configuration import Configuration, SymbolicLaunch
from ..model.verdict import Clause
from ..wording.user_terms import words

PROGRAMS = 65535  # along y and along z
NEEDED = "the launch of {}, whose grid has at most 65535 programs along y and z"


def clauses(base: Configuration) -> Iterator[Clause]:
    """A clause for each axis of a grid that may have more."""
    for launch in (e for e in base.events if isinstance(e, SymbolicLaunch)):
        for size in launch.grid[1:]:
            fits = T.make("le", size, PROGRAMS)
            if not Solver().implies(base.facts, fits):
                yield Clause("shape", fits, words(fits), NEEDED.format(launch.kernel), launch.host)
