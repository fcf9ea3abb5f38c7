"""Whether written tests pass on kernels as they are: `trilift report test-suites`, `python -m
trilift.reports.experiments.mutation.test_suites TARGET...`.

One file for each case, as `trilift write file.py::case` writes it, run by pytest in a process of its own.
"""

from __future__ import annotations

import json
import os
import random
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import click

from trilift.lift.runtime.budget import GUARD_SECONDS
from trilift.lift.runtime.isolate import Event, run_all

from ...base.fingerprint import ROOT
from ...base.progress import Progress
from ...base.targets import Target, resolve
from ...commands.write import PRELOAD, Asked, text_of, versions
from ...records.options import Options
from .. import summary
from ..experiment import Experiment, Result, Row, by_name, tabled
from ..folders import CORPUS
from ..renderer import FORM, OUTPUT, deliver

if TYPE_CHECKING:
    from trilift.lift.cases.declaration import Case

PACKAGES = "test-suites-packages"
EXAMPLES = 20  # of each test, as `trilift write` has it
WRITING, RUNNING = 400.0, 900.0  # seconds
QUICK = 20.0  # seconds that a file should take at most
LOADED = ("pytest", "-q", "-p", "no:cacheprovider", "-p", "no:trilift")
OUTCOMES = ("green", "red", "late", "skipped", "not written")


@dataclass(frozen=True, slots=True)
class Ran:
    """The tests of one case. `outcome`: green: every test passes, or is known to fail; skipped: none runs without a
    GPU; red: `failed` do not pass; late: they were not written, or did not end, in the time for it; not written.
    `why`: the first thing that is wrong, or why it is skipped. `verdict`: of all outputs. `clean`: whether ruff has
    nothing to say. `seconds`, `processor`: of pytest, from its start to its end."""

    file: str
    case: str
    outcome: str
    why: str = ""
    verdict: str = ""
    passed: int = 0
    xfailed: int = 0
    skipped: int = 0
    failed: tuple[str, ...] = ()
    clean: bool = False
    characters: int = 0
    writing: float = 0.0
    seconds: float = 0.0
    processor: float = 0.0

    @property
    def name(self) -> str:
        return f"{Path(self.file).stem}::{self.case}"

    @property
    def ran(self) -> bool:
        return self.outcome in ("green", "red")


# ---- processes -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class How:
    """`count`: cases in all, drawn evenly from the files, 0 for all of them. `keep`: the folder of the tests and of
    what they gave, with which a run that was interrupted goes on; "" for none."""

    count: int = 0
    seed: int = 0
    jobs: int = 1
    examples: int = EXAMPLES
    keep: str = ""

    @property
    def key(self) -> list[Any]:
        """The settings that a row depends on beside its case: seed, examples, versions."""
        return [self.seed, self.examples, versions()]


