"""A reading of a PyTorch function that was compared with the function itself.

Sizes are at least 2 while a function is traced, and a branch on a size being 1 is not seen. The function is therefore
run in float64 with every few dims at 1; where its formula does not hold there, that is a condition of the reading.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from lift import term as T
from lift.case import Case
from lift.domain import FLOAT64, Float64
from lift.errors import CaseError, Unsupported
from lift.reader import Reading
from lift.spec import Formula
from lift.term import Term

from .overflow import without_overflow
from .trials import Dims, fits

Function = Callable[..., Any]
Values = dict[str, np.ndarray]

ACCURATE = 1e-6  # relative to the largest element: both are float64, the function may have f32 constants
NOISE = 1e-12  # absolute: what float64 leaves of a difference of equal numbers
NUDGE = 1e-9  # relative change of inputs under which a well-conditioned element stays
ONES = 3  # dims at 1 together at most, except all


def checked(case: Case, fn: Function, seed: int = 0) -> Reading:
    """The reading of `fn`, with a condition for every set of dims that must not all be 1. Raises Unsupported where the
    reading fails, or is not what the function computes at a shape that meets its conditions."""
    from lift.reader import read_case
    from lift.shapes import choose

    reading = read_case(case, fn)
    shapes = choose(case, 2, seed)
    for dims in shapes:
        if (wrong := difference(case, fn, reading, dims, seed)) is not None:
            raise Unsupported(f"the reading of the reference of {case.name} is not what it computes", case.place, wrong)
    different: list[frozenset[str]] = []
    for names in _subsets(case.names):
        dims = {**shapes[0], **dict.fromkeys(names, 1)}
        if any(d <= names for d in different) or not fits(case, dims):
            continue
        if difference(case, fn, reading, dims, seed) is not None:
            different.append(names)
    apart = (T.make("or", T.const(False), *(T.make("lt", 1, T.size(n)) for n in sorted(names))) for names in different)
    return replace(reading, conditions=(*reading.conditions, *apart))


def _subsets(names: Sequence[str]) -> Iterator[frozenset[str]]:
    for k in dict.fromkeys((*range(1, min(ONES, len(names)) + 1), len(names))):
        yield from map(frozenset, combinations(names, k))


def difference(case: Case, fn: Function, reading: Reading, dims: Dims, seed: int) -> str | None:
    """Where the formulas are not what the function returns at these dims; None where they are, or need not be."""
    from lift.check import arguments, arrays

    if not all(holds(c, dims) for c in reading.conditions):
        return None
    args = arguments(case, dims, seed)
    try:
        expected = values(case, fn, args)
    except CaseError as error:
        return f"it raises: {error.why}"
    inputs = arrays(case, args)
    for f, name in zip(reading.formulas, named(reading.formulas, expected), strict=True):
        got = evaluated(f, inputs, dims)
        if (index := worst(got, expected[name], ACCURATE)) is None:
            continue
        if index and steady(case, fn, args, expected, seed)[name][index]:
            element = f"{name}{list(index)} is {expected[name][index]:.9g}, its formula {got[index]:.9g}"
            return f"{element} at {dict(dims)}"
        if not index:
            return f"{name} has shape {list(expected[name].shape)}, its formula {list(got.shape)} at {dict(dims)}"
    return None


def named(formulas: Sequence[Formula], expected: Mapping[str, Any]) -> list[str]:
    """The name in `expected` of each formula: written inputs by name, outputs by position."""
    written = {f.in_place for f in formulas if f.in_place}
    outputs = iter([n for n in expected if n not in written])
    return [f.in_place or next(outputs) for f in formulas]


def holds(condition: Term, dims: Dims) -> bool:
    """Whether a condition on dims is not false there."""
    from lift.fit import value

    return value(condition, dims) is not False


def evaluated(f: Formula, inputs: Mapping[str, np.ndarray], dims: Dims, arithmetic: Float64 = FLOAT64) -> np.ndarray:
    """The array of a formula, booleans and integers as numbers."""
    from lift.evaluate import evaluate

    with np.errstate(all="ignore"):
        return np.asarray(evaluate(f.term, f.axes, inputs, dims, arithmetic)).astype(np.float64)


def worst(got: np.ndarray, expected: np.ndarray, allowed: float) -> tuple[int, ...] | None:
    """The element that deviates most, relative to the largest; None if none by more than allowed, () for other
    shapes. Where `expected` is no number nothing is; infinities must be equal."""
    if got.shape != expected.shape:
        return ()
    error = deviation(got, expected)
    if not error.size or error.max() <= allowed:
        return None
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(error)), error.shape))


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


# ---- the function itself ---------------------------------------------------------------------------------------------


def values(case: Case, fn: Function, args: Mapping[str, Any], real: bool = True) -> Values:
    """What `fn` returns on these arguments without rounding to narrow types (or, not `real`, with it), by output name,
    and the tensors among its arguments that it changes, by theirs. Raises CaseError where it raises."""
    import torch

    from lift.capture import named_outputs
    from lift.check import _each

    given = {name: _each(v, torch.clone) for name, v in args.items()}
    before, tensors = case.named(args), case.named(given)
    returned = _called(case, fn, given, unrounded() if real else nullcontext())
    out = {name: _array(v) for name, v in named_outputs(returned).items()}
    changed = {n: x for n, x in tensors.items() if not torch.equal(x.nan_to_num(), before[n].nan_to_num())}
    return out | {n: _array(x) for n, x in changed.items()}


def _called(case: Case, fn: Function, given: Mapping[str, Any], precision: Any) -> Any:
    import torch

    try:
        with torch.random.fork_rng(devices=[]), precision:
            return fn(**given)
    except Exception as e:
        raise CaseError(f"the reference of {case.name} raised {type(e).__name__}", case.place, why=str(e)) from None


def _array(x: Any) -> np.ndarray:
    array: np.ndarray = x.detach().double().numpy().copy()
    return array


def unrounded() -> Any:
    """A context in which PyTorch makes float64 of every float type it is asked for: real numbers, as near as may
    be."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    class Unrounded(TorchDispatchMode):  # type: ignore[misc]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            wide = {
                k: torch.float64 if isinstance(v, torch.dtype) and v.is_floating_point else v
                for k, v in (kwargs or {}).items()
            }
            return func(*args, **wide)

    return Unrounded()


