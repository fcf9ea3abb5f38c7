"""Changed µGraphs and changed emitted files of Mirage's programs: none may be accepted that computes something else.

A µGraph goes to the field test; what passes is emitted and executed in float64. A file is executed in float64 and in
its own precision on poisoned memory, then proved; what is proved is executed again on other inputs and shapes, for
longer: only that tells an equivalent mutant from one that was accepted wrongly. `make mugraph-mutants` fails on one."""

from __future__ import annotations

import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import click

from trilift.lift.runtime.isolate import run, run_all
from trilift.superopt.accept.mutants import Mutant

from ...base.progress import Progress
from ...base.targets import Target, resolve
from ...records.options import Options
from .. import summary
from ..experiment import Experiment, Result, Row, by_name, tabled
from ..folders import CORPUS
from ..renderer import FORM, OUTPUT, deliver

BATCH = 8
GRAPHS = 2  # of each program, the best ones
FILES = 6  # changed files of each program
EXECUTION_STEPS = 3_000_000  # of each replay of a mutant
AGAIN_STEPS = 15_000_000  # of one that was proved
PROOF = 30.0
FOLDER = re.compile(r"\S*/trilift-\w+/")  # of a file that is judged
EVERY = 50  # mutants between two lines of progress
TIMEOUT = 200.0  # seconds of one changed file
PATIENCE = 900.0  # seconds without a word from a program
OUTCOMES = ("field test", "invalid", "execution", "prover", "equivalent", "wrong", "error")
COLUMNS = {
    "mutants": ("program", "of", "mutants", *OUTCOMES),
    "by what was changed": ("change", "mutants", *OUTCOMES),
    "accepted": ("program", "of", "change", "where", "outcome", "said"),
}
NOTE = (
    "`field test`, `invalid`, `execution`, `prover`: what rejected a mutant first (`invalid`: the graph does not say "
    "what its kernels compute, or has no form as a kernel). `equivalent`: it was accepted, and executions of its own "
    "in float64, with other inputs and shapes, find no difference. `wrong`: it was accepted and differs."
)
Event = Callable[[Any], None]


@dataclass(frozen=True, slots=True)
class Judged:
    """One mutant, a graph or a file, and what became of it."""

    program: str
    kind: str
    what: str
    where: str
    outcome: str
    text: str = ""


def measure(name: str, options: Options, quiet: bool) -> Result:
    """Both kinds for all programs of Mirage."""
    return measured(options, quiet, FILES)


def measured(options: Options, quiet: bool, files: int) -> Result:
    """Both kinds for all programs; exit code 1 where a mutant was accepted wrongly, 2 where some were not judged."""
    rows: list[Judged] = []
    failures: list[str] = []
    targets = resolve([str(CORPUS / "mirage")])
    with Progress(quiet) as progress:
        tasks = [(t, options.seed, files) for t in targets]

        def hear(index: int, row: dict[str, str]) -> None:
            rows.append(Judged(**row))
            if len(rows) % EVERY == 0:
                progress.say(f"{len(rows)} mutants, in {targets[index].file}")

        for index, outcome in run_all(_file, tasks, options.jobs, PATIENCE, "forkserver", hear, renew=True):
            progress.say(f"{targets[index].file}: {outcome.failure or 'done'}, {len(rows)} mutants so far")
            if outcome.failure:
                failures.append(f"{targets[index].file}: {outcome.failure} {outcome.log[-300:]}")
    rows.sort(key=lambda r: (r.program, r.kind))
    shown = {
        "mutants": [*_counted(rows, lambda r: (r.program, r.kind)), _sum("all", rows)],
        "by what was changed": _counted(rows, lambda r: (r.what,)),
        "accepted": map(_accepted, _passed(rows)),
    }
    wrong, errors = (sum(r.outcome == o for r in rows) for o in ("wrong", "error"))
    data = {"mutants": [asdict(r) for r in rows], "failures": failures}
    notes = tuple(f"not all were judged: {f}" for f in failures)
    code = 1 if wrong else 2 if errors or failures else 0
    return Result("mutants of µGraphs", tabled(COLUMNS, shown), data, code, notes)


EXPERIMENTS = by_name(Experiment("mugraph-mutants", measure, COLUMNS, (NOTE,), summary.mutants))


def _passed(rows: Sequence[Judged]) -> list[Judged]:
    return [r for r in rows if r.outcome in ("equivalent", "wrong", "error")]


def _accepted(r: Judged) -> Row:
    return (r.program, r.kind, r.what, r.where, r.outcome, r.text)


def _counted(rows: Sequence[Judged], key: Callable[[Judged], Row]) -> Iterator[Row]:
    groups: dict[Row, list[Judged]] = defaultdict(list)
    for r in rows:
        groups[key(r)].append(r)
    for name, group in sorted(groups.items()):
        yield (*name, *_numbers(group))


def _sum(name: str, rows: Sequence[Judged]) -> Row:
    return (name, "", *_numbers(rows))


def _numbers(rows: Sequence[Judged]) -> Row:
    counts = Counter(r.outcome for r in rows)
    return (str(len(rows)), *(str(counts[o]) for o in OUTCOMES))


# ---- one program -----------------------------------------------------------------------------------------------------


