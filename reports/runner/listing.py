"""The names of a file's cases without running them."""

from __future__ import annotations

from trilift.lift.runtime.isolate import Event, run_all

from ..base.targets import Target
from ..records import unfinished
from ..records.entries import Record
from ..records.options import Options
from . import cache
from .local import GRACE_SECONDS


def names(target: Target, options: Options) -> list[str] | Record:
    """The cases of a file in its order: those the cache knows, else found by loading it in a process of its own. Where
    it cannot be loaded, the record that says why."""
    known = cache.names(target, options)
    if known is not None:
        return known
    task = (target, options)
    _, outcome = next(iter(run_all(_names, [task], 1, options.timeout + GRACE_SECONDS, "forkserver")))
    if outcome.failure is not None:
        return unfinished.failed(target.file, "", outcome)
    found: list[str] | Record = outcome.value
    return found


def _names(target: Target, options: Options, event: Event) -> list[str] | Record:
    """In the child."""
    from trilift.lift.capture.case_files import load_all

    try:
        return [c.name for c in load_all(target.file, target.cases)]
    except Exception as e:
        return unfinished.broken(target.file, "", e)
