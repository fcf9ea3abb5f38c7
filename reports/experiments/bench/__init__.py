"""The benchmark: `make bench`, `python -m trilift.reports.experiments.bench` or `trilift report bench`.

Seconds per stage for the operators of the corpus, growth with block size and number of tiles, and how many of the
paper's operators are lifted and proved with a part switched off: decomposition, pruning, loop invariants, the normal
form.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...base.progress import Progress
from ...base.targets import resolve
from ...records.options import Options, Proving
from ...runner import dispatch
from .. import summary
from ..experiment import Experiment, Result, Row, by_name, tabled
from ..folders import CORPUS

STAGES = ("capture", "lift", "check", "simplify")
ABLATIONS: dict[str, tuple[dict[str, bool], bool]] = {  # switches of lifting; closed forms of loops
    "all of it": ({}, True),
    "without top-down": ({"top_down": False}, True),
    "without pruning": ({"prune": False}, True),
    "without loop invariants": ({}, False),
}
ABLATION_TIMEOUT = 20.0  # seconds a case
Rows = list[Row]
GROWTH = ("kernel", "block", "tiles", "dims", "capture s", "spec s", "synthesis s", "simplify s")
COLUMNS = {
    "operators, seconds per stage": ("operator", "lifted", *(f"{s} s" for s in STAGES), "all s"),
    "operators, seconds of the proof to those of lifting in the same run": (
        "operator", "verdict", "lift s", "prove s", "prove / lift",
    ),
    "growth with the block size": GROWTH,
    "growth with the number of tiles": GROWTH,
    "ablations, the paper's operators": (
        "", "lifted", "proved", "of", "lift s", "prove s", "lift x", "prove x", "not lifted", "not proved",
    ),
    "what Z3 decides alone, the paper's operators": ("plain Z3", "decided", "of", "s", "not decided"),
}  # fmt: skip
Records = Mapping[str, Any]


def measure(name: str, options: Options, quiet: bool) -> Result:
    """All tables; processes one at a time, so that none slows another."""
    from .growth import by_block, by_tiles

    proving = options.proving or Proving()
    options = replace(options, proving=None)
    records = _operators(replace(options, jobs=1, proving=proving), quiet)
    rows = (
        operators(records), proofs(records), by_block(), by_tiles(), ablations(options, quiet), plain_z3(options),
    )  # fmt: skip
    tables = tabled(COLUMNS, dict(zip(COLUMNS, rows, strict=True)))
    data = {"tables": {t.heading: [dict(zip(t.columns, r, strict=True)) for r in t.rows] for t in tables}}
    return Result("benchmark", tables, data, 0)


EXPERIMENTS = by_name(Experiment("bench", measure, COLUMNS, summary=summary.whole))


def operators(records: Sequence[Any]) -> Rows:
    """Seconds of each stage, slowest first, and their sums over the paper's operators and over all."""
    from trilift.corpus.operators import PAPER

    rows = sorted(records, key=lambda r: -total(r))
    paper = [r for r in records if r["name"] in PAPER]
    return [*map(_stages, rows), _sum(f"the paper's {len(paper)}", paper), _sum("all", records)]


def total(record: Any) -> float:
    """Seconds over all stages."""
    return float(sum(record["seconds"].get(s, 0.0) for s in STAGES))


def _stages(r: Any) -> Row:
    times = (f"{r['seconds'].get(s, 0.0):.3f}" for s in STAGES)
    return (r["name"], "yes" if r["lift"] == "ok" else "no", *times, f"{total(r):.3f}")


def _sum(name: str, records: Sequence[Any]) -> Row:
    times = (f"{sum(r['seconds'].get(s, 0.0) for r in records):.2f}" for s in STAGES)
    return (name, str(sum(r["lift"] == "ok" for r in records)), *times, f"{sum(map(total, records)):.2f}")


