"""The mutation score of the tests that are written: `python -m trilift.reports.experiments.mutation.mutation_score
TARGET...`, `make mutation-score`.

The mutants are the soundness gate's, in its order. Of those that an execution tells from the original, each takes the
place of its kernel while pytest runs the tests written for its case, and while two common ways of testing a kernel run.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trilift.lift.runtime.budget import GUARD_SECONDS
from trilift.lift.runtime.isolate import Event, run_all

from ...base.progress import Progress
from ...base.targets import Target, resolve
from ...records.options import Options
from ...runner.stopping import Stopped
from .. import summary
from ..experiment import Experiment, Result, Row, by_name, tabled
from ..renderer import FORM, OUTPUT, deliver
from .mutant_tests import DEAD, OUTCOMES, Original, Tested, scored
from .mutants import changed_cases, declared

if TYPE_CHECKING:
    from trilift.lift.cases.declaration import Case

Write = Callable[[str, str, int, str], None]  # (file, case, seed, path): puts the tests of a case there
Examined = Tested | Original
COUNT = 500  # mutants of the page
EXAMPLES = 20  # of each test, as `trilift write` has it
WRITING = 300.0  # seconds to write the tests of a case
EVERY = 25  # mutants between two lines of progress
PRELOAD = (
    "pytest",
    "hypothesis",
    "hypothesis.strategies",
    "trilift.verify.mutation.emulation",
    "trilift.verify.mutation.soundness_gate",
    "trilift.reports.experiments.mutation.usual_tests",
    "trilift.reports.experiments.mutation.mutation_score",
)


# ---- processes -------------------------------------------------------------------------------------------------------


def written(file: str, name: str, seed: int, path: str) -> None:
    """Writes the tests that `trilift write` writes for a case."""
    from ...commands.write import Asked, text_of

    text = text_of(Target(file, (name,)), path, Asked(seed, EXAMPLES, GUARD_SECONDS))
    Path(path).write_text(text, encoding="utf-8")


def sweep(
    targets: Sequence[Target],
    count: int,
    seed: int = 0,
    jobs: int = 1,
    progress: Callable[[str], None] = lambda text: None,
    write: Write = written,
    keep: str = "",
) -> list[Examined]:
    """About `count` mutants, spread evenly over the cases of the targets; each file in a process of its own, the tests
    of each case are written in one child of it and run in another. `write` must be a function of a module; `keep`: the
    folder where the tests are kept, and found where they are there already; a run that was interrupted goes on there,
    after the last case that it did."""
    share = max(1, -(-count // max(1, sum(map(declared, targets)))))
    folder = keep or tempfile.mkdtemp(prefix="trilift-mutation-")
    kept = Kept(Path(folder), [share, seed, EXAMPLES])
    asked = {t.file: t.cases for t in targets}
    known = [(d, of) for d, of in kept.read() if d.file in asked and d.case in (asked[d.file] or (d.case,))]
    rows: list[Examined] = [r for _, of in known for r in of]
    started = time.monotonic()

    def hear(index: int, event: Any) -> None:
        if isinstance(event, str):
            progress(event)
            return
        if isinstance(event, Done):
            kept.write(event, [r for r in rows if r.case == event.case and Path(r.file).samefile(event.file)])
            return
        rows.append(event)
        if isinstance(event, Original) and not event.green:
            progress(f"{event.case}: not green on the kernel as it is: {event.outcome}")
        if isinstance(event, Tested) and event.counts and event.written not in DEAD:
            progress(f"{event.written}: {', '.join(_told(event))}")
        if len(rows) % EVERY == 0:
            progress(_line(rows, time.monotonic() - started))

    tasks = [(t, share, seed, folder, write, frozenset(d.case for d, _ in known if d.file == t.file))
             for t in targets]  # fmt: skip
    try:
        patience = 2 * WRITING
        for index, outcome in run_all(_file, tasks, jobs, patience, "forkserver", hear, renew=True, preload=PRELOAD):
            if outcome.failure is not None:
                progress(f"{targets[index].file}: {outcome.failure} {outcome.log.strip()[-300:]}")
    except (KeyboardInterrupt, Stopped):
        progress("interrupted: only what was examined so far is told")
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)
    order = {t.file: k for k, t in enumerate(targets)}
    return sorted(rows, key=lambda r: order.get(r.file, len(order)))


@dataclass(frozen=True, slots=True)
class Done:
    """A case of a file, with all of its mutants; `digest`: of its tests."""

    file: str
    case: str
    digest: str = ""


@dataclass(frozen=True, slots=True)
class Kept:
    """The results that earlier runs kept in a folder. `read` yields those that had the same `key` (seed and counts) and
    whose test files have not changed since."""

    folder: Path
    key: list[int]

    @property
    def log(self) -> Path:
        return self.folder / "mutants.jsonl"

    def read(self) -> Iterator[tuple[Done, list[Examined]]]:
        for line in self.log.read_text().splitlines() if self.log.exists() else ():
            key, done, originals, mutants = json.loads(line)
            found = Done(**done)
            if key == self.key and self.tests(found.file, found.case).exists() and self.done(found) == found:
                yield found, [*(Original(**r | {"failing": tuple(r["failing"])}) for r in originals),
                              *(Tested(**r) for r in mutants)]  # fmt: skip

    def write(self, done: Done, rows: Sequence[Examined]) -> None:
        of = [[asdict(r) for r in rows if isinstance(r, kind)] for kind in (Original, Tested)]
        with self.log.open("a") as log:
            log.write(json.dumps([self.key, asdict(self.done(done)), *of]) + "\n")

    def tests(self, file: str, case: str) -> Path:
        return self.folder / f"test_{Path(file).stem}_{case}.py"

    def done(self, of: Done) -> Done:
        return replace(of, digest=hashlib.sha256(self.tests(of.file, of.case).read_bytes()).hexdigest())


def _line(rows: Sequence[Examined], seconds: float) -> str:
    of = [r for r in rows if isinstance(r, Tested)]
    found = Counter(r.written for r in of if r.counts)
    return f"{len(of)} mutants, {seconds:.0f} s: " + ", ".join(f"{found[o]} {o}" for o in OUTCOMES if found[o])


def _file(target: Target, share: int, seed: int, folder: str, write: Write, done: frozenset[str], event: Event) -> None:
    from trilift.lift.capture.case_files import load

    try:
        cases = [c for c in load(target.file, target.cases) if not target.only or c.name in target.only]
    except Exception as error:
        event(f"{target.file}: {error}")
        return
    for case in (c for c in cases if c.name not in done):
        path = Path(folder) / f"test_{Path(target.file).stem}_{case.name}.py"
        tasks = [] if path.exists() else [(target.file, case.name, seed, str(path), write)]
        for _, outcome in run_all(_write, tasks, 1, WRITING):
            if outcome.failure is not None:
                said = (outcome.log.strip().splitlines() or [""])[-1]
                event(Original(target.file, case.name, f"no tests: {outcome.failure} {said}"))
        if not path.exists():
            continue
        _cases(case, str(path), share, seed, event)
        event(Done(target.file, case.name))


def _write(file: str, name: str, seed: int, path: str, write: Write, event: Event) -> None:
    write(file, name, seed, path)


def _cases(case: Case, path: str, share: int, seed: int, event: Event) -> None:
    """A case in a child; a mutant at which the child ends is passed over by the next child."""
    done: set[str] = set()
    while True:
        started: list[str] = []

        def hear(_: int, what: Any, started: list[str] = started) -> None:
            started.append(what[0]) if isinstance(what, tuple) else event(what)

        task = (case, path, share, seed, frozenset(done))
        [(_, outcome)] = run_all(_case, [task], 1, 2 * WRITING, "fork", hear, renew=True)
        if outcome.failure is None:
            return
        event(f"{case.name}: {outcome.failure} at {[*started, 'the original'][-1]}: {outcome.log.strip()[-300:]}")
        if not started:
            return
        done |= set(started)


def _case(case: Case, path: str, share: int, seed: int, done: frozenset[str], event: Event) -> None:
    for row in scored(case, path, share, seed, done, lambda key: event((key,))):
        if not done or isinstance(row, Tested):
            event(row)


# ---- tables ----------------------------------------------------------------------------------------------------------

HEAD = (
    "mutants",
    "told apart",
    "killed",
    "of these by timeout",
    "mutation score",
    "by one allclose",
    "by fixed shapes",
    "s",
)
COLUMNS = {
    "not green on the kernel as it is": ("case", "why"),
    "not killed": ("case", "mutant", "outcome", "what tells it apart"),
    "by kind": ("kind", *HEAD),
    "by case": ("case", *HEAD),
    "by test": ("mutants", "killed first by"),
}


def result(rows: Sequence[Examined], title: str) -> Result:
    """By kind and by case; what was not killed first; exit code 1 if tests are not green on a kernel as it is or have
    errors, 3 without mutants."""
    mutants, originals = [r for r in rows if isinstance(r, Tested)], [r for r in rows if isinstance(r, Original)]
    counting = [r for r in mutants if r.counts]
    first = Counter(r.by.partition(":")[0].partition("[")[0] for r in counting if r.written in DEAD)
    shown: dict[str, Sequence[Row]] = {
        "not green on the kernel as it is": [(_case_of(r), r.outcome) for r in originals if not r.green],
        "not killed": [_told(r) for r in counting if r.written not in DEAD],
        "by kind": _totals(mutants, lambda r: r.kind),
        "by case": _totals(mutants, _case_of),
        "by test": [(str(n), test) for test, n in first.most_common()],
    }
    data = {"originals": [asdict(r) for r in originals], "mutants": [asdict(r) for r in mutants]}
    defects = any(not r.green for r in originals) or any(r.written == "error" for r in mutants)
    return Result(title, tabled(COLUMNS, shown), data, 3 if not mutants else int(defects))


def _case_of(r: Examined) -> str:
    return f"{Path(r.file).stem}::{r.case}"


def _told(r: Tested) -> Row:
    by = f"{r.written}: {r.by}" if r.written in ("error", "crashed") else r.written
    return f"{_case_of(r)}, launch {r.launch}", f"{r.kind}: {r.text}", by, r.evidence


def _totals(rows: Sequence[Tested], of: Callable[[Tested], str]) -> list[Row]:
    names = list(dict.fromkeys(map(of, rows)))
    return [*(_total(n, [r for r in rows if of(r) == n]) for n in names), _total("all", rows)]


def _total(name: str, rows: Sequence[Tested]) -> Row:
    told = [r for r in rows if r.counts]
    dead, late = (sum(r.written in words for r in told) for words in (DEAD, ("timeout",)))
    ways = (
        _share(sum(bool(x) for x in way), len(told)) for way in ([r.allclose for r in told], [r.fixed for r in told])
    )
    seconds = f"{sum(r.seconds for r in rows):.0f}"
    return (name, str(len(rows)), str(len(told)), str(dead), str(late), _share(dead, len(told)), *ways, seconds)


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "-"


NOTES = (
    "told apart: the executions of the soundness gate give another result than the kernel's, or leave its memory.",
    "killed: a test of the file that `trilift write` writes for the case fails, while the package's machine executes "
    "the mutant on the tests' own memory, every result rounded to its type and masked lanes without a value NaN. It is "
    "a failure to read in the margin around a tensor, as it is in Triton's interpreter; a GPU does not tell.",
    "by one allclose: torch.allclose with rtol = atol = 1e-3 (1e-2 where the kernel itself needs it) against the "
    "reference at one shape, every dim the same power of two, on one normal input.",
    "by fixed shapes: torch.testing.assert_close against the reference at five shapes, at the tightest tolerance that "
    "the kernel itself meets. Both run on the same machine; torch.empty is filled with NaN for them.",
)


def measure(name: str, options: Options, quiet: bool) -> Result:
    """The mutation score of the tests of the cases that the soundness gate changes."""
    return measured(changed_cases(), COUNT, options, quiet)


def measured(targets: Sequence[str], count: int, options: Options, quiet: bool, keep: str = "") -> Result:
    """The result of a sweep over targets."""
    with Progress(quiet) as progress:
        rows = sweep(resolve(targets), count, options.seed, options.jobs, progress.say, keep=keep)
    total = sum(isinstance(r, Tested) for r in rows)
    return result(rows, f"mutation score: {total} mutants, seed {options.seed}")


EXPERIMENTS = by_name(Experiment("mutation-score", measure, COLUMNS, NOTES, summary.scores))


@click.command()
@click.argument("targets", nargs=-1)
@click.option("--count", default=300, help="mutants in all, spread over the cases")
@click.option("--seed", default=0)
@click.option("--jobs", default=1, help="files at a time")
@FORM
@OUTPUT
@click.option("--keep", default="", type=click.Path(file_okay=False, exists=True), help="folder for the tests")
@click.option("--quiet", is_flag=True)
def main(
    targets: tuple[str, ...], count: int, seed: int, jobs: int, form: str, output: str | None, keep: str, quiet: bool
) -> None:
    """Mutants of the kernels of TARGETS that an execution tells from the original, and the tests written for them."""
    found = measured(targets, count, Options(seed=seed, jobs=jobs), quiet, keep)
    deliver(EXPERIMENTS["mutation-score"].noted(found), form, output)


if __name__ == "__main__":
    main()
