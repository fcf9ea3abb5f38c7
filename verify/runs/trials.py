"""The original kernel run in float64 at shapes that tell mutants from it: small ones, the edges of blocks, many blocks.

Memory is NaN-poisoned and the buffers lie far apart, so that a read of what nobody wrote shows.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, zip_longest

import numpy as np

from trilift.lift.capture.trace import Trace
from trilift.lift.cases.declaration import Case
from trilift.lift.cases.shapes import RUN_INPUT_ELEMENTS, elements
from trilift.lift.errors import CaseError, TriliftError, Unsupported
from trilift.lift.replay.rounded import RUN_PROGRAMS as RUN_PROGRAMS
from trilift.lift.runtime.budget import BUDGETS, limited

from .isolated_buffers import apart

Dims = Mapping[str, int | float]

BOUNDARIES = 12  # trials at the edges of blocks, out of
ATTEMPTS = 40
EDGES = ((2, 0), (1, 1), (1, 0), (2, 1), (0, 1), (1, -1), (3, -2))  # a * BLOCK + b
LARGEST = 1100  # block whose edges are tried
TIED = 4  # different reals in a tensor with ties
DRAWS = 2000  # of mixed shapes at most
MANY = 9  # blocks along one dim, where another has two


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """The original run once: `expected` by output, `inputs` what it read. `small`: its spec may be formed; `ties`: its
    reals repeat a few numbers."""

    case: Case
    trace: Trace
    inputs: Mapping[str, np.ndarray]
    seed: int
    config: int
    expected: Mapping[str, np.ndarray]
    steps: int
    small: bool = False
    ties: bool = False


def trials(case: Case, seed: int = 0, boundaries: int = BOUNDARIES) -> tuple[Trial, ...]:
    """The original at two small shapes, at the edges of its blocks, across blocks, and with other seeds and the next
    autotune configuration. Shapes that the host function refuses are left out. Raises CaseError without any."""
    from trilift.lift.cases.shapes import choose

    shapes = choose(case, 3, seed)
    first = at(case, shapes[0], seed, small=True)
    edges = boundary_shapes(case, shapes[0], blocks_of(first.trace) if first else ())
    tried = (at(case, d, seed + 2 + k) for k, d in enumerate(islice(edges, ATTEMPTS)))
    second = at(case, shapes[1], seed + 1, small=True)
    found = [first, second, at(case, shapes[2], seed), *islice(filter(None, tried), boundaries)]
    found += [at(case, shapes[0], seed + 99), at(case, shapes[2], seed + 98, ties=True)]
    if first is not None and first.trace.configs > 1:
        found += [at(case, shapes[2], seed, config=1)]
    out = tuple(t for t in found if t is not None)
    if not out:
        raise CaseError(f"case {case.name} cannot be run at any shape tried", case.place)
    return out


def at(case: Case, dims: Dims, seed: int, config: int = 0, small: bool = False, ties: bool = False) -> Trial | None:
    """One trial; None where the host function refuses these dims, or running them is out of reach."""
    from trilift.lift.capture.run import capture
    from trilift.lift.replay.check import arguments, arrays

    try:
        trace = capture(case, dims, config=config, seed=seed)
        if trace.another or trace.programs > RUN_PROGRAMS:
            return None
        inputs = arrays(case, arguments(case, dims, seed))
        inputs = {n: tied(x, seed) for n, x in inputs.items()} if ties else inputs
        for t in (apart(trace), trace):
            if (run := _run(t, inputs)) is not None:
                return Trial(case, t, inputs, seed, config, *run, small, ties)
    except (CaseError, Unsupported):
        pass
    return None


def tied(x: np.ndarray, seed: int) -> np.ndarray:
    """Reals drawn from the first few of their own, so that many are equal; integers stay."""
    if x.dtype.kind != "f" or x.size == 0:
        return x
    rng = np.random.default_rng(seed)
    return np.asarray(x.ravel()[rng.integers(0, min(TIED, x.size), x.shape)])


def _run(trace: Trace, inputs: Mapping[str, np.ndarray]) -> tuple[Mapping[str, np.ndarray], int] | None:
    """Outputs and steps."""
    from trilift.lift.replay.execute import replay

    try:
        with limited("trial", BUDGETS.run.trial_steps) as meter:
            expected = replay(trace, inputs)
    except TriliftError:
        return None
    return expected, meter.spent


def more_trials(case: Case, known: Sequence[Trial], count: int, seed: int = 0) -> Iterator[Trial]:
    """Up to `count` further ones, every dim at another edge of another block, each with new inputs;
    every third with ties."""
    from trilift.lift.cases.shapes import choose

    base, blocks = choose(case, 1, seed)[0], sorted({b for t in known for b in blocks_of(t.trace)})
    shapes = islice(mixed_shapes(case, base, blocks, seed), ATTEMPTS + count)
    found = (at(case, d, seed + 1000 + k, ties=k % 3 == 2) for k, d in enumerate(shapes))
    return islice((t for t in found if t is not None), count)


def blocks_of(trace: Trace) -> list[int]:
    """The blocks that a shape can be chosen around."""
    return sorted(b for b in trace.blocks if 1 < b <= LARGEST)


def boundary_shapes(case: Case, base: Dims, blocks: Sequence[int]) -> Iterator[Dims]:
    """`base` with one dim across the blocks, with many blocks along one dim and a few along the others, then with all
    dims or one of them at the edge of a block; large blocks first."""
    names = case.names
    tile = max((b for b in blocks if b <= 64), default=4)
    large = max((b for b in blocks if b <= 256), default=4)
    groups = [[{n: 3 * large + 1} for n in names]]
    groups += [[{**dict.fromkeys(names, w), n: MANY * tile + 1} for w in (2 * tile, 5) for n in names]]
    for k, (a, b) in enumerate(EDGES):
        turned = [names[(i + k) % len(names)] for i in range(len(names))]
        together = [dict.fromkeys(names, a * block + b) for block in reversed(blocks)]
        alone = [{n: a * block + b} for block in reversed(blocks) for n in turned]
        groups.append([d for turn in zip_longest(together, alone) for d in turn if d is not None])
    seen = [dict(base)]
    across, *rest = groups
    for change in (*across, *(d for turn in zip_longest(*rest) for d in turn if d is not None)):
        d = {**base, **change}
        if d not in seen and fits(case, d):
            seen.append(d)
            yield d


def mixed_shapes(case: Case, base: Dims, blocks: Sequence[int], seed: int) -> Iterator[Dims]:
    """Every dim at random at a small number, at the edge of some block, or many blocks long."""
    rng = random.Random(seed)
    edges = [[1, 2, 3, 5, 7, 11], [521, 1031, 2053]] + [
        [a * b + c for b in blocks] for a, c in (*EDGES, (MANY, 1)) if blocks
    ]
    for _ in range(DRAWS):
        d = {**base, **{n: rng.choice(rng.choice(edges)) for n in case.names}}
        if fits(case, d):
            yield d


def fits(case: Case, dims: Dims) -> bool:
    """Whether the case allows these dims and its inputs stay within RUN_INPUT_ELEMENTS."""
    return case.holds(dims) and elements(case, dims) <= RUN_INPUT_ELEMENTS
