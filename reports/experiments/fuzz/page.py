"""The page of the fuzzer: what was tried, what was wrong, and which features the programs had."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import click

from ...base.progress import Progress
from ...records.options import Options
from .. import summary
from ..experiment import Experiment, Result, Row, by_name, tabled
from ..renderer import FORM, OUTPUT, deliver
from .judge import WRONG, How, Judged, judged, plain

PROGRAMS, MUTANTS = 200, 3
VERDICTS = ("PROVED", "TESTED", "REFUTED", "UNKNOWN", "UNREADABLE", "CRASH")
OUTCOMES = ("right", "open", *WRONG)
COLUMNS = {
    "wrong verdicts": ("program", "mutant", "verdict", "outcome", "what an execution gives", "at", "clauses"),
    "by kind": ("kind", "tried", *VERDICTS, *WRONG, "executions tell it"),
    "by feature": ("feature", "programs", "mutants", *VERDICTS, *WRONG),
    "originals that are not proved, by reason": ("programs", "reason"),
    "not executed": ("program", "mutant", "why"),
}
NOTES = (
    "Random Triton kernels with host functions and PyTorch references, two renderings of the same data, and mutants of "
    "the kernels. Every verdict is tried in Triton's own interpreter at sizes at and beside the tiles and at values at "
    "the edges of their dtypes. Floats have 64 bits there, because rounding does not count as a difference.",
    "Triton's interpreter makes loads whose values nothing uses, which its compiler leaves out: a row with a load out "
    "of bounds and `& 0` or `min(x, 0)` of an unsigned x around it is not wrong.",
)


def measure(name: str, options: Options, quiet: bool) -> Result:
    """The page's run."""
    return measured(PROGRAMS, MUTANTS, options, quiet)


def measured(programs: int, mutants: int, options: Options, quiet: bool, first: int = 0, quick: bool = False) -> Result:
    """The result of `programs` programs from number `first` on, with `mutants` mutants each."""
    rows: list[Judged] = []
    numbers = range(first, first + programs)
    with Progress(quiet) as progress:
        for row in told(judged(options.seed, numbers, mutants, How(options.jobs, quick), progress.say), progress.say):
            rows.append(row)
    return result(rows, f"fuzz: {sum(r.mutant is None for r in rows)} programs and "
                  f"{sum(r.mutant is not None for r in rows)} mutants, seed {options.seed}")  # fmt: skip


def told(rows: Iterator[Judged], say: Callable[[str], None]) -> Iterator[Judged]:
    """The rows; says what is wrong at once."""
    for k, r in enumerate(rows, 1):
        if r.outcome in WRONG:
            say(f"{r.outcome}: {' | '.join(_wrong(r))}")
        if k % 50 == 0:
            say(f"{k} verdicts")
        yield r


def result(rows: Sequence[Judged], title: str) -> Result:
    """Tables of the rows; exit code 1 if a verdict is wrong, 3 without rows."""
    wrong = [r for r in rows if r.outcome in WRONG]
    reasons = Counter((r.told.reason.splitlines() or [""])[0][:100] for r in rows
                      if r.mutant is None and r.told.verdict != "PROVED")  # fmt: skip
    unrun: list[Row] = [(r.program.name, r.mutant.text if r.mutant else "", r.detail[:100]) for r in rows
             if r.execution == "unrun" and r.detail and r.told.verdict not in ("UNKNOWN", "UNREADABLE")]  # fmt: skip
    shown: dict[str, list[Row]] = {
        "wrong verdicts": [_wrong(r) for r in wrong],
        "by kind": [*(_kind(k, rows) for k in dict.fromkeys(r.kind for r in rows)), _kind("all", rows)],
        "by feature": [_feature(f, rows) for f in sorted({f for r in rows for f in r.features})],
        "originals that are not proved, by reason": [(str(n), reason) for reason, n in reasons.most_common(30)],
        "not executed": unrun,
    }
    code = 3 if not rows else int(bool(wrong))
    return Result(title, tabled(COLUMNS, shown), {"mutants": [plain(r) for r in rows]}, code)


def _wrong(r: Judged) -> Row:
    at = ", ".join(f"{k} = {v}" for k, v in r.run.numbers.items()) + f"; {r.run.style} values" if r.run else ""
    clauses = "; ".join(r.told.clauses)
    return r.program.name, r.mutant.text if r.mutant else "", r.told.verdict, r.outcome, r.detail, at, clauses[:200]


def _counted(rows: Sequence[Judged]) -> Row:
    verdicts, outcomes = Counter(r.told.verdict for r in rows), Counter(r.outcome for r in rows)
    return (*(str(verdicts[v]) for v in VERDICTS), *(str(outcomes[o]) for o in WRONG))


def _kind(kind: str, rows: Sequence[Judged]) -> Row:
    of = [r for r in rows if kind in ("all", r.kind)]
    return kind, str(len(of)), *_counted(of), str(sum(r.execution in ("differs", "outside") for r in of))


def _feature(feature: str, rows: Sequence[Judged]) -> Row:
    of = [r for r in rows if feature in r.features]
    originals = sum(r.mutant is None for r in of)
    return feature, str(originals), str(len(of) - originals), *_counted(of)


EXPERIMENTS = by_name(Experiment("fuzz", measure, COLUMNS, NOTES, summary.mutants))


@click.command()
@click.option("--count", default=PROGRAMS, help="programs")
@click.option("--first", default=0, help="number of the first program")
@click.option("--mutants", default=MUTANTS, help="mutants of each program")
@click.option("--seed", default=0)
@click.option("--jobs", default=1, help="programs at a time")
@click.option("--quick", is_flag=True, help="look for proofs alone: no counterexamples, no field tests")
@FORM
@OUTPUT
def main(
    count: int, first: int, mutants: int, seed: int, jobs: int, quick: bool, form: str, output: str | None
) -> None:
    """Random programs and mutants of them: no verdict may be contradicted by an execution."""
    deliver(measured(count, mutants, Options(seed=seed, jobs=jobs), False, first, quick), form, output)
