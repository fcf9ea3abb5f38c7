"""The precision that a kernel's numbers lose before any tensor is touched: beta = 0.999 as f32, and 1 - beta, is 0.001
with an error of 1.3e-5, which no formula that has 0.001 in it shows.

    exact      the numbers that the host passes, and what the kernel makes of them, in float64
    rounded    the same with every step rounded to the type of its result
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from trilift.lift.capture.trace import Launch
from trilift.lift.interpreter.machine import cell
from trilift.lift.replay.rounding import FORMATS, nearest
from trilift.lift.ttir.ir import Op, Value

from ..audit.accumulation import MOVES

ARITHMETIC = {
    "arith.addf": np.add, "arith.subf": np.subtract, "arith.mulf": np.multiply, "arith.divf": np.divide,
    "arith.negf": np.negative,
}  # fmt: skip
Pair = tuple[float, float]  # exact, rounded


def lost(launches: Iterable[Launch]) -> int:
    """How many roundings the worst sum of numbers is off by; 0 where none is off by more than one."""
    worst = 0.0
    for e in launches:
        known = {v: (float(x), _rounded(x, v)) for v, x in zip(e.module().entry.args, e.operands, strict=False)
                 if isinstance(x, float) and cell(v.type) in FORMATS}  # fmt: skip
        for op in e.module().walk():
            found = _value(op, known)
            if found is None:
                continue
            (result,) = op.results
            known[result] = found
            exact, rounded = found
            unit = 2.0 ** -FORMATS[cell(result.type)].digits
            if op.name in ("arith.addf", "arith.subf") and exact and math.isfinite(exact):
                worst = max(worst, abs(rounded - exact) / abs(exact) / unit)
    return math.ceil(worst) if worst > 1 else 0


def _value(op: Op, known: dict[Value, Pair]) -> Pair | None:
    """The one number that the operation gives; None where it is not made of known numbers alone."""
    if len(op.results) != 1 or cell(op.results[0].type) not in FORMATS:
        return None
    if op.name == "arith.constant":
        numbers = np.unique(np.asarray(op.attrs["value"], np.float64))
        return (float(numbers[0]), float(numbers[0])) if numbers.size == 1 else None
    if not op.operands or any(v not in known for v in op.operands):
        return None
    if op.name in MOVES:
        return known[op.operands[0]]
    if op.name not in ARITHMETIC:
        return None
    with np.errstate(all="ignore"):
        exact, rounded = (float(ARITHMETIC[op.name](*xs)) for xs in zip(*(known[v] for v in op.operands), strict=True))
    return exact, _rounded(rounded, op.results[0])


def _rounded(x: float, v: Value) -> float:
    return float(nearest(np.float64(x), cell(v.type)))
