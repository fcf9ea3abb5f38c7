"""The record of every case asked for: kept from before, made on this machine, or made by the workers of a cluster."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

from ..base.targets import Target
from ..records.entries import Record
from ..records.options import Options
from . import cache, local


def records(
    targets: Sequence[Target], options: Options, on_event: Callable[[str, str, Any], None] = lambda *_: None
) -> Iterator[Record]:
    """The record of every case, in the order of targets and files; from the cache if there is one and it has it.
    `on_event(file, case, what)` hears of stages."""
    if cache.usable(options):
        found = cast(Iterator[Record], cache.records(targets, options, on_event, run))
    else:
        found = run(targets, options, on_event)
    return map(_shown, found) if options.debug else found


def _shown(record: Record) -> Record:
    """The record, with what each stage of it spent of its budget on stderr."""
    for line in (f"{record['name']}: steps spent", *(f"  {line}" for line in record.get("steps", ()))):
        print(line, file=sys.stderr)
    return record


def run(
    targets: Sequence[Target],
    options: Options,
    on_event: Callable[[str, str, Any], None] = lambda *_: None,
    on_loaded: Callable[[str, Sequence[str]], None] = lambda *_: None,
) -> Iterator[Record]:
    """The record of every case, made now. `on_loaded(file, paths)` hears which files were imported for it."""
    if options.cluster:
        from . import cluster

        return cluster.run(targets, options, on_event, on_loaded)
    return local.run(targets, options, on_event, on_loaded)