def steady(case: Case, fn: Function, args: Mapping[str, Any], expected: Values, seed: int) -> dict[str, np.ndarray]:
    """Which elements stay when every real input changes a little, without subnormal numbers, which have few digits, and
    with NaN for what overflows: the others tell nothing (ties, steps, 0 / 0, exp(-743) / exp(-743), 1 / exp(710))."""
    import torch

    from lift.check import _each

    def nudged(sign: int, noise: np.random.Generator, x: Any) -> Any:
        if not x.is_floating_point():
            return x
        change = sign * torch.from_numpy(noise.uniform(-NUDGE, NUDGE, tuple(x.shape)))
        return x.clone().copy_(x * (1 + change) + change * NUDGE)

    good = {n: np.ones(e.shape, bool) for n, e in expected.items()}
    with without_subnormals(), without_overflow():
        moved = values(case, fn, args)
        for n, e in expected.items():
            good[n] &= _stays(moved.get(n), e)
    for sign in (1, -1):  # of two equal numbers the first is larger once
        nudge = partial(nudged, sign, np.random.default_rng([seed, 7]))
        moved = values(case, fn, {name: _each(v, nudge) for name, v in args.items()})
        for n, e in expected.items():
            good[n] &= _stays(moved.get(n), e)
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


def _stays(moved: np.ndarray | None, expected: np.ndarray) -> np.ndarray:
    """Which elements are the same numbers; all if there is nothing to compare with."""
    if moved is None:
        return np.ones(expected.shape, bool)
    if moved.shape != expected.shape:
        return np.zeros(expected.shape, bool)
    same: np.ndarray = (deviation(moved, expected) <= ACCURATE) & ~np.isnan(moved)
    return same
