"""The page of the fuzzer: what was tried, what was wrong, and which features the programs had."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import click

from ...base.fingerprint import ROOT
from ...base.progress import Progress
from ...records.options import Options
from .. import summary
from ..experiment import Experiment, Result, Row, by_name, tabled
from ..folders import RESULTS
from ..renderer import FORM, OUTPUT, deliver
from .grammar import Program
from .judge import EXCLUDED, WRONG, How, Judged, Record, judge, judged
from .mutate import Mutant
from .runs import Server
from .shrink import stored
from .tally import TOLD, Cell, Tally, add, of, together

PROGRAMS, MUTANTS = 200, 3
VERDICTS = ("PROVED", "TESTED", "REFUTED", "UNKNOWN", "UNREADABLE", "CRASH")
OUTCOMES = (EXCLUDED, *WRONG)
REASONS = 30  # that the page shows
RUNS = RESULTS / "fuzz_runs.json"
COLUMNS = {
    "runs": ("date", "commits", "versions", "seeds", "programs", "mutants", "wrong verdicts"),
    "wrong verdicts": ("program", "mutant", "verdict", "outcome", "what an execution gives", "at", "clauses"),
    "what it found": ("file of tests/regressions", "what must hold", "state"),
    "time": ("verdicts from", "verdicts", "seconds of the processor", "seconds each"),
    "by kind": ("kind", "tried", *VERDICTS, *OUTCOMES, TOLD),
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
    "Triton's interpreter makes loads whose values nothing uses (`x - x`, `x & 0`), which its compiler leaves out: "
    "such a load may be out of bounds.",
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
                progress.say(f"{j.outcome}: {' | '.join(of(rows[-1:]).wrong[0])}")
            if len(rows) % 50 == 0:
                progress.say(f"{len(rows)} verdicts")
            hear(j)

        for _ in judged(options.seed, numbers, mutants, How(options.jobs, quick), progress.say, heard):
            pass
    return result([of(rows)] if rows else [], {"mutants": [r.plain() for r in rows]})


def result(runs: Sequence[Tally], data: Mapping[str, object] | None = None) -> Result:
    """Tables of all that was tried; exit code 1 if a verdict is wrong, 3 if nothing was tried."""
    counts, wrong = together(runs), [row for r in runs for row in r.wrong]
    reasons = sorted(((n, row) for (table, row, _), n in counts.items() if table == "reason"), reverse=True)
    shown: dict[str, list[Row]] = {
        "runs": [_ran(r) for r in runs],
        "wrong verdicts": wrong,
        "what it found": found(),
        "time": [_time(way, counts) for way in _rows("time", counts)],
        "by kind": [_kind(k, counts) for k in (*_rows("kind", counts, but="all"), "all")],
        "by feature": [_feature(f, counts) for f in sorted(_rows("feature", counts))],
        "originals that are not proved, by reason": [(str(n), reason) for n, reason in reasons[:REASONS]],
        "not executed": [row for r in runs for row in r.unexecuted],
    }
    tried = counts["kind", "all", "tried"]
    programs, mutants = sum(r.programs for r in runs), sum(r.mutants for r in runs)
    title = f"fuzz: {programs:,} programs and {mutants:,} mutants"
    code = int(bool(wrong)) if tried else 3
    return Result(title, tabled(COLUMNS, shown), data or {"runs": [r.plain() for r in runs]}, code)


def found(folder: Path = ROOT / "tests" / "regressions") -> list[Row]:
    """A row for each file of the regressions, by what its first two lines say."""
    rows: list[Row] = []
    for path in sorted(folder.glob("[!t]*.py")):
        first, second, *_ = path.read_text().splitlines()
        rows.append((path.name, first.lstrip("# "), "open" if second.startswith("# open") else "mended"))
    return rows


def _rows(table: str, counts: Mapping[Cell, int], but: str = "") -> list[str]:
    """The names of the rows of a table, in order of their first count."""
    return list(dict.fromkeys(row for t, row, _ in counts if t == table and row != but))


def _ran(r: Tally) -> Row:
    seeds = f"{r.seeds[0]} to {r.seeds[-1]}" if len(r.seeds) > 1 else str(*r.seeds)
    said = ", ".join(f"{k} {v}" for k, v in r.versions.items())
    return r.date, ", ".join(r.commits), said, seeds, f"{r.programs:,}", f"{r.mutants:,}", str(len(r.wrong))


def _time(way: str, counts: Counter[Cell]) -> Row:
    verdicts, seconds = counts["time", way, "verdicts"], counts["time", way, "milliseconds"] / 1000
    text = {"file": "a case file", "shared": "the configurations of the program"}[way]
    return text, f"{verdicts:,}", f"{seconds:,.0f}", f"{seconds / verdicts:.2f}"


def _kind(kind: str, counts: Counter[Cell]) -> Row:
    return kind, *(f"{counts['kind', kind, c]:,}" for c in COLUMNS["by kind"][1:])


def _feature(feature: str, counts: Counter[Cell]) -> Row:
    return feature, *(f"{counts['feature', feature, c]:,}" for c in COLUMNS["by feature"][1:])


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
@click.option("--keep", is_flag=True, help=f"with --read: add them to {RUNS.name}, and make the tables of all runs")
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
    count: int, first: int, mutants: int, seed: int, jobs: int, quick: bool, keep: bool, regressions: Path | None,
    records: Path | None, earlier: tuple[Path, ...], form: str, output: str | None,
) -> None:  # fmt: skip
    """Random programs and mutants of them: no verdict may be contradicted by an execution."""

    if earlier:
        run = of([r for path in earlier for r in read(path)])
        deliver(replace(result(add(RUNS, run) if keep else [run]), notes=NOTES), form, output)
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
