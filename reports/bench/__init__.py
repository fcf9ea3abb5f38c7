"""The benchmark: `make bench`, `python -m reports.bench` or `trilift report bench`.

Seconds per stage for the operators of the corpus, growth with block size and number of tiles, and how many of the
paper's operators are lifted and proved with a part switched off: decomposition, pruning, loop invariants, the normal
form.
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
ABLATIONS: dict[str, dict[str, bool]] = {
    "all of it": {},
    "without top-down": {"top_down": False},
    "without pruning": {"prune": False},
}
ABLATION_TIMEOUT = 20.0  # seconds a case
Rows = list[tuple[str, ...]]


def measure(name: str, options: runner.Options, quiet: bool) -> Result:
    """All three tables; processes one at a time, so that none slows another."""
    from .growth import COLUMNS, by_block, by_tiles

    proving = options.proving or runner.Proving()
    options = replace(options, proving=None)
    records = _operators(replace(options, jobs=1, proving=proving), quiet)
    tables = (
        ("operators, seconds per stage", operators(records)),
        ("operators, seconds of the proof to those of lifting in the same run", proofs(records)),
        ("growth with the block size", [COLUMNS, *by_block()]),
        ("growth with the number of tiles", [COLUMNS, *by_tiles()]),
        ("ablations of lifting, the paper's operators", ablations(options, quiet)),
        ("ablations of proving, the paper's operators", proof_ablations(options, quiet)),
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
        how = replace(options, timeout=ABLATION_TIMEOUT, **switch)  # type: ignore[arg-type]
        of = _operators(how, quiet, PAPER)
        lost = [r["name"] for r in of if r["lift"] != "ok"]
        seconds = sum(r["seconds"]["lift"] for r in of)
        rows.append((name, str(len(of) - len(lost)), str(len(of)), f"{seconds:.2f}", " ".join(lost) or "-"))
    return rows


def proofs(records: Sequence[Any]) -> Rows:
    """Verdict, seconds of lifting and of proving, and their ratio, slowest proof first; then the sums."""
    from corpus.operators import PAPER

    rows = sorted(records, key=lambda r: -r["seconds"]["prove"])
    head = ("operator", "verdict", "lift s", "prove s", "prove / lift")
    body = [_proof(r["name"], r["verdict"], [r]) for r in rows]
    sums = [("the paper's", [r for r in records if r["name"] in PAPER]), ("all", list(records))]
    return [head, *body, *(_proof(f"{name} {len(of)}", f"{_proved(of)} PROVED", of) for name, of in sums)]


def _proof(name: str, verdict: str, of: Sequence[Any]) -> tuple[str, ...]:
    lift, prove = sum(map(total, of)), sum(r["seconds"]["prove"] for r in of)
    return (name, verdict, f"{lift:.3f}", f"{prove:.3f}", f"{prove / lift:.2f}" if lift else "-")


def _proved(of: Sequence[Any]) -> int:
    return sum(r["verdict"] == "PROVED" for r in of)


def proof_ablations(options: runner.Options, quiet: bool) -> Rows:
    """How many of the paper's operators are proved against their lifted formula with and without closed forms of
    loops, and how many Z3 decides alone, at one small shape, where loops and sums are written out."""
    from corpus.operators import PAPER

    from .plain import run

    rows: Rows = [("prover", "decided", "of", "s", "shapes", "not decided")]
    for name, switch in {"all of it": True, "without loop invariants": False}.items():
        proving = runner.Proving("formula", invariants=switch)
        of = _operators(replace(options, proving=proving), quiet, PAPER)
        lost = [r["name"] for r in of if r["verdict"] != "PROVED"]
        seconds = sum(r["seconds"]["prove"] for r in of)
        rows.append((name, str(_proved(of)), str(len(of)), f"{seconds:.2f}", "all", " ".join(lost) or "-"))
    plain = run(PAPER, options.jobs)
    lost = [name for name, decided, _ in plain if not decided]
    counts = (str(len(plain) - len(lost)), str(len(plain)), f"{sum(s for *_, s in plain):.2f}")
    return [*rows, ("plain Z3", *counts, "one", " ".join(lost) or "-")]


def _operators(options: runner.Options, quiet: bool, names: Sequence[str] = ()) -> list[Any]:
    """The records of the operators, or of those with these names."""
    targets = [replace(t, only=frozenset(names)) for t in resolve([str(ROOT / "operators")])]
    with Progress(quiet) as progress:
        return list(runner.records(targets, options, progress.hear))