def _file(target: Target, seed: int, files: int, event: Event) -> None:
    """The mutants of all cases of a file; each is told when it is judged. Raises RuntimeError where an execution
    rejects a file that is not changed."""
    from trilift.lift.capture.case_files import by_file, load
    from trilift.superopt.accept.mutants import graph_mutants, text_mutants
    from trilift.superopt.jobs import emitted, program_of, read
    from trilift.superopt.program.abstract import templates
    from trilift.superopt.search.best_first import graphs, search

    sizes = by_file(target.file).sizes(BATCH)
    for c in load(target.file):
        p = program_of(read(target.file, c.name, sizes, seed, event)["program"])
        best = graphs(search(p, seed=seed))[:GRAPHS]
        for g in best:
            for m, changed in graph_mutants(g):
                event(asdict(_judged(c.name, "graph", m, *_graph(changed, templates(p), seed))))
        source = emitted(best[0], c.name, list(c.tensors), seed)[1]
        if said := _steps(source, ("replayed", "rounded"), seed, EXECUTION_STEPS):
            raise RuntimeError(f"{c.name} is rejected as it is: {said}")
        for m, text in in_turn(list(text_mutants(source)), files, seed):
            found = run(judge_file, text, seed, timeout=TIMEOUT)
            outcome = found.value if found.failure is None else _died(found.failure, found.log)
            event(asdict(_judged(c.name, "file", m, *outcome)))


def _judged(program: str, kind: str, m: Mutant, outcome: str, text: str) -> Judged:
    said = " ".join(FOLDER.sub("", text).split())
    return Judged(program, kind, m.what, m.where, outcome, said[:300])


def _died(failure: str, log: str) -> tuple[str, str]:
    """A mutant whose process died was not accepted; one that took too long was not judged."""
    return ("error", "out of time") if failure == "timeout" else ("execution", f"{failure} {log[-100:]}")


def in_turn(mutants: list[tuple[Mutant, str]], count: int, seed: int) -> list[tuple[Mutant, str]]:
    """`count` of them, one of each change before the second of any."""
    random.Random(seed).shuffle(mutants)
    seen: Counter[str] = Counter()
    ranked: list[tuple[int, int, Mutant, str]] = []
    for m, text in mutants:
        ranked.append((seen[m.what], len(ranked), m, text))
        seen[m.what] += 1
    return [(m, text) for _, _, m, text in sorted(ranked, key=lambda r: r[:2])[:count]]


# ---- one mutant ------------------------------------------------------------------------------------------------------


def _graph(g: Any, named: Any, seed: int) -> tuple[str, str]:
    """(the stage that rejects a µGraph, its message): "invalid", "field test", or a stage of `judge_execution`."""
    from trilift.lift.errors import TriliftError
    from trilift.superopt.emit.codegen import source
    from trilift.superopt.search.stabilise import stabilised
    from trilift.superopt.search.verifier import verify

    try:
        tested = verify(g, named, seed)
    except TriliftError as e:
        return "invalid", str(e)
    if not any(o.equal is True for o in tested.outcomes):
        return _untested(tested)
    try:
        text = source(stabilised(g), "mutant", named, g.program.extents)
    except TriliftError as e:
        return "invalid", str(e)
    return judge_execution(text, seed)


def _untested(tested: Any) -> tuple[str, str]:
    """Rejected as different, or as what cannot be executed in the field."""
    if any(o.equal is False for o in tested.outcomes):
        return "field test", ""
    return "invalid", "; ".join(o.reason for o in tested.outcomes)


def judge_execution(text: str, seed: int) -> tuple[str, str]:
    """Of a file whose µGraph passed the field test: is it what it should be, in float64?"""
    said = _steps(text, ("replayed",), seed + 1, AGAIN_STEPS)
    return ("wrong", said) if said else ("equivalent", "passed the field test")


def judge_file(text: str, seed: int, event: Event = lambda said: None) -> tuple[str, str]:
    """(the stage that rejects a changed file, its message): "execution", "prover", or "wrong" if only the last
    execution tells it from the original; ("equivalent", "proved") if every stage accepts it."""
    if said := _steps(text, ("replayed", "rounded"), seed, EXECUTION_STEPS):
        return "execution", said
    if said := _steps(text, ("proved",), seed, EXECUTION_STEPS):
        return "prover", said
    said = _steps(text, ("replayed",), seed + 1, AGAIN_STEPS)
    return ("wrong", said) if said else ("equivalent", "proved")


def _steps(text: str, only: Sequence[str], seed: int, steps: int) -> str:
    """Why a step of acceptance does not let a file pass, "" where all of them do."""
    from trilift.superopt.accept.acceptance import accept

    found = accept(text, timeout=PROOF, seed=seed, only=only, steps=steps)
    last = found.steps[-1]
    return "" if last.passed else f"{last.name}: {last.text}"


# ---- command ---------------------------------------------------------------------------------------------------------


@click.command()
@click.option("--seed", default=0, show_default=True)
@click.option("--files", default=FILES, show_default=True, help="Changed files of each program.")
@click.option("--jobs", default=1, show_default=True)
@FORM
@OUTPUT
def main(seed: int, files: int, jobs: int, form: str, output: str | None) -> None:
    """Changed µGraphs and emitted files: none may be accepted that computes something else."""
    found = measured(Options(seed=seed, jobs=jobs), False, files)
    deliver(EXPERIMENTS["mugraph-mutants"].noted(found), form, output)


if __name__ == "__main__":
    main()
