"""Where a number is lost: the operation that makes an infinity or a NaN of finite operands, and that an output needs.

    overflow    nearest_t(r) is infinite and r is not        birth    the result is NaN and no operand is

An operation is to blame for an element if mending all such results makes the element right, and mending all but its
own does not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from trilift.lift.interpreter.handlers.arithmetic import library_row
from trilift.lift.interpreter.machine import cell
from trilift.lift.replay.rounded import Rounded
from trilift.lift.ttir.ir import Op

from .numerics import Sample

Element = tuple[str, tuple[int, ...]]
CANDIDATES = 6  # operations tried for one element


@dataclass(frozen=True, slots=True)
class Event:
    """The first time that an operation loses a number: in which program, from which operands of the first such lane
    (none where a result has no lane of its own), to what it would be without rounding."""

    op: Op
    program: tuple[int, int, int]
    operands: tuple[float, ...]
    unrounded: float
    result: float


@dataclass
class Losses:
    """Watches for lost numbers. `mended(op)`: those of this operation are replaced by finite ones."""

    lost: Callable[[Op, tuple[Any, ...], Any, Any], np.ndarray]
    instead: Callable[[Op, Any], Any]
    mended: Callable[[Op], bool] = lambda op: False
    events: dict[Op, Event] = field(default_factory=dict)

    def __call__(self, run: Any, op: Op, xs: tuple[Any, ...], unrounded: Any, out: Any) -> Any:
        lanes = np.asarray(self.lost(op, xs, unrounded, out))
        if not lanes.any():
            return out
        if op not in self.events:
            self.events[op] = _event(run, op, xs, unrounded, out, lanes)
        return np.where(lanes, self.instead(op, unrounded), out) if self.mended(op) else out


def _event(run: Any, op: Op, xs: tuple[Any, ...], unrounded: Any, out: Any, lanes: np.ndarray) -> Event:
    at = tuple(int(i) for i in np.argwhere(lanes)[0])
    alike = [np.asarray(x) for x in xs if np.shape(x) == lanes.shape and np.asarray(x).dtype.kind == "f"]
    operands = tuple(float(x[at]) for x in alike) if op.name.startswith(("arith.", "math.", "tt.extern")) else ()
    return Event(op, run.program, operands, float(np.asarray(unrounded)[at]), float(np.asarray(out)[at]))


def overflows(instead: float | None = None) -> Losses:
    """Watches for finite numbers that are infinite once rounded; mended they stay as they are, or are `instead`."""
    return Losses(
        lambda op, xs, unrounded, out: np.isinf(out) & np.isfinite(unrounded),
        lambda op, unrounded: unrounded if instead is None else instead,
    )


def births() -> Losses:
    """Watches for NaN from operands that are none; 0 stands for it."""
    return Losses(lambda op, xs, unrounded, out: np.isnan(out) & ~tainted(op, xs), lambda op, unrounded: 0.0)


def tainted(op: Op, xs: tuple[Any, ...]) -> Any:
    """Which results of an operation have a NaN among their operands."""
    nans = [np.isnan(x) for x in map(np.asarray, xs) if x.dtype.kind == "f"]
    match op.name:
        case "tt.reduce":
            return np.logical_or.reduce([x.any(axis=op.attrs["axis"]) for x in nans])
        case "tt.scan":
            return np.logical_or.reduce([x.any(axis=op.attrs["axis"], keepdims=True) for x in nans])
        case "tt.dot":
            a, b, c = nans
            return a.any(axis=-1)[..., :, None] | b.any(axis=-2)[..., None, :] | c
    return np.logical_or.reduce(np.broadcast_arrays(*nans)) if nans else np.False_


def blamed(
    sample: Sample, watch: Callable[[], Losses], rounds: bool, element: Element, right: Callable[[float], bool]
) -> Event | None:
    """The first operation without whose loss the element would be right; None if mending all does not make it so."""

    def mends(mended: Callable[[Op], bool]) -> bool:
        v = _value(sample, watch(), rounds, element, mended)
        return v is not None and right(v)

    seen = watch()
    if _value(sample, seen, rounds, element, lambda op: False) is None or not mends(lambda op: True):
        return None
    for op, event in list(seen.events.items())[:CANDIDATES]:
        if not mends(lambda o, op=op: o is not op):  # type: ignore[misc]
            return event
    return next(iter(seen.events.values()), None)


def matters(sample: Sample, element: Element, right: Callable[[float], bool]) -> bool:
    """Whether an element hangs on the numbers that overflow: inf * 0 is NaN, but any number times 0 was right."""
    for instead in (0.0, 1.0):
        v = _value(sample, overflows(instead), True, element, lambda op: True)
        if v is None or not right(v):
            return True
    return False


def _value(sample: Sample, watch: Losses, rounds: bool, element: Element, mended: Callable[[Op], bool]) -> float | None:
    watch.mended = mended
    values = sample.run(Rounded(rounds=rounds, watch=watch))
    output, index = element
    return None if values is None or output not in values else float(values[output][index])


# ---- in words --------------------------------------------------------------------------------------------------------

NAMES = {
    "math.exp": "exp({})", "math.exp2": "exp2({})", "arith.mulf": "{} * {}", "arith.addf": "{} + {}",
    "arith.subf": "{} - {}", "arith.divf": "{} / {}", "tt.precise_divf": "{} / {}", "math.log": "log({})",
    "math.log2": "log2({})", "math.sqrt": "sqrt({})", "tt.precise_sqrt": "sqrt({})", "math.rsqrt": "rsqrt({})",
    "arith.truncf": "{}", "tt.fp_to_fp": "{}",
}  # fmt: skip
WHOLE = {"tt.reduce": "the reduction", "tt.dot": "the dot product", "tt.scan": "the scan"}


def kind(op: Op) -> str:
    """The name of an operation; of a library function the one that means the same."""
    row = library_row(op.attrs["symbol"]) if op.name == "tt.extern_elementwise" else None
    return op.name if row is None else f"math.{row}"


def described(event: Event) -> str:
    """The event in numbers: "exp(312.5) is inf in f32"."""
    op, element = event.op, cell(event.op.results[0].type)
    pattern = NAMES.get(kind(op), "")
    if pattern and len(event.operands) == pattern.count("{}"):
        what = pattern.format(*(f"{x:.6g}" for x in event.operands))
    else:
        what = WHOLE.get(op.name, op.name.rpartition(".")[2])
    return f"{what} is {event.result:.6g} in {element}"
