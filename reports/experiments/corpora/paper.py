"""The figures of arXiv 2412.20992 for its 33 operators, beside ours.

Seconds are the paper's, on its own machine, for lifting and verifying; its proofs are at one small block size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..experiment import Row

Record = Mapping[str, Any]

# operators, lifted, verified, time
FIGURES = (
    ("add sub mul div cat neg zeros sin cos abs sigmoid", "yes", "yes", "0.8 s"),
    ("exp log rsqrt tanh relu leaky_relu square_relu silu_mul", "yes", "yes", "0.9 s"),
    ("reciprocal sum max gelu swiglu silu gelu_mul", "yes", "yes", "1 s"),
    ("log_softmax", "yes", "yes", "2 s"),
    ("softmax1", "yes", "yes", "3 s"),
    ("softmax2 matmul", "yes", "no", "3 s"),
    ("attention", "yes", "no", "5 s"),
    ("rms_norm", "yes", "no", "14 min"),
    ("layer_norm", "no", "no", "-"),
)
BY_NAME = {name: figures for names, *figures in FIGURES for name in names.split()}
HEAD = ("operator", "paper: lifted", "verified", "time", "lifted", "verdict", "against", "lift s", "prove s", "blocks")


def table(records: Sequence[Record]) -> list[Row]:
    """A row for each operator of the paper that ran, in the paper's order, and the counts; no row where none ran."""
    from trilift.corpus.operators import PAPER

    by_name = {r["name"]: r for r in records}
    found = [by_name[n] for n in PAPER if n in by_name]
    return [*map(_row, found), _counts(found)] if found else []


def _row(r: Record) -> Row:
    blocks = " ".join(f"{k}={v}" for k, v in r["blocks"].items()) or "-"
    ours = ("yes" if r["lift"] == "ok" else "no", r["verdict"], r["against"])
    return (r["name"], *BY_NAME[r["name"]], *ours, f"{lifting(r):.2f}", f"{r['seconds']['prove']:.2f}", blocks)


def _counts(found: Sequence[Record]) -> Row:
    paper = (str(sum(BY_NAME[r["name"]][k] == "yes" for r in found)) for k in (0, 1))
    proved = f"{sum(r['verdict'] == 'PROVED' for r in found)} PROVED"
    seconds = (f"{sum(map(lifting, found)):.2f}", f"{sum(r['seconds']['prove'] for r in found):.2f}")
    return (f"all {len(found)}", *paper, "-", str(sum(r["lift"] == "ok" for r in found)), proved, "-", *seconds, "-")


def lifting(r: Record) -> float:
    """Seconds of every stage before the proof."""
    return float(sum(s for stage, s in r["seconds"].items() if stage not in ("prove", "audit")))
