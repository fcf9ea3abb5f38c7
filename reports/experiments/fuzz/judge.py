"""Verdicts against executions: which verdict is wrong, and at which input."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import cast

from trilift.lift.runtime.isolate import run_all
from trilift.reports.runner.local import PROVER

from ..renderer import commit
from . import prover
from .grammar import Program, features
from .mutate import Mutant, mutants
from .prover import Task, Told
from .random_programs import program
from .reference import host, source
from .runs import Answer, Run, Server, declared, long_run, planned

PATIENCE = 300.0  # seconds without a verdict after which the prover is ended
TOGETHER = 20  # programs of one process
LARGE = 100  # programs of a launch
AT_ONCE = 100  # that are drawn
FULL_EVERY = 5
WRONG = ("wrong PROVED", "wrong TESTED", "wrong REFUTED", "crash")
EXCLUDED = "excluded by data"  # or not: a clause over data may exclude the input
PLACES = ("in", "integers", "data", "out")  # of a run: `Told.within`
PAIRS = 4  # of runs, in which an autotuner has chosen every pair of configurations
LOAD = re.compile(r"Wrong: load out of bounds at line (\d+)")
LOADS = ("tt.load", "tt.descriptor_load")
BY_ZERO = "divided by 0"  # a note of `wrapping`
UNTRIED = ("UNKNOWN", "UNREADABLE")  # say nothing that could be wrong


@dataclass(frozen=True, slots=True)
class Judged:
    """One program or mutant: the verdict, what executions say ("same", "differs", "outside": differs only outside of
    the contract, "unrun"), and the outcome: "right", "open", EXCLUDED, or one of WRONG."""

    program: Program
    mutant: Mutant | None
    told: Told
    execution: str
    outcome: str
    detail: str = ""
    run: Run | None = None
    features: tuple[str, ...] = field(default=())

    @property
    def kind(self) -> str:
        return self.mutant.kind if self.mutant else "original"

    @property
    def text(self) -> str:
        """The case file."""
        return source(self.program, self.mutant.program if self.mutant else None)

    def record(self) -> Record:
        """As plain data."""
        t, at = self.told, self.run.plain() if self.run else {}
        mutant = self.mutant.text if self.mutant else ""
        return Record(self.program.name, self.kind, mutant, t.verdict, t.reason[:200], t.clauses, self.execution,
                      self.outcome, self.detail[:300], at, round(t.seconds, 3), self.features, t.way,
                      commit())  # fmt: skip


@dataclass(frozen=True, slots=True)
class Record:
    """A line of the results: a program or mutant, its verdict, and what executions say of it."""

    program: str
    kind: str
    mutant: str
    verdict: str
    reason: str
    clauses: Sequence[str]
    execution: str
    outcome: str
    detail: str
    run: Mapping[str, object]
    seconds: float
    features: Sequence[str]
    way: str
    commit: str = ""  # of this repository

    def plain(self) -> dict[str, object]:
        """For JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class How:
    """Processes, and whether nothing but proofs is looked for (`quick`: what is not proved is UNKNOWN), but in each
    FULL_EVERY-th program."""

    jobs: int = 1
    quick: bool = False


Say = Callable[[str], None]
Hear = Callable[[Judged], None]


def judged(
    seed: int,
    numbers: Sequence[int],
    changed: int,
    how: How,
    say: Say = lambda text: None,
    hear: Hear = lambda j: None,
) -> Iterator[Judged]:
    """The programs of these numbers with `changed` mutants each; `hear` is told each at once."""
    server = Server()
    server.start()
    try:
        for k in range(0, len(numbers), AT_ONCE):
            drawn = [(n, program(seed, n)) for n in numbers[k : k + AT_ONCE]]
            yield from judge([(p, mutants(p, seed + n, changed)) for n, p in drawn], how, server, say, hear)
    finally:
        server.stop()


