"""The benchmark: `make bench`, `python -m reports.bench` or `trilift report bench`.

Seconds per stage for the operators of the corpus, growth with block size and number of tiles, and how many of the
paper's operators are lifted without decomposition and without pruning.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from .. import runner
from ..corpora import ROOT, Result
from ..progress import Progress
from ..targets import resolve

STAGES = ("capture", "lift", "check", "simplify")
ABLATIONS = {"all of it": {}, "without top-down": {"top_down": False}, "without pruning": {"prune": False}}
ABLATION_TIMEOUT = 20.0  # seconds a case
Rows = list[tuple[str, ...]]


def measure(name: str, options: runner.Options, quiet: bool) -> Result:
    """All three tables; processes one at a time, so that none slows another."""
    from .growth import COLUMNS, by_block, by_tiles

    alone = replace(options, jobs=1)
    records = _operators(alone, quiet)
    tables = (
        ("operators, seconds per stage", operators(records)),
        ("growth with the block size", [COLUMNS, *by_block()]),
        ("growth with the number of tiles", [COLUMNS, *by_tiles()]),
        ("ablations, the paper's operators", ablations(options, quiet)),
    )
    data = {"tables": {heading: [dict(zip(rows[0], r, strict=True)) for r in rows[1:]] for heading, rows in tables}}
    return Result("benchmark", tables, data, 0)


def operators(records: Sequence[Any]) -> Rows:
    """Seconds of each stage, slowest first, and their sums over the paper's operators and over all."""
    from corpus.operators import PAPER

    rows = sorted(records, key=lambda r: -total(r))
    paper = [r for r in records if r["name"] in PAPER]
    head = ("operator", "lifted", *(f"{s} s" for s in STAGES), "all s")
    return [head, *map(_stages, rows), _sum(f"the paper's {len(paper)}", paper), _sum("all", records)]


def total(record: Any) -> float:
    """Seconds over all stages."""
    return float(sum(record["seconds"].get(s, 0.0) for s in STAGES))


def _stages(r: Any) -> tuple[str, ...]:
    times = (f"{r['seconds'].get(s, 0.0):.3f}" for s in STAGES)
    return (r["name"], "yes" if r["lift"] == "ok" else "no", *times, f"{total(r):.3f}")


def _sum(name: str, records: Sequence[Any]) -> tuple[str, ...]:
    times = (f"{sum(r['seconds'].get(s, 0.0) for r in records):.2f}" for s in STAGES)
    return (name, str(sum(r["lift"] == "ok" for r in records)), *times, f"{sum(map(total, records)):.2f}")


def ablations(options: runner.Options, quiet: bool) -> Rows:
    """How many of the paper's operators are lifted, in which time, with a part of the synthesis switched off."""
    from corpus.operators import PAPER

    rows: Rows = [("synthesis", "lifted", "of", "lift s", "not lifted")]
    for name, switch in ABLATIONS.items():
        of = _operators(replace(options, timeout=ABLATION_TIMEOUT, **switch), quiet, PAPER)
        lost = [r["name"] for r in of if r["lift"] != "ok"]
        seconds = sum(r["seconds"]["lift"] for r in of)
        rows.append((name, str(len(of) - len(lost)), str(len(of)), f"{seconds:.2f}", " ".join(lost) or "-"))
    return rows


def _operators(options: runner.Options, quiet: bool, names: Sequence[str] = ()) -> list[Any]:
    """The records of the operators, or of those with these names."""
    targets = [replace(t, only=frozenset(names)) for t in resolve([str(ROOT / "operators")])]
    with Progress(quiet) as progress:
        return list(runner.records(targets, options, progress.hear))
