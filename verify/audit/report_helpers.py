"""Shared parts of findings that come from watched runs: the smallest run, its numbers, a script that shows it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from trilift.lift.ttir.ir import Op

from ..model.verdict import Counterexample
from ..refutation.replay_script import replay_script
from ..runs.observe import Observation

KINDS = {"tt.load": "load", "tt.store": "store", "tt.atomic_rmw": "atomic", "tt.atomic_cas": "atomic"}


def smallest(runs: Sequence[Observation]) -> Observation:
    """The run with the smallest inputs."""
    return min(runs, key=lambda r: (sum(x.size for x in r.inputs.values()), r.config))


def kind_of(op: Op) -> str:
    """load, store or atomic."""
    return KINDS.get(op.name, "access")


def noun(op: Op) -> str:
    """a load, a store or an atomic."""
    kind = kind_of(op)
    return f"an {kind}" if kind[0] == "a" else f"a {kind}"


def number(program: tuple[int, int, int]) -> int | str:
    """A program as the user counts it: one number where only the first axis is used."""
    return program[0] if program[1:] == (0, 0) else str(program)


def example(run: Observation, program: tuple[int, int, int] | None = None, **more: Any) -> dict[str, Any]:
    """Dims and configuration of a run, with what else tells where to look."""
    at = {k: v for k, v in run.at.items() if k != "seed"}
    return {**at, **({} if program is None else {"program": number(program)}), **more}


def replay(
    run: Observation, output: str = "", index: tuple[int, ...] = (), got: float = math.nan,
    expected: float = math.nan, why: str = "", against: str = "reference",
) -> str:  # fmt: skip
    """A script that makes the run again."""
    found = Counterexample(dict(run.dims), run.seed, run.config, output, index, got, expected, why=why)
    return replay_script(run.case, found, against)
