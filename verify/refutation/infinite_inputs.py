"""Inputs that may hold infinities and NaN (`x="f32[N] any"`): a case is proved for finite numbers, run on others, then
proved for all.

Where a run gives NaN or an infinity that the target does not, or a number in place of one, the case is REFUTED. A proof
for all numbers reads the elements of these inputs as `given(x[i])`, to which laws of real numbers do not apply.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from trilift.lift.cases.declaration import Case, Spec
from trilift.lift.errors import CaseError, TriliftError
from trilift.lift.replay.check import REFERENCE
from trilift.lift.replay.dtype_sight import as_seen, tolerance
from trilift.lift.replay.execute import results
from trilift.lift.replay.reference import deviation
from trilift.lift.runtime.budget import BUDGETS, stage

from ..model.verdict import Counterexample
from ..runs.adversary import arguments, arrays
from ..runs.goals import Targets
from ..runs.trials import Dims, blocks_of, boundary_shapes, fits
from .replay_script import Stored, replay_script
from .search import Failure, Question, Skipped, executed, expected_at, launched

if TYPE_CHECKING:
    import torch

A = TypeVar("A")
SHAPES = 3  # at the edges of blocks
SHARES = (0.1, 0.4, 1.0)  # of elements that are no finite numbers
SINGLE = 3e38  # the largest number of single precision, about
RELATIVE = 1e-3  # error of a finite element that a script still accepts


def finite(case: Case) -> Case:
    """The case of finite numbers."""

    def one(s: object) -> object:
        if isinstance(s, list | tuple):
            return type(s)(map(one, s))
        return replace(s, unbounded=False) if isinstance(s, Spec) else s

    return replace(case, params={n: one(s) for n, s in case.params.items()})


def counterexample(case: Case, goal: Targets, seed: int = 0) -> Counterexample | None:
    """A run on infinities or NaN on which an output is not what a PyTorch function gives; None where none shows it. A
    formula refutes none: its max(x, 0) stands for a maximum that passes NaN by, and for one that returns it."""
    if goal.fn is None:
        return None
    question = Question(case, goal)
    try:
        with stage("runs on infinities", BUDGETS.search.beside_steps) as meter:
            for dims in _shapes(case, seed):
                for k, share in enumerate(SHARES):
                    if meter.exhausted:
                        return None
                    found = _told(question, dims, seed + k, share)
                    if found is not None:
                        return found
    except TriliftError:
        return None
    return None


def _shapes(case: Case, seed: int) -> Iterator[Dims]:
    """A small shape, the one with all dims 1, and some at the edges of blocks."""
    from trilift.lift.cases.shapes import choose

    base = choose(case, 1, seed)[0]
    ones = {**base, **dict.fromkeys(case.names, 1)}
    yield from (d for d in (base, ones) if fits(case, d))
    trace = launched(case, base, seed)
    yield from islice(boundary_shapes(case, base, blocks_of(trace) if trace is not None else []), SHAPES)


def _told(question: Question, dims: Dims, seed: int, share: float) -> Counterexample | None:
    case, goal = question.case, question.goal
    trace = launched(case, dims, seed)
    if trace is None:
        return None
    args = as_seen(case, goal.fn, with_infinities(case, arguments(case, dims, seed), seed, share))
    inputs = arrays(case, args)
    try:
        expected = expected_at(question, args, inputs, dims)
    except (CaseError, TriliftError):
        return None
    got = executed(trace, inputs)
    if isinstance(got, Failure | Skipped):
        return None
    found = {**{x: got[n] for n, (_, x) in results(trace).items() if x is not None and n in got}, **got}
    allowed = tolerance(case, goal.fn, REFERENCE)
    for name in goal.formulas:
        a, b = found.get(name), expected.get(name)
        if a is None or b is None or a.shape != b.shape or not (wrong := differs(a, b, allowed)).any():
            continue
        index = tuple(int(i) for i in np.argwhere(wrong)[0])
        told = Counterexample(dict(dims), seed, 0, name, index, float(a[index]), float(b[index]))
        words = "inputs with infinities and NaN"
        return replace(told, replay=replay_script(case, told, goal.against, Stored(args, words, RELATIVE)))
    return None


def with_infinities(case: Case, args: dict[str, A], seed: int, share: float) -> dict[str, A]:
    """The arguments, with infinities of either sign and NaN as this share of the elements that may be such."""
    rng = np.random.default_rng([seed, 11])
    for name, x in case.named(args).items():
        if case.tensors[name].unbounded:
            _sprinkle(x, rng, share)
    return args


def _sprinkle(x: torch.Tensor, rng: np.random.Generator, share: float) -> None:
    import torch

    shape = tuple(x.shape)
    drawn = rng.choice(np.array([np.nan, np.inf, -np.inf]), shape)
    kept = rng.random(shape) >= share
    x.copy_(torch.from_numpy(np.asarray(np.where(kept, x.double().numpy(), drawn))))


def differs(got: np.ndarray, expected: np.ndarray, allowed: float) -> np.ndarray:
    """Which elements differ: NaN is equal to NaN alone, an infinity to itself."""
    got, expected = np.asarray(got, np.float64), np.asarray(expected, np.float64)
    both = np.isfinite(got) & np.isfinite(expected)
    other = np.isnan(got) != np.isnan(expected)
    infinite = ~both & ~np.isnan(got) & ~np.isnan(expected) & (got != expected)
    rounded = np.isfinite(expected) & (np.abs(expected) > SINGLE)  # of float64 alone
    error = deviation(got, np.where(both, expected, np.nan))
    wrong: np.ndarray = ~rounded & (other | infinite) | (both & (error > allowed))
    return wrong


__all__ = ["counterexample", "differs", "finite", "with_infinities"]
