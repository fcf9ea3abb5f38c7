"""The soundness gate over a corpus: `python -m trilift.reports.experiments.mutation.mutants TARGET...`, `make mutants`.

Mutants of every launch of every case go to the prover and to the executions. A wrong proof makes the command fail.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from itertools import islice, repeat
from pathlib import Path
from typing import Any

import click

from trilift.lift.runtime.isolate import run_all
from trilift.verify.model.verdict import Claim, Proof, unknown
from trilift.verify.mutation.mutant_filter import Mutation
from trilift.verify.mutation.mutants import Mutant, in_turn, mutants
from trilift.verify.mutation.soundness_gate import FAILURES, Examined, Prove, Tried, examine

from ...base.progress import Progress
from ...base.targets import DECORATED, Target, resolve
from ...records.options import Options
from ...runner.stopping import Stopped
from .. import summary
from ..experiment import Experiment, Result, Row, by_name, tabled
from ..folders import CORPUS
from ..renderer import FORM, OUTPUT, deliver

Event = Callable[[Any], None]
OUTCOMES = ("refuted", "unknown", "equivalent", "wrong", "unchecked", "error")
HEAD = ("mutants", "original proved", *OUTCOMES, "killed by execution", "s to prove", "s to run")
TOLD = ("case", "verdict", "mutant", "evidence")
COLUMNS = {
    "wrong or unchecked proofs, errors of the prover": TOLD,
    "by kind": ("kind", *HEAD),
    "by case": ("case", *HEAD),
    "proved and equivalent": TOLD,
    "unknown, by reason": ("mutants", "reason"),
}
COUNT = 1050  # mutants of the page
PROOF = 6.0  # seconds of processor time for the proof of one mutant
TIMEOUT = 120.0  # seconds for one mutant, prover and executions
LOADING = 60.0  # more for the first of a case
EVERY = 50  # mutants between two lines of progress


# ---- the provers -----------------------------------------------------------------------------------------------------


def prover(case: Any, launch: int, mutant: Mutation) -> Sequence[Proof]:
    """The proofs of the case's own claims with the module of this launch replaced by the mutant."""
    from trilift import verify

    found: Sequence[Proof] = verify.prove(case, replace={launch: mutant}, timeout=PROOF)
    return found


def no_prover(case: object, launch: int, mutant: Mutation) -> Sequence[Proof]:
    """UNKNOWN of everything: executions alone."""
    return [unknown(Claim("out", "formula"), "not asked")]


PROVERS: dict[str, Prove] = {"verify": prover, "none": no_prover}


# ---- processes -------------------------------------------------------------------------------------------------------