def sweep(targets: Sequence[Target], how: How, progress: Callable[[str], None] = lambda text: None) -> list[Ran]:
    """A row for each case, in the order of files and cases; each file is loaded in a process of its own."""
    with ExitStack() as stack:
        folder = how.keep or stack.enter_context(tempfile.TemporaryDirectory(prefix="trilift-suites-"))
        log = Path(folder).resolve() / "rows.jsonl"
        rows = list(_kept(log, how)) if how.keep else []
        share = -(-how.count // max(len(targets), 1))
        tasks = [(t, share, how, str(log.parent), frozenset(r.case for r in rows if r.file == t.file)) for t in targets]

        def hear(index: int, row: Ran | str) -> None:
            progress(row if isinstance(row, str) else _line(row))
            if isinstance(row, Ran):
                rows.append(row)
                if row.outcome != "late":  # it may be the machine that was busy
                    with log.open("a") as kept:
                        kept.write(json.dumps([how.key, asdict(row)]) + "\n")

        patience = WRITING + RUNNING
        for index, outcome in run_all(_file, tasks, how.jobs, patience, "forkserver", hear, True, PRELOAD):
            if outcome.failure is not None:
                progress(f"{targets[index].file}: {outcome.failure} {outcome.log.strip()[-300:]}")
    order = {t.file: k for k, t in enumerate(targets)}
    return sorted(rows, key=lambda r: order.get(r.file, len(order)))


def _kept(log: Path, how: How) -> Iterator[Ran]:
    """The rows of a run before this one that asked for the same."""
    for line in log.read_text().splitlines() if log.exists() else ():
        key, row = json.loads(line)
        if key == how.key:
            yield Ran(**{**row, "failed": tuple(row["failed"])})


def _line(r: Ran) -> str:
    said = f"{r.passed} passed, {r.writing:.0f} s to write, {r.seconds:.0f} s to run, {r.processor:.0f} s of processor"
    return f"{r.name}: {r.outcome}{f': {r.why}' if r.why else ''}; {said}"


def _file(target: Target, share: int, how: How, folder: str, done: frozenset[str], event: Event) -> None:
    from trilift.lift.capture.case_files import load

    try:
        cases = [c for c in load(target.file, target.cases) if not target.only or c.name in target.only]
    except Exception as error:
        event(f"{target.file}: {error}")
        return
    if 0 < share < len(cases):
        chosen = set(random.Random(how.seed).sample([c.name for c in cases], share))
        cases = [c for c in cases if c.name in chosen]
    for case in cases:
        if case.name not in done:
            event(_case(case, target.file, folder, how))


def _case(case: Case, file: str, folder: str, how: How) -> Ran:
    path = Path(folder) / f"test_{Path(file).stem}_{case.name}.py"
    start = time.monotonic()
    [(_, outcome)] = run_all(_write, [(file, case.name, str(path), how)], 1, WRITING)
    writing = time.monotonic() - start
    if outcome.failure is not None:
        said = (outcome.log.strip().splitlines() or [""])[-1]
        what = "late" if outcome.failure == "timeout" else "not written"
        return Ran(file, case.name, what, f"{outcome.failure} {said}", writing=writing)
    return pytest_of(file, case.name, path, writing)


def _write(file: str, name: str, path: str, how: How, event: Event) -> None:
    text = text_of(Target(file, (name,)), path, Asked(how.seed, how.examples, GUARD_SECONDS))
    Path(path).write_text(text, encoding="utf-8")


def pytest_of(file: str, case: str, path: Path, writing: float = 0.0) -> Ran:
    """The tests of a file that was written for a case, run in its folder without the plugin of trilift."""
    text = path.read_text(encoding="utf-8")
    told = path.with_suffix(".xml")
    told.unlink(missing_ok=True)
    start, before = time.monotonic(), _processor()
    command = [sys.executable, "-m", *LOADED, f"--junitxml={told}", path.name]
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONWARNINGS"}
    late = why = ""
    try:
        done = subprocess.run(
            command, cwd=path.parent, env=environment, capture_output=True, text=True, timeout=RUNNING
        )
    except subprocess.TimeoutExpired:
        late = f"no end after {RUNNING:.0f} s"
    seconds, processor = time.monotonic() - start, _processor() - before
    tests = list(ElementTree.parse(told).iter("testcase")) if told.exists() else []
    kinds = Counter(_kind(t) for t in tests)
    failed = tuple(str(t.get("name")) for t in tests if _kind(t) == "failed")
    if not late and not tests:
        why = (done.stdout + done.stderr).strip()[-300:]
    outcome = (
        "red" if failed or why else "late" if late else "green" if kinds["passed"] + kinds["xfailed"] else "skipped"
    )
    shown = {"red": "failed", "skipped": "skipped"}.get(outcome, "")
    why = why or late or next((_said(t) for t in tests if _kind(t) == shown), "")
    return Ran(
        file, case, outcome, " ".join(why.split())[:200], verdict(text, case), kinds["passed"], kinds["xfailed"],
        kinds["skipped"], failed, _is_clean(path), len(text), writing, seconds, processor,
    )  # fmt: skip


def _processor() -> float:
    """Seconds of the processor of all children that ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _kind(test: ElementTree.Element) -> str:
    if test.find("failure") is not None or test.find("error") is not None:
        return "failed"
    found = test.find("skipped")
    return "passed" if found is None else "xfailed" if found.get("type") == "pytest.xfail" else "skipped"


def _said(test: ElementTree.Element) -> str:
    """The test, and what it says; of an error outside of a test what was raised."""
    found = next((x for what in ("failure", "error", "skipped") if (x := test.find(what)) is not None), None)
    if found is None:
        return str(test.get("name"))
    raised = [line[1:].strip() for line in (found.text or "").splitlines() if line[:1] == "E"]
    said = raised[-1] if found.tag == "error" and raised else found.get("message")
    return f"{test.get('name')}: {said}"


def verdict(text: str, case: str) -> str:
    """The weakest verdict that the docstring of a file states for an output of the case, "not proved" if it states
    none."""
    found = re.findall(rf"^{re.escape(case)}, (PROVED|TESTED|UNKNOWN|REFUTED|not proved): ", text, re.MULTILINE)
    order = ("REFUTED", "not proved", "UNKNOWN", "TESTED", "PROVED")
    return min(found, key=order.index, default="not proved")


def _is_clean(path: Path) -> bool:
    """Whether ruff, with its own settings, would change nothing."""
    commands = (("check",), ("format", "--check"))
    ruff = [sys.executable, "-m", "ruff"]
    ended = [subprocess.run([*ruff, *c, "--isolated", "-q", str(path)], capture_output=True) for c in commands]
    return not any(e.returncode for e in ended)


# ---- tables ----------------------------------------------------------------------------------------------------------

HEAD = ("cases", *OUTCOMES, "PROVED", "PROVED and green", "clean", "tests passed", "xfailed", "skipped tests",
        "median s", "median s of processor", "largest s of processor")  # fmt: skip
EACH = ("case", "verdict", "outcome", "passed", "xfailed", "skipped", "s to write", "s to run", "s of processor")
LATE = f"more than {QUICK:.0f} s of processor"
COLUMNS = {
    "not green": ("case", "outcome", "why"),
    "without a GPU no test runs": ("case", "why"),
    LATE: ("case", "s of processor"),
    "by file": ("file", *HEAD),
    "by case": EACH,
}
NOTES = (
    "green: every test of the file passes, or is marked as a bug that is known (xfail). skipped: no test of it runs "
    "without a GPU, and the file says why. clean: ruff check and ruff format, with their own settings, change nothing.",
    "s to run: from the start of Python to its end, imports of PyTorch and Triton among them, beside whatever else the "
    "machine does; s of processor: what the process used.",
)


def result(rows: Sequence[Ran], title: str) -> Result:
    """The tables: first the cases that are not green, then by file and by case; exit code 1 if a file is red, late or
    was not written, 3 without cases."""
    bad = [r for r in rows if r.outcome in ("red", "late", "not written")]
    late = sorted((r for r in rows if r.processor > QUICK), key=lambda r: -r.processor)
    files = list(dict.fromkeys(r.file for r in rows))
    shown: dict[str, Sequence[Row]] = {
        "not green": [(r.name, r.outcome, r.why) for r in bad],
        "without a GPU no test runs": [(r.name, r.why) for r in rows if r.outcome == "skipped"],
        LATE: [(r.name, f"{r.processor:.1f}") for r in late],
        "by file": [*(_total(Path(f).stem, [r for r in rows if r.file == f]) for f in files), _total("all", rows)],
        "by case": [_each(r) for r in rows],
    }
    data = {"cases": [asdict(r) for r in rows]}
    return Result(title, tabled(COLUMNS, shown), data, 3 if not rows else int(bool(bad)))


def _total(name: str, rows: Sequence[Ran]) -> Row:
    outcomes, ran = Counter(r.outcome for r in rows), [r for r in rows if r.ran]
    proved = [r for r in rows if r.verdict == "PROVED"]
    counts = (len(rows), *(outcomes[o] for o in OUTCOMES), len(proved), sum(r.outcome == "green" for r in proved),
              sum(r.clean for r in rows), sum(r.passed for r in rows), sum(r.xfailed for r in rows),
              sum(r.skipped for r in rows))  # fmt: skip
    median = lambda of: f"{statistics.median(of):.1f}" if of else "-"  # noqa: E731
    used = [r.processor for r in ran]
    most = f"{max(used):.1f}" if used else "-"
    return (name, *map(str, counts), median([r.seconds for r in ran]), median(used), most)


def _each(r: Ran) -> Row:
    seconds = (r.writing, r.seconds, r.processor)
    counts = (r.passed, r.xfailed, r.skipped)
    return (r.name, r.verdict, r.outcome, *map(str, counts), *(f"{s:.1f}" for s in seconds))


def measure(name: str, options: Options, quiet: bool) -> Result:
    """The tests written for all operators, or for the cases of packages that summary.json says are PROVED."""
    proved = (str(ROOT / case) for case in summary.proved("packages")) if name == PACKAGES else ()
    targets = [*proved] or [str(CORPUS / "operators")]
    return measured(name, targets, How(0, options.seed, options.jobs), quiet)


def measured(name: str, targets: Sequence[str], how: How, quiet: bool = False) -> Result:
    """The result of a sweep over targets."""
    with Progress(quiet) as progress:
        rows = sweep(resolve(targets), how, progress.say)
    return result(rows, f"{name}: {len(rows)} cases, seed {how.seed}, {how.examples} examples of each test")


EXPERIMENTS = by_name(*(Experiment(n, measure, COLUMNS, NOTES, summary.suites) for n in ("test-suites", PACKAGES)))


@click.command()
@click.argument("targets", nargs=-1)
@click.option("--count", default=0, help="cases in all, spread over the files; 0 for all of them")
@click.option("--seed", default=0)
@click.option("--jobs", default=1, help="files at a time")
@click.option("--max-examples", "examples", default=EXAMPLES)
@FORM
@OUTPUT
@click.option("--keep", default="", type=click.Path(file_okay=False, exists=True), help="folder to leave the tests in")
@click.option("--quiet", is_flag=True)
def main(targets: tuple[str, ...], form: str, output: str | None, quiet: bool, **how: Any) -> None:
    """Tests written for the cases of TARGETS, run as they are. With --keep a run that was interrupted goes on."""
    found = measured("test suites", targets, How(**how), quiet)
    deliver(EXPERIMENTS["test-suites"].noted(found), form, output)


if __name__ == "__main__":
    main()
