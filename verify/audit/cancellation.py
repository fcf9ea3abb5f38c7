"""Cancellation: a difference of large numbers that is small, and has as its digits what rounding left of theirs.

    E[x^2] - E[x]^2        loses all digits where the mean is far from 0 and the spread is small

The kernel runs with and without rounding, its additions side by side. One is to blame if the output is right once its
result is: then the inputs determine the output well, and only the way it is computed does not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from trilift.lift.interpreter.machine import cell
from trilift.lift.replay.rounded import Rounded, Values, executed
from trilift.lift.replay.rounding import FORMATS
from trilift.lift.ttir.ir import Op

from ..runs.input_table import ROWS, Inputs
from .numerics import Numerics, Sample

LOST = 2e-3  # relative error of the output at least
TIMES = 8  # as much as a few units in the last place of the inputs make
UNITS = 8
TRIALS = 5  # of other last digits
THEIRS = 16  # as much as the reference loses
MENDED = 8  # times smaller is the error without the one of the addition to blame
SMALL = 2.0**-6  # of its operands is a result that cancels
ENTRIES = 20_000  # additions compared
CANDIDATES = 4

ADDITIONS = ("arith.subf", "arith.addf")


@dataclass(frozen=True, slots=True)
class Cancelled:
    """An element with a large error: `lost` by the kernel, `noise` by the last digits of the inputs, both relative.
    `operands`, `result` and `right`: of one lane of the operation to blame."""

    sample: Sample
    op: Op
    output: str
    index: tuple[int, ...]
    got: float
    expected: float
    lost: float
    noise: float
    operands: tuple[float, float]
    result: float
    right: float


@dataclass(frozen=True, slots=True)
class Addition:
    op: Op
    operands: tuple[np.ndarray, np.ndarray]
    result: np.ndarray


Pair = tuple[Addition, Addition, np.ndarray]  # without rounding, with it, and how the error grows


@dataclass
class Additions:
    """Watches additions. `instead`: what stands for those of one operation, in order."""

    seen: list[Addition] = field(default_factory=list)
    mended: Op | None = None
    instead: Iterator[np.ndarray] = field(default_factory=lambda: iter(()))

    def __call__(self, run: object, op: Op, xs: tuple[Any, ...], unrounded: object, out: Any) -> Any:
        if op.name not in ADDITIONS:
            return out
        if self.mended is None and len(self.seen) < ENTRIES:
            self.seen.append(Addition(op, (np.asarray(xs[0]), np.asarray(xs[1])), np.asarray(out)))
        return next(self.instead, out) if op is self.mended else out


def _of_rank(rank: int, row: Inputs) -> Inputs:
    """The row, which leaves tensors of fewer dimensions as the case draws them."""
    return replace(row, reals=lambda x: row.reals(x) if x.dim() >= rank else x)


def cancelled(runs: Numerics) -> Iterator[Cancelled]:
    """The worst element at a small shape, for each kind of inputs."""
    case = runs.evidence.case
    reals = [s for s in case.tensors.values() if s.is_float]
    row = ROWS["shifted" if all(s.dtype in ("f32", "f64") for s in reals) else "shifted-narrow"]
    ranks = {len(s.shape or ()) for s in reals}
    for dims in runs.shapes(1):
        for rank in (min(2, max(ranks)), 0) if len(ranks) > 1 else (0,):
            sample = runs.sample(dims, _of_rank(rank, row), runs.evidence.seed)
            found = None if sample is None else _worst(sample)
            if found is not None:
                yield found


def _worst(sample: Sample) -> Cancelled | None:
    exact, rounded = Additions(), Additions()
    real = sample.run(Rounded(rounds=False, watch=exact))
    got = None if real is None else sample.run(Rounded(watch=rounded))
    if real is None or got is None:
        return None
    for output, values in real.items():
        if output not in got or sample.dtype(output) not in FORMATS or not values.size:
            continue
        lost = _relative(got[output], values)
        wrong = (lost > LOST) & (lost > THEIRS * _theirs(sample, output, values))
        if not wrong.any() or [a.op for a in exact.seen] != [a.op for a in rounded.seen]:
            continue
        index = tuple(int(i) for i in np.unravel_index(int(np.argmax(np.where(wrong, lost, 0))), lost.shape))
        if (found := _blamed(sample, exact, rounded, output, index, real)) is not None:
            return replace(found, got=float(got[output][index]), lost=float(lost[index]))
    return None


def _relative(got: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """Errors relative to the element, or to an ordinary element where it is smaller; large where `got` is NaN."""
    finite = np.isfinite(exact)
    scale = np.maximum(np.abs(exact), float(np.median(np.abs(exact[finite]))) if finite.any() else 0.0)
    with np.errstate(all="ignore"):
        error = np.abs(got - exact) / np.where(scale == 0, 1.0, scale)
    return np.where(finite, np.where(np.isfinite(got), error, 1e9), 0.0)


def _theirs(sample: Sample, output: str, exact: np.ndarray) -> float:
    """The largest error of the reference in the case's types: none without one, infinite where it cannot be told."""
    if not sample.case.reference:
        return 0.0
    theirs = (sample.typed_reference or {}).get(output)
    if theirs is None or theirs.shape != exact.shape:
        return float("inf")
    return float(_relative(theirs, exact).max())


