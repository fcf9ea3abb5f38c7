"""How long functions take on a device: medians with quantiles, outputs compared before and after.

    warm    one set of inputs again and again: what fits stays in the L2 cache
    cold    sets of inputs in turn, together more than twice the L2 cache

The calls of one sample are captured as one CUDA graph, so that launches cost what they cost there and no call waits for
Python. A function that cannot be captured is called as it is, and the timing says so. The outputs are compared with a
float64 computation before the loop and after it: a function with wrong outputs gets no times."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np
import torch

from trilift.lift.cases.declaration import Case

Function = Callable[..., Any]
Inputs = tuple[Any, ...]
WARM_UP = 3  # calls before anything is timed
CALLS = 20  # in one sample, where the cache stays warm
SETS = 64  # of inputs, at most
SAMPLES = 50
SPREAD = 0.3  # of inputs: what is not stabilised does not overflow
RELATIVE_ERRORS = {torch.float16: 2e-2, torch.bfloat16: 6e-2, torch.float32: 2e-3, torch.float64: 1e-9}  # by norms


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds per call: the median and the quantiles at a fifth and four fifths of the samples. `captured`: as a CUDA
    graph; `sets`: of inputs that took turns."""

    median: float
    low: float
    high: float
    samples: int
    sets: int
    captured: bool


@dataclass(frozen=True, slots=True)
class Written:
    """The elements written in place: of the input at `position` the elements of a mask, of the same shape, as
    numbers."""

    position: int
    mask: torch.Tensor
    values: torch.Tensor


Wanted = Sequence[torch.Tensor | Written]  # what is returned, and then what is written


@dataclass(frozen=True, slots=True)
class Measured:
    """`before`, `after`: the largest relative error of an output by norms, before and after the timing; `right`:
    whether both are within tolerance; timings are None where it is not, or where the function raised (`why`)."""

    before: float | None
    after: float | None
    right: bool
    cold: Timing | None
    warm: Timing | None
    why: str = ""

    def record(self) -> dict[str, Any]:
        return asdict(self)


class Device(Protocol):
    """The arguments of functions. `cache`: bytes of the last cache."""

    cache: int

    def captured(self, calls: Sequence[Callable[[], Any]]) -> Callable[[], Any] | None:
        """All calls as one, None where they cannot be captured."""

    def seconds(self, run: Callable[[], Any]) -> float:
        """How long one run takes."""


class Cuda:
    """The current CUDA device: events around a replay of a graph."""

    def __init__(self) -> None:
        self.properties = torch.cuda.get_device_properties(torch.cuda.current_device())
        self.cache = int(self.properties.L2_cache_size)

    def captured(self, calls: Sequence[Callable[[], Any]]) -> Callable[[], Any] | None:
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph):
                kept = [call() for call in calls]
        except Exception:  # PyTorch raises many kinds where an operation cannot be captured
            torch.cuda.synchronize()
            return None

        def replay() -> Any:
            graph.replay()
            return kept

        return replay

    def seconds(self, run: Callable[[], Any]) -> float:
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        run()
        end.record()
        torch.cuda.synchronize()
        return float(start.elapsed_time(end)) / 1e3


class Host:
    """The processor: for tests of the measurement, and of functions that launch nothing."""

    cache = 1 << 20

    def captured(self, calls: Sequence[Callable[[], Any]]) -> Callable[[], Any] | None:
        return None

    def seconds(self, run: Callable[[], Any]) -> float:
        start = time.perf_counter()
        run()
        return time.perf_counter() - start


def measured(f: Function, sets: Sequence[Inputs], wanted: Wanted, device: Device, samples: int = SAMPLES) -> Measured:
    """The time of a function, and how far its outputs are from `wanted`, which belongs to the first set. It never
    raises for what the function does."""
    found = checked(f, sets[0], wanted)
    before = found.before
    if not found.right:
        return found
    try:
        cold = timing(f, sets, device, samples)
        warm = timing(f, [sets[0]] * CALLS, device, samples)
        after = error(f(*sets[0]), wanted, sets[0])
    except Exception as e:  # a rival that does not run is a row of the table, not the end of it
        return _failed(e)
    fine = right(after, wanted)
    why = "" if fine else "its outputs differ after the timing"
    return Measured(before, after, fine, cold if fine else None, warm if fine else None, why)


def checked(f: Function, inputs: Inputs, wanted: Wanted) -> Measured:
    """How far the outputs are from `wanted`, without times. It never raises for what the function does."""
    try:
        before = error(f(*inputs), wanted, inputs)
    except Exception as e:
        return _failed(e)
    fine = right(before, wanted)
    return Measured(before, None, fine, None, None, "" if fine else "its outputs differ")


