"""Kept records of earlier runs, looked up by the content of files: a run over unchanged files does not import them.

    file + options + environment -> the files it loaded, with their hashes; its cases in order; their records

An entry counts only while every file that it names has the content it had. Only decided records are kept: never a
timeout, a crash, an error of a case or of ours. A record that a budget of steps ended is decided, because the budget is
part of the key.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import Any

from trilift.lift.runtime.budget import BUDGETS, GUARDED

from ..base import fingerprint
from ..base.targets import Target
from ..records.entries import Row
from ..records.options import Options
from . import failures
from .stopping import Lost, Stopped
from .store import NAME, WAIT, Store, folder, warn

KEEP_SECONDS = 10.0  # after which the results so far of a file are kept, before it has ended
SETTLED = {"unsupported", "not-lifted"}  # errors that the same input gives again


@dataclass(slots=True)
class Entry:
    """The kept facts about one file. `file`: as it was given; `loaded`: path -> hash; `names`: all its cases in order,
    None where only some were asked for."""

    file: str
    loaded: dict[str, str | None] = field(default_factory=dict)
    names: list[str] | None = None
    records: dict[str, Row] = field(default_factory=dict)


class Cache:
    """Entries by key. No method raises: a cache is never a reason for not having a result."""

    def __init__(self, folder: str | Path) -> None:
        self.store = Store(folder)

    def get(self, key: str) -> Entry | None:
        """The entry of a key."""
        found = self.store.get(key)
        try:
            return Entry(**found) if found is not None else None
        except TypeError:
            return None

    def put(self, key: str, entry: Entry) -> None:
        """Keeps an entry in place of the one of that key."""
        self.store.put(key, asdict(entry))

    def close(self) -> None:
        self.store.close()


def usable(options: Options) -> bool:
    """Whether records may come from a cache: not where a run writes files beside them, or tells the steps it takes."""
    writes = options.proving and (options.proving.smt_dir or options.proving.replay or options.proving.certificate)
    return bool(options.cache) and not options.debug and not writes


def names(target: Target, options: Options) -> list[str] | None:
    """The cases of a file in its order, if the cache knows them."""
    if not usable(options):
        return None
    store = Cache(options.cache)
    try:
        return _Known(store, target, options).names
    finally:
        store.close()


# ---- records ---------------------------------------------------------------------------------------------------------


def records(
    targets: Sequence[Target],
    options: Options,
    on_event: Callable[[str, str, Any], None],
    run: Callable[..., Iterator[Any]],
    what: str = "cases",
) -> Iterator[Row]:
    """As `run(targets, options, on_event, on_loaded)`, with what was kept, in the same order; keeps what is
    new. `what`: the kind of records."""
    store = Cache(options.cache)
    try:
        for r in _records(store, targets, options, on_event, run, what):
            if not r.get("cached"):
                failures.keep([r], options.cache)
            yield r
    finally:
        store.close()


def _records(
    store: Cache,
    targets: Sequence[Target],
    options: Options,
    on_event: Callable[[str, str, Any], None],
    run: Callable[..., Iterator[Any]],
    what: str,
) -> Iterator[Row]:
    known = {t.file: _Known(store, t, options, what) for t in targets}
    todo = [k.todo for k in known.values() if k.todo is not None]

    def hear(file: str, case: str, what: Any) -> None:
        if not case and isinstance(what, list):
            known[file].cases(what)
        on_event(file, case, what)

    fresh = run(todo, options, hear, lambda file, paths: known[file].loads(paths))
    stops: list[Stopped | Lost] = []
    groups = groupby(_until_stopped(fresh, stops) if todo else (), key=lambda r: r["file"])
    group = next(groups, None)
    for target in targets:
        mine = known[target.file]
        for r in mine.kept:
            on_event(target.file, r["name"], r["verdict"])
        if group is None or group[0] != target.file:
            yield from mine.kept
            continue
        yield from _fresh(mine, group[1])
        group = next(groups, None)
    for stopped in stops:
        raise stopped


def _fresh(mine: _Known, made: Iterable[Row]) -> Iterator[Row]:
    """The records of a file that are made now, as they come where none is kept of it; keeps them, however the run
    ends: those that came KEEP_SECONDS before a process that is killed are there."""
    found: list[Row] = []
    last = time.monotonic()
    try:
        for r in made:
            found.append(r)
            if time.monotonic() - last >= KEEP_SECONDS:
                mine.keep(found)
                last = time.monotonic()
            if not mine.kept:
                yield r
    finally:
        mine.keep(found)
    if mine.kept:
        yield from mine.ordered(found)


def _until_stopped(made: Iterable[Row], stops: list[Stopped | Lost]) -> Iterator[Row]:
    """The records, and then the reason why there are no more in `stops`."""
    try:
        yield from made
    except (Stopped, Lost) as e:
        stops.append(e)


class _Known:
    """One file: what is kept of it, what is to be run."""

    def __init__(self, store: Cache, target: Target, options: Options, what: str = "cases") -> None:
        self.store, self.target, self.options, self.started = store, target, options, time.time_ns()
        self.key = key(target, options, what)
        self.entry = self._valid(store.get(self.key) if self.key else None)
        self.names = names = self._asked()
        self.kept = [self.entry.records[n] for n in names or () if n in self.entry.records]
        missing = tuple(n for n in names or () if n not in self.entry.records)
        self.todo = None if names is not None and not missing else replace(target, cases=missing or target.cases)
        self.whole = names is None and not target.cases and not target.only
        self.paths: set[str] = set(beside(target.file))

    def _valid(self, entry: Entry | None) -> Entry:
        """The entry, if all that it rests on is as it was."""
        if entry is None or any(fingerprint.of_file(p) != h for p, h in entry.loaded.items()):
            return Entry(self.target.file)
        told = {n: {**renamed(r, entry.file, self.target.file), "cached": True} for n, r in entry.records.items()}
        return Entry(self.target.file, entry.loaded, entry.names, told)

    def _asked(self) -> list[str] | None:
        """The cases asked for, if they are known."""
        names = list(self.target.cases) or self.entry.names
        only = self.target.only
        return names if names is None or not only else [n for n in names if n in only]

    def cases(self, names: list[str]) -> None:
        """All cases of a file that was loaded."""
        if self.whole:
            self.entry.names = names

    def loads(self, paths: Sequence[str]) -> None:
        """Files that it loaded."""
        self.paths |= set(paths)

    def keep(self, found: Sequence[Row]) -> None:
        """Keeps what is new and decided, if no file changed while it was made."""
        settled = {r["name"]: r for r in found if is_settled(r, self.options)}
        if not self.key or not settled or fingerprint.changed_since((self.target.file, *self.paths), self.started):
            return
        loaded = self.entry.loaded | {p: fingerprint.of_file(p) for p in sorted(self.paths)}
        old = {n: {k: v for k, v in r.items() if k != "cached"} for n, r in self.entry.records.items()}
        self.store.put(self.key, Entry(self.target.file, loaded, self.entry.names, old | settled))

    def ordered(self, found: Sequence[Row]) -> list[Row]:
        """The kept and the new results, in the order of the requested cases."""
        order = self._asked() or []
        place = {n: i for i, n in enumerate(order)}
        return sorted([*self.kept, *found], key=lambda r: place.get(r["name"], len(order)))


def key(target: Target, options: Options, what: str = "cases") -> str:
    """The key of a file's entry of one kind; "" for a file that cannot be read."""
    content = fingerprint.of_file(target.file)
    asked = asdict(options)
    for name in ("jobs", "cache", "cluster", "debug"):
        asked.pop(name, None)
    path = os.path.realpath(target.file)
    parts = (what, fingerprint.environment(), str(BUDGETS), path, content or "", json.dumps(asked, sort_keys=True))
    return fingerprint.of_text(*parts) if content else ""


