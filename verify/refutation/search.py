"""The search for a counterexample: the kernel itself, run in float64, beside what it should compute.

Memory is NaN-poisoned and the buffers lie far apart: a lane that reaches the output undefined, and an access that
leaves its tensor, are failures too. Shapes are those that a proof could not exclude, the edges of blocks, then mixed
ones; inputs are adversarial. A counterexample is made small and run again from scratch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice, product
from typing import Any

import numpy as np

from trilift.lift.capture.trace import Launch, TorchOp, Trace
from trilift.lift.cases.declaration import Case
from trilift.lift.errors import CaseError, OutOfBounds, Place, TriliftError, Unsupported
from trilift.lift.interpreter.interpret import Run
from trilift.lift.pytorch.symbolic_tensor import type_of_name
from trilift.lift.replay.check import REFERENCE, ROUNDED, by_output, right_where_rounded
from trilift.lift.replay.dtype_sight import as_seen, digits_of, tolerance
from trilift.lift.replay.execute import results
from trilift.lift.replay.reference import deviation, steady, values, without_subnormals
from trilift.lift.runtime import budget
from trilift.lift.runtime.budget import BUDGETS, Meter, OutOfSteps, limited, stage
from trilift.lift.terms import construct as T
from trilift.lift.terms.overflow import WithoutOverflow
from trilift.lift.terms.spec import Formula
from trilift.lift.ttir.ir import Module

from ..model.verdict import Counterexample
from ..runs.adversary import SEARCHED, arguments, arrays, at_edges, row
from ..runs.caller_memory import is_untouched
from ..runs.goals import Targets, targets
from ..runs.isolated_buffers import apart, holds_pointers
from ..runs.layouts import Laid, numbers
from ..runs.readings import evaluated, holds, met, without_zeros
from ..runs.trials import RUN_PROGRAMS, Dims, blocks_of, boundary_shapes, fits, mixed_shapes
from .replay_script import kept_arguments, replay_script

__all__ = ["Failure", "Searched", "attempt", "expected_at", "replay_script", "search"]

SHAPES = 24  # at the edges of blocks
MIXED = 400
SEARCH_ELEMENTS = 1_000_000  # of the largest input of one run
LARGE_PROGRAMS, LARGE_ELEMENTS = 70_000, 5_000_000  # of a hint's run that is made once, after all others
HALF = 2.0**-24  # how far a constant in f32 may be from its number, relative
CONFIGS = 8  # autotune configurations tried at every shape, in turn

Modules = Callable[[Launch], Module]


@dataclass(frozen=True, slots=True)
class Failure:
    """The failure of one run: the worst element, or an access out of bounds (`output` is "")."""

    output: str
    index: tuple[int, ...]
    got: float
    expected: float
    why: str = ""


@dataclass(frozen=True, slots=True)
class Passed:
    """Nothing went wrong; `compared` elements were compared."""

    compared: int
    trace: Trace


@dataclass(frozen=True, slots=True)
class Skipped:
    """The run decides nothing: the host function or the reference refuses the shape, or it cannot be executed.
    `large`: it may be, with more steps, programs or elements."""

    why: str
    large: bool = False


Execute = Callable[[Trace, Mapping[str, np.ndarray]], "Mapping[str, np.ndarray] | Failure | Skipped"]


@dataclass(frozen=True, slots=True)
class Question:
    """The case, what its outputs should be, and the modules that stand in for those of its launches. `but`: outputs
    that are not compared; `only`: the output and the element that are, known to differ without rounding, None for all
    that rounding cannot change; `large`: a run may have LARGE_PROGRAMS and LARGE_ELEMENTS."""

    case: Case
    goal: Targets
    module_of: Modules | None = None
    but: frozenset[str] = frozenset()
    only: tuple[str, tuple[int, ...]] | None = None
    large: bool = False


@dataclass(frozen=True, slots=True)
class Searched:
    """The smallest input `found` on which an output is not what it should be; without one, the first hint at which
    nothing could be compared for its size or for want of steps, and why ("": all hints were run)."""

    found: Counterexample | None
    left: str = ""


def search(
    case: Case,
    goal: Targets | None = None,
    hints: Sequence[Dims] = (),
    seed: int = 0,
    steps: int = BUDGETS.search.steps,
    configs: Sequence[int] | None = None,
    module_of: Modules | None = None,
    but: Collection[str] = (),
) -> Searched:
    """The smallest input found on which an output is not what `goal` says; none found in so many steps proves nothing.
    `hints`: dims to try first, missing ones are added; one whose run is large is run once, when all others are done.
    `configs`: autotune configurations, all by default. `but`: outputs that are not looked at. Raises what `targets`
    raises."""
    question = Question(case, goal or targets(case), module_of, frozenset(but))
    hinted = _Hinted(case, hints, seed, configs)
    with stage("search for a counterexample", steps) as meter:
        for dims, at, config in runs(case, hinted.dims, seed, configs):
            if meter.exhausted:
                break
            result = attempt(question, dims, at, config)
            hinted.ran(dims, config, result)
            if isinstance(result, Failure):
                return Searched(_made_small(question, dims, at, config, result, meter))
    return _at_large(replace(question, large=True), hinted, seed, steps)


class _Hinted:
    """Which hints were run under each configuration, and which are large."""

    def __init__(self, case: Case, hints: Sequence[Dims], seed: int, configs: Sequence[int] | None) -> None:
        from trilift.lift.cases.shapes import choose

        base = choose(case, 1, seed)[0] if hints else {}
        self.dims = [d for h in hints if case.holds(d := {**base, **h})]
        self.large: list[tuple[Dims, int]] = []
        self._open: list[tuple[Dims, int]] = [(d, c) for d in self.dims for c in tried_configs(case, base, configs)]

    def ran(self, dims: Dims, config: int, result: Failure | Passed | Skipped) -> None:
        """Takes note of a run."""
        if (dims, config) in self._open:
            self._open.remove((dims, config))
            if isinstance(result, Skipped) and result.large:
                self.large.append((dims, config))

    @property
    def left(self) -> str:
        """The first hint that was not run."""
        return f"{words(self._open[0][0])} was not run: the steps of the search ran out" if self._open else ""


def search_at(
    case: Case, goal: Targets, shapes: Sequence[Dims], seeds: Iterable[int], steps: int
) -> Counterexample | None:
    """A counterexample at one of these dims, which assign all, with the numbers of one of these seeds; runs may be
    large."""
    question, execute = Question(case, goal, large=True), partial(executed, steps=steps)
    with stage("search at likely inputs", steps) as meter:
        for at, dims in product(seeds, shapes):
            if meter.exhausted:
                return None
            if isinstance(result := attempt(question, dims, at, 0, execute), Failure):
                return _made_small(question, dims, at, 0, result, meter)
    return None


def tried_configs(case: Case, dims: Dims, configs: Sequence[int] | None) -> list[int]:
    """The autotune configurations under which hints are run; `configs`: of these."""
    first = launched(case, dims) if configs is None and dims else None
    every = configs if configs is not None else range(first.configs if first is not None else 1)
    return list(every)[:CONFIGS]


def _at_large(question: Question, hinted: _Hinted, seed: int, steps: int) -> Searched:
    """The runs at large hints, one under each configuration that makes them large."""
    left = hinted.left
    execute = partial(executed, steps=BUDGETS.run.large_steps)
    at = len(SEARCHED) * (seed + 1)
    with stage("search at large shapes", min(10 * steps, BUDGETS.search.large_steps)) as meter:
        for dims, config in hinted.large:
            late = Skipped("the steps of the search ran out", True)
            result = late if meter.exhausted else attempt(question, dims, at, config, execute)
            if isinstance(result, Failure):
                return Searched(found_at(question, dims, at, config, result))
            if isinstance(result, Skipped) and result.large:
                left = left or f"{words(dims)} was not run: {result.why}"
    return Searched(None, left)


def words(dims: Dims) -> str:
    """M = 65536, N = 1"""
    return ", ".join(f"{n} = {v}" for n, v in dims.items())


def _made_small(
    question: Question, dims: Dims, seed: int, config: int, failure: Failure, meter: Meter
) -> Counterexample:
    """The failure of this run, at smaller dims where it is found there."""
    small = _shrunk(question, dict(dims), seed, config, meter)
    again = attempt(question, small, seed, config)
    if isinstance(again, Failure):
        return found_at(question, small, seed, config, again)
    return found_at(question, dims, seed, config, failure)


def found_at(question: Question, dims: Dims, seed: int, config: int, f: Failure) -> Counterexample:
    """The failure of a run as a counterexample, with a script that shows it."""
    edges, laid = at_edges(question.case, seed), isinstance(question.case, Laid)
    placed = numbers(question.case, dims, seed) if laid else {}
    args = kept_arguments(question.case, dims, seed, question.goal.owed)
    made = partial(Counterexample, why=f.why, edges=edges, strides=placed, arguments=args)
    made = partial(made, place=_kernel_place(question, dims, seed, config))
    found = made(dict(dims), seed, config, f.output, f.index, f.got, f.expected)
    if question.module_of is not None:
        return found
    goal = question.goal
    return replace(found, replay=replay_script(question.case, found, goal.against, owed=goal.owed))


def _kernel_place(question: Question, dims: Dims, seed: int, config: int) -> Place | None:
    """Where the kernel stands that the host function launches last at these dims: another than elsewhere, maybe."""
    trace = _trace(question.case, dims, config, seed, question.large)
    if isinstance(trace, Skipped) or not trace.launches:
        return None
    return Place(trace.launches[-1].file, trace.launches[-1].line)


# ---- which runs ------------------------------------------------------------------------------------------------------


def runs(
    case: Case, hints: Sequence[Dims], seed: int, configs: Sequence[int] | None
) -> Iterator[tuple[Dims, int, int]]:
    """(dims, seed, configuration): every shape with random inputs and with those of one other kind in turn, under one
    configuration after the other; `hints`, which assign all dims, with all of them."""
    from trilift.lift.cases.shapes import choose

    base = choose(case, 2, seed)
    first = launched(case, base[0])
    tried = list(configs if configs is not None else range(first.configs if first is not None else 1))
    blocks = blocks_of(first) if first is not None else []
    kinds = len(SEARCHED)
    rounded = [kinds * (seed + 1) + k for k in range(kinds)]  # one seed of each kind, random numbers first
    yield from ((hint, s, c) for s in rounded for c in tried[:CONFIGS] for hint in hints)
    ones = {**base[0], **dict.fromkeys(case.names, 1)}
    edges = chain([base[0], ones] if fits(case, ones) else [base[0]], boundary_shapes(case, base[0], blocks), base[1:])
    near = sorted(islice(edges, SHAPES), key=lambda d: sum(math.prod(case.shape(n, d)) for n in case.tensors))
    shapes = chain(near, islice(mixed_shapes(case, base[0], blocks, seed), MIXED))
    for k, dims in enumerate(shapes):
        config = tried[k % len(tried)]
        yield dims, rounded[0] + kinds * k, config
        yield dims, rounded[1 + k % (kinds - 1)] + kinds * k, config
        if k < 2:
            yield from ((dims, rounded[0], c) for c in tried[:CONFIGS] if c != config)


# ---- one run ---------------------------------------------------------------------------------------------------------


def attempt(
    question: Question, dims: Dims, seed: int, config: int, execute: Execute | None = None
) -> Failure | Passed | Skipped:
    """The kernel and its target at these dims, on the inputs of the seed. `execute`: another way to run a trace."""
    case = question.case
    trace = _trace(case, dims, config, seed, question.large)
    if isinstance(trace, Skipped):
        return trace
    trace = _substituted(trace, question.module_of)
    args = without_zeros(case, question.goal.owed, arguments(case, dims, seed))
    args = as_seen(case, question.goal.fn, args)
    inputs = arrays(case, args)
    if not met(question.goal.owed, inputs, dims):
        return Skipped("the contract excludes integers that do not fit their dtypes")
    try:
        expected = expected_at(question, args, inputs, dims)
    except (CaseError, Unsupported) as error:
        return Skipped(str(error))
    budget.count("comparison")
    got = (execute or executed)(trace, inputs)
    if isinstance(got, Failure | Skipped):
        return got
    sure = {n: _sure(e, seed) for n, e in expected.items()}
    return _compared(question, trace, args, inputs, got, sure, row(seed).name)


def launched(case: Case, dims: Dims, seed: int = 0) -> Trace | None:
    """The launches at these dims under the first configuration, None where there are none or too many."""
    found = _trace(case, dims, 0, seed)
    return None if isinstance(found, Skipped) else found


def _trace(case: Case, dims: Dims, config: int, seed: int = 0, large: bool = False) -> Trace | Skipped:
    """The launches at these dims."""
    from trilift.lift.capture.run import capture
    from trilift.lift.cases.shapes import elements

    if (n := elements(case, dims)) > (LARGE_ELEMENTS if large else SEARCH_ELEMENTS):
        return Skipped(f"an input has {n} elements", True)
    try:
        trace = capture(case, dims, config=config, seed=seed)
    except (CaseError, Unsupported):
        return Skipped("the host function refuses these dims")
    if trace.another:
        return Skipped(trace.another)
    n = trace.programs
    return Skipped(f"{n} programs", True) if n > (LARGE_PROGRAMS if large else RUN_PROGRAMS) else trace


def _substituted(trace: Trace, module_of: Modules | None) -> Trace:
    if module_of is None:
        return trace

    def changed(e: Launch | TorchOp) -> Launch | TorchOp:
        return replace(e, module=lambda: module_of(e)) if isinstance(e, Launch) else e

    return replace(trace, events=tuple(map(changed, trace.events)))


def executed(
    trace: Trace,
    inputs: Mapping[str, np.ndarray],
    kind: type[Run] = Run,
    steps: int = BUDGETS.run.search_steps,
) -> Mapping[str, np.ndarray] | Failure | Skipped:
    """The contents that the launches leave in the outputs and written inputs."""
    from trilift.lift.replay.execute import replay

    given = {name: x.copy() for name, x in inputs.items()}
    try:
        with limited("run", steps):
            return replay(moved_apart(trace), given, kind=kind)
    except OutOfBounds as error:
        return Failure("", (), math.nan, math.nan, str(error))
    except OutOfSteps as error:
        return Skipped(str(error), True)
    except TriliftError as error:
        return Skipped(str(error))
    except (ArithmeticError, ValueError, IndexError, TypeError, MemoryError) as error:
        return Skipped(f"{type(error).__name__}: {error}")  # numpy, on numbers that no right kernel gives it


def moved_apart(trace: Trace) -> Trace:
    """The trace with its buffers far apart, where they can be moved."""
    return trace if holds_pointers(trace) else apart(trace)


def expected_at(
    question: Question, args: Mapping[str, Any], inputs: Mapping[str, np.ndarray], dims: Dims
) -> dict[str, np.ndarray]:
    """The arrays of the target, by output: what the PyTorch function returns, else the formulas' values. Raises
    CaseError where the function does, Unsupported where the target's conditions do not hold."""
    goal = question.goal
    if goal.fn is not None:
        return _named(goal, values(question.case, goal.fn, args))
    if not all(holds(c, dims) for c in goal.conditions):
        raise Unsupported("the target's conditions do not hold")
    return {name: evaluated(f, inputs, dims) for name, f in goal.formulas.items()}


