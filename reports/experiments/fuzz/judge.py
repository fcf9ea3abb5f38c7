"""Verdicts against executions: which verdict is wrong, and at which input."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from trilift.lift.runtime.isolate import run_all
from trilift.reports.runner.local import PROVER

from . import prover
from .grammar import Program, features
from .mutate import Mutant, mutants
from .prover import Told
from .random_programs import program
from .reference import source
from .runs import Run, Server, long_run, planned

PATIENCE = 900.0  # seconds without a verdict after which the prover of a program is ended
WRONG = ("wrong PROVED", "wrong within a data clause", "wrong TESTED", "wrong REFUTED", "crash")


@dataclass(frozen=True, slots=True)
class Judged:
    """One program or mutant: the verdict, what executions say ("same", "differs", "outside": differs only outside of
    the contract, "unrun"), and the outcome: "right", "open", or one of WRONG."""

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


@dataclass(frozen=True, slots=True)
class How:
    """Processes, and whether nothing but proofs is looked for (`quick`: what is not proved is UNKNOWN)."""

    jobs: int = 1
    quick: bool = False


def judged(
    seed: int, numbers: Sequence[int], changed: int, how: How, say: Callable[[str], None] = lambda text: None
) -> Iterator[Judged]:
    """The programs of these numbers with `changed` mutants each."""
    programs = [program(seed, n) for n in numbers]
    yield from judge([(p, mutants(p, seed + n, changed)) for p, n in zip(programs, numbers, strict=True)], how, say)


def judge(
    given: Sequence[tuple[Program, Sequence[Mutant]]], how: How, say: Callable[[str], None] = lambda text: None
) -> Iterator[Judged]:
    """Every program and mutant: proved in processes of their own, executed in Triton's interpreter."""
    server = Server()
    server.start()
    rows: list[Judged] = []
    counted: list[int] = []
    plans = [planned(p, 7 * k + len(p.stages)) for k, (p, _) in enumerate(given)]
    tasks = [([source(p), *(source(p, m.program) for m in ms)], [r.numbers for r in plan], how.quick)
             for (p, ms), plan in zip(given, plans, strict=True)]  # fmt: skip

    def hear(index: int, event: tuple[int, Told]) -> None:
        k, told = event
        p, ms = given[index]
        counted.append(index)
        rows.append(verdict(server, p, ms[k - 1] if k else None, told, plans[index]))

    try:
        for index, outcome in run_all(prover.examine, tasks, how.jobs, PATIENCE, "forkserver", hear, True, PROVER):
            if outcome.failure is not None:
                said = (outcome.log.strip().splitlines() or [""])[-1]
                say(f"{given[index][0].name}: {outcome.failure} after {counted.count(index)} verdicts: {said}")
            yield from rows
            rows.clear()
    finally:
        server.stop()


def verdict(server: Server, p: Program, m: Mutant | None, told: Told, plan: Sequence[Run]) -> Judged:
    """One verdict, tried by execution."""
    found = features(m.program if m else p)
    if told.verdict in ("UNKNOWN", "UNREADABLE") and m is not None:
        return Judged(p, m, told, "unrun", "open", told.reason, None, found)
    execution, detail, run, place = _executed(server, p, m, told, plan)
    return Judged(p, m, told, execution, _outcome(m, told, execution, place), detail, run, found)


def _executed(
    server: Server, p: Program, m: Mutant | None, told: Told, plan: Sequence[Run]
) -> tuple[str, str, Run | None, str]:
    """(execution, detail, the run that differs, whether that is within the contract)."""
    within = told.within or ("in",) * len(plan)
    cap = max((s.schedule.cap for s in (m.program if m else p).stages), default=0)
    more = [long_run(m.program if m else p, cap, 1)] if cap > 100 and told.verdict == "PROVED" else []
    asked = [(r, w) for r, w in (*zip(plan, within, strict=True), *((r, "in") for r in more))]
    asked.sort(key=lambda x: ("in", "data", "out").index(x[1]))
    text = source(p, m.program if m else None, precise=True)
    answer = server.ask(text, p, [r.plain() for r, _ in asked])
    for (run, place), (what, detail) in zip(asked, answer["runs"], strict=False):
        if what == "differs":
            return "differs" if place != "out" else "outside", detail, run, place
        if what == "error":
            return "unrun", detail, run, place
    if answer["error"]:
        return "unrun", answer["error"], None, ""
    return "same", "", None, ""


def _outcome(m: Mutant | None, told: Told, execution: str, place: str) -> str:
    if told.verdict == "CRASH":
        return "crash"
    if execution == "differs" and told.verdict in ("PROVED", "TESTED"):
        return "wrong within a data clause" if place == "data" else f"wrong {told.verdict}"
    if told.verdict == "REFUTED" and m is None and execution == "same":
        return "wrong REFUTED"
    return "right" if told.verdict in ("PROVED", "REFUTED", "TESTED") else "open"


def plain(j: Judged) -> dict[str, object]:
    """As data, for JSON."""
    return {
        "program": j.program.name, "kind": j.kind, "mutant": j.mutant.text if j.mutant else "",
        "verdict": j.told.verdict, "reason": j.told.reason[:200], "clauses": list(j.told.clauses),
        "execution": j.execution, "outcome": j.outcome, "detail": j.detail,
        "run": j.run.plain() if j.run else None, "seconds": round(j.told.seconds, 3), "features": list(j.features),
    }  # fmt: skip
