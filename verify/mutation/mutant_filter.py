"""Mutants and executions: does running a mutant tell it from the original?

Killed      an output differs at a shape and seed, or memory is left: the counterexample
Survived    equal wherever it was run; at how many small shapes its symbolic spec is the original's, term for term
Crashed     it could not be run
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from trilift.lift.capture.trace import Trace
from trilift.lift.errors import OutOfBounds, TriliftError, Unsupported
from trilift.lift.runtime.budget import BUDGETS, OutOfSteps, limited
from trilift.lift.ttir.ir import Module

from ..model.verdict import Clause, Counterexample
from ..runs.trials import Dims, Trial
from .mutants import Mutant

Mutation = Callable[[Module], Module]

EQUAL = 1e-9  # relative to the largest expected value: both are float64


@dataclass(frozen=True, slots=True)
class Killed:
    counterexample: Counterexample
    why: str


@dataclass(frozen=True, slots=True)
class Survived:
    """`runs`: the dims of each; `specs`: at how many shapes the spec is the original's (0 if it differs at one)."""

    runs: tuple[Dims, ...]
    specs: int = 0


@dataclass(frozen=True, slots=True)
class Crashed:
    reason: str


Outcome = Killed | Survived | Crashed


# ---- the mutant ------------------------------------------------------------------------------------------------------


def substituted(trace: Trace, launch: int, mutation: Mutation) -> Trace:
    """The trace whose launch of that number runs the mutated module. Raises Unsupported if it has no such launch, or
    the mutation no place in its module."""
    launches = trace.launches
    if launch >= len(launches):
        raise Unsupported(f"launch {launch} of {len(launches)}")
    old = launches[launch]
    module = mutation(old.module())
    new = replace(old, module=lambda: module)
    return replace(trace, events=tuple(new if e is old else e for e in trace.events))


def verdict_by_execution(
    tried: Iterable[Trial],
    launch: int,
    mutant: Mutation,
    outputs: Collection[str] | None = None,
    allowed: Callable[[Dims], bool] = lambda dims: True,
) -> Outcome:
    """Runs the mutant at every trial whose dims are allowed, until an output (of `outputs`, if given) is not the
    original's or an access is out of bounds."""
    runs, troubles = list[Dims](), list[str]()
    tried = [t for t in tried if allowed(t.trace.dims)]
    for trial in tried:
        try:
            trace = substituted(trial.trace, launch, mutant)
        except Unsupported as absent:
            troubles.append(str(absent))
            continue
        result = execution(trial, trace, launch, mutant, outputs)
        if isinstance(result, Killed):
            return result
        if isinstance(result, Crashed):
            return _killed_later(tried[len(runs) :], launch, mutant, outputs) or result
        runs.append(trial.trace.dims)
    if not runs:
        return Crashed(troubles[0] if troubles else "no shape is allowed")
    return Survived(tuple(runs), equal_specs(tried, launch, mutant))


def _killed_later(
    tried: Sequence[Trial], launch: int, mutant: Mutation, outputs: Collection[str] | None
) -> Killed | None:
    """A mutant that cannot be run at one shape may still differ at another."""
    for trial in tried:
        try:
            result = execution(trial, substituted(trial.trace, launch, mutant), launch, mutant, outputs)
        except Unsupported:
            continue
        if isinstance(result, Killed):
            return result
    return None


def execution(
    trial: Trial, trace: Trace, launch: int, mutant: Mutation, outputs: Collection[str] | None = None
) -> Killed | Crashed | None:
    """One run of the changed trace on the trial's inputs; None if it is the original's."""
    from trilift.lift.replay.execute import replay

    try:
        with limited("mutant", BUDGETS.run.mutant_steps + 20 * trial.steps):
            got = replay(trace, trial.inputs)
    except OutOfBounds as error:
        return Killed(_counterexample(trial, launch, mutant, "", (), math.nan, math.nan), str(error))
    except OutOfSteps:
        return Crashed("it does not end")
    except Exception as error:  # numpy on shapes or numbers that no right kernel gives it
        return Crashed(f"{type(error).__name__}: {error}")
    return compared(trial, got, launch, mutant, outputs)


def compared(
    trial: Trial, got: Mapping[str, np.ndarray], launch: int, mutant: Mutation, outputs: Collection[str] | None
) -> Killed | None:
    """The first output that is not the original's; an input that neither names was not written."""
    from trilift.lift.replay.check import Mismatch, compare

    for name in dict.fromkeys((*trial.expected, *got)):
        if outputs is not None and name not in outputs:
            continue
        a, b = (values.get(name, trial.inputs.get(name)) for values in (got, trial.expected))
        assert a is not None and b is not None
        found = compare(name, "mutant", a, b, trial.trace, EQUAL)
        if isinstance(found, Mismatch):
            example = _counterexample(trial, launch, mutant, name, found.index, found.got, found.expected)
            return Killed(example, f"{name}{list(found.index)} is {found.got:.9g} and not {found.expected:.9g}")
    return None


def equal_specs(tried: Iterable[Trial], launch: int, mutant: Mutation) -> int:
    """At how many small shapes both have the same terms; 0 if they differ, or cannot be formed, at one."""
    count = 0
    for trial in (t for t in tried if t.small):
        try:
            with limited("terms of a mutant", BUDGETS.run.spec_steps):
                same = _terms(trial.trace) == _terms(substituted(trial.trace, launch, mutant))
        except Unsupported:
            continue
        except TriliftError:
            return 0
        if not same:
            return 0
        count += 1
    return count


def _terms(trace: Trace) -> dict[str, Any]:
    from trilift.lift.replay.execute import spec

    return {s.name: s.ids.tolist() for s in spec(trace)}


def allows(contract: Sequence[Clause]) -> Callable[[Dims], bool]:
    """Whether dims meet every clause that says something about dims alone."""
    from trilift.lift.terms.fit import value

    terms = [c.term for c in contract if c.term is not None]
    return lambda dims: all(value(t, dims) is not False for t in terms)


# ---- evidence --------------------------------------------------------------------------------------------------------


def _counterexample(
    trial: Trial, launch: int, mutant: Mutation, output: str, index: tuple[int, ...], got: float, expected: float
) -> Counterexample:
    return Counterexample(
        dict(trial.trace.dims), trial.seed, trial.config, output, index, got, expected, script(trial, launch, mutant)
    )


def script(trial: Trial, launch: int, mutant: Mutation) -> str:
    """A Python program that runs the mutant again and prints the difference; "" where it cannot be written down."""
    place = trial.case.place
    if not isinstance(mutant, Mutant) or place is None:
        return ""
    dims = dict(trial.trace.dims)
    return f"""from trilift.lift.errors import Place
from trilift.lift.capture.case_files import load
from trilift.verify.mutation.mutant_filter import execution, substituted
from trilift.verify.mutation.mutants import Mutant, Site
from trilift.verify.runs.trials import at

[case] = load({place.file!r}, [{trial.case.name!r}])
mutant = {mutant!r}
trial = at(case, {dims!r}, seed={trial.seed}, config={trial.config}, ties={trial.ties})
print(execution(trial, substituted(trial.trace, {launch}, mutant), {launch}, mutant).why)
"""
