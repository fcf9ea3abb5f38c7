"""The page of the fuzzer: what was tried, what was wrong, and which features the programs had."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import click

from ...base.fingerprint import ROOT
from ...base.progress import Progress
from ...records.options import Options
from .. import summary
from ..experiment import Experiment, Result, Row, by_name, tabled
from ..renderer import FORM, OUTPUT, deliver
from .grammar import Program
from .judge import EXCLUDED, UNTRIED, WRONG, How, Judged, Record, judge, judged
from .mutate import Mutant
from .runs import Server
from .shrink import stored

PROGRAMS, MUTANTS = 200, 3
VERDICTS = ("PROVED", "TESTED", "REFUTED", "UNKNOWN", "UNREADABLE", "CRASH")
OUTCOMES = (EXCLUDED, *WRONG)
COLUMNS = {
    "wrong verdicts": ("program", "mutant", "verdict", "outcome", "what an execution gives", "at", "clauses"),
    "what it found": ("file of tests/regressions", "what must hold", "state"),
    "time": ("verdicts from", "verdicts", "seconds of the processor", "seconds each"),
    "by kind": ("kind", "tried", *VERDICTS, *OUTCOMES, "executions tell it"),
    "by feature": ("feature", "programs", "mutants", *VERDICTS, *OUTCOMES),
    "originals that are not proved, by reason": ("programs", "reason"),
    "not executed": ("program", "mutant", "why"),
}
NOTES = (
    "Random Triton kernels with host functions and PyTorch references, two renderings of the same data, and mutants of "
    "the kernels. Every verdict is tried in Triton's own interpreter at sizes at and beside the tiles and at values at "
    "the edges of their dtypes. Floats have 64 bits there, because rounding does not count as a difference.",
    "Programs, launches of 1 to 3 kernels each: expressions over tiles of one and two dimensions of i8, i16, i32,"
    " i64, u8, bool, f16, bf16, f32, f64; masks; persistent loops; sums, maxima, minima, argmax and argmin of "
    "rows in blocks and in loops; online softmax; scans; dots; gathers; atomic additions; rows that are exchanged"
    " through memory; strides; autotuned, heuristic and power-of-two tiles; branches of the host function on "
    "sizes; scalars that are negative, 0 and large. Not among them: u16, u32, u64, which PyTorch does not add; "
    "tensor descriptors; while loops; sizes of 0.",
    "Budgets are smaller than a user's, so more is UNKNOWN. In four of five programs no counterexample is looked "
    "for. A mutant with the host function of its program is first tried with the program's configurations, and "
    "again from its file if it is PROVED so. Counterexamples of REFUTED are run in Triton's interpreter too. "
    "'Excluded by data' counts PROVED mutants that differ at an input which a clause over data may exclude: the "
    "clause could not be evaluated.",
    "Triton's interpreter makes loads whose values nothing uses, which its compiler leaves out: a row with a load out "
    "of bounds and `& 0` or `min(x, 0)` of an unsigned x around it is not wrong.",
)


def measure(name: str, options: Options, quiet: bool) -> Result:
    """The page's run."""
    return measured(PROGRAMS, MUTANTS, options, quiet)


def measured(
    programs: int,
    mutants: int,
    options: Options,
    quiet: bool,
    first: int = 0,
    quick: bool = False,
    hear: Callable[[Judged], None] = lambda j: None,
) -> Result:
    """The result of `programs` programs from number `first` on, with `mutants` mutants each. `hear` is told each."""
    rows: list[Record] = []
    numbers = range(first, first + programs)
    with Progress(quiet) as progress:

        def heard(j: Judged) -> None:
            rows.append(j.record())
            if j.outcome in WRONG:
                progress.say(f"{j.outcome}: {' | '.join(_wrong(rows[-1]))}")
            if len(rows) % 50 == 0:
                progress.say(f"{len(rows)} verdicts")
            hear(j)

        for _ in judged(options.seed, numbers, mutants, How(options.jobs, quick), progress.say, heard):
            pass
    return result(rows, f"fuzz: {_amount(rows)}, seed {options.seed}")


def _amount(rows: Sequence[Record]) -> str:
    originals = sum(r.kind == "original" for r in rows)
    return f"{originals:,} programs and {len(rows) - originals:,} mutants"


def _seeds(rows: Sequence[Record]) -> str:
    return ", ".join(sorted({r.program.split("_")[1] for r in rows}, key=int))


def result(rows: Sequence[Record], title: str) -> Result:
    """Tables of the rows; exit code 1 if a verdict is wrong, 3 without rows."""
    wrong = [r for r in rows if r.outcome in WRONG]
    reasons = Counter((r.reason.splitlines() or [""])[0][:60] for r in rows
                      if r.kind == "original" and r.verdict != "PROVED")  # fmt: skip
    unrun: list[Row] = [(r.program, r.mutant, r.detail[:100]) for r in rows
             if r.execution == "unrun" and r.detail and r.verdict not in (*UNTRIED, "CRASH")]  # fmt: skip
    shown: dict[str, list[Row]] = {
        "wrong verdicts": [_wrong(r) for r in wrong],
        "what it found": found(),
        "time": [_time(way, rows) for way in dict.fromkeys(r.way for r in rows)],
        "by kind": [*(_kind(k, rows) for k in dict.fromkeys(r.kind for r in rows)), _kind("all", rows)],
        "by feature": [_feature(f, rows) for f in sorted({f for r in rows for f in r.features})],
        "originals that are not proved, by reason": [(str(n), reason) for reason, n in reasons.most_common(30)],
        "not executed": unrun,
    }
    code = 3 if not rows else int(bool(wrong))
    return Result(title, tabled(COLUMNS, shown), {"mutants": [r.plain() for r in rows]}, code)