def judge(
    given: Sequence[tuple[Program, Sequence[Mutant]]],
    how: How,
    server: Server,
    say: Say = lambda text: None,
    hear: Hear = lambda j: None,
) -> Iterator[Judged]:
    """Every program and mutant: proved in warm processes of their own, executed in Triton's interpreter."""
    rows: list[Judged] = []
    plans = [planned(p, 7 * k + len(p.stages)) for k, (p, _) in enumerate(given)]
    quick = [how.quick and k % FULL_EVERY != FULL_EVERY - 1 for k in range(len(given))]
    tasks = [_task(p, ms, plan, q) for (p, ms), plan, q in zip(given, plans, quick, strict=True)]
    heard: list[int] = []

    def heard_of(chunk: int, event: tuple[int, int, Told]) -> None:
        number, k, told = event
        index = chunk * TOGETHER + number
        p, ms = given[index]
        heard.append(index)
        rows.append(verdict(server, p, ms[k - 1] if k else None, told, plans[index]))
        hear(rows[-1])

    chunks = [(tasks[k : k + TOGETHER],) for k in range(0, len(tasks), TOGETHER)]
    for chunk, outcome in run_all(prover.examine, chunks, how.jobs, PATIENCE, "forkserver", heard_of, True, PROVER):
        if outcome.failure is not None:
            last = max((i for i in heard if i // TOGETHER == chunk), default=chunk * TOGETHER)
            said = (outcome.log.strip().splitlines() or [""])[-1]
            say(f"{given[last][0].name} or the next: {outcome.failure}: {said}")
        yield from rows
        rows.clear()


def _task(p: Program, ms: Sequence[Mutant], plan: Sequence[Run], quick: bool) -> Task:
    same = tuple(host(m.program) == host(p) for m in ms)
    runs = tuple([r.plain() for r in _runs(p, m, plan)] for m in (None, *ms))
    sources = (source(p), *(source(p, m.program) for m in ms))
    return Task(sources, (True, *same), declared(p), runs, quick)


def verdict(server: Server, p: Program, m: Mutant | None, told: Told, plan: Sequence[Run]) -> Judged:
    """One verdict, tried by execution."""
    found = features(m.program if m else p)
    if told.verdict == "CRASH":
        return Judged(p, m, told, "unrun", "crash", told.reason, None, found)
    if told.verdict in UNTRIED:
        return Judged(p, m, told, "unrun", "open", told.reason, None, found)
    if told.verdict == "REFUTED":
        return _replayed(server, p, m, told, found)
    execution, detail, run, place = _executed(server, p, m, told, plan)
    return Judged(p, m, told, execution, _outcome(told, execution, place), detail, run, found)


def _replayed(server: Server, p: Program, m: Mutant | None, told: Told, found: tuple[str, ...]) -> Judged:
    """A counterexample, run again by Triton's interpreter."""
    given = told.given or {}
    text = source(p, m.program if m else None, precise=True)
    answer = server.ask(text, p, [given] * (PAIRS if "@triton.autotune" in text else 1))
    what, detail, notes = (answer["runs"] or [("error", answer["error"], "")])[-1]
    if what == "same" and BY_ZERO in notes:
        what = "undefined"  # Triton's interpreter has a result there
    execution = {"differs": "differs", "same": "same"}.get(what, "unrun")
    outcome = {"differs": "right", "same": "wrong REFUTED"}.get(execution, "open")
    why = f"{given.get('why')}" if execution == "same" else detail
    numbers = cast("dict[str, int | float]", given.get("numbers", {}))
    return Judged(p, m, told, execution, outcome, why, Run(numbers, "given", int(str(given.get("seed", 0)))), found)


def _executed(
    server: Server, p: Program, m: Mutant | None, told: Told, plan: Sequence[Run]
) -> tuple[str, str, Run | None, str]:
    """(execution, detail, the run that differs, whether that is within the contract)."""
    runs = _runs(p, m, plan)
    asked = list(zip(runs, told.within or ("in",) * len(runs), strict=True))
    asked.sort(key=lambda x: PLACES.index(x[1]))
    text, unused = source(p, m.program if m else None, precise=True), list[int]()
    while True:
        answer = server.ask(text, p, [r.plain() for r, _ in asked], unused=unused)
        found = _first(answer, asked)
        line = LOAD.fullmatch(found[1])
        at = int(line[1]) if line else 0
        if not at or at in unused or found[2] is None or at in compiled_loads(text, found[2].numbers):
            return found
        unused.append(at)


def compiled_loads(text: str, numbers: Mapping[str, int | float]) -> set[int]:
    """The lines of a case file at which its kernels, as Triton's compiler reads them, load something. A value that
    nothing needs (`x - x`) is not loaded, though Triton's interpreter does."""
    from trilift.lift.capture.case_files import load
    from trilift.lift.capture.run import capture

    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        path = Path(folder, "fuzzed.py")
        path.write_text(text)
        (case,) = load(str(path))
        modules = [e.module() for e in capture(case, dict(numbers)).launches]
        return {op.place.line for m in modules for op in m.walk() if op.name in LOADS and op.place is not None}


def _runs(p: Program, m: Mutant | None, plan: Sequence[Run]) -> list[Run]:
    """Those of the plan, and one with more programs than a large cap lets through."""
    wrong = m.program if m else p
    cap = max((s.schedule.cap for s in wrong.stages), default=0)
    return [*plan, long_run(wrong, cap, 1)] if cap > LARGE else list(plan)


def _first(answer: Answer, asked: Sequence[tuple[Run, str]]) -> tuple[str, str, Run | None, str]:
    for (run, place), (what, detail, wrapped) in zip(asked, answer["runs"], strict=False):
        if what == "differs":
            where = "in" if place == "integers" and not wrapped else place
            return "differs" if where != "out" else "outside", detail, run, where
        if what == "error":
            return "unrun", detail, run, place
    return ("unrun", answer["error"], None, "") if answer["error"] else ("same", "", None, "")


def _outcome(told: Told, execution: str, place: str) -> str:
    if execution == "differs":
        return EXCLUDED if place in ("integers", "data") else f"wrong {told.verdict}"
    return "right" if execution in ("same", "outside") else "open"
