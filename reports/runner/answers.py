"""Answers of work units: from the store where it has them, else from workers, and kept then.

    kind + arguments + content of the user's file + environment -> the answer, and the files that it loaded

An answer counts only while every file that it names has the content it had. One that ran out of time, or whose process
died, is not kept."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from trilift.lift.runtime import memory_limit
from trilift.lift.runtime.isolate import Event, Outcome

from ..base import fingerprint
from .local import PROVER
from .store import Store
from .workers import Files, Killed, Lost, Workers, differing, hashed

if TYPE_CHECKING:
    from trilift.superopt.jobs import Answer, Unit

Hear = Callable[[Any], None]
PRELOAD = (*PROVER, "trilift.superopt.jobs", "trilift.superopt.search.unfused")


@dataclass(frozen=True)
class Answers:
    """`ask` gives the future of an answer. `store`: None where nothing is kept; `memory`: bytes that the process of a
    unit may take, None for any number."""

    workers: Workers
    store: Store | None = None
    memory: int | None = None

    def ask(self, unit: Unit, hear: Hear) -> Future[Answer]:
        """The answer of a unit; {"error", "text"} too where its process died or took too long (Failed), or raised
        (Broken)."""
        out: Future[Answer] = Future()
        known = self.known(unit)
        if known is not None:
            out.set_result(known)
            return out
        started = time.time_ns()
        unit = replace(unit, file=self.workers.placed(unit.file))
        submit = partial(self.workers.submit, seconds=unit.seconds, file=unit.file, hear=hear, preload=PRELOAD)
        made = submit(_answer, self.memory, unit)
        made.add_done_callback(lambda done: self.end(unit, started, done, out))
        out.add_done_callback(lambda done: self.workers.cancel(made) if done.cancelled() else None)
        return out

    def known(self, unit: Unit) -> Answer | None:
        """The stored result, if all that it rests on is unchanged."""
        found = self.store.get(key(unit)) if self.store is not None else None
        if found is None or differing(found["loaded"]):
            return None
        answer: Answer = found["answer"]
        return answer

    def end(self, unit: Unit, started: int, done: Future[Outcome], out: Future[Answer]) -> None:
        """Takes the outcome of a call."""
        if done.cancelled() or isinstance(done.exception(), CancelledError):
            out.cancel()
            return
        with suppress(InvalidStateError):  # nobody waits for it any more
            try:
                out.set_result(self.taken(unit, started, done))
            except Exception as error:
                out.set_exception(error)

    def taken(self, unit: Unit, started: int, done: Future[Outcome]) -> Answer:
        """The answer in an outcome, kept. Raises Lost where a worker is not as we are."""
        try:
            outcome = done.result()
        except Killed as e:
            return {"error": "Failed", "text": f"{unit.kind}: {e.message}"}
        if outcome.failure is not None:
            kind = "Broken" if outcome.failure == "exception" else "Failed"
            return {"error": kind, "text": told(unit, outcome)}
        answer: Answer
        answer, loaded = outcome.value
        other = differing(loaded)
        if other and self.workers.remote:
            raise Lost(f"a worker has another {other}: workers need the same files at the same paths")
        if not other:
            self.keep(unit, started, answer, loaded)
        return answer

    def keep(self, unit: Unit, started: int, answer: Answer, loaded: Files) -> None:
        """Keeps an answer that is the same next time, if no file changed while it was made."""
        files = hashed([unit.file] if unit.file else []) | loaded
        if self.store is None or not answer.get("settled", True) or fingerprint.changed_since(files, started):
            return
        self.store.put(key(unit), {"answer": answer, "loaded": files})


def _answer(memory: int | None, unit: Unit, event: Event) -> Answer:
    """In the process of the unit."""
    from trilift.superopt.jobs import answer

    if memory is not None:
        memory_limit.limit(memory)
    return answer(unit, event)


def key(unit: Unit) -> str:
    """The hash of all that the answer follows from, but for the files that it loads."""
    content = fingerprint.of_file(unit.file) if unit.file else ""
    file = os.path.realpath(unit.file) if unit.file else ""
    asked = json.dumps(dict(unit.arguments), sort_keys=True)
    return fingerprint.of_text("unit", unit.kind, fingerprint.environment(), file, content or "", asked)


def told(unit: Unit, outcome: Outcome) -> str:
    """Why there is no answer."""
    if outcome.failure == "timeout":
        return f"{unit.kind}: not finished in {unit.seconds:.0f} s"
    if outcome.failure == "memory":
        return f"{unit.kind}: it took more memory than it may; --memory SIZE allows more"
    last = outcome.log.strip().splitlines()[-1:] or [""]
    why = f": {last[0]}" if last[0] else ""
    what = "trilift itself failed" if outcome.failure == "exception" else f"the process ended with {outcome.failure}"
    return f"{unit.kind}: {what}{why}"
