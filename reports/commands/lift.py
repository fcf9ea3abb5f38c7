"""`trilift lift`: the records of the targets, printed in one of four forms, and the exit code they ask for."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

import click

from ..base.plain_text import plain
from ..base.progress import Progress
from ..base.targets import Target
from ..formats import jsonl
from ..records import draw
from ..records.entries import Record, Row
from ..records.options import Options
from ..runner import dispatch
from .gathering import WHOLE, Limits, document, gather, say_nothing_found


def lift(targets: Sequence[Target], to: str, options: Options, quiet: bool, limits: Limits = WHOLE) -> int:
    """Runs and prints the targets; returns the exit code."""

    def show(record: Record) -> None:
        if to != "json":
            click.echo(jsonl.line(record) if to == "jsonl" else plain(draw.case(record, to)))

    with Progress(quiet) as progress:
        run = gather(dispatch.records(targets, options, progress.hear), limits, progress, code, show)
        progress.say(summary(run.records))
    if to == "json":
        click.echo(json.dumps(document(run.records, run.incomplete), indent=1))
    elif to == "jsonl" and run.stopped:
        click.echo(jsonl.line({"incomplete": run.incomplete}))
    elif not run.records and not run.stopped:
        say_nothing_found(t.file for t in targets)
    return run.exit_code(exit_code(run.records))


def exit_code(records: Iterable[Record | Row]) -> int:
    """2 if a case or trilift is broken, then 1 for findings, 4 for unknown, 3 for nothing at all, else 0."""
    codes = {code(r) for r in records}
    return next((c for c in (2, 1, 4) if c in codes), 0 if codes else 3)


def code(record: Record | Row) -> int:
    """The exit code of one case."""
    kinds = {e["kind"] for e in record["errors"]}
    if kinds & {"case", "internal"}:
        return 2
    if record["findings"]:
        return 1
    return 4 if kinds else 0


def summary(records: Sequence[Record | Row]) -> str:
    """How many, what a formula rests on, and the seconds of each stage over all cases."""
    ok = sum(r["lift"] == "ok" for r in records)
    stages = {s: sum(r["seconds"].get(s, 0.0) for r in records) for s in ("capture", "lift", "check", "simplify")}
    seconds = ", ".join(f"{s} {t:.1f}" for s, t in stages.items())
    rest = "formulas are checked by runs at a few sizes; `trilift prove` says for which sizes they hold\n" if ok else ""
    return f"{rest}{ok} of {len(records)} cases lifted; seconds: {seconds}"