def _failed(e: Exception) -> Measured:
    return Measured(None, None, False, None, None, f"{type(e).__name__}: {e}".splitlines()[0])


def timing(f: Function, sets: Sequence[Inputs], device: Device, samples: int) -> Timing:
    """Seconds per call where the sets of inputs take turns."""
    for x in sets[:WARM_UP]:
        f(*x)
    calls = [lambda x=x: f(*x) for x in sets]
    whole = device.captured(calls)

    def each() -> None:
        for call in calls:
            call()

    run = whole or each
    for _ in range(WARM_UP):
        run()
    found = sorted(device.seconds(run) / len(calls) for _ in range(samples))
    distinct = len({id(x) for x in sets})
    at = lambda q: found[min(len(found) - 1, int(q * len(found)))]  # noqa: E731
    return Timing(statistics.median(found), at(0.2), at(0.8), samples, distinct, whole is not None)


def turns(inputs: Inputs, device: Device) -> list[Inputs]:
    """Copies of the inputs, together more than twice the cache."""
    size = sum(x.numel() * x.element_size() for x in inputs if isinstance(x, torch.Tensor))
    count = min(SETS, max(2, math.ceil(2 * device.cache / max(1, size)) + 1))
    copies = [tuple(x.clone() if isinstance(x, torch.Tensor) else x for x in inputs) for _ in range(count - 1)]
    return [inputs, *copies]


def inputs(case: Case, sizes: Mapping[str, int], where: str, seed: int = 0) -> tuple[Any, ...]:
    """Arguments of the case in order, on a device."""
    given = case.sample(sizes, np.random.default_rng(seed))
    scaled = lambda x: (x * SPREAD).contiguous().to(where) if isinstance(x, torch.Tensor) else x  # noqa: E731
    return tuple(scaled(x) for x in given.values())


def wanted(case: Case, xs: tuple[Any, ...]) -> list[torch.Tensor | Written]:
    """The outputs in float64, of the dtype that they have, and what the inputs are that are written in place."""
    f = case.reference.fn or case.fn
    copy = lambda x: x.to(torch.float64 if x.is_floating_point() else x.dtype, copy=True)  # noqa: E731
    wide = [copy(x) if isinstance(x, torch.Tensor) else x for x in xs]
    found = f(*wide)
    dtypes = {x.dtype for x in xs if isinstance(x, torch.Tensor)}
    narrow = min(dtypes, key=lambda d: d.itemsize)
    outputs = [y.to(narrow) if y.is_floating_point() else y for y in _outputs(found)]
    return [*outputs, *(w for k in range(len(xs)) if (w := _written(k, xs[k], wide[k])) is not None)]


def _written(position: int, x: Any, after: Any) -> Written | None:
    mask = after != x if isinstance(x, torch.Tensor) else None
    return Written(position, mask, after[mask].to(x.dtype)) if mask is not None and mask.any() else None


def _outputs(found: Any) -> list[torch.Tensor]:
    return [] if found is None else [found] if isinstance(found, torch.Tensor) else list(found)


def error(found: Any, wanted: Wanted, xs: Inputs = ()) -> float:
    """The largest |found - wanted| / |wanted| of an output, in float64; infinite where there is a NaN. `xs`: the
    inputs, of which some were written."""
    outputs = _outputs(found)
    if len(outputs) != sum(isinstance(y, torch.Tensor) for y in wanted):
        return math.inf
    outputs += [xs[y.position][y.mask] for y in wanted if isinstance(y, Written)]
    worst = 0.0
    for x, y in zip(outputs, map(_values, wanted), strict=True):
        if x.shape != y.shape:
            return math.inf
        distance = torch.linalg.vector_norm(x.double().cpu() - y.double().cpu())
        e = float(distance / torch.linalg.vector_norm(y.double().cpu()).clamp_min(torch.finfo(torch.float64).tiny))
        worst = max(worst, e if math.isfinite(e) else math.inf)
    return worst


def _values(y: torch.Tensor | Written) -> torch.Tensor:
    return y.values if isinstance(y, Written) else y


def right(e: float, wanted: Wanted) -> bool:
    """Whether an error is one of rounding."""
    return e <= max(RELATIVE_ERRORS.get(_values(y).dtype, 0.0) for y in wanted)


def present() -> str:
    """The kind of device that can be timed, "" where there is none."""
    return "cuda" if torch.cuda.is_available() else ""


def device(kind: str) -> Device:
    """The device of a kind as PyTorch names it."""
    return Cuda() if kind == "cuda" else Host()
