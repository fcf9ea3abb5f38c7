"""Constants of narrow float types as they were written: Triton rounds 0.1 of a kernel in f16 to 0.0999755859375.

Numbers are real in a formula, and a digit that rounding changes is not looked at: so the constant of a product or a sum
is the shortest decimal that rounds to it. Where a comparison may hang on it, the rounded one decides, and it stays.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from .attributes import FLOATS, rounded
from .conversions import CONVERSION
from .ir import Module, Op, Value, users

X = TypeVar("X")
PASSED = {"f32", "f16", "bf16"}  # types of parameters that Triton rounds a number of Python to
NARROW = FLOATS.keys() - {"f32", "f64"}
DIGITS = 9  # at most, of a decimal
EXACT = 32  # times a power of two: numbers below are written as they are, 0.375 and 2 ** -10
DECIDING = {"arith.cmpf", *CONVERSION.values()}
HOLDING = {
    "tt.splat", "tt.unsplat", "tt.broadcast", "tt.expand_dims", "tt.reshape", "tt.trans", "tt.join", "tt.cat",
    "tt.split", "tt.gather", "arith.extf", "arith.truncf", "tt.fp_to_fp", "arith.negf", "math.absf", "arith.select",
    "arith.maxnumf", "arith.minnumf", "arith.maximumf", "arith.minimumf", "tt.clampf",
}  # fmt: skip
ARITHMETIC = {
    "arith.addf", "arith.subf", "arith.mulf", "arith.divf", "tt.precise_divf", "tt.precise_sqrt", "tt.dot", "math.fma",
    "math.exp", "math.exp2", "math.log", "math.log2", "math.sqrt", "math.rsqrt", "math.sin", "math.cos", "math.erf",
    "tt.extern_elementwise",
}  # fmt: skip
STEPS = ("floor", "ceil", "trunc", "rint", "nearbyint", "round", "roundeven", "fmod", "remainder", "nextafter")
HANDING_ON = {"scf.yield", "scf.condition", "tt.return", "tt.call"}  # out of a loop, a branch or a function


def as_written(module: Module) -> Module:
    """The module, with constants of narrow types as decimals where no comparison hangs on them."""
    used = users(module.walk())
    for op in module.walk():
        value = op.attrs.get("value")
        if op.name == "arith.constant" and isinstance(value, float) and not _decides(op.results[0], used):
            op.attrs["value"] = decimal(value, op.results[0].type.element)
    return module


def is_rounded(value: float, element: str) -> bool:
    """Whether a constant of this type may be another number rounded: 0.1 or 1 / 3 in f16, not 0.375 or 65504."""
    if element not in NARROW or not math.isfinite(value) or value.is_integer():
        return False
    numerator, _ = value.as_integer_ratio()
    return abs(numerator) >= EXACT


def decimal(value: float, element: str) -> float:
    """The shortest decimal that rounds to the value in this type, or the value: 0.1 for 0.0999755859375 in f16."""
    if not is_rounded(value, element):
        return value
    decimals = (float(f"{value:.{digits}g}") for digits in range(1, DIGITS + 1))
    return next((d for d in decimals if rounded(d, element) == rounded(value, element)), value)


@dataclass(frozen=True, slots=True)
class Rounding:
    """The float type of a parameter, and the constants that alone its number is compared with; None where something
    else may hang on its digits."""

    element: str
    compared: frozenset[float] | None


def rounded_arguments(module: Module) -> dict[int, Rounding]:
    """The numbers that Triton rounds as it passes them, by position, whose rounding may decide: one is compared, stored
    or made an integer as it is, or the kernel computes in fp64, where x * s is x * float32(s)."""
    entry = module.entry.args
    floats = [k for k, v in enumerate(entry) if v.type.element in PASSED and not v.type.shape]
    if module.computes_in_double or not floats:
        return {k: Rounding(entry[k].type.element, None) for k in floats}
    used = users(module.walk())
    found = {k: Rounding(entry[k].type.element, _compared_with(entry[k], used)) for k in floats}
    return {k: r for k, r in found.items() if r.compared is None or r.compared}


def as_passed(x: X, k: int, roundings: Mapping[int, Rounding]) -> X | float:
    """Argument k: a number as Triton passes it where its rounding may decide, for `roundings` of the module; the number
    itself where the type has none that is near, and anything else."""
    if k not in roundings or not isinstance(x, int | float):
        return x
    numbers, found = roundings[k].compared, _passed(float(x), roundings[k].element)
    decides = numbers is None or any((x > n, x < n) != (found > n, found < n) for n in numbers)
    return found if decides and math.isfinite(found) else x


def _passed(x: float, element: str) -> float:
    with np.errstate(over="ignore"):
        return rounded(x, element)


def _compared_with(v: Value, used: dict[Value, list[Op]]) -> frozenset[float] | None:
    """The constants that comparisons take beside the value. None where something else may hang on its last digits:
    another comparison, or anything but arithmetic, whose result is near the real number."""
    todo, seen = [v], {v}
    numbers: set[float] = set()
    while todo:
        u = todo.pop()
        for op in used.get(u, ()):
            beside = [_constant(o) for o in op.operands if o is not u] if op.name == "arith.cmpf" and u is v else [None]
            if op.name == "arith.cmpf" and None not in beside and beside:
                numbers.update(n for n in beside if n is not None)
            elif op.name in HOLDING:
                more = [r for r in op.results if r not in seen]
                seen.update(more)
                todo += more
            elif op.name not in ARITHMETIC or is_step(op):
                return None
    return frozenset(numbers)


def is_step(op: Op) -> bool:
    """Whether a function of a library jumps, as floor does."""
    symbol = str(op.attrs.get("symbol", "")).removeprefix("__nv_")
    return symbol in STEPS or symbol.removesuffix("f") in STEPS


def _constant(v: Value) -> float | None:
    """The number of a constant."""
    value = v.owner.attrs.get("value") if isinstance(v.owner, Op) and v.owner.name == "arith.constant" else None
    return value if isinstance(value, float) else None


def _decides(v: Value, used: dict[Value, list[Op]]) -> bool:
    """Whether a comparison or an integer may hang on the value, through arithmetic too: x - 0.1 >= 0. A value that
    a region hands on is not followed: it may be compared."""
    todo, seen = [v], {v}
    while todo:
        for op in used.get(todo.pop(), ()):
            if op.name in DECIDING or op.name in HANDING_ON or op.successors:
                return True
            if any(inner.name in DECIDING for inner in op.walk()):
                return True
            more = [r for r in op.results if r not in seen]
            seen.update(more)
            todo += more
    return False
