"""`trilift check`: certificates replayed by `lift.checker`, which shares no code with the prover."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import click

from trilift.lift.checker import Data, Failure, Report, Wrong, check, escaped
from trilift.lift.runtime.recursion import deep

from ..base.targets import single


def run(files: Sequence[str], form: str, against: str | None = None) -> int:
    """Prints what came of each certificate: 0 if all are checked, 2 for a file of another kind, else 4. `against`: the
    case that they are said to be of."""
    codes, said = [], []
    for file in files:
        try:
            data = json.loads(Path(file).read_text(encoding="utf-8"))
            with deep():
                report = check(data)
        except (Wrong, ValueError, OSError) as e:
            click.echo(f"{escaped(file)}: not a certificate: {escaped(e)}", err=True)
            codes.append(2)
            continue
        except RecursionError:
            click.echo(f"{escaped(file)}: not a certificate: it is nested too deeply", err=True)
            codes.append(2)
            continue
        if against is not None:
            compare(data, against, report)
        said.append({"file": file, **plain(report)})
        codes.append(0 if report.checked else 4)
        if form == "text":
            click.echo(text(file, report))
    if form == "json":
        click.echo(json.dumps({"certificates": said}, indent=1))
    return next((c for c in (2, 4) if c in codes), 0)


def compare(certificate: Data, against: str, report: Report) -> None:
    """Adds to a report the things that are others now than when the certificate was made, or that all agrees. Raises
    CaseError where there is no such case."""
    from trilift.lift.capture.case_files import find
    from trilift.verify.certificate import differences

    named = single(against)
    case = find(named.where, named.name or certificate["case"], named.is_module)
    if case.name != certificate["case"]:
        told = [f"the certificate is of the case {certificate['case']}"]
    else:
        events = [e for p in certificate["parts"] for c in p["configurations"] for e in c["events"]]
        told = differences(certificate["made"], [e for e in events if e["kind"] == "launch"], case)
    report.failures += [Failure(f"made from {escaped(against)}", escaped(x)) for x in told]
    if not told:
        runs = len(certificate["made"]["runs"])
        same = f"it is what the file names: sources, and the Triton IR and launches of {runs} runs"
        report.given = f"the summary of the kernel is taken as given, and {escaped(against)} was compared: {same}"


def plain(report: Report) -> dict[str, object]:
    """The report as plain data."""
    return {
        "verdict": "checked" if report.checked else "not checked",
        "solver": report.answered,
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
    lines = [f"{escaped(file)}: {verdict} ({counts or 'nothing shown'}; {report.answered})"]
    lines += [f"  {x}" for x in report.claim]
    lines += [f"  assumed: {x}" for x in dict.fromkeys(report.assumed)]
    lines += [f"  given: {report.given}"]
    return "\n".join([*lines, *(f"  {f}" for f in report.failures)])
