"""Faults: cases that crash, files that are damaged, processes that are killed, clusters that go away. Each is made by
code, a number of times, and each attempt has to end with a right result or a clear error: `trilift report faults`.

A hang is a command that had to be ended, a traceback is one of ours, and a result is lost where a case that is not at
fault has none, or where the error of the one that is says something else.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from ...base.progress import Progress
from ...records.options import Options
from .. import summary
from ..experiment import Experiment, Result, Row, by_name, tabled
from .fault import ENDS, HANG, LOST, RIGHT, TRACEBACK, Attempt, Fault, attempt
from .fault_table import TIMES, Times

NAME, HEADING = "faults", "faults"
COLUMNS = {
    HEADING: ("fault", "times tried", "as a clear error or a right result", "hangs", "tracebacks", "lost results")
}
NOTE = (
    "Each fault is made by code in a folder of its own, and the command has a limit of time. `hangs`: the command had "
    "to be ended, or left processes for more than ten seconds; `tracebacks`: it showed one of ours, or said that "
    "trilift itself failed; `lost results`: a case that is not at fault has no right result, or the error of the one "
    "that is at fault has another kind than the table of the code expects. Files and options with changed bytes are "
    "read by the functions that the commands call, one text at a time in a child."
)


@dataclass(frozen=True, slots=True)
class Told:
    """The attempts of one fault."""

    fault: str
    attempts: tuple[Attempt, ...]

    def count(self, end: str) -> int:
        """How many attempts ended so."""
        return sum(a.end == end for a in self.attempts)

    @property
    def row(self) -> Row:
        """The row of the page."""
        return (self.fault, str(len(self.attempts)), *(str(self.count(e)) for e in (RIGHT, HANG, TRACEBACK, LOST)))


def measure(name: str, options: Options, quiet: bool) -> Result:
    """All faults, as often as the table has them."""
    return measured(TIMES, options.seed, quiet)


def measured(times: Times, seed: int, quiet: bool) -> Result:
    """The table of these faults. Exit code 1 for a hang, a traceback or a lost result."""
    with Progress(quiet) as progress, tempfile.TemporaryDirectory(prefix="faults-") as folder:
        found = list(_each(times, seed, Path(folder), progress))
    counts = Counter(a.end for told in found for a in told.attempts)
    rows = [{"fault": t.fault, "tried": len(t.attempts), **{e: t.count(e) for e in ENDS}} for t in found]
    wrong = [{"fault": t.fault, **asdict(a)} for t in found for a in t.attempts if a.end != RIGHT]
    data = {"faults": rows, "counts": {e: counts[e] for e in ENDS}, "wrong": wrong}
    shown = tabled(COLUMNS, {HEADING: [t.row for t in found]})
    return Result("faults", shown, data, int(bool(wrong)))


EXPERIMENTS = by_name(Experiment(NAME, measure, COLUMNS, (NOTE,), summary.whole))


def _each(times: Times, seed: int, folder: Path, progress: Progress) -> Iterator[Told]:
    for k, (fault, count) in enumerate(times):
        told = Told(fault.name, tuple(_attempts(fault, range(seed, seed + count), folder / str(k))))
        progress.say(f"{fault.name}: " + ", ".join(f"{told.count(e)} {e}" for e in ENDS))
        for a in told.attempts:
            if a.end != RIGHT:
                progress.say(f"  {a.end}: {a.why}")
        yield told


def _attempts(fault: Fault, seeds: Sequence[int], folder: Path) -> Iterator[Attempt]:
    for seed in seeds:
        mine = folder / str(seed)
        mine.mkdir(parents=True)
        yield attempt(fault, mine, seed)
