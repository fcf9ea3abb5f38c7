"""A proof beside runs: every PROVED is tried on a few inputs of the table before it is said.

Proofs are about terms; a run on zeros, alternating signs or the edges of integers shows where terms are not what the
kernel computes. The shapes are a small one and one at the edge of a block, the layouts those that the case allows.
Sizes and layouts that the contract leaves out because the host function takes another way there are run too: what it
gives there is as much a result of the case as any other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice

from trilift.lift.cases.declaration import Case
from trilift.lift.errors import CaseError, TriliftError
from trilift.lift.runtime.budget import BUDGETS, stage
from trilift.lift.terms import construct as T
from trilift.lift.terms.fit import value
from trilift.lift.terms.term import Term

from ..model.verdict import ELSEWHERE, Clause, Counterexample
from ..runs.adversary import FURTHER, SEARCHED, TABLE, at_edges
from ..runs.goals import Targets
from ..runs.layouts import numbers, otherwise
from ..runs.trials import Dims, blocks_of, boundary_shapes, fits
from .search import Failure, Question, attempt, executed, found_at, launched

EDGE = 2  # of the shapes at the edges of blocks: the first ones are many blocks long
LARGEST_BLOCK = 64  # at whose edge a proof is tried
DRAWN = 3  # shapes that a clause leaves out
LARGE = partial(executed, steps=BUDGETS.run.large_steps)
BEYOND = 200  # shapes among which one is sought that a clause leaves out


@dataclass(frozen=True, slots=True)
class Contradiction:
    """A run that shows something else than was proved. `left_out`: the clause by which the contract leaves its input
    out, since the host function takes another way there; None where the proof itself is wrong."""

    found: Counterexample
    left_out: Clause | None = None


def contradiction(
    case: Case, goal: Targets, contract: Sequence[Clause], but: Collection[str], seed: int = 0
) -> Contradiction | None:
    """An input on which an output is not what was proved, though the contract allows it or leaves it to another way of
    the host function; None where the runs show none. `but`: outputs that are not proved."""
    if any(c.kind == "value" or (c.data is not None and _is_real(c.data)) for c in contract):
        return None  # no input is known to meet it
    data = any(c.kind == "nowrap" and c.term is None for c in contract)
    other = [c for c in contract if c.term is not None and c.why.startswith(ELSEWHERE)]
    try:
        with stage("runs beside the proof", BUDGETS.search.beside_steps) as meter:
            for question, dims, at in _runs(case, goal, frozenset(but), seed, other):
                if meter.exhausted:
                    return None
                at_these = {**dims, **numbers(question.case, dims, at)}
                broken = [c for c in contract if c.term is not None and value(c.term, at_these) is False]
                if (data and at_edges(case, at)) or any(c not in other for c in broken):
                    continue
                found = attempt(question, dims, at, 0, LARGE if question.large else None)
                if isinstance(found, Failure):
                    return Contradiction(found_at(question, dims, at, 0, found), *broken[:1])
    except TriliftError:
        return None
    return None


def _is_real(t: Term) -> bool:
    """Whether it hangs on reals, such as trunc(x[n]): integers are drawn small, reals of all magnitudes and signs."""
    return any(s.op == "read" and s.type == T.REAL for s in t.walk())


def _runs(
    case: Case, goal: Targets, but: frozenset[str], seed: int, other: Sequence[Clause]
) -> Iterator[tuple[Question, Dims, int]]:
    """A small shape, some that each of the `other` clauses leaves out (the first may be large), tensors that lie
    in memory otherwise, and last, since it takes longest, a shape at the edge of a block; each with other numbers."""
    from trilift.lift.cases.shapes import choose

    plain, first = Question(case, goal, but=but), FURTHER + len(TABLE) * seed
    base = choose(case, 1, seed)[0]
    yield plain, base, first
    trace = launched(case, base, seed)
    blocks = [b for b in blocks_of(trace) if b <= LARGEST_BLOCK][:1] if trace is not None else []
    ones = {**base, **dict.fromkeys(case.names, 1)}
    shapes = [d for d in chain([ones], islice(boundary_shapes(case, base, blocks), BEYOND)) if fits(case, d)]
    for k, clause in enumerate(other):
        for n, dims in enumerate(_left_out(case, clause, shapes, seed)):
            yield plain if n else replace(plain, large=True), dims, len(SEARCHED) * (seed + 1) + k
    for k, laid in enumerate(otherwise(case)):
        yield Question(laid, goal, but=but), base, first + 2 + k
    for dims in islice(boundary_shapes(case, base, blocks), EDGE, EDGE + 1):
        yield plain, dims, first + 1


def _left_out(case: Case, clause: Clause, shapes: Sequence[Dims], seed: int) -> Iterator[Dims]:
    """Shapes that the clause leaves out: the first of these, and some whose other sizes are drawn, since the sides of
    two choices of the host function may meet only there."""
    from trilift.lift.cases.shapes import choose

    if (met := clause.term) is not None:
        yield from islice((d for d in shapes if value(met, d) is False), 1)
        if not {str(s.attr) for s in met.walk() if s.op == "size"} <= {*case.names, *case.scalars}:
            return  # it names strides, which `otherwise` chooses
        outside = replace(case, where=T.make("and", case.where, T.make("not", met)))
        with suppress(CaseError):  # where no small size is left out
            yield from choose(outside, DRAWN, seed)
