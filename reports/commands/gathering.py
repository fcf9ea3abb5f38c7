"""The records of a run, gathered until its last case or until something ends it before that, and printed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import click

from ..base.progress import Progress
from ..base.sources import escaped
from ..base.targets import Target
from ..formats import jsonl
from ..records.entries import Record, Row
from ..records.options import Options
from ..runner import dispatch
from ..runner.stopping import UNFINISHED, Lost, Stopped, stoppable

FAILURES = (1, 2)  # exit codes of a case that is wrong, or broken
FAIL_FAST = "the run was ended by its first failure, as --fail-fast asks"


@dataclass(frozen=True, slots=True)
class Limits:
    """When a run ends before its last case: after so many seconds, None for never; with the first failure."""

    seconds: float | None = None
    fail_fast: bool = False


WHOLE = Limits()


@dataclass(slots=True)
class Gathered:
    """The records that a run has made, and what ended it early, if anything did."""

    records: list[Record] = field(default_factory=list)
    stopped: Stopped | None = None

    @property
    def incomplete(self) -> str:
        """The reason why the run ended early; "" for a run that came to its end."""
        return self.stopped.why if self.stopped else ""

    def exit_code(self, found: int) -> int:
        """The exit code of a run whose records ask for `found`: a failure is told even where time is over, and cases
        that were not run are unknown."""
        if self.stopped is None or self.stopped.code is None:
            return found
        return found if self.stopped.code == UNFINISHED and found in FAILURES else self.stopped.code


def gather(
    records: Iterable[Record],
    limits: Limits,
    progress: Progress,
    code: Callable[[Record], int],
    each: Callable[[Record], None] = lambda record: None,
) -> Gathered:
    """The records, each given to `each` as it comes; `code` is the exit code of one. Says what ended the run early."""
    run = Gathered()
    try:
        with stoppable(limits.seconds):
            for record in records:
                run.records.append(record)
                each(record)
                if limits.fail_fast and code(record) in FAILURES:
                    raise Stopped(FAIL_FAST)
    except (Stopped, Lost) as e:
        run.stopped = e if isinstance(e, Stopped) else Stopped(e.message, e.exit_code)
        progress.warn(f"{run.stopped.why}; the cases that had not ended are missing")
    return run


@dataclass(frozen=True, slots=True)
class Printing:
    """How a command prints its records: one in words, a line about all of them, and the exit code of one. `form`: text,
    or json and jsonl for programs."""

    form: str
    case: Callable[[Record], None]
    summary: Callable[[Sequence[Record]], str]
    code: Callable[[Record | Row], int]


def printed(targets: Sequence[Target], options: Options, style: Printing, quiet: bool, limits: Limits = WHOLE) -> int:
    """Runs the targets and prints their records, each as its case ends where the form allows it; returns the exit
    code."""
    each = {"json": lambda record: None, "jsonl": lambda record: click.echo(jsonl.line(record))}
    with Progress(quiet) as progress:
        records = dispatch.records(targets, options, progress.hear)
        run = gather(records, limits, progress, style.code, each.get(style.form, style.case))
        progress.say(style.summary(run.records))
    if style.form == "json":
        click.echo(json.dumps(document(run.records, run.incomplete), indent=1))
    elif style.form == "jsonl" and run.stopped:
        click.echo(jsonl.line({"incomplete": run.incomplete}))
    elif not run.records and not run.stopped:
        say_nothing_found(t.file for t in targets)
    return run.exit_code(worst(map(style.code, run.records)))


def worst(codes: Iterable[int]) -> int:
    """The exit code of cases with these: 2 if one is broken, then 1 for a failure, 4 for unknown, 3 for no case, else
    0."""
    seen = set(codes)
    return next((c for c in (2, 1, 4) if c in seen), 0 if seen else 3)


def document(records: Sequence[Record | Row], incomplete: str = "") -> dict[str, object]:
    """The JSON object of schema 1. `incomplete`: what ended the run early, "" for a whole one."""
    from ..base.version import VERSION

    whole = {"schema": 1, "tool": "trilift", "version": VERSION, "cases": list(records)}
    return whole | ({"incomplete": incomplete} if incomplete else {})


def say_nothing_found(files: Iterable[str]) -> None:
    named = ", ".join(map(escaped, files))
    click.echo(f"nothing to check: no case in {named}" if named else "nothing to check: no Python file there", err=True)
