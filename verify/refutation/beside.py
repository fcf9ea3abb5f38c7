"""A proof beside runs: every PROVED is tried on a few inputs of the table before it is said.

Proofs are about terms; a run on zeros, alternating signs or the edges of integers shows where terms are not what the
kernel computes. The shapes are a small one and one at the edge of a block, the layouts those that the case allows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import islice

from trilift.lift.cases.declaration import Case
from trilift.lift.errors import TriliftError
from trilift.lift.runtime.budget import BUDGETS, stage
from trilift.lift.terms.fit import value

from ..model.verdict import Clause, Counterexample
from ..runs.adversary import FURTHER, TABLE, at_edges
from ..runs.goals import Targets
from ..runs.layouts import laid
from ..runs.trials import Dims, blocks_of, boundary_shapes
from .search import Failure, Question, attempt, found_at, launched

RUNS = (2, 1)  # at each shape
LAID_OUT = ("transposed", "channels last")  # of tensors with any strides


def contradiction(
    case: Case, goal: Targets, contract: Sequence[Clause], but: Collection[str], seed: int = 0
) -> Counterexample | None:
    """An input that meets the contract on which an output is not what was proved; None where the runs show none. `but`:
    outputs that are not proved."""
    if any(c.kind == "value" for c in contract):
        return None  # no input is known to meet it
    data = any(c.kind == "nowrap" and c.term is None for c in contract)
    try:
        with stage("runs beside the proof", BUDGETS.search.beside_steps) as meter:
            for question, dims, at in _runs(case, goal, contract, frozenset(but), seed):
                if meter.exhausted:
                    return None
                if data and at_edges(case, at):
                    continue
                found = attempt(question, dims, at, 0)
                if isinstance(found, Failure):
                    return found_at(question, dims, at, 0, found)
    except TriliftError:
        return None
    return None


def _runs(
    case: Case, goal: Targets, contract: Sequence[Clause], but: frozenset[str], seed: int
) -> Iterator[tuple[Question, Dims, int]]:
    """Small runs first; every run has another kind of numbers."""
    kinds = iter(range(len(TABLE)))
    strided = [n for n, s in case.tensors.items() if s.strided]
    for dims, runs in zip(_shapes(case, seed), RUNS, strict=False):
        if any(c.term is not None and value(c.term, dims) is False for c in contract):
            continue
        for k in islice(kinds, runs):
            yield Question(case, goal, but=but), dims, FURTHER + len(TABLE) * seed + k
        for name in LAID_OUT[: 1 if strided else 0]:
            moved = laid(case, {n: name for n in strided if len(case.tensors[n].shape or ()) > 1})
            yield Question(moved, goal, but=but), dims, FURTHER + len(TABLE) * seed


def _shapes(case: Case, seed: int) -> Iterator[Dims]:
    """A small shape, and one at the edge of a block."""
    from trilift.lift.cases.shapes import choose

    base = choose(case, 1, seed)[0]
    yield base
    trace = launched(case, base, seed)
    if trace is not None:
        yield from islice(boundary_shapes(case, base, [b for b in blocks_of(trace) if b <= 64][:1]), 2, 3)
