"""How many operators Z3 decides alone: the kernel's elements at one small shape against the lifted formula's, and the
conditions of the proof for all shapes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from trilift.lift.runtime.isolate import Outcome, run_all

from ..folders import CORPUS

SECONDS = 10.0  # for all elements of an operator
EACH = 2.0  # for one condition
LIMIT = 60.0  # with lifting and proving

Decided = tuple[bool, float]
NOTHING: Decided = (False, 0.0)
Row = tuple[str, Decided, Decided]  # at one shape, for all shapes


def run(names: Sequence[str], jobs: int) -> list[Row]:
    """For each operator of the corpus with such a name: whether it was decided and the solver's seconds, both ways."""
    files = sorted((CORPUS / "operators").glob("[!_]*.py"))
    rows: list[Row] = []
    for _, outcome in run_all(_file, [(str(f), tuple(names)) for f in files], jobs, LIMIT * 3, "forkserver"):
        rows += _value(outcome)
    found = {row[0]: row for row in rows}
    return [found.get(name, (name, NOTHING, NOTHING)) for name in names]


def _file(file: str, names: tuple[str, ...], event: Callable[[Any], None]) -> list[Row]:
    from trilift.lift.capture.case_files import load

    cases = [c for c in load(file) if c.name in names]
    runs = run_all(_case, [(c,) for c in cases], 1, LIMIT)
    late = (False, LIMIT)
    return [(cases[k].name, late, late) if o.failure == "timeout" else _value(o) for k, o in runs]


def _value(outcome: Outcome) -> Any:
    """The value that a child returned. Raises RuntimeError if the child failed: that is our bug, not an operator that
    Z3 does not decide."""
    if outcome.failure is not None:
        raise RuntimeError(f"{outcome.failure}: {outcome.log}")
    return outcome.value


def _case(case: Any, event: Callable[[Any], None]) -> Row:
    from trilift.lift import lift

    lifted = lift(case)
    start = time.perf_counter()
    decided = all(_decided(o, start + SECONDS) for o in lifted.outputs)
    return case.name, (decided, time.perf_counter() - start), _conditions(case, lifted)


def _conditions(case: Any, lifted: Any) -> Decided:
    """Every condition of the proof, those about values first, until one is not decided."""
    from trilift.verify import prove

    proofs = prove(case, against="formula", lifted=lifted, fallback=False)
    every = {(c.facts, c.goal): c for p in proofs for c in p.conditions if c.holds}
    ordered = sorted(every.values(), key=lambda c: c.by != "normal form")
    start = time.perf_counter()
    decided = all(p.verdict.value == "PROVED" for p in proofs) and all(_follows(c, start + SECONDS) for c in ordered)
    return decided, time.perf_counter() - start


def _follows(c: Any, deadline: float) -> bool:
    from trilift.lift.errors import Unsupported
    from trilift.verify.integers import solver
    from trilift.verify.proof import smt_baseline

    seconds = min(EACH, deadline - time.perf_counter())
    try:
        return seconds > 0 and solver.contradiction(smt_baseline.implication(c.facts, c.goal), seconds)
    except Unsupported:
        return False


def _decided(output: Any, deadline: float) -> bool:
    """Every element of the output, until the time is over."""
    import numpy as np

    from trilift.lift.errors import Unsupported
    from trilift.lift.terms.term import TERMS
    from trilift.verify.integers import solver
    from trilift.verify.proof import smt_baseline

    if output.formula is None:
        return False
    ids = output.spec.ids
    for index in np.ndindex(ids.shape):
        axes = dict(zip(output.formula.axes, index, strict=True))
        left = TERMS[int(ids[index])]
        seconds = deadline - time.perf_counter()
        try:
            asked = smt_baseline.question(left, smt_baseline.instance(output.formula.term, axes, output.spec.dims))
        except Unsupported:
            return False
        if seconds <= 0 or not solver.contradiction(asked, seconds):
            return False
    return True
