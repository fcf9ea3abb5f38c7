"""`trilift lift`: the records of the targets, printed in one of four forms, and the exit code they ask for."""

from __future__ import annotations

from collections.abc import Sequence

import click

from ..base.plain_text import plain
from ..base.targets import Target
from ..records import draw
from ..records.entries import Record, Row
from ..records.options import Options
from .gathering import WHOLE, Limits, Printing, printed


def lift(targets: Sequence[Target], to: str, options: Options, quiet: bool, limits: Limits = WHOLE) -> int:
    """Runs and prints the targets; returns the exit code."""
    case = lambda record: click.echo(plain(draw.case(record, to)))  # noqa: E731
    return printed(targets, options, Printing(to, case, summary, code), quiet, limits)


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