def _named(goal: Targets, found: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Arrays about a PyTorch function's results, its outputs in order and then the inputs that it writes, under the
    names of the host function."""
    outputs = [n for n, f in goal.formulas.items() if f.in_place is None]
    given = [*found.items()]
    return by_output(dict(given[: len(outputs)]), outputs) | dict(given[len(outputs) :])


def _sure(expected: np.ndarray, seed: int) -> np.ndarray:
    """NaN, which nothing is compared with, for infinities on inputs that were made to be difficult: 1 / 0, overflow."""
    return expected if row(seed).name == "normal" else np.where(np.isinf(expected), np.nan, expected)


def _compared(
    question: Question,
    trace: Trace,
    args: Mapping[str, Any],
    inputs: Mapping[str, np.ndarray],
    got: Mapping[str, np.ndarray],
    expected: dict[str, np.ndarray],
    inputs_are: str,
) -> Failure | Passed | Skipped:
    """The worst element of the first output that differs, among those that do not hang on the last digits."""
    allowed = ROUNDED if question.goal.fn is None and question.goal.also_prove is None else REFERENCE
    rounded = tolerance(question.case, question.goal.fn, allowed)
    found = {**{x: got[n] for n, (_, x) in results(trace).items() if x is not None and n in got}, **got}
    compared = 0
    for name, formula in question.goal.formulas.items():
        if name in question.but:
            continue
        a, b = found.get(name, inputs.get(name)), expected.get(name, inputs.get(name))
        if a is None and b is not None and name not in trace.outputs:
            n, usual = len(trace.outputs), sum(f.in_place is None for f in question.goal.formulas.values())
            return Failure(name, (), n, usual, f"the number of tensors returned is {n}, expected {usual}")
        if a is None or b is None:
            continue
        if a.shape != b.shape:
            return Failure(name, (), a.size, b.size, f"shape {list(a.shape)}, expected {list(b.shape)}")
        error, allowed = deviation(a, b), 0.0 if is_exact(formula) else max(rounded, digits_of(trace, name))
        if inputs_are == "large":
            error = np.where(np.isfinite(a), error, 0.0)  # float64 overflows where real numbers do not
        compared += int((np.isfinite(a) & np.isfinite(b)).sum())
        if not error.size or error.max() <= allowed:
            continue
        compared_here = (
            _chosen(question.only, name, b)
            if question.only
            else _stable(question, trace, args, inputs, name, formula, b)
        )
        error = np.where(compared_here, error, 0.0)
        if error.max() > allowed:
            right = right_where_rounded(trace, inputs, name, b, error, LARGE_PROGRAMS, BUDGETS.run.large_steps)
            error = np.where(right, 0.0, error)
        if error.max() > allowed:
            index = tuple(int(i) for i in np.unravel_index(int(np.argmax(error)), error.shape))
            why = left_alone(trace, name, index, a, b) if is_untouched(formula) else ""
            return Failure(name, index, float(a[index]), float(b[index]), why)
    return Passed(compared, trace) if compared else Skipped("no element of the target is a number")


def is_exact(formula: Formula) -> bool:
    """Whether all of a formula is arithmetic of integers and truth values: a difference is none of rounding."""
    return type_of_name(formula.dtype) != T.REAL and all(t.type != T.REAL for t in formula.term.walk())


def left_alone(trace: Trace, name: str, index: tuple[int, ...], got: np.ndarray, before: np.ndarray) -> str:
    """The message for an input that the kernel changes and the reference does not."""
    where = f"{name}[{', '.join(map(str, index))}]" if index else name
    change = f"{where} was {before[index]:.6g} and is {got[index]:.6g}: the reference leaves {name} alone"
    same = [n for n, (_, x) in results(trace).items() if x == name != n]
    return f"{same[0]} lies in the memory of {name}, the reference returns a new tensor: {change}" if same else change


def _chosen(only: tuple[str, tuple[int, ...]], name: str, expected: np.ndarray) -> np.ndarray:
    """Which elements are compared where it is one."""
    out = np.zeros(expected.shape, bool)
    if only[0] == name:
        out[only[1]] = True
    return out


def _stable(
    question: Question,
    trace: Trace,
    args: Mapping[str, Any],
    inputs: Mapping[str, np.ndarray],
    name: str,
    formula: Formula,
    expected: np.ndarray,
) -> np.ndarray:
    """Which elements of the target stay when the inputs change a little: in the tenth digit for a function, for a
    formula by as much as the kernel's own constants may be off, each number by itself and all in one direction; and
    which are the same without subnormal numbers and where nothing overflows."""
    goal, case = question.goal, question.case
    if goal.fn is not None:
        returned = values(case, goal.fn, args)
        return _named(goal, steady(case, goal.fn, args, returned, 0)).get(name, np.ones(expected.shape, bool))
    with without_subnormals():
        other = evaluated(formula, inputs, trace.dims, WithoutOverflow())
    good: np.ndarray = ~np.isnan(other) & (deviation(other, expected) <= ROUNDED)
    for low, high in ((-HALF, HALF), (HALF, -HALF), (HALF, HALF), (-HALF, -HALF)):
        noise = np.random.default_rng(0)
        moved = {n: x * (1 + low + (high - low) * noise.random(x.shape)) if x.dtype.kind == "f" else x
                 for n, x in inputs.items()}  # fmt: skip
        other = evaluated(formula, moved, trace.dims)
        good &= ~np.isnan(other) & (deviation(other, expected) <= ROUNDED)
    return good


def once(case: Case, dims: Dims, seed: int, config: int, output: str, index: tuple[int, ...]) -> float | str:
    """One element as the kernel in float64 computes it, or what keeps it from being computed."""
    trace = _trace(case, dims, config, seed, large=True)
    if isinstance(trace, Skipped):
        return trace.why
    inputs = arrays(case, arguments(case, dims, seed))
    got = executed(trace, inputs)
    return got.why if isinstance(got, Failure | Skipped) else float({**inputs, **got}[output][index])


# ---- a small one -----------------------------------------------------------------------------------------------------


def _shrunk(question: Question, dims: Dims, seed: int, config: int, meter: Meter) -> Dims:
    """Dims at which it still fails, and does not with one of them smaller; as far as the steps allow."""
    own = Meter("shrinking", BUDGETS.search.shrink_steps)

    def fails(d: Dims) -> bool:
        late = meter.exhausted and own.exhausted
        return not late and fits(question.case, d) and isinstance(attempt(question, d, seed, config), Failure)

    changed = True
    while changed:
        changed = False
        for name in question.case.names:
            smaller = _smallest(dims, name, fails)
            changed |= smaller != dims[name]
            dims = {**dims, name: smaller}
    return dims


def _smallest(dims: Dims, name: str, fails: Callable[[Dims], bool]) -> int:
    """The smallest of a few numbers at which it fails: 1, 2, 3, then by halving the distance, then one less."""
    n = int(dims[name])
    small = next((k for k in (1, 2, 3) if k < n and fails({**dims, name: k})), None)
    if small is not None:
        return small
    low = 3
    while n - low > 1:
        middle = (low + n) // 2
        low, n = (low, middle) if fails({**dims, name: middle}) else (middle, n)
    return n