def proofs(records: Sequence[Any]) -> Rows:
    """Verdict, seconds of lifting and of proving, and their ratio, slowest proof first; then the sums."""
    from trilift.corpus.operators import PAPER

    rows = sorted(records, key=lambda r: -r["seconds"]["prove"])
    body = [_proof(r["name"], r["verdict"], [r]) for r in rows]
    sums = [("the paper's", [r for r in records if r["name"] in PAPER]), ("all", list(records))]
    return [*body, *(_proof(f"{name} {len(of)}", f"{_proved(of)} PROVED", of) for name, of in sums)]


def _proof(name: str, verdict: str, of: Sequence[Any]) -> Row:
    lift, prove = sum(map(total, of)), sum(r["seconds"]["prove"] for r in of)
    return (name, verdict, f"{lift:.3f}", f"{prove:.3f}", f"{prove / lift:.2f}" if lift else "-")


def _proved(of: Sequence[Any]) -> int:
    return sum(r["verdict"] == "PROVED" for r in of)


def ablations(options: Options, quiet: bool) -> Rows:
    """How many of the paper's operators are lifted, and proved against their lifted formula, with a part switched off,
    and in which time: its ratio to that of the whole over the operators that both lift or prove."""
    from trilift.corpus.operators import PAPER

    rows: Rows = []
    whole: dict[str, Any] = {}
    for name, (switch, invariants) in ABLATIONS.items():
        proving = Proving("formula", invariants=invariants)
        how = replace(options, timeout=ABLATION_TIMEOUT, proving=proving, **switch)  # type: ignore[arg-type]
        of = {r["name"]: r for r in _operators(how, quiet, PAPER)}
        whole = whole or of
        rows.append((name, *_ablation(of, whole)))
    return rows


def _ablation(of: Records, whole: Records) -> Row:
    lifted = {n for n, r in of.items() if r["lift"] == "ok"}
    proved = {n for n, r in of.items() if r["verdict"] == "PROVED"}
    counts = (str(len(lifted)), str(len(proved)), str(len(of)))
    seconds = (f"{sum(_lifting(of[n]) for n in lifted):.2f}", f"{sum(_proving(of[n]) for n in proved):.2f}")
    ratios = (_ratio(of, whole, lifted, _lifting), _ratio(of, whole, proved, _proving))
    lost = (" ".join(n for n in of if n not in names) or "-" for names in (lifted, proved))
    return (*counts, *seconds, *ratios, *lost)


def _ratio(of: Records, whole: Records, names: Collection[str], seconds: Callable[[Any], float]) -> str:
    """Seconds to those of the whole."""
    both = [n for n in names if n in whole]
    base = sum(seconds(whole[n]) for n in both)
    return f"{sum(seconds(of[n]) for n in both) / base:.2f}" if base else "-"


def _lifting(r: Any) -> float:
    return float(r["seconds"]["lift"])


def _proving(r: Any) -> float:
    return float(r["seconds"]["prove"])


def plain_z3(options: Options) -> Rows:
    """How many of the paper's operators Z3 decides alone: at one small shape, where loops and sums are written out, and
    from the conditions of the proof for all shapes."""
    from trilift.corpus.operators import PAPER

    from .smt_encodings import run

    found = run(PAPER, options.jobs)
    ways = {"elements at one shape": [r[1] for r in found], "the proof's conditions, all shapes": [r[2] for r in found]}
    rows: Rows = []
    for name, outcomes in ways.items():
        lost = [row[0] for row, (decided, _) in zip(found, outcomes, strict=True) if not decided]
        counts = (str(len(found) - len(lost)), str(len(found)), f"{sum(s for _, s in outcomes):.2f}")
        rows.append((name, *counts, " ".join(lost) or "-"))
    return rows


def _operators(options: Options, quiet: bool, names: Sequence[str] = ()) -> list[Any]:
    """The records of the operators, or of those with these names."""
    targets = [replace(t, only=frozenset(names)) for t in resolve([str(CORPUS / "operators")])]
    with Progress(quiet) as progress:
        return list(dispatch.records(targets, options, progress.hear))
