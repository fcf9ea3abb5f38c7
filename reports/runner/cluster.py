"""Cases on the workers of a Dask cluster: one call for the names of a file, one for each case.

A worker makes the records as this machine would, in processes of its own; a case whose worker died is made again."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Any, cast

from trilift.lift.runtime.isolate import Event, Outcome

from ..base.targets import Target
from ..records import unfinished
from ..records.entries import Record
from ..records.options import Options
from . import listing, local, workers
from .workers import Files, Killed, Lost, Remote

Hear = Callable[[str, str, Any], None]
Made = tuple[list[Record], Files]  # records, and the files that they rest on


def run(
    targets: Sequence[Target], options: Options, on_event: Hear, on_loaded: Callable[[str, Sequence[str]], None]
) -> Iterator[Record]:
    """As `runner.run`. Raises click.UsageError where no scheduler answers, workers.Lost where it goes away."""
    told = "verdict" if options.proving else "lift"
    with workers.cluster(options.cluster) as pool:
        there = _there(options)
        listed = [(t, pool.direct(_names, _placed(t), there, file=os.path.abspath(t.file))) for t in targets]
        calls = [(t, _cases(pool, t, future, there, on_event)) for t, future in listed]
        for target, cases in calls:
            for name, future in cases:
                records, loaded = _made(target, name, future)
                if other := workers.differing(loaded):
                    raise Lost(f"a worker has another {other}: workers need the same files at the same paths")
                on_loaded(target.file, list(loaded))
                for r in records:
                    on_event(target.file, r["name"], r[told])  # type: ignore[literal-required]
                    yield _renamed(r, target)


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


def _made(target: Target, name: str, future: Future[Made]) -> Made:
    found = _value(target, name, future)
    return ([cast(Record, found)], {}) if isinstance(found, dict) else found


def _value(target: Target, name: str, future: Future[Any]) -> Any:
    """The result of a call; where it ended all workers that tried it, the record of that."""
    try:
        return future.result()
    except Killed as e:
        return unfinished.failed(target.file, name, Outcome(failure=e.message))


def _renamed(r: Record, target: Target) -> Record:
    """The record with the file as it was given."""
    from .cache import renamed

    out: Record = renamed(r, os.path.abspath(target.file), target.file)
    return out


# ---- on a worker -----------------------------------------------------------------------------------------------------


def _names(target: Target, options: Options, event: Event) -> list[str] | Record:
    return listing.names(target, options)


def _case(target: Target, options: Options, event: Event) -> Made:
    loaded: set[str] = set()

    def hear(file: str, name: str, what: Any) -> None:
        if name and isinstance(what, str) and what.startswith("stage:"):
            event(("event", (name, what)))

    records = list(local.run([target], options, hear, lambda file, paths: loaded.update(paths)))
    return records, workers.hashed(loaded)