def sweep(
    prove: Prove,
    targets: Sequence[Target],
    count: int,
    seed: int = 0,
    jobs: int = 1,
    progress: Callable[[str], None] = lambda text: None,
    timeout: float = TIMEOUT,
) -> list[Examined]:
    """About `count` mutants, spread evenly over the cases of the targets; each file in a process of its own, each case
    in a child of it. Ctrl-C ends it with those examined so far. `prove` must be a function of a module. A case that
    cannot be run is told to `progress`."""
    share = max(1, -(-count // max(1, sum(map(declared, targets)))))
    rows: list[Examined] = []
    started = time.monotonic()

    def hear(index: int, event: Any) -> None:
        if isinstance(event, str):
            progress(event)
            return
        if isinstance(event, Examined):
            rows.append(event)
            if event.outcome in FAILURES:
                progress(f"{event.outcome}: {', '.join(_told(event))}")
            if len(rows) % EVERY == 0:
                progress(_line(rows, count, time.monotonic() - started))

    tasks = [(t, prove, share, seed, timeout) for t in targets]
    patience = 2 * timeout + LOADING
    try:
        for index, outcome in run_all(_file, tasks, jobs, patience, "forkserver", hear, renew=True):
            if outcome.failure is not None:
                progress(f"{targets[index].file}: {outcome.failure} {_last_line(outcome.log)}")
    except (KeyboardInterrupt, Stopped):
        progress("interrupted: only what was examined so far is told")
    order = {t.file: k for k, t in enumerate(targets)}
    return sorted(rows, key=lambda r: (order.get(r.file, len(order)), r.file, r.case, r.launch, r.number))


def declared(target: Target) -> int:
    """How many cases a file declares, as far as its text tells."""
    return len(target.cases) or max(1, len(DECORATED.findall(Path(target.file).read_text())))


def _line(rows: Sequence[Examined], count: int, seconds: float) -> str:
    found = Counter(r.outcome for r in rows)
    said = ", ".join(f"{found[o]} {o}" for o in OUTCOMES if found[o])
    return f"{len(rows)} of about {count} mutants, {seconds:.0f} s: {said}"


def _last_line(log: str) -> str:
    return (log.strip().splitlines() or [""])[-1]


def _file(target: Target, prove: Prove, share: int, seed: int, timeout: float, event: Event) -> None:
    """One file: its cases, each in a child. A mutant at which the child ends is passed over by the next child."""
    from trilift.lift.capture.case_files import load

    try:
        cases = [c for c in load(target.file, target.cases) if not target.only or c.name in target.only]
    except Exception as error:
        event(f"{target.file}: {error}")
        return
    todo: list[tuple[Any, frozenset[str]]] = [(c, frozenset[str]()) for c in cases]
    while todo:
        heard: dict[int, list[str]] = {}

        def hear(index: int, what: Any, heard: dict[int, list[str]] = heard) -> None:
            if isinstance(what, tuple):
                heard.setdefault(index, []).append(what[0])
            else:
                event(what)

        tasks = [(c, prove, share, seed, done) for c, done in todo]
        again = []
        for index, outcome in run_all(_case, tasks, 1, timeout + LOADING, "fork", hear, renew=True):
            case, done = todo[index]
            if outcome.failure is not None:
                at = heard.get(index, [""])[-1]
                event(f"{case.name}: {outcome.failure} at {at or 'the original'}: {_last_line(outcome.log)}")
                again += [(case, done | set(heard[index]))] if index in heard else []
        todo = again


def _case(case: Any, prove: Prove, share: int, seed: int, done: frozenset[str], event: Event) -> None:
    for row in examined(case, prove, share, seed, done, lambda key: event((key,))):
        event(row)


def examined(
    case: Any,
    prove: Prove,
    share: int,
    seed: int = 0,
    done: frozenset[str] = frozenset(),
    starting: Callable[[str], None] = lambda key: None,
) -> Iterator[Examined]:
    """`share` mutants of a case, its launches in turn, without those that are `done`; `starting` hears of each."""
    tried = Tried.of(case, seed)
    for launch, mutant in islice(selection(tried, seed), share):
        key = f"{launch} {mutant.identifier}"
        if key not in done:
            starting(key)
            yield examine(prove, tried, launch, mutant)


def selection(tried: Tried, seed: int) -> Iterator[tuple[int, Mutant]]:
    """(launch, mutant) of a case in the order in which they are taken; each kernel once, with other seeds."""
    launches = {e.module(): k for k, e in reversed(list(enumerate(tried.first[0].trace.launches)))}
    groups = [
        zip(repeat(k), mutants(module, seed_of(seed, tried.case.name, k)), strict=False)
        for module, k in sorted(launches.items(), key=lambda item: item[1])
    ]
    return in_turn(groups)


def seed_of(seed: int, name: str, launch: int) -> int:
    """The same number in every process."""
    return sum((k + 1) * ord(c) for k, c in enumerate(name)) + 1000003 * seed + launch


# ---- tables ----------------------------------------------------------------------------------------------------------


def result(rows: Sequence[Examined], title: str) -> Result:
    """Totals by kind and by case, wrong proofs first; exit code 1 if there is one or the prover failed, 3 without
    mutants."""
    failures = [_told(r) for r in rows if r.outcome in FAILURES]
    shown = {
        "wrong or unchecked proofs, errors of the prover": failures,
        "by kind": _totals(rows, lambda r: r.kind),
        "by case": _totals(rows, lambda r: f"{Path(r.file).stem}::{r.case}"),
        "proved and equivalent": [_told(r) for r in rows if r.outcome == "equivalent"],
        "unknown, by reason": _reasons(rows),
    }
    code = 3 if not rows else int(bool(failures))
    return Result(title, tabled(COLUMNS, shown), {"mutants": [plain(r) for r in rows]}, code)


def plain(r: Examined) -> dict[str, Any]:
    """One mutant without its script, which the seed and the identifier give again."""
    return {k: v for k, v in asdict(r).items() if k != "replay"}


def _totals(rows: Sequence[Examined], of: Callable[[Examined], str]) -> list[Row]:
    names = list(dict.fromkeys(map(of, rows)))
    return [*(_total(n, [r for r in rows if of(r) == n]) for n in names), _total("all", rows)]


def _total(name: str, rows: Sequence[Examined]) -> Row:
    found, killed = Counter(r.outcome for r in rows), sum(r.execution == "killed" for r in rows)
    share = f"{100 * killed / len(rows):.0f} %" if rows else "-"
    seconds = (f"{sum(s):.1f}" for s in ([r.prove_seconds for r in rows], [r.run_seconds for r in rows]))
    proved = str(sum(r.original == "PROVED" for r in rows))
    return (name, str(len(rows)), proved, *(str(found[o]) for o in OUTCOMES), share, *seconds)


def _told(r: Examined) -> Row:
    evidence = r.reason if r.outcome == "error" else r.evidence
    return f"{Path(r.file).stem}::{r.case}, launch {r.launch}", r.verdict, f"{r.kind}: {r.text}", evidence


def _reasons(rows: Sequence[Examined]) -> list[Row]:
    counted = Counter(r.reason.splitlines()[0][:120] for r in rows if r.outcome == "unknown" and r.reason)
    return [(str(n), reason) for reason, n in counted.most_common(40)]


def measure(name: str, options: Options, quiet: bool) -> Result:
    """The gate over the operators and one package."""
    return measured(changed_cases(), prover, COUNT, options, quiet)


def changed_cases() -> list[str]:
    """The targets whose kernels are mutated: the operators and one package."""
    return [str(CORPUS / t) for t in ("operators", "packages/liger.py")]


def measured(targets: Sequence[str], prove: Prove, count: int, options: Options, quiet: bool) -> Result:
    """The result of a sweep over targets."""
    with Progress(quiet) as progress:
        rows = sweep(prove, resolve(targets), count, options.seed, options.jobs, progress.say)
    return result(rows, f"mutants: {len(rows)} mutants, seed {options.seed}")


EXPERIMENTS = by_name(Experiment("mutants", measure, COLUMNS, summary=summary.mutants))


@click.command()
@click.argument("targets", nargs=-1)
@click.option("--count", default=1000, help="mutants in all, spread over the cases")
@click.option("--seed", default=0)
@click.option("--jobs", default=1, help="files at a time")
@click.option("--prover", "name", type=click.Choice(list(PROVERS)), default="verify")
@FORM
@OUTPUT
@click.option("--quiet", is_flag=True)
def main(
    targets: tuple[str, ...], count: int, seed: int, jobs: int, name: str, form: str, output: str | None, quiet: bool
) -> None:
    """Mutants of the kernels of TARGETS: none may be proved that an execution tells from the original."""
    deliver(measured(targets, PROVERS[name], count, Options(seed=seed, jobs=jobs), quiet), form, output)


if __name__ == "__main__":
    main()