def found(folder: Path = ROOT / "tests" / "regressions") -> list[Row]:
    """A row for each file of the regressions, by what its first two lines say."""
    rows: list[Row] = []
    for path in sorted(folder.glob("[!t]*.py")):
        first, second, *_ = path.read_text().splitlines()
        rows.append((path.name, first.lstrip("# "), "open" if second.startswith("# open") else "mended"))
    return rows


def _time(way: str, rows: Sequence[Record]) -> Row:
    seconds = [r.seconds for r in rows if r.way == way]
    text = {"file": "a case file", "shared": "the configurations of the program"}[way]
    return text, str(len(seconds)), f"{sum(seconds):.0f}", f"{sum(seconds) / len(seconds):.2f}"


def _wrong(r: Record) -> Row:
    numbers = cast(dict[str, object], r.run.get("numbers", {}))
    at = ", ".join(f"{k} = {v}" for k, v in numbers.items()) + f"; {r.run['style']} values" if r.run else ""
    return r.program, r.mutant, r.verdict, r.outcome, r.detail, at, "; ".join(r.clauses)[:200]


def _counted(rows: Sequence[Record]) -> Row:
    verdicts, outcomes = Counter(r.verdict for r in rows), Counter(r.outcome for r in rows)
    return (*(str(verdicts[v]) for v in VERDICTS), *(str(outcomes[o]) for o in OUTCOMES))


def _kind(kind: str, rows: Sequence[Record]) -> Row:
    of = [r for r in rows if kind in ("all", r.kind)]
    return kind, str(len(of)), *_counted(of), str(sum(r.execution in ("differs", "outside") for r in of))


def _feature(feature: str, rows: Sequence[Record]) -> Row:
    of = [r for r in rows if feature in r.features]
    originals = sum(r.kind == "original" for r in of)
    return feature, str(originals), str(len(of) - originals), *_counted(of)


def read(path: Path) -> list[Record]:
    """The records of a file, one a line."""
    return [Record(**json.loads(line)) for line in path.read_text().splitlines()]


EXPERIMENTS = by_name(Experiment("fuzz", measure, COLUMNS, NOTES, summary.mutants))


@click.command()
@click.option("--count", default=PROGRAMS, help="programs")
@click.option("--first", default=0, help="number of the first program")
@click.option("--mutants", default=MUTANTS, help="mutants of each program")
@click.option("--seed", default=0)
@click.option("--jobs", default=1, help="programs at a time")
@click.option(
    "--read",
    "earlier",
    multiple=True,
    type=click.Path(path_type=Path, exists=True),
    help="tables of these records alone",
)
@click.option("--quick", is_flag=True, help="look for proofs alone, but in each fifth program")
@click.option(
    "--regressions", type=click.Path(path_type=Path, file_okay=False), help="write each defect there, made small"
)
@click.option(
    "--records", type=click.Path(path_type=Path), help="append each verdict to this file, a line of JSON each"
)
@FORM
@OUTPUT
def main(  # noqa: PLR0913 - an option each
    count: int, first: int, mutants: int, seed: int, jobs: int, quick: bool, regressions: Path | None,
    records: Path | None, earlier: tuple[Path, ...], form: str, output: str | None,
) -> None:  # fmt: skip
    """Random programs and mutants of them: no verdict may be contradicted by an execution."""

    if earlier:
        rows = [r for path in earlier for r in read(path)]
        deliver(replace(result(rows, f"fuzz: {_amount(rows)}, seeds {_seeds(rows)}"), notes=NOTES), form, output)
    wrong: list[Judged] = []

    def hear(j: Judged) -> None:
        wrong.extend([j] if j.outcome in WRONG else [])
        if records is not None:
            with records.open("a") as f:
                f.write(json.dumps(j.record().plain()) + "\n")

    found = measured(count, mutants, Options(seed=seed, jobs=jobs), False, first, quick, hear)
    if wrong and regressions is not None:
        for path in smallest(wrong, regressions):
            click.echo(path, err=True)
    deliver(found, form, output)


def smallest(wrong: Sequence[Judged], folder: Path) -> Iterator[Path]:
    """Writes each defect to a file of its own, as small as it is found."""
    server = Server()

    def again(p: Program, m: Mutant | None) -> str:
        """The outcome of a program or mutant, judged by itself."""
        rows = list(judge([(p, [m] if m else [])], How(), server))
        return rows[-1].outcome if rows and (rows[-1].mutant is None) == (m is None) else ""

    try:
        yield from (stored(j, folder, again) for j in wrong)
    finally:
        server.stop()
