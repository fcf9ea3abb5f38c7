"""Tallies of programs and mutants that were tried: they add up over runs, days and commits in fuzz_runs.json.

{"schema": 1, "runs": [{"date", "versions", "commits", "seeds", "counts": {table: {row: {column: n}}},
                        "wrong": [row], "unexecuted": [row]}]}
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict, cast

from ..experiment import Row
from ..renderer import versions
from .judge import UNTRIED, WRONG, Record

SCHEMA = 1
TOLD = "executions tell it"
REASON_CHARACTERS = 60
SHOWN = ("python", "torch", "triton", "numpy")  # versions that a run names
Cell = tuple[str, str, str]  # table, row, column


class Plain(TypedDict):
    """A run in JSON."""

    date: str
    versions: dict[str, str]
    commits: list[str]
    seeds: list[int]
    counts: dict[str, dict[str, dict[str, int]]]
    wrong: list[list[str]]
    unexecuted: list[list[str]]


@dataclass(frozen=True, slots=True)
class Tally:
    """Programs and mutants of some seeds that were tried at some commits: how many of each kind, with each feature, and
    in how many milliseconds of the processor; the rows of those that are wrong, and of those that did not run."""

    date: str
    versions: dict[str, str]
    commits: tuple[str, ...]
    seeds: tuple[int, ...]
    counts: Counter[Cell]
    wrong: tuple[Row, ...] = ()
    unexecuted: tuple[Row, ...] = ()

    @property
    def programs(self) -> int:
        return self.counts["kind", "original", "tried"]

    @property
    def mutants(self) -> int:
        return self.counts["kind", "all", "tried"] - self.programs

    def plain(self) -> Plain:
        """For JSON."""
        nested: dict[str, dict[str, dict[str, int]]] = {}
        for (table, row, column), n in sorted(self.counts.items()):
            nested.setdefault(table, {}).setdefault(row, {})[column] = n
        return Plain(
            date=self.date, versions=self.versions, commits=[*self.commits], seeds=[*self.seeds], counts=nested,
            wrong=[[*r] for r in self.wrong], unexecuted=[[*r] for r in self.unexecuted],
        )  # fmt: skip


def of(rows: Sequence[Record]) -> Tally:
    """The run of these records, with the versions of now. Of several records of one program or mutant the last counts:
    it was tried again after something was mended."""
    last = {(r.program, r.kind, r.mutant): r for r in rows}.values()
    said = versions()
    counts = Counter[Cell]()
    for r in last:
        counts.update(_cells(r))
    commits = sorted({r.commit for r in last if r.commit})
    seeds = sorted({int(m[1]) for r in last if (m := re.match(r"fuzz_(\d+)_", r.program))})
    unexecuted = tuple((r.program, r.mutant, r.detail[:100]) for r in last
                       if r.execution == "unrun" and r.detail and r.verdict not in (*UNTRIED, "CRASH"))  # fmt: skip
    wrong = tuple(_wrong(r) for r in last if r.outcome in WRONG)
    shown = {k: said[k] for k in SHOWN if k in said}
    return Tally(said["date"], shown, tuple(commits), tuple(seeds), counts, wrong, unexecuted)


def _cells(r: Record) -> Counter[Cell]:
    """The counts of one record."""
    original = r.kind == "original"
    columns = ["tried", r.verdict, r.outcome, *([TOLD] if r.execution in ("differs", "outside") else [])]
    cells = Counter[Cell]({(t, row, c): 1 for t, row in (("kind", r.kind), ("kind", "all")) for c in columns})
    cells.update(("feature", f, c) for f in r.features for c in ("programs" if original else "mutants", *columns[1:]))
    cells.update({("time", r.way, "verdicts"): 1, ("time", r.way, "milliseconds"): round(1000 * r.seconds)})
    if original and r.verdict != "PROVED":
        cells["reason", (r.reason.splitlines() or [""])[0][:REASON_CHARACTERS], "programs"] += 1
    return cells


def _wrong(r: Record) -> Row:
    numbers = cast(dict[str, object], r.run.get("numbers", {}))
    at = ", ".join(f"{k} = {v}" for k, v in numbers.items()) + f"; {r.run['style']} values" if r.run else ""
    return r.program, r.mutant, r.verdict, r.outcome, r.detail, at, "; ".join(r.clauses)[:200]


# ---- several runs ----------------------------------------------------------------------------------------------------


def together(runs: Iterable[Tally]) -> Counter[Cell]:
    """The sum of their counts."""
    total = Counter[Cell]()
    for r in runs:
        total.update(r.counts)
    return total


def read(path: Path) -> list[Tally]:
    """The runs of a file; none where there is no file. Raises ValueError for another schema."""
    if not path.exists():
        return []
    data = json.loads(path.read_text())
    if data.get("schema") != SCHEMA:
        raise ValueError(f"{path} has schema {data.get('schema')}, not {SCHEMA}")
    return [_tally(plain) for plain in data["runs"]]


def _tally(p: Plain) -> Tally:
    counts = Counter({(t, row, c): n for t, rows in p["counts"].items() for row, cs in rows.items()
                      for c, n in cs.items()})  # fmt: skip
    wrong, unexecuted = (tuple(tuple(r) for r in rows) for rows in (p["wrong"], p["unexecuted"]))
    return Tally(p["date"], p["versions"], tuple(p["commits"]), tuple(p["seeds"]), counts, wrong, unexecuted)


def add(path: Path, run: Tally) -> list[Tally]:
    """The runs of the file and this one, which takes the place of those that have a seed of it; they are written."""
    runs = [*(r for r in read(path) if not {*r.seeds} & {*run.seeds}), run]
    path.write_text(json.dumps({"schema": SCHEMA, "runs": [r.plain() for r in runs]}, indent=1) + "\n")
    return runs
