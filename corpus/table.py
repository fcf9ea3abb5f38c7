"""The table of a corpus: how many cases and launches lift, what stops the others, and whether anything lifted is wrong.

A case counts as lifted when every output has a formula that the kernel itself agrees with, in float64 at shapes that
were not used to find it, and the kernel agrees with the case's reference; as wrong when the reference disagrees. The launches
of a case count with the case.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lift.isolate import Outcome, run_all

if TYPE_CHECKING:
    from lift import Case, Lifted

LIFTED, WRONG, UNSUPPORTED = "lifted", "wrong", "unsupported"
FOLDER = Path(__file__).parent
STARTUP = 60.0  # seconds for a file's worker to import its package


@dataclass(frozen=True, slots=True)
class Row:
    """One case. `cause` is what stopped it, without the numbers of this run; `message` the whole of it."""

    package: str
    case: str
    launches: int
    status: str
    cause: str = ""
    message: str = ""
    seconds: float = 0.0


def files(name: str) -> list[Path]:
    """The case files of a corpus."""
    return sorted(p for p in (FOLDER / name).glob("*.py") if not p.name.startswith("_"))


def run(
    paths: Iterable[Path | str],
    jobs: int = 1,
    timeout: float = 120.0,
    seed: int = 0,
    only: Sequence[str] = (),
    heard: Callable[[Row], None] = lambda row: None,
) -> list[Row]:
    """The rows of every case of the files, in order. A worker per file imports its package once and forks a child per
    case, `jobs` at a time; more than `timeout` seconds for a case counts as unsupported. `only` names cases."""
    rows: list[Row] = []
    for path in map(Path, paths):
        tasks = [(str(path), tuple(only), jobs, timeout, seed)]
        found: list[Row] = []

        def hear(_: int, row: Row, found: list[Row] = found) -> None:
            found.append(row)
            heard(row)

        _, outcome = next(run_all(_file, tasks, 1, timeout + STARTUP, "forkserver", hear, renew=True))
        if outcome.failure is not None:
            found.append(Row(path.stem, "", 0, UNSUPPORTED, outcome.failure, outcome.log))
        order = outcome.value or []
        rows += sorted(found, key=lambda r: order.index(r.case) if r.case in order else -1)
    return rows


def _file(
    path: str, only: Sequence[str], jobs: int, timeout: float, seed: int, event: Callable[[Any], None]
) -> list[str]:
    """Runs the cases of one file, telling each row; returns their names in the file's order."""
    from lift.case import load

    package = Path(path).stem
    cases = [c for c in load(path, ()) if not only or c.name in only]
    _warm(cases)
    for index, outcome in run_all(_case, [(package, c, seed) for c in cases], jobs, timeout, "fork"):
        event(_row(package, cases[index].name, outcome))
    return [c.name for c in cases]


def _warm(cases: Sequence[Case]) -> None:
    """Imports what the file's cases will import, once for all children. What cannot be imported is their own error."""
    from corpus.packages._setup import Package
    from lift.fake_cuda import pretend

    packages = {id(v): v for c in cases for v in c.fn.__globals__.values() if isinstance(v, Package)}
    with pretend():
        for package in packages.values():
            package.warm()


def _row(package: str, case: str, outcome: Outcome) -> Row:
    if outcome.failure is None:
        row: Row = outcome.value
        return row
    cause = "timeout" if outcome.failure == "timeout" else f"internal: {_last_line(outcome.log) or outcome.failure}"
    return Row(package, case, 0, UNSUPPORTED, cause, outcome.log, outcome.seconds)


def _last_line(log: str) -> str:
    lines = log.strip().splitlines()
    return lines[-1][:100] if lines else ""


def _case(package: str, case: Case, seed: int, event: Callable[[Any], None]) -> Row:
    """Lifts one case, in a child process."""
    from lift import lift
    from lift.errors import TriliftError

    try:
        lifted = lift(case, seed)
    except TriliftError as e:
        return Row(package, case.name, _launches(case, seed), UNSUPPORTED, cause_of(e), str(e))
    return Row(package, case.name, len(lifted.traces[0].launches), *judged(lifted), sum(lifted.seconds.values()))


def _launches(case: Case, seed: int) -> int:
    """How many launches a case has that could not be lifted; 0 if it cannot be run at all."""
    from lift.capture import capture
    from lift.errors import TriliftError
    from lift.shapes import choose

    try:
        return len(capture(case, choose(case, 1, seed)[0], seed=seed).launches)
    except TriliftError:
        return 0


def judged(lifted: Lifted) -> tuple[str, str, str]:
    """Status, cause and message of what was lifted."""
    if lifted.mismatches:
        name, mismatch, _ = lifted.mismatches[0]
        return (
            WRONG,
            "differs from the reference",
            f"{name}{list(mismatch.index)}: {mismatch.got} for {mismatch.expected}",
        )
    errors = [o.error for o in lifted.outputs if o.error is not None]
    if errors:
        return UNSUPPORTED, cause_of(errors[0]), str(errors[0])
    return LIFTED, "", ""


def cause_of(e: Exception) -> str:
    """What stopped a case, in words that are the same for all which it stops: kind and what, without names of outputs."""
    what = getattr(e, "what", str(e)).splitlines()[0]
    return f"{type(e).__name__}: " + " ".join(w for w in what.split() if not w.strip(":,").startswith("out"))[:120]


def table(rows: Sequence[Row]) -> str:
    """Cases and launches of each package, then the causes with how many cases each stops and one example."""
    packages = list(dict.fromkeys(r.package for r in rows))
    lines = [_line("package", "cases", "lifted", "wrong", "unsupported", "launches", "lifted", "")]
    lines += [_counts(name, [r for r in rows if r.package == name]) for name in packages]
    return "\n".join([*lines, _counts("all", rows), "", *_causes(rows)])


def _counts(name: str, rows: Sequence[Row]) -> str:
    count = Counter(r.status for r in rows)
    launches, lifted = launched(rows)
    share = f"{100 * lifted / launches:.0f} %" if launches else ""
    return _line(name, len(rows), count[LIFTED], count[WRONG], count[UNSUPPORTED], launches, lifted, share)


def launched(rows: Sequence[Row]) -> tuple[int, int]:
    """Launches in all, and those of lifted cases."""
    return sum(r.launches for r in rows), sum(r.launches for r in rows if r.status == LIFTED)


def _line(name: str, *cells: object) -> str:
    return f"{name:<12}" + "".join(f"{c!s:>12}" for c in cells)


def _causes(rows: Sequence[Row]) -> Iterator[str]:
    by_cause: dict[str, list[Row]] = {}
    for r in rows:
        if r.status != LIFTED:
            by_cause.setdefault(r.cause, []).append(r)
    for cause, found in sorted(by_cause.items(), key=lambda item: (-len(item[1]), item[0])):
        yield f"{len(found):>4}  {cause}   e.g. {found[0].package}::{found[0].case}"


if __name__ == "__main__":
    import argparse

    parser = argparse.ArgumentParser()
    parser.add_argument("paths", nargs="+")
    parser.add_argument("-k", nargs="*", default=())
    parser.add_argument("-j", type=int, default=1)
    parser.add_argument("-t", type=float, default=120.0)
    arguments = parser.parse_args()

    def show(r: Row) -> None:
        print(f"{r.status:<12}{r.seconds:6.1f} s  {r.package}::{r.case}  {r.message[:300]}", file=sys.stderr)

    print(table(run(arguments.paths, arguments.j, arguments.t, only=arguments.k, heard=show)))
