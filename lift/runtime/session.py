"""Sessions: one owner of all that the process remembers about terms.

Terms are hash-consed and memos are keyed by them, so what is remembered is one state, in many tables:

    TERMS: dict[int, Term] = table("terms.by_id", {})     a dict, list or set that the session empties and restores
    @memo                                                 functools.cache whose results the session forgets

A session is a scope. It starts from what is known where it is entered; when it ends the process knows that again, and
nothing of what was made inside:

    with Session():
        lift(case)          # terms, polynomials, memos of this lift
    # their memory is free

`drop()` forgets what the innermost session has made so far and stays in it; outside of every session it forgets all but
the pinned terms. Both drop all tables together: a table that kept an id of a dropped term would be wrong.

Rules that this rests on:

- An id is never used twice in a process. A memo of a dropped term can then never be found for a new one.
- Terms of modules (ZERO, PIDS ...) are pinned, they outlive every session: a module may be imported inside of one.
- A term of an ended session has its text, and nothing more: a term made of it raises `EndedSession`. Take what is to
  outlive the session as text or numbers. A case declared outside is known inside; one declared inside ends with it.
- A memo of an object (a dict in a Solver, a cached property) belongs to the object. An object made outside of a session
  and used inside may hold terms of the inside: make the object where it is used.

Sessions belong to the process, as the tables do, and not to a thread. A forked child has a copy of its own. The garbage
collector is not needed here: terms form no cycles, so what a session drops is freed at once, also while collection is
off (`lift.pipeline.collected_later`) and also where `gc.freeze` has set objects apart (`lift.pytorch.preload`: freezing
keeps the collector away from the pages that forked children share; it pins nothing). Processes that are trilift's own
let it run rarely (`collect_rarely`), since it would walk the terms again and again and free none of them.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import lru_cache
from types import TracebackType
from typing import Any, ParamSpec, TypeVar, cast

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
Contents = TypeVar("Contents", dict[Any, Any], list[Any], set[Any])
COLLECTION_OBJECTS = (100_000, 20, 100)  # new objects before a collection; younger generations before an older one


def collect_rarely() -> None:
    """Let the garbage collector of this process start after 100,000 new objects instead of after some hundreds. It took
    a seventh of a proof's time. For processes of our own: who calls trilift as a library decides about theirs."""
    gc.set_threshold(*COLLECTION_OBJECTS)


class EndedSession(RuntimeError):
    """A term of a session that has ended is used to make another one."""


@dataclass(frozen=True, slots=True, eq=False)
class _Table:
    name: str
    contents: Any  # a dict, list or set: always the same object, since modules hold it
    pinned: dict[Hashable, Any] = field(default_factory=dict)  # entries of a dict that outlive every session

    def restore(self, before: Any) -> None:
        self.contents.clear()
        (self.contents.extend if isinstance(self.contents, list) else self.contents.update)(before)
        if self.pinned:
            self.contents.update(self.pinned)


@dataclass(frozen=True, slots=True, eq=False)
class _Memo:
    name: str
    function: Any  # what functools.lru_cache returns


_tables: list[_Table] = []
_memos: list[_Memo] = []
_after: list[Callable[[], object]] = []
_open: list[Session] = []  # innermost last


def table(name: str, empty: Contents) -> Contents:
    """The empty container, whose contents the session owns from now on. Change it, never bind its name anew."""
    _tables.append(_Table(name, empty))
    return empty


def memo(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """functools.cache for a function whose arguments or results depend on terms: the session forgets its results."""
    return memo_up_to(None)(function)


def memo_up_to(
    entries: int | None,
) -> Callable[[Callable[Parameters, Result]], Callable[Parameters, Result]]:
    """`memo` that keeps so many results, those used last; None: all."""

    def put(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
        remembering = lru_cache(maxsize=entries)(function)
        _memos.append(_Memo(f"{function.__module__}.{function.__qualname__}", remembering))
        return cast("Callable[Parameters, Result]", remembering)

    return put


def pin(owned: dict[Any, Any], key: Hashable) -> None:
    """The entry of a table outlives every session."""
    next(t for t in _tables if t.contents is owned).pinned[key] = owned[key]


def after_drop(function: Callable[[], object]) -> None:
    """Registers a function that is called whenever tables have been restored, for state outside of the tables."""
    _after.append(function)


def lengths() -> dict[str, int]:
    """How many entries each table and memo has, by name."""
    sizes = {t.name: len(t.contents) for t in _tables}
    return sizes | {m.name: m.function.cache_info().currsize for m in _memos}


def drop() -> None:
    """Forget what the innermost session has made; outside of every session, all but what is pinned."""
    _restore(_open[-1].before if _open else {})


def _restore(before: dict[_Table, Any]) -> None:
    """A table that is younger than the session was empty before it."""
    for m in _memos:
        m.function.cache_clear()
    for t in _tables:
        t.restore(before.get(t, ()))
    for function in _after:
        function()


class Session:
    """A scope of what the process remembers: `with Session(): ...`. `before`: the tables as they were when it began."""

    def __init__(self) -> None:
        self.before: dict[_Table, Any] = {}

    def __enter__(self) -> Session:
        if self in _open:
            raise RuntimeError("this session is open already")
        self.before = {t: t.contents.copy() for t in _tables}
        _open.append(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Raises RuntimeError if a session entered later is still open."""
        if not _open or _open[-1] is not self:
            raise RuntimeError("sessions end in the reverse of the order in which they began")
        drop()
        _open.pop()
        self.before = {}

    def drop(self) -> None:
        """Forget what this session has made, and stay in it. Raises RuntimeError unless it is the innermost one."""
        if not _open or _open[-1] is not self:
            raise RuntimeError("only the innermost session can drop what it has made")
        drop()
