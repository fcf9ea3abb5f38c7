"""overflow-risk: a step of the kernel overflows although the result is a number of moderate size."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from trilift.lift.replay.rounded import Rounded
from trilift.lift.replay.rounding import FORMATS, NARROW
from trilift.lift.runtime.budget import BUDGETS

from ...runs.input_table import ROWS, Inputs
from ...runs.trials import Dims
from ..fault_origin import blamed, described, kind, matters, overflows
from ..faults import Fault, faults
from ..finding import Finding, Rule, Step
from ..numerics import Numerics, Sample, numerics

if TYPE_CHECKING:
    from ..evidence import Evidence

GROSS = 0.25  # relative error that an overflow leaves at least
AGREES = (
    0.03  # relative error of the reference, in the case's types too, from what the kernel computes without rounding
)
SMALL = 1e-3  # of the largest element: smaller errors are none
SUMMED = 2048  # elements that a narrow type sums


KINDS = ROWS["far"], ROWS["large"], ROWS["far-above"], ROWS["far-below"]


def check(evidence: Evidence) -> Iterator[Finding]:
    """Findings at the first shape and kind of inputs that shows each of them, at its smallest shape."""
    runs = numerics(evidence, BUDGETS.audit.overflow_steps)
    yield from map(_finding, faults(runs, _shapes(runs), KINDS, _overflows))


def _shapes(runs: Numerics) -> Iterator[Dims]:
    """A small one; and long sums, where something is summed in a narrow type."""
    small = runs.shapes(1)
    yield from small
    sample = runs.sample(small[0], KINDS[0], runs.evidence.seed) if small else None
    if sample is not None and any(_sums_narrowly(op) for op in sample.operations()):
        yield from ({**small[0], n: SUMMED} for n in runs.evidence.case.names)


def _sums_narrowly(op: Any) -> bool:
    summing = op.name in ("tt.reduce", "tt.dot", "arith.addf")
    return summing and any(v.type.element.lower() in NARROW for v in op.results)


def _overflows(runs: Numerics, dims: Dims, inputs: Inputs) -> Iterator[Fault]:
    """One element for each output that is not finite though it should be."""
    sample = runs.sample(dims, inputs, runs.evidence.seed)
    if sample is None:
        return
    watch = overflows()
    rounded = sample.run(Rounded(watch=watch))
    if rounded is None or not watch.events or (exact := sample.exact) is None:
        return
    if not all(_is_ordinary(sample, output, real) for output, real in exact.items()):
        return
    for output, got in rounded.items():
        real = exact.get(output)
        if real is None or (wrong := ~_near(got, real, GROSS)).sum() == 0:
            continue
        index = tuple(int(i) for i in np.argwhere(wrong)[0])
        value, floor = real[index], SMALL * _size(real)
        right = lambda v, value=value, floor=floor: abs(v - value) <= GROSS * abs(value) + floor  # noqa: E731
        event = blamed(sample, overflows, True, (output, index), right)
        if event is not None and matters(sample, (output, index), right):
            yield Fault(sample, output, index, float(got[index]), float(value), event)


def _is_ordinary(sample: Sample, output: str, exact: np.ndarray) -> bool:
    """Whether all elements of an output are in range, and the reference computes them in the case's types: these
    inputs belong together, as an exponent and its logsumexp do, and only the kernel's steps are too large."""
    if not _fits(sample, output, exact).all():
        return False
    if not sample.case.reference:
        return True
    references = [(sample.reference or {}).get(output), (sample.typed_reference or {}).get(output)]
    return all(r is not None and r.shape == exact.shape and _near(r, exact, AGREES).all() for r in references)


def _fits(sample: Sample, output: str, exact: np.ndarray) -> np.ndarray:
    """Elements that are finite in the output's type."""
    dtype = sample.dtype(output)
    limit = FORMATS[dtype].largest if dtype in FORMATS else 0.0
    return np.asarray(np.isfinite(exact) & (np.abs(exact) <= limit))


def _near(got: np.ndarray, exact: np.ndarray, relative: float) -> np.ndarray:
    """Which elements are finite and not far from the exact ones."""
    with np.errstate(all="ignore"):
        near = np.abs(got - exact) <= relative * np.abs(exact) + SMALL * _size(exact)
    return np.asarray(near & np.isfinite(got))


def _size(exact: np.ndarray) -> float:
    """The largest finite number of an output."""
    return float(np.max(np.abs(exact[np.isfinite(exact)]), initial=0.0))


HINTS = {
    "math.exp": "subtract the maximum before exp, or use a form whose argument is at most 0",
    "math.exp2": "subtract the maximum before exp2, or use a form whose argument is at most 0",
    "arith.mulf": "convert to float32 before multiplying, or scale first",
    "arith.truncf": "keep float32 until the result is in range",
    "tt.fp_to_fp": "keep float32 until the result is in range",
    "tt.reduce": "sum in float32",
    "arith.addf": "sum in float32",
    "tt.dot": "make the accumulator float32",
}


def _finding(found: Fault) -> Finding:
    sample, place, what = found.sample, found.event.op.place, described(found.event)
    tolerance = GROSS / 2 * min(1.0, abs(found.expected) or 1.0)
    return Finding(
        RULE.name,
        f"{what}: {found.element} becomes {found.got:.6g} instead of {found.expected:.6g}, on {sample.kind.words}",
        place,
        found.example,
        HINTS.get(kind(found.event.op), "use a form whose steps stay in range"),
        sample.replay(found.output, found.index, found.got, found.expected, tolerance),
        (Step(place, what), Step(None, f"{found.element} is {found.got:.6g}, its value is {found.expected:.6g}")),
    )


RULE = Rule(
    "overflow-risk",
    "warning",
    "A step overflows on inputs of moderate size although the result would be in range.",
    check,
)
