"""Constants with too few digits: the kernel is right once the number that was meant stands for one of them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from trilift.lift.interpreter.machine import cell
from trilift.lift.replay.rounded import Rounded
from trilift.lift.replay.rounding import FORMATS
from trilift.lift.terms.constants import near
from trilift.lift.ttir.ir import Op

from ..runs.input_table import ROWS
from .numerics import Numerics, Sample

if TYPE_CHECKING:
    from .evidence import Evidence

VISIBLE = 1e-6  # relative deviation from the reference at least
LARGEST = 3e-2  # and at most
CLOSE = 3e-3  # relative, of a constant to the one that was meant
CUT = 2e-2  # where it is that one cut off, or rounded, after some digits
EXPLAINED = 20  # times smaller is the deviation with the number that was meant
RUNS = 24


@dataclass(frozen=True, slots=True)
class Truncated:
    """A constant `value` of the kernel that stands for `meant`, in `words`, and the element that deviates most."""

    sample: Sample
    op: Op
    value: float
    meant: float
    words: str
    output: str
    index: tuple[int, ...]
    got: float
    expected: float


def truncated(runs: Numerics) -> Iterator[Truncated]:
    """A constant that explains how the kernel without rounding deviates from the reference."""
    for dims in runs.shapes(1) if runs.evidence.case.reference else ():
        sample = runs.sample(dims, ROWS["normal"], runs.evidence.seed)
        if sample is not None and (found := _explained(sample, runs.evidence)) is not None:
            yield found


def _explained(sample: Sample, evidence: Evidence) -> Truncated | None:
    """The candidate that leaves the smallest deviation, if that explains it."""
    worst = _worst(sample, sample.exact)
    if worst is None or not VISIBLE < worst[2] < LARGEST:
        return None
    output, index, deviation = worst
    assert sample.exact is not None and sample.reference is not None
    if deviation < 2.0 ** -FORMATS[sample.dtype(output)].digits:
        return None  # the output's type does not show it
    best, left = None, deviation / EXPLAINED
    for op, value, meant, words in _candidates(sample, evidence)[:RUNS]:
        again = _worst(sample, sample.run(Rounded(rounds=False, constants={op: meant})))
        if again is not None and again[2] < left:
            best, left = (op, value, meant, words), again[2]
    if best is None:
        return None
    got, expected = (float(x[output][index]) for x in (sample.exact, sample.reference))
    return Truncated(sample, *best, output, index, got, expected)


def _worst(sample: Sample, got: dict[str, np.ndarray] | None) -> tuple[str, tuple[int, ...], float] | None:
    """(output, index, deviation) of the worst element, relative to the largest of its output."""
    if got is None or sample.reference is None:
        return None
    found = []
    for output, x in got.items():
        theirs = sample.reference.get(output)
        if theirs is None or theirs.shape != x.shape or not x.size or sample.dtype(output) not in FORMATS:
            return None
        finite = np.isfinite(theirs)
        if not np.array_equal(finite, np.isfinite(x)) or not finite.any():
            return None
        size = float(np.abs(theirs[finite]).max()) or 1.0
        error = np.where(finite, np.abs(np.where(finite, x, 0) - np.where(finite, theirs, 0)) / size, 0.0)
        index = tuple(int(i) for i in np.unravel_index(int(np.argmax(error)), error.shape))
        found.append((output, index, float(error[index])))
    return max(found, key=lambda f: f[2], default=None)


def _candidates(sample: Sample, evidence: Evidence) -> list[tuple[Op, float, float, str]]:
    """(operation, its number, what may be meant, in words): numbers of the reference, then known ones, the closest
    first."""
    theirs = _numbers(evidence)
    found = []
    for op in sample.operations():
        if op.name != "arith.constant" or not op.results[0].type.is_float:
            continue
        values = np.unique(np.asarray(op.attrs["value"], np.float64))
        if len(values) != 1 or not np.isfinite(values[0]) or values[0] == 0:
            continue
        value = float(values[0])
        rounding = 2.0 ** -FORMATS[cell(op.results[0].type)].digits
        close = [(abs(m - value), 0, m, f"{m:.9g}") for m in theirs]
        close += [(abs(m - value), 1, m, words) for m, words in near(value, CUT)]
        for d, k, m, words in close:
            if 1.5 * rounding * abs(value) < d <= (CUT if _is_cut(value, m) else CLOSE) * abs(value):
                found.append((k, d, op, value, m, words))
    ordered = sorted(found, key=lambda f: (f[0], f[1]))
    return [(op, value, m, words) for _, _, op, value, m, words in ordered]


def _is_cut(value: float, meant: float) -> bool:
    """Whether `value` is `meant` after two to eight digits, rounded or cut off."""
    for digits in range(2, 9):
        unit = 10.0 ** (math.floor(math.log10(abs(meant))) + 1 - digits)
        kept = (round(meant / unit) * unit, math.trunc(meant / unit) * unit)
        if any(abs(k - value) <= 1e-6 * abs(value) for k in kept):
            return True
    return False


def _numbers(evidence: Evidence) -> list[float]:
    """Real constants of the reference's formulas."""
    if evidence.goal is None or evidence.goal.fn is None:
        return []
    terms = (t for f in evidence.goal.formulas.values() for t in f.term.walk())
    found = {float(t.attr) for t in terms if t.is_const and isinstance(t.attr, float) and np.isfinite(t.attr)}
    return sorted(s * m for m in found if m for s in (1, -1))
