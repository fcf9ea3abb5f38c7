"""nan-risk: the kernel gives NaN where the reference gives a number, or whatever its inputs are."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from trilift.lift.replay.rounded import Rounded
from trilift.lift.runtime.budget import BUDGETS
from trilift.lift.ttir.ir import Op

from ...runs.input_table import ROWS, Inputs
from ...runs.trials import Dims, blocks_of, boundary_shapes
from ..fault_origin import Event, births, blamed, described
from ..faults import Fault, faults
from ..finding import Finding, Rule, Step
from ..numerics import Numerics, Sample, numerics

if TYPE_CHECKING:
    from ..evidence import Evidence

EDGES = 6  # shapes at the edges of blocks
DRAWS = 3  # of inputs that must all give NaN where there is no reference

RANDOM = ROWS["normal"]
KINDS = RANDOM, ROWS["first"], ROWS["last"], ROWS["all-zero"], ROWS["equal"]


def check(evidence: Evidence) -> Iterator[Finding]:
    """Findings at the first shape and kind of inputs that shows each of them, at its smallest shape."""
    runs = numerics(evidence, BUDGETS.audit.nan_steps)
    kinds = KINDS if evidence.case.reference else KINDS[:1]
    yield from map(_finding, faults(runs, _shapes(runs), _apart(runs, kinds), _born))


def _shapes(runs: Numerics) -> Iterator[Dims]:
    """Small ones, those with sizes of 1, and some at the edges of blocks."""
    case, small = runs.evidence.case, runs.shapes(2)
    yield from small
    sample = runs.sample(small[0], RANDOM, runs.evidence.seed) if small else None
    if sample is not None:
        ones = [{**small[0], n: 1} for n in case.names] + [{**small[0], **dict.fromkeys(case.names, 1)}]
        yield from ones
        yield from islice(boundary_shapes(case, small[0], blocks_of(sample.trace)), EDGES)


def _apart(runs: Numerics, kinds: tuple[Inputs, ...]) -> list[Inputs]:
    """The kinds that are different inputs for this case."""
    tensors = runs.evidence.case.tensors.values()
    real = any(s.is_float for s in tensors)
    whole = any(s.dtype == "bool" or (not s.is_float and s.low is not None) for s in tensors)
    return [k for k in kinds if k is RANDOM or (real and k.reals is not RANDOM.reals) or (whole and k.integers)]


def _born(runs: Numerics, dims: Dims, kind: Inputs) -> Iterator[Fault]:
    """One element for each output that is NaN and should not be."""
    sample = runs.sample(dims, kind, runs.evidence.seed)
    if sample is None:
        return
    watch = births()
    exact = sample.run(Rounded(rounds=False, watch=watch))
    if exact is None or not watch.events:
        return
    for output, got in exact.items():
        wrong = np.isnan(got) & _should_be_numbers(runs, sample, output, got)
        if not wrong.any() or sample.rounded is None:
            continue
        index = tuple(int(i) for i in np.argwhere(wrong)[0])
        if not np.isnan(sample.rounded[output][index]):
            continue
        event = blamed(sample, births, False, (output, index), lambda v: bool(np.isfinite(v)))
        if event is not None and (sample.case.reference or _is_empty(event)):
            theirs = sample.typed_reference
            right = float(theirs[output][index]) if theirs else float("nan")
            yield Fault(sample, output, index, float("nan"), right, event)


def _should_be_numbers(runs: Numerics, sample: Sample, output: str, got: np.ndarray) -> np.ndarray:
    """Elements for which the reference gives a number, rounded and not; without a reference those that are NaN for
    other inputs as well."""
    if sample.case.reference:
        theirs = [(r or {}).get(output) for r in (sample.reference, sample.typed_reference)]
        if any(r is None or r.shape != got.shape for r in theirs):
            return np.zeros(got.shape, bool)
        return np.asarray(np.logical_and.reduce([np.isfinite(r) for r in theirs if r is not None]))
    wrong = np.asarray(np.isnan(got))
    for k in range(1, DRAWS):
        other = runs.sample(sample.dims, sample.kind, sample.seed + k) if wrong.any() else None
        values = None if other is None else other.exact
        theirs_too = None if values is None else values.get(output)
        if theirs_too is None or theirs_too.shape != got.shape:
            return np.zeros(got.shape, bool)
        wrong &= np.isnan(theirs_too)
    return wrong


def _is_empty(event: Event) -> bool:
    """Whether it is the softmax of nothing: inf - inf, or 0 / 0 with a sum of exponentials below."""
    if any(np.isinf(x) for x in event.operands):
        return True
    return "div" in event.op.name and _needs(event.op, ("math.exp", "math.exp2"))


def _needs(op: Op, names: tuple[str, ...]) -> bool:
    """Whether an operation of these names is among those that compute the last operand of `op`."""
    todo, seen = [op.operands[-1]], set()
    while todo:
        v = todo.pop()
        if v in seen:
            continue
        seen.add(v)
        owner = v.owner
        if isinstance(owner, Op):
            if owner.name in names:
                return True
            todo += owner.operands
            inner = [o for r in owner.regions for o in r.walk() if o.name == "scf.yield"]
            todo += [x for o in inner for x in o.operands]
    return False


HINTS = {
    "arith.subf": "replace a maximum of -inf by a number: tl.where(m == -inf, 0, m)",
    "arith.divf": "guard the denominator: tl.where(d == 0, 1, d), or add a small number",
    "math.exp": "replace a maximum of -inf by a number: tl.where(m == -inf, 0, m)",
}


def _finding(found: Fault) -> Finding:
    sample, place, what = found.sample, found.event.op.place, described(found.event)
    right = f"where the reference gives {found.expected:.6g}" if found.known else "for all inputs of this kind"
    return Finding(
        RULE.name,
        f"{what}: {found.element} is NaN {right}, on {sample.kind.words}",
        place,
        found.example,
        HINTS.get(found.event.op.name, "do not compute 0 / 0, inf - inf or 0 * inf, or choose a value for them"),
        sample.replay(found.output, found.index, found.got, found.expected if found.known else 0.0, 1e30),
        (Step(place, what), Step(None, f"{found.element} is NaN")),
    )


RULE = Rule(
    "nan-risk", "warning", "An output is NaN on inputs for which it should be a number: 0 / 0, inf - inf.", check
)
