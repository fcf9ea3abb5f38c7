"""Mutants and executions: does running a mutant tell it from the original?

    Killed      an output differs at a shape and seed, or memory is left: the counterexample
    Survived    equal wherever it was run; at how many small shapes its symbolic spec is the original's, term for term
    Crashed     it could not be run

Both run in float64, from NaN-poisoned memory, with the buffers far apart.
"""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice, zip_longest
from typing import Any

import numpy as np

from lift.case import Case
from lift.errors import CaseError, OutOfBounds, TriliftError, Unsupported
from lift.ir import Module
from lift.trace import Trace

from .apart import apart
from .mutate import Mutant
from .verdict import Clause, Counterexample

Dims = Mapping[str, int | float]
Mutation = Callable[[Module], Module]

EQUAL = 1e-9  # relative to the largest expected value: both are float64
PROGRAMS = 400  # of all launches of one trial
ELEMENTS = 100_000  # of the largest input
SLOWEST = 1.0  # seconds of one trial
BOUNDARIES = 12  # trials at the edges of blocks, out of
ATTEMPTS = 40
EDGES = ((2, 0), (1, 1), (1, 0), (2, 1), (0, 1), (1, -1), (3, -2))  # a * BLOCK + b
LARGEST = 1100  # block whose edges are tried
MANY = 9  # blocks along one dim, where another has two


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """The original run once: `expected` by output, `inputs` what it read. `small`: its spec may be formed."""

    case: Case
    trace: Trace
    inputs: Mapping[str, np.ndarray]
    seed: int
    config: int
    expected: Mapping[str, np.ndarray]
    seconds: float
    small: bool = False


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


# ---- the original ----------------------------------------------------------------------------------------------------


def trials(case: Case, seed: int = 0, boundaries: int = BOUNDARIES) -> tuple[Trial, ...]:
    """The original at two small shapes, at the edges of its blocks, across blocks, and with other seeds and the next
    autotune configuration. Shapes that the host function refuses are left out. Raises CaseError without any."""
    from lift.shapes import choose

    shapes = choose(case, 3, seed)
    first = at(case, shapes[0], seed, small=True)
    edges = boundary_shapes(case, shapes[0], blocks_of(first.trace) if first else ())
    tried = (at(case, d, seed + 2 + k) for k, d in enumerate(islice(edges, ATTEMPTS)))
    plan = [(shapes[1], seed + 1, 0, True), (shapes[2], seed, 0, False), (shapes[0], seed + 99, 0, False)]
    if first is not None and first.trace.configs > 1:
        plan += [(shapes[2], seed, 1, False)]
    found = (first, *(at(case, *p) for p in plan), *islice(filter(None, tried), boundaries))
    out = tuple(t for t in found if t is not None)
    if not out:
        raise CaseError(f"case {case.name} cannot be run at any shape tried", case.place)
    return out


def at(case: Case, dims: Dims, seed: int, config: int = 0, small: bool = False) -> Trial | None:
    """One trial; None where the host function refuses these dims, or running them is out of reach."""
    from lift.capture import capture
    from lift.check import arguments, arrays

    try:
        trace = capture(case, dims, config=config, seed=seed)
        if sum(math.prod(e.grid) for e in trace.launches) > PROGRAMS:
            return None
        inputs = arrays(case, arguments(case, dims, seed))
        return _run(case, apart(trace), inputs, seed, config, small) or _run(case, trace, inputs, seed, config, small)
    except (CaseError, Unsupported):
        return None


def _run(
    case: Case, trace: Trace, inputs: Mapping[str, np.ndarray], seed: int, config: int, small: bool
) -> Trial | None:
    from lift.execute import replay

    start = time.perf_counter()
    try:
        with within(SLOWEST):
            expected = replay(trace, inputs)
    except (TriliftError, TimeoutError):
        return None
    return Trial(case, trace, inputs, seed, config, expected, time.perf_counter() - start, small)


def blocks_of(trace: Trace) -> list[int]:
    """The extents of the ranges in its kernels, and the numbers among their compile-time arguments."""
    found = set()
    for e in trace.launches:
        found |= {op.attrs["end"] - op.attrs["start"] for op in e.module().walk() if op.name == "tt.make_range"}
        found |= {v for n, v in e.args.items() if n in e.constexprs and type(v) is int}
    return sorted(b for b in found if 1 < b <= LARGEST)


def boundary_shapes(case: Case, base: Dims, blocks: Sequence[int]) -> Iterator[Dims]:
    """`base` with all dims, then with one, at the edge of a block, large blocks first; and with many blocks along one
    dim and a few along the others."""
    names = case.names
    tile = max((b for b in blocks if b <= 64), default=4)
    groups = [[{**dict.fromkeys(names, w), n: MANY * tile + 1} for w in (2 * tile, 5) for n in names]]
    for k, (a, b) in enumerate(EDGES):
        turned = [names[(i + k) % len(names)] for i in range(len(names))]
        together = [dict.fromkeys(names, a * block + b) for block in reversed(blocks)]
        alone = [{n: a * block + b} for block in reversed(blocks) for n in turned]
        groups.append([d for turn in zip_longest(together, alone) for d in turn if d is not None])
    seen = [dict(base)]
    for change in (d for turn in zip_longest(*groups) for d in turn if d is not None):
        d = {**base, **change}
        if (
            d not in seen
            and case.holds(d)
            and max((math.prod(case.shape(n, d)) for n in case.tensors), default=0) <= ELEMENTS
        ):
            seen.append(d)
            yield d


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
            troubles.append(absent.what)
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
    """What cannot be run at one shape may still be told apart at another."""
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
    from lift.execute import replay

    try:
        with within(3.0 + 20 * trial.seconds):
            got = replay(trace, trial.inputs)
    except OutOfBounds as error:
        return Killed(_counterexample(trial, launch, mutant, "", (), math.nan, math.nan), str(error))
    except TimeoutError:
        return Crashed("it does not end")
    except Exception as error:  # numpy on shapes or numbers that no right kernel gives it
        return Crashed(f"{type(error).__name__}: {error}")
    return compared(trial, got, launch, mutant, outputs)


def compared(
    trial: Trial, got: Mapping[str, np.ndarray], launch: int, mutant: Mutation, outputs: Collection[str] | None
) -> Killed | None:
    """The first output that is not the original's; an input that neither names was not written."""
    from lift.check import Mismatch, compare

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
            with within(10.0):
                same = _terms(trial.trace) == _terms(substituted(trial.trace, launch, mutant))
        except Unsupported:
            continue
        except (TriliftError, TimeoutError):
            return 0
        if not same:
            return 0
        count += 1
    return count


def _terms(trace: Trace) -> dict[str, Any]:
    from lift.execute import spec

    return {s.name: s.ids.tolist() for s in spec(trace)}


def allows(contract: Sequence[Clause]) -> Callable[[Dims], bool]:
    """Whether dims meet every clause that says something about dims alone."""
    from lift.fit import value

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
    return f"""from lift.errors import Place
from lift.load import load
from verify.killing import at, execution, substituted
from verify.mutate import Mutant, Site

[case] = load({place.file!r}, [{trial.case.name!r}])
mutant = {mutant!r}
trial = at(case, {dims!r}, seed={trial.seed}, config={trial.config})
print(execution(trial, substituted(trial.trace, {launch}, mutant), {launch}, mutant).why)
"""


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Raises TimeoutError in the block after that many seconds; no limit outside the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def late(*_: Any) -> None:
        raise TimeoutError(f"{seconds:.1f} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
