"""The outputs of a PyTorch function in float64, and which of their elements are informative: it is run once more with
inputs that are a little different, and with NaN for what overflows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from typing import Any

import numpy as np

from ..cases.declaration import Case
from ..errors import CaseError
from ..pytorch.symbols import in_any_memory
from ..terms.overflow import without_overflow
from .dtype_sight import as_declared, narrow_comparisons, sees_dtypes
from .dtype_sight import each as each
from .dtype_sight import unrounded as unrounded

Function = Callable[..., Any]
Values = dict[str, np.ndarray]

ACCURATE = 1e-6  # relative to the largest element: both are float64, the function may have f32 constants
NOISE = 1e-12  # absolute: what float64 leaves of a difference of equal numbers
NUDGE = 1e-9  # relative change of inputs under which a well-conditioned element stays


def values(case: Case, fn: Function, args: Mapping[str, Any], real: bool = True) -> Values:
    """The outputs of `fn` on these arguments without rounding to narrow types (or, not `real`, with it), by output
    name, and the tensors among its arguments that it changes, by theirs. Raises CaseError where it raises."""
    out, changed = returned(case, fn, args, real)
    return out | changed


def formed(fn: Function, args: Mapping[str, object]) -> None:
    """Calls `fn` on tensors of these shapes without contents, as far as it goes: for the way that it takes."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    with suppress(Exception), FakeTensorMode(allow_non_fake_inputs=True) as mode:
        fn(**{n: each(v, mode.from_tensor) for n, v in args.items()})


def returned(case: Case, fn: Function, args: Mapping[str, Any], real: bool = True) -> tuple[Values, Values]:
    """The parts of `values`: what `fn` returns, and what it changes."""
    import torch

    from ..capture.run import named_outputs

    if sees_dtypes(case, fn):
        args, real = as_declared(case, args), False
    given = {name: each(v, torch.clone) for name, v in args.items()}
    before, tensors = case.named(args), case.named(given)
    out = _called(case, fn, given, unrounded(narrow_comparisons(case, fn)) if real else nullcontext())
    changed = {n: x for n, x in tensors.items() if not torch.equal(x.nan_to_num(), before[n].nan_to_num())}
    outputs = named_outputs(out, case.tensors)
    return {n: _array(v) for n, v in outputs.items()}, {n: _array(x) for n, x in changed.items()}


def _called(case: Case, fn: Function, given: Mapping[str, Any], precision: Any) -> Any:
    import torch

    from ..pytorch.pretended_device import on_gpu

    anyhow = in_any_memory() if any(s.strided for s in case.tensors.values()) else nullcontext()
    try:
        with torch.random.fork_rng(devices=[]), precision, anyhow, on_gpu():
            return fn(**given)
    except (Exception, SystemExit) as e:
        zero = 'say of which numbers a divisor is, e.g. b="i32[N] > 0"' if str(e) == "ZeroDivisionError" else ""
        raise CaseError(f"the reference of {case.name} raised {type(e).__name__}", case.place, str(e), zero) from None


def _array(x: Any) -> np.ndarray:
    array: np.ndarray = x.detach().double().numpy().copy()
    return array


def steady(case: Case, fn: Function, args: Mapping[str, Any], expected: Values, seed: int) -> dict[str, np.ndarray]:
    """Which elements stay when every real input changes a little, without subnormal numbers, which have few digits, and
    with NaN for what overflows: the others are uninformative (ties, steps, 0 / 0, exp(-743) / exp(-743), 1 /
    exp(710))."""
    import torch

    def changed(sign: int, noise: np.random.Generator, x: Any) -> Any:
        if not x.is_floating_point():
            return x
        moved = torch.from_numpy(nudged(x.double().numpy(), sign, noise))
        if id(x) in limited and x.numel():
            moved = moved.clamp(x.double().min(), x.double().max())
        return x.clone().copy_(moved)

    limits = {n for n, s in case.tensors.items() if s.positive or s.low is not None or s.high is not None}
    limited = {
        id(x) for n, x in case.named(args).items() if n in limits
    }  # of which the function may refuse other numbers
    good = {n: np.ones(e.shape, bool) for n, e in expected.items()}
    if sees_dtypes(case, fn):
        return good  # a small change is lost in its dtype
    with without_subnormals(), without_overflow():
        moved = values(case, fn, args)
        for n, e in expected.items():
            good[n] &= stays(moved.get(n), e)
    for sign in (1, -1):  # of two equal numbers the first is larger once
        nudge = partial(changed, sign, np.random.default_rng([seed, 7]))
        moved = values(case, fn, {name: each(v, nudge) for name, v in args.items()})
        for n, e in expected.items():
            good[n] &= stays(moved.get(n), e)
    return good


@contextmanager
def without_subnormals() -> Iterator[None]:
    """Subnormal numbers are 0, in PyTorch and in numpy, where the processor can."""
    import torch

    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(False)


def nudged(x: np.ndarray, sign: int, noise: np.random.Generator) -> np.ndarray:
    """x, a little different: relative to every element, and the zeros too."""
    change = sign * noise.uniform(-NUDGE, NUDGE, x.shape)
    out: np.ndarray = x * (1 + change) + change * NUDGE
    return out


def stays(moved: np.ndarray | None, expected: np.ndarray) -> np.ndarray:
    """Which elements are the same numbers; all if there is nothing to compare with."""
    if moved is None:
        return np.ones(expected.shape, bool)
    if moved.shape != expected.shape:
        return np.zeros(expected.shape, bool)
    same: np.ndarray = (deviation(moved, expected) <= ACCURATE) & ~np.isnan(np.asarray(moved, np.float64))
    return same


def deviation(got: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """|got - expected| of each element in units of the largest expected number, or of 1; inf where one is not
    finite."""
    got, expected = np.asarray(got, np.float64), np.asarray(expected, np.float64)
    finite = np.isfinite(expected)
    scale = float(np.max(np.abs(expected[finite]), initial=0.0)) or 1.0
    with np.errstate(all="ignore"):
        error = np.where(finite & np.isfinite(got), np.abs(got - expected) / scale, np.inf)
        same = (got == expected) | np.isnan(expected) | (np.abs(got - expected) <= NOISE)
    return np.where(same, 0.0, error)
