"""The page of the planted defects: which are noticed, by which test, and why the others need not be."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from ...base.fingerprint import ROOT
from ...base.progress import Progress
from ...records.options import Options
from ..experiment import Experiment, Result, Row, by_name, tabled
from ..renderer import FORM, OUTPUT, deliver
from ..summary import Data
from .drawn import drawn
from .sites import OPERATORS, Site
from .survivors import SURVIVORS

COUNT, CEILING_SECONDS, SLOWEST_SECONDS = 240, 40.0, 5.0
GOAL = 0.95  # of the defects that matter
FOLDER = ROOT / "build" / "defects"  # what was recorded and tried: a run goes on from there
TESTS = ("tests/verify", "tests/lift", "tests/end_to_end", "tests/regressions", "tests/reports/test_defects.py")
NOTICED = ("noticed", "crash")
SAYS = (*NOTICED, "survived", "time-out", "not reached")  # most first
HEAD = (
    "planted",
    "failed assertion",
    "crash",
    "time-out",
    "need not be noticed",
    "open",
    "noticed of the rest",
)
COLUMNS = {
    "open": ("place", "operator", "function", "line", "outcome", "tests that reach it"),
    "by folder": ("folder", *HEAD),
    "by operator": ("operator", "what it breaks", *HEAD),
    "need not be noticed": ("place", "operator", "function", "line", "kind", "reason"),
    "defects": ("place", "operator", "function", "line", "outcome", "test that notices it", "tests that reach it"),
}
NOTES = (
    "Each defect is one change of the source that makes a refusal rarer, an acceptance easier, or a rule wrong. It is "
    "tried under the tests that run the changed line, the quickest first, until one fails.",
    "A crash is a failed test whose error is not an assertion. After a time-out nothing is known. Each defect that no "
    "test notices was read: either the reason why it need not be noticed is listed, or it is open.",
)


@dataclass(frozen=True)
class Outcome:
    """A defect and what the tests said of it; `kind`, `reason`: why it need not be noticed."""

    site: Site
    outcome: str
    test: str = ""
    tests: int = 0
    kind: str = ""
    reason: str = ""

    @property
    def open(self) -> bool:
        """Whether nothing notices it and nobody said why."""
        return self.outcome not in NOTICED and not self.kind


def measure(name: str, options: Options, quiet: bool) -> Result:
    """The page's run."""
    return measured(COUNT, options, quiet)


def measured(
    count: int, options: Options, quiet: bool, tests: Sequence[str] = TESTS,
    ceiling: float = CEILING_SECONDS, slowest: float = SLOWEST_SECONDS,
) -> Result:  # fmt: skip
    """The result of `count` defects under these tests. Records and trials of earlier runs are kept."""
    with Progress(quiet) as progress:
        serve(count, options.seed, tests, progress.say, ceiling=ceiling, slowest=slowest)
    return result(outcomes(count, options.seed), f"defects: {count} planted in the prover, seed {options.seed}")


def serve(
    count: int, seed: int, tests: Sequence[str], say: Callable[[str], None], folder: Path = FOLDER,
    ceiling: float = CEILING_SECONDS, slowest: float = SLOWEST_SECONDS, of: Sequence[str] = (),
) -> None:  # fmt: skip
    """Records the tests, then tries the defects, in a server each. Raises click.ClickException if one fails."""
    folder.mkdir(parents=True, exist_ok=True)
    asked = {"count": count, "seed": seed, "folder": str(folder), "ceiling": ceiling, "slowest": slowest,
             "of": [*of], "tests": [*tests]}  # fmt: skip
    for recording in (True, False):
        _server(asked | {"recording": recording}, say)


def _server(asked: dict[str, object], say: Callable[[str], None]) -> None:
    command = [sys.executable, "-m", "trilift.reports.experiments.defects.suite_server", json.dumps(asked)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=ROOT, env=environment) as server:
        assert server.stderr is not None
        for line in server.stderr:
            say(line.rstrip())
    if server.returncode:
        raise click.ClickException(f"the tests could not be run: pytest ended with {server.returncode}")