def _blamed(
    sample: Sample, exact: Additions, rounded: Additions, output: str, index: tuple[int, ...], real: Values
) -> Cancelled | None:
    """The addition that cancels, and without whose error the element is right."""
    pairs = [(e, r, _growth(e, r)) for e, r in zip(exact.seen, rounded.seen, strict=True)]
    growths: dict[Op, float] = {}
    for e, _, growth in pairs:
        growths[e.op] = max(growths.get(e.op, 0.0), float(growth.max(initial=0.0)))
    likely = [op for op, g in growths.items() if g > LOST / 4][:CANDIDATES]  # the first one first
    expected = float(real[output][index])
    before = float(_relative(sample.rounded[output], real[output])[index]) if sample.rounded else 0.0
    for op in likely:
        watch = Additions(mended=op, instead=iter([e.result for e in exact.seen if e.op is op]))
        after = sample.run(Rounded(watch=watch))
        if after is None or MENDED * float(_relative(after[output], real[output])[index]) > before:
            continue
        noise = _noise(sample, output, index, cell(op.results[0].type))
        if before <= TIMES * noise:
            return None
        e, r, growth, at = _lane([p for p in pairs if p[0].op is op], expected)
        a, b = (float(np.broadcast_to(x, growth.shape)[at]) for x in r.operands)
        numbers = (a, b), float(r.result[at]), float(e.result[at])
        return Cancelled(sample, op, output, index, 0.0, expected, before, noise, *numbers)
    return None


def _lane(pairs: list[Pair], expected: float) -> tuple[Addition, Addition, np.ndarray, tuple[Any, ...]]:
    """The lane to show: that of the element where there is one, else the one that loses most."""
    for e, r, growth in pairs:
        same = (growth > LOST / 4) & np.isclose(e.result, expected, rtol=1e-9, atol=0.0)
        if same.any():
            return e, r, growth, tuple(np.argwhere(same)[0])
    e, r, growth = max(pairs, key=lambda p: float(p[2].max(initial=0.0)))
    return e, r, growth, np.unravel_index(int(np.argmax(growth)), growth.shape)


def _growth(e: Addition, r: Addition) -> np.ndarray:
    """The relative error of each result that is small beside its operands and has a larger error than they, 0 for the
    others."""
    with np.errstate(all="ignore"):
        a, b = (np.abs(x) for x in e.operands)
        error = np.abs(r.result - e.result) / np.abs(e.result)
        theirs = [np.abs(y - x) / np.abs(x) for x, y in zip(e.operands, r.operands, strict=True)]
        grown = error * SMALL > np.maximum(*(np.where(np.isnan(t), 0, t) for t in theirs))
        cancels = (np.abs(e.result) < SMALL * np.maximum(a, b)) & np.isfinite(e.result)
        return np.where(cancels & grown & np.isfinite(error), error, 0.0)


def _noise(sample: Sample, output: str, index: tuple[int, ...], element: str) -> float:
    """The relative change of the element when inputs change by some units in the last place of the type computed in;
    at least one rounding of the output."""
    unit = UNITS * 2.0 ** -FORMATS[element].digits
    least = 2.0 ** -FORMATS[sample.dtype(output)].digits
    assert sample.exact is not None
    for seed in range(TRIALS):
        rng = np.random.default_rng([sample.seed, seed, 3])
        moved = {
            n: x * (1 + unit * rng.uniform(-1, 1, x.shape)) if x.dtype.kind == "f" else x
            for n, x in sample.inputs.items()
        }
        values = executed(sample.trace, moved, Rounded(rounds=False))
        if values is None:
            return float("inf")
        least = max(least, float(_relative(values[output], sample.exact[output])[index]))
    return least
