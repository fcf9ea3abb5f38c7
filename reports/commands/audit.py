"""`trilift audit`: the records of the targets, with findings, written in the formats asked for, and the exit code."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from ..base import colours, sources, written_files
from ..base.plain_text import plain
from ..base.progress import Progress
from ..base.targets import Target
from ..filters.choice import Step
from ..formats import FORMATS, STREAMED, Document, stream
from ..records import proof_record
from ..records.entries import Record, Row
from ..records.options import Options
from ..records.replay_files import Scripts
from ..runner import dispatch
from . import prove
from .gathering import WHOLE, Limits, document, gather, say_nothing_found, worst

Hear = Callable[[str, str, Any], None]
Scan = Callable[[list[Row], Hear], list[Row]]  # the kernels of the targets, after their cases have run


@dataclass(frozen=True, slots=True)
class Output:
    """A format, and the file that it is written to; "" is stdout."""

    form: str
    file: str = ""


@dataclass(frozen=True, slots=True)
class Filters:
    """The choices that records pass before they are written. `steps`: to all of them, of a run that is complete or not;
    `each`: to one that is shown as it comes, None where none is."""

    steps: Callable[[bool], Sequence[Step]] = lambda complete: ()
    each: Callable[[Row], Row] | None = lambda record: record


def audit(
    targets: Sequence[Target],
    outputs: Sequence[Output],
    options: Options,
    quiet: bool,
    filters: Filters = Filters(),
    replay: str = "",
    scan: Scan = lambda records, hear: [],
    limits: Limits = WHOLE,
) -> int:
    """Runs the targets, takes their records through the filters, writes them, those on stdout as they come where the
    format allows it; returns the exit code. A run that is ended early writes what it has found."""
    scripts = Scripts(replay)
    local = lambda record: scripts.written(sources.local(record))  # noqa: E731
    shown = _Shown(outputs, filters, local)
    with Progress(quiet) as progress:
        records = dispatch.records(targets, options, progress.hear)
        run = gather(records, limits, progress, lambda r: code({**r}), shown.show)
        found: list[Row] = [{**r} for r in run.records]
        kernels = [] if run.stopped else scan(found, progress.hear)
        progress.say(prove.summary(found))
    count, found = len(found), [*found, *kernels]
    for step in filters.steps(run.stopped is None):
        found = step(found)
    found = [local(r) if n < count else sources.local(r) for n, r in enumerate(found)]
    found, kernels = found[:count], found[count:]
    whole = {**document(found, run.incomplete), "kernels": kernels}
    for output in outputs:
        shown.end(whole) if output == shown.output else write(output, whole)
    if not found and not kernels and not run.stopped:
        say_nothing_found(t.file for t in targets)
    return run.exit_code(worst(map(code, [*found, *kernels])))


class _Shown:
    """The output on stdout, if its format is one that is written while cases end."""

    def __init__(self, outputs: Sequence[Output], filters: Filters, last: Callable[[Row], Row]) -> None:
        self.output = next((o for o in outputs if not o.file and o.form in STREAMED and filters.each), None)
        self.stream = stream(self.output.form) if self.output else None
        self.filters, self.last, self.count = filters, last, 0

    def show(self, record: Record) -> None:
        """Prints one record."""
        if self.stream and self.filters.each:
            _print(self.output, self.stream.case(self.last(self.filters.each({**record}))))
            self.count += 1

    def end(self, whole: Document) -> None:
        """Prints the records that were not, of a run that was ended, and what comes after them."""
        if self.stream:
            rest = [self.stream.case(r) for r in whole["cases"][self.count :]]
            _print(self.output, "".join(rest) + self.stream.rest(whole))


def code(record: Row) -> int:
    """The exit code of one case, or of a kernel without one, of which notes are not failures. A REFUTED case passes
    where all its findings are accepted."""
    if "read" in record:
        return int(any(f["level"] != "note" for f in record["findings"]))
    accepted = _blamed(record) and record.get("suppressed") and not record["findings"]
    found = prove.code({**record, "verdict": "PROVED"} if accepted else record)
    return 4 if found == 0 and record.get("undecided") else found


def _blamed(record: Row) -> bool:
    """Whether the verdict says no more than the findings."""
    return record["verdict"] == "REFUTED" or proof_record.DOUBTED in record["reason"]


# ---- formats ---------------------------------------------------------------------------------------------------------


def outputs(texts: Sequence[str], force: bool = False, option: str = "--format") -> tuple[Output, ...]:
    """FORMAT[=FILE] of each --format; text without any. Raises click.UsageError for what cannot be written, which names
    the option; `force` replaces files that trilift did not write."""
    chosen = tuple(_output(t, option) for t in texts) or (Output("text"),)
    files = [o.file for o in chosen]
    if files.count("") > 1:
        raise click.UsageError(f"{option}: only one format can go to stdout; write the others as FORMAT=FILE")
    twice = [f for f in files if f and [*map(os.path.realpath, filter(None, files))].count(os.path.realpath(f)) > 1]
    if twice:
        raise click.UsageError(f"{option}: {twice[0]} is given twice")
    for output in chosen:
        _check(output, force, option)
    return chosen


def _output(text: str, option: str) -> Output:
    form, equals, file = text.partition("=")
    if form not in FORMATS:
        near = difflib.get_close_matches(form, FORMATS, 1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(FORMATS)}"
        raise click.UsageError(f"{option}: no format is called {form}; {hint}")
    if equals and not file:
        raise click.UsageError(f"{option}: {text} names no file")
    return Output(form, file)


def _check(output: Output, force: bool, option: str) -> None:
    """Opens the file for writing, and leaves none behind that was not there."""
    if not output.file:
        return
    written_files.check(option, output.file, force)
    there = os.path.lexists(output.file)
    try:
        with open(output.file, "a"):
            pass
    except OSError as e:
        raise click.UsageError(f"{option}: cannot write {output.file}: {e.strerror}") from None
    if not there:
        os.unlink(output.file)


def write(output: Output, said: Any) -> None:
    """Writes the document in one format. Raises click.UsageError if the file cannot be written any more."""
    text = FORMATS[output.form](said)
    if output.file:
        _file(output.file, _plain(output, text) + written_files.LAST_LINES.get(output.form, ""))
    else:
        _print(output, text)
    page = os.environ.get("GITHUB_STEP_SUMMARY")
    if output.form == "github" and page:
        from ..formats import github

        with Path(page).open("a", encoding="utf-8", newline="") as f:
            f.write(github.summary(said))


def _print(output: Output | None, text: str) -> None:
    """On stdout, a text for people with its colours."""
    if output and output.form in ("text", "concise"):
        colours.echo(text, nl=False)
    elif output:
        click.echo(_plain(output, text), nl=False)


def _plain(output: Output, text: str) -> str:
    """A text which a terminal may show without what it would obey."""
    return plain(text) if output.form in written_files.LAST_LINES else text


def _file(path: str, text: str) -> None:
    try:
        written_files.replace(path, text)
    except OSError as e:
        raise click.UsageError(f"cannot write {path}: {e.strerror}") from None


# ---- steps -----------------------------------------------------------------------------------------------------------
