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
from trilift.lift.terms import construct as T
from trilift.lift.terms.fit import value
from trilift.lift.terms.term import Term

from ..model.verdict import Clause, Counterexample
from ..runs.adversary import FURTHER, TABLE, at_edges
from ..runs.goals import Targets
from ..runs.layouts import laid
from ..runs.trials import Dims, blocks_of, boundary_shapes
from .search import Failure, Question, attempt, found_at, launched

EDGE = 2  # of the shapes at the edges of blocks: the first ones are many blocks long
LARGEST_BLOCK = 64  # at whose edge a proof is tried
LAID_OUT = "transposed"  # tensors with any strides


def contradiction(
    case: Case, goal: Targets, contract: Sequence[Clause], but: Collection[str], seed: int = 0
) -> Counterexample | None:
    """An input that meets the contract on which an output is not what was proved; None where the runs show none. `but`:
    outputs that are not proved."""
    if any(c.kind == "value" or (c.data is not None and _is_real(c.data)) for c in contract):
        return None  # no input is known to meet it
    data = any(c.kind == "nowrap" and c.term is None for c in contract)
    try:
        with stage("runs beside the proof", BUDGETS.search.beside_steps) as meter:
            for question, dims, at in _runs(case, goal, frozenset(but), seed):
                if meter.exhausted:
                    return None
                if (data and at_edges(case, at)) or any(_excludes(c, dims) for c in contract):
                    continue
                found = attempt(question, dims, at, 0)
                if isinstance(found, Failure):
                    return found_at(question, dims, at, 0, found)
    except TriliftError:
        return None
    return None


def _is_real(t: Term) -> bool:
    """Whether it hangs on reals, such as trunc(x[n]): integers are drawn small, reals of all magnitudes and signs."""
    return any(s.op == "read" and s.type == T.REAL for s in t.walk())


def _excludes(c: Clause, dims: Dims) -> bool:
    """Whether a clause is false at these dims."""
    return c.term is not None and value(c.term, dims) is False


def _runs(case: Case, goal: Targets, but: frozenset[str], seed: int) -> Iterator[tuple[Question, Dims, int]]:
    """A small shape, then one at the edge of a block; every run has another kind of numbers."""
    from trilift.lift.cases.shapes import choose

    plain, first = Question(case, goal, but=but), FURTHER + len(TABLE) * seed
    base = choose(case, 1, seed)[0]
    yield plain, base, first
    trace = launched(case, base, seed)
    blocks = [b for b in blocks_of(trace) if b <= LARGEST_BLOCK][:1] if trace is not None else []
    for dims in islice(boundary_shapes(case, base, blocks), EDGE, EDGE + 1):
        yield plain, dims, first + 1
    strided = [n for n, s in case.tensors.items() if s.strided and len(s.shape or ()) > 1]
    if strided:
        yield Question(laid(case, dict.fromkeys(strided, LAID_OUT)), goal, but=but), base, first + 2
