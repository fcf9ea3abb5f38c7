"""How kernels are tested usually: one allclose at one shape, or assert_close at a few fixed shapes, on normal inputs.

Both are kept as they are met in benchmarks and packages, with what they need granted: sizes that the case allows,
and a tolerance that the kernel itself meets.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from trilift.lift.cases.declaration import Case
from trilift.lift.errors import CaseError
from trilift.verify.runs.trials import Dims, fits

SQUARE = (128, 64, 256, 32, 16, 8, 4)  # every dim: the first that the case allows
FIXED = ((2, 2), (16, 16), (128, 128), (4, 1024), (5, 123))  # the last dim, and all others before it
ONE = (1e-3, 1e-2)  # rtol = atol of allclose
SEVERAL = (None, 1e-4, 1e-3, 1e-2)  # of assert_close; None: its own for the dtype
Values = list[torch.Tensor]


@dataclass(frozen=True, slots=True, eq=False)
class Check:
    """One call and what it should give, within rtol = atol = `tolerance`."""

    case: Case
    dims: Dims
    seed: int
    expected: Values
    tolerance: float | None

    def passes(self) -> bool:
        """Whether the kernel gives it, as it runs now; False where the call raises."""
        try:
            return _close(results(self.case, self.dims, self.seed), self.expected, self.tolerance)
        except Exception:
            return False


@dataclass(frozen=True, slots=True)
class Usual:
    """Both ways; no checks where the case allows none of the shapes."""

    one: tuple[Check, ...]
    several: tuple[Check, ...]

    def allclose(self) -> bool:
        """Whether one allclose tells the kernel that runs now from the original."""
        return not all(c.passes() for c in self.one)

    def fixed(self) -> bool:
        """Whether the fixed shapes do."""
        return not all(c.passes() for c in self.several)


def usual(case: Case, seed: int = 0) -> Usual:
    """The checks of a case, made on the original. Launches are somebody's who executes them."""
    squares = (d for n in SQUARE for d in sized(case, n, n, seed))
    one = next((c for d in squares if (c := check(case, d, seed, ONE)) is not None), None)
    several = (check(case, d, seed, SEVERAL) for a, b in FIXED for d in sized(case, a, b, seed))
    return Usual((one,) if one else (), tuple(c for c in several if c is not None))


def sized(case: Case, most: int, last: int, seed: int) -> Iterator[Dims]:
    """The dims at these sizes, if the case allows them; scalars as a case draws them."""
    from trilift.lift.cases.shapes import choose

    try:
        base = choose(case, 1, seed)[0]
    except CaseError:
        return
    dims = {**base, **dict.fromkeys(case.names, most), **dict.fromkeys(case.names[-1:], last)}
    if fits(case, dims):
        yield dims


def check(case: Case, dims: Dims, seed: int, tolerances: Sequence[float | None]) -> Check | None:
    """Against the reference at the tightest tolerance that the original meets, else against the original itself; None
    where it raises."""
    try:
        mine = results(case, dims, seed)
    except Exception:
        return None
    if case.reference.fn is not None:
        theirs = referenced(case, case.reference.fn, dims, seed, len(mine))
        for tolerance in tolerances if theirs is not None else ():
            if _close(mine, theirs or [], tolerance):
                return Check(case, dims, seed, theirs or [], tolerance)
    return Check(case, dims, seed, mine, tolerances[0])


def results(case: Case, dims: Dims, seed: int) -> Values:
    """The tensors that one call returns, then those that it was given; memory that nobody wrote is NaN."""
    return _called(case, case.fn, dims, seed)


def referenced(case: Case, fn: Callable[..., Any], dims: Dims, seed: int, count: int) -> Values | None:
    """The same of the reference; None where it raises or returns another number of tensors."""
    try:
        found = _called(case, fn, dims, seed)
    except Exception:
        return None
    return found if len(found) == count else None


def _called(case: Case, fn: Callable[..., Any], dims: Dims, seed: int) -> Values:
    from trilift.lift.capture.run import named_outputs

    args = case.sample(dims, np.random.default_rng(seed))
    with torch.random.fork_rng(devices=[]), poisoned():
        torch.manual_seed(seed)
        returned = fn(**args)
    given = case.named(args).values()
    return [copy.deepcopy(x.detach()) for x in (*named_outputs(returned).values(), *given)]


@contextmanager
def poisoned() -> Iterator[None]:
    """torch.empty gives NaN inside."""
    before, warns = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before, warn_only=warns)


def _close(got: Values, expected: Values, tolerance: float | None) -> bool:
    """torch.testing.assert_close of all; with a tolerance it is what torch.allclose says."""
    if len(got) != len(expected):
        return False
    near: dict[str, Any] = {} if tolerance is None else {"rtol": tolerance, "atol": tolerance}
    try:
        for x, y in zip(got, expected, strict=True):
            torch.testing.assert_close(x, y, equal_nan=True, check_dtype=False, check_stride=False, **near)
    except AssertionError:
        return False
    return True
