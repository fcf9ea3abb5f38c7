"""The questions of a reference to the world outside of its arguments: those of a host function, each answered as it is
now. A proof says the answers; where another call may get another one, there is none.
"""

from __future__ import annotations

import builtins
import datetime
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, cast

from ...capture.fake_cuda import replaced
from ...capture.places import host_place
from . import questions
from .record import Note
from .shims import host_modules

if TYPE_CHECKING:
    from .record import Record


@dataclass
class Asked:
    """`files`: of the code that asks; `asked`: questions with their answers; `lost`: those that no answer settles."""

    files: frozenset[str]
    asked: list[Note] = field(default_factory=list)
    lost: list[Note] = field(default_factory=list)

    def ask(self, what: str) -> None:
        """Something that is as it says in this process."""
        self.asked.append(Note(what, host_place()))

    def chance(self, what: str) -> None:
        """Something that may be another thing in each call."""
        self.lost.append(Note(what, host_place()))


@contextmanager
def asking(fn: Callable[..., object], files: frozenset[str]) -> Iterator[Asked]:
    """The questions that a PyTorch function asks inside are noted."""
    notes = Asked(files)
    record = cast("Record", notes)
    found: list[tuple[object, dict[str, questions.Answer]]] = [
        (q.where, {n: questions.answer_of(_said(q), n, record) for n in q.names.split() if hasattr(q.where, n)})
        for q in questions.QUESTIONS
        if q.kind != "taken"
    ]
    found.append((type(os.environ), questions.of_variables(record)))
    clock = questions.clock(record)
    known = questions.by_identity(found) | {id(datetime.datetime): clock}
    with ExitStack() as stack:
        for where, values in found:
            stack.enter_context(replaced(where, values))
        stack.enter_context(replaced(datetime, {"datetime": clock}))
        for module in host_modules(fn):
            space = vars(module)
            new: dict[str, object] = {n: known[id(x)] for n, x in list(space.items()) if id(x) in known}
            plain = {n: f for n, f in questions.unknowns(record).items() if n not in space and hasattr(builtins, n)}
            stack.enter_context(replaced(module, {**plain, **new}))
        yield notes


def _said(q: questions.Question) -> questions.Question:
    """A truth is said as it is: its other side is not tried."""
    return replace(q, kind="said") if q.kind == "truth" else q