def outcomes(count: int, seed: int, folder: Path = FOLDER) -> list[Outcome]:
    """The outcome of each defect: of several trials the one that says most."""
    lines = (folder / "tried.jsonl").read_text().splitlines()
    tried = {t["key"]: t for t in sorted(map(json.loads, lines), key=lambda t: -SAYS.index(t["outcome"]))}
    found = []
    for s in drawn(count, seed):
        t = tried.get(s.key, {"outcome": "not tried"})
        kind, reason = ("", "") if t["outcome"] in NOTICED else SURVIVORS.get(s.key, ("", ""))
        found.append(Outcome(s, t["outcome"], t.get("test", ""), t.get("tests", 0), kind, reason))
    return found


# ---- tables ----------------------------------------------------------------------------------------------------------


def result(found: Sequence[Outcome], title: str) -> Result:
    """Exit code 1 where fewer are noticed than the goal says, 3 without defects."""
    folders = dict.fromkeys(_folder(o) for o in found)
    shown: dict[str, list[Row]] = {
        "open": [(*_told(o), o.outcome, str(o.tests)) for o in found if o.open],
        "by folder": [*((f, *_counted([o for o in found if _folder(o) == f])) for f in folders),
                      ("all", *_counted(found))],
        "by operator": [(name, what, *_counted([o for o in found if o.site.operator == name]))
                        for name, what in OPERATORS.items()],
        "need not be noticed": [(*_told(o), o.kind, o.reason) for o in found if o.kind],
        "defects": [(*_told(o), o.outcome, o.test, str(o.tests)) for o in found],
    }  # fmt: skip
    code = 3 if not found else int(share(found) < GOAL)
    return Result(title, tabled(COLUMNS, shown), {"defects": [plain(o) for o in found]}, code)


def share(found: Sequence[Outcome]) -> float:
    """The part that is noticed, of those that matter."""
    matter = [o for o in found if not o.kind]
    return sum(o.outcome in NOTICED for o in matter) / len(matter) if matter else 1.0


def _counted(found: Sequence[Outcome]) -> Row:
    said = Counter(o.outcome for o in found if not o.kind)
    excused, open_ = sum(bool(o.kind) for o in found), sum(o.open and o.outcome != "time-out" for o in found)
    counts = (len(found), said["noticed"], said["crash"], said["time-out"], excused, open_)
    return (*map(str, counts), f"{100 * share(found):.1f} %")


def _folder(o: Outcome) -> str:
    return o.site.file.rpartition("/")[0]


def _told(o: Outcome) -> Row:
    s = o.site
    return f"{s.file}:{s.line}", s.operator, s.within, s.source[:160]


def plain(o: Outcome) -> dict[str, object]:
    """As data, for JSON."""
    s = o.site
    return {"key": s.key, "file": s.file, "line": s.line, "operator": s.operator, "function": s.within,
            "source": s.source, "outcome": o.outcome, "test": o.test, "tests": o.tests, "kind": o.kind,
            "reason": o.reason}  # fmt: skip


def summary(data: Data) -> dict[str, object]:
    """How many defects there are of each outcome, in all and by operator."""
    rows = data["defects"]
    word = lambda r: r["kind"] or r["outcome"]  # noqa: E731
    by = {name: dict(Counter(word(r) for r in rows if r["operator"] == name)) for name in OPERATORS}
    return {"counts": dict(Counter(map(word, rows))), "by": by}


EXPERIMENTS = by_name(Experiment("defects", measure, COLUMNS, NOTES, summary))


@click.command()
@click.option("--count", default=COUNT, help="defects")
@click.option("--seed", default=0)
@click.option("--tests", multiple=True, help="files or folders of tests  [default: those of the page]")
@click.option("--ceiling", default=CEILING_SECONDS, help="seconds of tests for one defect")
@click.option("--slowest", default=SLOWEST_SECONDS, help="seconds of the longest test that is run")
@click.option("--anew", is_flag=True, help="forget what was recorded and tried before")
@FORM
@OUTPUT
def main(
    count: int, seed: int, tests: tuple[str, ...], ceiling: float, slowest: float, anew: bool, form: str,
    output: str | None,
) -> None:  # fmt: skip
    """Defects planted in the prover: the tests must notice them."""
    if anew:
        shutil.rmtree(FOLDER, ignore_errors=True)
    deliver(measured(count, Options(seed=seed), False, tests or TESTS, ceiling, slowest), form, output)
