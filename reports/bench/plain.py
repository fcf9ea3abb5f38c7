"""How many operators Z3 decides alone: the kernel's elements at one small shape against the lifted formula's."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from lift.isolate import Outcome, run_all

from ..corpora import ROOT

SECONDS = 10.0  # for all elements of an operator
LIMIT = 60.0  # with lifting

Row = tuple[str, bool, float]


def run(names: Sequence[str], jobs: int) -> list[Row]:
    """For each operator of the corpus with such a name: whether it was decided, and the solver's seconds."""
    files = sorted((ROOT / "operators").glob("[!_]*.py"))
    rows: list[Row] = []
    for _, outcome in run_all(_file, [(str(f), tuple(names)) for f in files], jobs, LIMIT * 3, "forkserver"):
        rows += _value(outcome)
    found = {name: (name, decided, seconds) for name, decided, seconds in rows}
    return [found.get(name, (name, False, 0.0)) for name in names]


def _file(file: str, names: tuple[str, ...], event: Callable[[Any], None]) -> list[Row]:
    from lift.load import load

    cases = [c for c in load(file) if c.name in names]
    runs = run_all(_case, [(c,) for c in cases], 1, LIMIT)
    return [(cases[k].name, False, LIMIT) if o.failure == "timeout" else _value(o) for k, o in runs]


def _value(outcome: Outcome) -> Any:
    """What a child returned. One that failed is our bug, not an operator that Z3 does not decide."""
    if outcome.failure is not None:
        raise RuntimeError(f"{outcome.failure}: {outcome.log}")
    return outcome.value


def _case(case: Any, event: Callable[[Any], None]) -> Row:
    from lift import lift

    lifted = lift(case)
    start = time.perf_counter()
    decided = all(_decided(o, start + SECONDS) for o in lifted.outputs)
    return case.name, decided, time.perf_counter() - start


def _decided(output: Any, deadline: float) -> bool:
    """Every element of the output, until the time is over."""
    import numpy as np

    from lift.errors import Unsupported
    from lift.term import TERMS
    from verify import plain, solver

    if output.formula is None:
        return False
    ids = output.spec.ids
    for index in np.ndindex(ids.shape):
        axes = dict(zip(output.formula.axes, index, strict=True))
        left = TERMS[int(ids[index])]
        seconds = deadline - time.perf_counter()
        try:
            asked = plain.question(left, plain.instance(output.formula.term, axes, output.spec.dims))
        except Unsupported:
            return False
        if seconds <= 0 or not solver.contradiction(asked, seconds):
            return False
    return True
