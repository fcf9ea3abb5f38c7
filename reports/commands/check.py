"""`trilift check`: certificates replayed by `lift.checker`, which shares no code with the prover."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from trilift.lift.checker import Report, Wrong, check, escaped

RECURSION = 20_000  # terms refer to terms: as deep as the longest chain of operations


def run(files: Sequence[str], form: str) -> int:
    """Prints what came of each certificate: 0 if all are checked, 2 for a file of another kind, else 4."""
    sys.setrecursionlimit(max(sys.getrecursionlimit(), RECURSION))
    codes, said = [], []
    for file in files:
        try:
            report = check(json.loads(Path(file).read_text(encoding="utf-8")))
        except (Wrong, ValueError, OSError) as e:
            click.echo(f"{escaped(file)}: not a certificate: {escaped(e)}", err=True)
            codes.append(2)
            continue
        except RecursionError:
            click.echo(f"{escaped(file)}: not a certificate: it is nested too deeply", err=True)
            codes.append(2)
            continue
        said.append({"file": file, **plain(report)})
        codes.append(0 if report.checked else 4)
        if form == "text":
            click.echo(text(file, report))
    if form == "json":
        click.echo(json.dumps({"certificates": said}, indent=1))
    return next((c for c in (2, 4) if c in codes), 0)


def plain(report: Report) -> dict[str, object]:
    """The report as plain data."""
    return {
        "verdict": "checked" if report.checked else "not checked",
        "solver": report.solver,
        "claim": report.claim,
        "assumed": report.assumed,
        "given": report.given,
        "obligations": report.shown,
        "questions": report.questions,
        "failures": [{"what": f.what, "why": f.why} for f in report.failures],
    }


def text(file: str, report: Report) -> str:
    """The verdict, the claim and what is missing."""
    counts = ", ".join(f"{n} {kind}" for kind, n in report.shown.items())
    verdict = "checked" if report.checked else "not checked"
    lines = [f"{escaped(file)}: {verdict} ({counts or 'nothing shown'}; {report.solver})"]
    lines += [f"  {x}" for x in report.claim]
    lines += [f"  assumed: {x}" for x in dict.fromkeys(report.assumed)]
    lines += [f"  given: {report.given}"]
    return "\n".join([*lines, *(f"  {f}" for f in report.failures)])