def beside(file: str) -> tuple[str, ...]:
    """Files that belong to a target without being imported: the launch description of a .ttir file."""
    return (os.path.abspath(Path(file).with_suffix(".json")),) if file.endswith(".ttir") else ()


def is_settled(r: Row, options: Options) -> bool:
    """Whether the same input gives this record again: not if something ran out of time, crashed or is broken."""
    if not r["name"] or not {e["kind"] for e in r["errors"]} <= SETTLED:
        return False
    if any(GUARDED in text for text in r.get("undecided", ())):
        return False
    return not (options.proving and r["verdict"] in ("UNKNOWN", "TESTED") and _late(r))


def _late(r: Row) -> bool:
    """Whether the outer time limit is why it is not proved."""
    reasons = [r["reason"], *(p["reason"] for p in r["proofs"])]
    return any(GUARDED in text for text in reasons) or any(p.get("cause") == "timeout" for p in r["proofs"])


def renamed(x: Any, old: str, new: str) -> Any:
    """The same data with every place in the file `old` in `new`."""
    if old == new:
        return x
    if isinstance(x, dict):
        return {k: new if k == "file" and v == old else renamed(v, old, new) for k, v in x.items()}
    return [renamed(v, old, new) for v in x] if isinstance(x, list) else x


__all__ = ["NAME", "WAIT", "Cache", "Entry", "folder", "records", "warn"]
