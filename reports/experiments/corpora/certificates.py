"""How many proofs a checker that shares no code with the prover can redo: every proved case of a corpus is written as a
certificate, and replayed by `lift.checker`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from tempfile import TemporaryDirectory

from trilift.lift.checker import Report, Wrong, check
from trilift.lift.runtime.recursion import deep

from ...base.progress import Progress
from ...base.targets import resolve
from ...commands.check import plain
from ...records.entries import Record
from ...records.options import Options, Proving
from ...records.proof_record import certificate_file
from ...runner import dispatch
from .. import summary
from ..experiment import Experiment, Measure, Result, Row, by_name, tabled
from ..folders import CORPUS

NAME = "certificates"
COLUMNS = {
    "proofs checked": ("corpus", "proved", "checked", "share"),
    "not checked, by reason": ("cases", "reason"),
    "certificates": ("case", "checked", "obligations", "questions", "first obligation that is not checked"),
}
COUNTED = ("operators",)


def over(corpora: Sequence[str]) -> Measure:
    """How to check the proofs of these corpora, each once."""

    def measure(name: str, options: Options, quiet: bool) -> Result:
        """The outcomes, of proofs that are made now."""
        with deep():
            found = {c: checked(c, options, quiet) for c in dict.fromkeys(corpora)}
        return result(found)

    return measure


EXPERIMENTS = by_name(Experiment(NAME, over(COUNTED), COLUMNS, summary=summary.whole, over=over))


def checked(corpus: str, options: Options, quiet: bool) -> list[tuple[Record, Report | str]]:
    """The proved cases of a corpus, each with what came of its certificate."""
    with TemporaryDirectory() as folder, Progress(quiet) as progress:
        how = replace(options.proving or Proving(), certificate=folder)
        chosen = replace(options, proving=how, cache="")
        records = list(dispatch.records(resolve([str(CORPUS / corpus)]), chosen, progress.hear))
        return [(r, one(folder, r)) for r in records if r["verdict"] == "PROVED"]


def one(folder: str, record: Record) -> Report | str:
    """The report of one certificate, or why it is missing."""
    file = certificate_file(folder, record["file"], record["name"])
    if not file.exists():
        return "no certificate was written"
    try:
        return check(json.loads(file.read_text(encoding="utf-8")))
    except Wrong as e:
        return str(e)


def result(found: Mapping[str, Sequence[tuple[Record, Report | str]]]) -> Result:
    """The tables."""
    rows = [(corpus, record, report) for corpus, every in found.items() for record, report in every]
    reasons = Counter(reason(report) for _, _, report in rows if not good(report))
    shown: dict[str, list[tuple[str, ...]]] = {
        "proofs checked": [share(corpus, [r for _, r in every]) for corpus, every in found.items()],
        "not checked, by reason": [(str(n), why) for why, n in reasons.most_common()],
        "certificates": [row(record, report) for _, record, report in rows],
    }
    data = [{"corpus": c, "case": x["name"], "checked": good(r), **told(r)} for c, x, r in rows]
    return Result("certificates", tabled(COLUMNS, shown), {"certificates": data}, 0)


def good(report: Report | str) -> bool:
    """Whether it is checked."""
    return isinstance(report, Report) and report.checked


def told(report: Report | str) -> dict[str, object]:
    """The report as plain data."""
    return plain(report) if isinstance(report, Report) else {"failures": [{"what": "certificate", "why": report}]}


def share(corpus: str, reports: Sequence[Report | str]) -> Row:
    """How many of a corpus are checked."""
    n = sum(map(good, reports))
    return corpus, str(len(reports)), str(n), f"{n / len(reports):.0%}" if reports else "-"


def reason(report: Report | str) -> str:
    """The kind of the first obligation that is not checked: its text without numbers and names."""
    if isinstance(report, str):
        return report
    what = report.failures[0].what if report.failures else "nothing was shown"
    return what.partition(" at line ")[0]


def row(record: Record, report: Report | str) -> Row:
    """One case."""
    if isinstance(report, str):
        return record["name"], "no", "0", "0", report
    failure = report.failures[0].what if report.failures else ""
    shown = str(sum(report.shown.values()))
    return record["name"], "yes" if report.checked else "no", shown, str(report.questions), failure
