"""Heuristics as rows: what is tried to close a goal, in which order, and which row closed it.

    goal   "equality"    a polynomial is 0 under facts          verify.normal_form.zero
           "agreement"   two terms are equal under facts        verify.loops.agreement
           "invariant"   the closed form of a loop variable     verify.loops.invariant
           "contract"    clauses under which a proof goes on    verify.refutation.contract
           "synthesis"   a formula with these elements          lift.synthesis.top_down
           "plan"        kernels that compute a program         superopt.jobs

Each kind of goal has one tuple of rows and one driver, `decide` or `first`; of plans the user chooses the row, and the
unfused program is the last. The order of the rows is the order of the attempts. A new heuristic is one row; `trilift
explain NAME` prints it, and `trilift prove --explain` names the rows that closed the goals of a proof.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

Attempt = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Strategy:
    """One way to close a goal. `goal`: the kind of goal; `attempt`: what is called with the goal, and what it returns
    is said at the driver; `source`: a paper, a law, or "ours"; `example`: what it closes and others do not, a case of
    the corpus or a formula."""

    name: str
    goal: str
    attempt: Attempt = field(repr=False, compare=False)
    source: str
    example: str

    def __str__(self) -> str:
        what = " ".join((self.attempt.__doc__ or "").split())
        lines = [f"closes goals of {self.goal}" + (f": {what}" if what else "")]
        return "\n".join([*lines, f"source: {self.source}", f"example: {self.example}"])


@dataclass
class Closers:
    """The names of the rows that closed goals, in order. If an attempt fails, the rows that closed goals inside it are
    removed."""

    names: list[str] = field(default_factory=list)

    def attempt(self, row: Strategy, *goal: Any) -> Any:
        """Tries the row on the goal and returns its answer: None or False means that the row does not close the
        goal."""
        mark, found = len(self.names), None
        try:
            found = row.attempt(*goal)
        finally:
            if found is None or found is False:
                del self.names[mark:]
        if found is not None and found is not False:
            self.names.append(row.name)
        return found

    @contextmanager
    def listing(self) -> Iterator[list[str]]:
        """Context manager: the list that it yields holds, at its end, the rows that closed goals inside, each once."""
        mark, out = len(self.names), list[str]()
        try:
            yield out
        finally:
            out += dict.fromkeys(self.names[mark:])


def first(closed: Closers, rows: Iterable[Strategy], *goal: Any) -> Any:
    """The answer of the first row that closes the goal, or None if no row does. A row that does not close the goal
    returns None."""
    for row in rows:
        found = closed.attempt(row, *goal)
        if found is not None:
            return found
    return None


def decide(closed: Closers, rows: Iterable[Strategy], engine: Any, goal: Any, *given: Any) -> bool:
    """Whether a row closes the goal. A row is called with (engine, goal, *given) and says True: closed; False: no row
    can; None: nothing, the next row is asked; another goal that is as good: the rows that follow are asked of it."""
    for row in rows:
        found = closed.attempt(row, engine, goal, *given)
        if isinstance(found, bool):
            return found
        goal = goal if found is None else found
    return False
