"""A proof beside runs on zeros: x / y at y = 0, sqrt(x - 1) at 0, a row of a mask without any.

Proofs are about real numbers. Where the contract does not keep a divisor from being 0, the kernel and the reference
must be NaN and infinite together. A run that says otherwise takes the proof back. It is not a counterexample, for it
has no seed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from trilift.lift.cases.declaration import Case, Spec
from trilift.lift.errors import CaseError, TriliftError
from trilift.lift.replay.dtype_sight import as_seen
from trilift.lift.replay.reference import values
from trilift.lift.runtime.budget import BUDGETS, stage
from trilift.lift.terms.definedness import DEFINED, is_number, total
from trilift.lift.terms.fit import value
from trilift.lift.terms.ops import OPS

from ..runs.adversary import arrays
from ..runs.goals import Targets
from ..runs.input_table import zeros
from ..runs.readings import evaluated, holds
from ..runs.trials import Dims, fits
from .search import Failure, Skipped, executed, launched

if TYPE_CHECKING:
    from trilift.lift.capture.trace import Launch

MANY = 17  # elements, among which some are negative and some positive
PARTIAL = {name for name, row in DEFINED.rows.items() if row is not total} | {"div", "rsqrt", "log1p", "precise_sqrt"}


def contradiction(case: Case, goal: Targets, output: str, seed: int = 0) -> str:
    """The element that a run on zeros shows against a proof of this output; "" where it shows none."""
    try:
        with stage("runs on zeros", BUDGETS.search.steps):
            return next((text for dims in _shapes(case, seed) if (text := _told(case, goal, output, dims, seed))), "")
    except TriliftError:
        return ""


def _shapes(case: Case, seed: int) -> Iterator[Dims]:
    """A small shape, the one with all dims 1, and one with numbers of both signs beside the zeros."""
    from trilift.lift.cases.shapes import choose

    base = choose(case, 1, seed)[0]
    alike = ({**base, **dict.fromkeys(case.names, n)} for n in (1, MANY))
    yield from (d for d in (base, *alike) if fits(case, d))


def _told(case: Case, goal: Targets, output: str, dims: Dims, seed: int) -> str:
    trace = launched(case, dims, seed)
    if trace is None or not all(holds(c, dims) for c in goal.conditions):
        return ""
    if is_number(goal.formulas[output].term) and not any(_divides(e) for e in trace.launches):
        return ""
    args = as_seen(case, goal.fn, zeroed(case, dims, seed))
    inputs = arrays(case, args)
    run, expected = executed(trace, inputs), _expected(case, goal, output, args, inputs, dims)
    got = None if isinstance(run, Failure | Skipped) else run.get(output)
    if got is None or expected is None or got.shape != expected.shape:
        return ""
    return _different(output, np.asarray(got, np.float64), expected, dims)


def _different(output: str, got: np.ndarray, expected: np.ndarray, dims: Dims) -> str:
    """The first element that is a number, or an infinity, on one side only."""
    wrong = (np.isnan(got) != np.isnan(expected)) | (np.isinf(got) != np.isinf(expected))
    if not wrong.any():
        return ""
    index = tuple(int(i) for i in np.argwhere(wrong)[0])
    element = f"{output}{list(index)} is {got[index]:.6g} and not {expected[index]:.6g}"
    return f"{element} where some elements of inputs are 0, at {', '.join(f'{n} = {v}' for n, v in dims.items())}"


def _divides(launch: Launch) -> bool:
    """Whether a kernel has an operation that is not defined everywhere."""
    names = {n for row in OPS.values() if row.name in PARTIAL for n in (*row.ttir, *row.extern)}
    for op in launch.module().walk():
        symbol = str(op.attrs.get("symbol", "")).removeprefix("__nv_")
        if op.name in names or symbol in names or symbol[:-1] in names:
            return True
    return False


def _expected(
    case: Case, goal: Targets, output: str, args: dict[str, Any], inputs: Mapping[str, np.ndarray], dims: Dims
) -> np.ndarray | None:
    if goal.fn is None:
        return evaluated(goal.formulas[output], inputs, dims)
    try:
        returned = values(case, goal.fn, args)
    except CaseError:
        return None
    names = [n for n, f in goal.formulas.items() if f.in_place is None]
    by_name = returned if output in returned else dict(zip(names, returned.values(), strict=False))
    return by_name.get(output)


def zeroed(case: Case, dims: Dims, seed: int) -> dict[str, Any]:
    """Arguments of which half of the elements are 0, and the first row, where 0 is allowed."""
    from trilift.lift.replay import check

    args = check.arguments(case, dims, seed)
    for name, x in case.named(args).items():
        if x.numel() and _may_be_zero(case.tensors[name], dims):
            x.copy_(zeros(x.double()))
    return args


def _may_be_zero(s: Spec, dims: Dims) -> bool:
    low, high = (None if e is None else value(e, dims) for e in (s.low, s.high))
    return not (s.positive or s.distinct) and (low is None or low <= 0) and (high is None or high > 0)
