"""Cases on the workers of a Dask cluster: one call for the names of a file, one for each case.

A worker makes the records as this machine would, in processes of its own; a case whose worker died is made again."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any, cast

from trilift.lift.runtime.isolate import Event

from ..base.targets import Target
from ..records import unfinished
from ..records.entries import Record
from ..records.options import Options
from . import listing, local, workers
from .stopping import Lost, Stopped
from .workers import Files, Killed, Remote

Hear = Callable[[str, str, Any], None]
Made = tuple[list[Record], Files]  # records, and the files that they rest on


def run(
    targets: Sequence[Target], options: Options, on_event: Hear, on_loaded: Callable[[str, Sequence[str]], None]
) -> Iterator[Record]:
    """As `runner.run`. Raises click.UsageError where no scheduler answers, Lost where it goes away. Before that, and
    before it raises Stopped, gives all records that are made."""
    told = "verdict" if options.proving else "lift"
    with workers.cluster(options.cluster) as pool:
        waiting = deque(_calls(pool, targets, _there(options), on_event))

        def given(call: _Call) -> Iterator[Record]:
            records, loaded = _made(call)
            if other := workers.differing(loaded):
                raise Lost(f"a worker has another {other}: workers need the same files at the same paths")
            on_loaded(call.target.file, list(loaded))
            for r in records:
                on_event(call.target.file, r["name"], r[told])  # type: ignore[literal-required]
                yield _renamed(r, call.target)

        try:
            while waiting:
                waiting[0].future.exception()  # waits
                yield from given(waiting.popleft())
        except (Lost, Stopped):
            for call in waiting:
                if call.ready():
                    yield from given(call)
            raise


@dataclass(frozen=True, slots=True)
class _Call:
    """A call for one case; without a name for what is known of a whole file."""

    target: Target
    name: str
    future: Future[Made]

    def ready(self) -> bool:
        """Whether its records are there now."""
        return self.future.done() and not self.future.cancelled() and self.future.exception() is None


def _calls(pool: Remote, targets: Sequence[Target], options: Options, on_event: Hear) -> Iterator[_Call]:
    """A call for each case of the files, which workers have read."""
    listed = [(t, pool.direct(_names, _placed(t), options, file=os.path.abspath(t.file))) for t in targets]
    for target, future in listed:
        yield from (_Call(target, *one) for one in _cases(pool, target, future, options, on_event))


def _there(options: Options) -> Options:
    """The options of a worker, whose folder is another one."""
    how = options.proving
    if how is not None:
        folders = {n: os.path.abspath(f) for n in ("smt_dir", "replay", "certificate") if (f := getattr(how, n))}
        how = replace(how, **folders)
    return replace(options, jobs=1, cluster="", cache="", proving=how)


def _placed(target: Target) -> Target:
    return replace(target, file=os.path.abspath(target.file))


def _cases(
    pool: Remote, target: Target, future: Future[Any], options: Options, on_event: Hear
) -> list[tuple[str, Future[Made]]]:
    """A call for each case of a file; or the record that says why it has none."""
    names = _value(target, "", future)
    if isinstance(names, dict):
        broken: Future[Made] = Future()
        broken.set_result(([cast(Record, names)], {}))
        return [("", broken)]
    names = [n for n in names if not target.only or n in target.only]
    on_event(target.file, "", names)
    hear = lambda said: on_event(target.file, *said)  # noqa: E731
    place = _placed(target)
    return [(n, pool.direct(_case, replace(place, cases=(n,)), options, file=place.file, hear=hear)) for n in names]


def _made(call: _Call) -> Made:
    found = _value(call.target, call.name, call.future)
    return ([cast(Record, found)], {}) if isinstance(found, dict) else found


def _value(target: Target, name: str, future: Future[Any]) -> Any:
    """The result of a call; where all workers that tried it died, the record of that."""
    try:
        return future.result()
    except Killed as e:
        help = "where workers die for lack of memory, --memory SIZE bounds a case"
        return unfinished.empty(target.file, name, "crash", "every worker that ran it died", why=e.message, help=help)


def _renamed(r: Record, target: Target) -> Record:
    """The record with the file as it was given."""
    from .cache import renamed

    out: Record = renamed(r, os.path.abspath(target.file), target.file)
    return out


# ---- on a worker -----------------------------------------------------------------------------------------------------


def _names(target: Target, options: Options, event: Event) -> list[str] | Record:
    return listing.names(target, _bounded(options))


def _case(target: Target, options: Options, event: Event) -> Made:
    loaded: set[str] = set()

    def hear(file: str, name: str, what: Any) -> None:
        if name and isinstance(what, str) and what.startswith("stage:"):
            event(("event", (name, what)))

    records = list(local.run([target], _bounded(options), hear, lambda file, paths: loaded.update(paths)))
    return records, workers.hashed(loaded)


def _bounded(options: Options) -> Options:
    """The options with at most the memory that the worker gives to a call."""
    limits = [m for m in (options.memory, workers.memory_bytes()) if m]
    return replace(options, memory=min(limits, default=None))
