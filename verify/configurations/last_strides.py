"""Tensors whose last stride is 1, apart from those of any strides, where the host function asks for it.

    if x.stride(-1) != 1: x = x.contiguous()      two ways through a host function, one for each layout

A tensor of any strides is read with gaps between its elements. Where a test on its last stride leaves the other way
out, the case is read again with 1 in its place; what neither reading covers stays a clause.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain, combinations

from trilift.lift.cases.declaration import Case, stride_terms, with_unit_strides
from trilift.lift.errors import CaseError, Unsupported
from trilift.lift.terms import construct as T
from trilift.lift.terms.term import Term

from ..integers.solver import Solver
from ..model.configuration import Configuration
from ..model.verdict import ELSEWHERE, Clause
from ..wording.user_terms import words
from .relations import strided

OF_ROWS = ", and its last stride is 1"  # of what the strides of a tensor may be
MOST_TENSORS = 3  # whose last strides are told apart: each set of them is a reading of the host function


def both_ways(
    case: Case, found: list[Configuration], facts: Collection[Term], read: Callable[[Case], list[Configuration]]
) -> list[Configuration]:
    """The configurations, and those of the case where last strides that their clauses ask for are 1. `facts`: of the
    case; `read`: the configurations of another case."""
    every = {n: stride_terms(n, s)[-1] for n, s in strided(case).items() if not s.unit}
    last = {n: t for n, t in every.items() if any(_about(c, [t]) for s in found for c in s.clauses)}
    if not 0 < len(last) <= MOST_TENSORS:
        return found
    parts, conditions = [found], [_condition(found, last.values())]
    for names in chain.from_iterable(combinations(last, k) for k in range(1, len(last) + 1)):
        ones = [T.make("eq", last[n], 1) for n in names]
        with suppress(Unsupported, CaseError):
            parts.append([_under(s, names, ones) for s in read(with_unit_strides(case, names))])
            conditions.append(T.make("and", True, *ones, _condition(parts[-1], last.values())))
    met = T.make("or", False, *conditions)
    covered = Solver().contradictory((*facts, T.make("not", met)))
    place = next((c.place for s in found for c in s.clauses if _about(c, last.values())), None)
    clause = () if covered else (Clause("shape", met, words(met), ELSEWHERE, place),)
    said = chain.from_iterable(parts)
    return [replace(s, clauses=(*clause, *(c for c in s.clauses if not _about(c, last.values())))) for s in said]


def _about(c: Clause, strides: Collection[Term]) -> bool:
    """Whether a clause leaves a way of the host function out by one of these strides."""
    return c.kind == "shape" and c.term is not None and any(t in strides for t in c.term.walk())


def _condition(part: Sequence[Configuration], strides: Collection[Term]) -> Term:
    """Where the configurations hold, as far as these strides tell."""
    terms = (c.term for s in part for c in s.clauses if _about(c, strides) and c.term is not None)
    return T.make("and", True, *dict.fromkeys(terms))


def _under(s: Configuration, names: tuple[str, ...], ones: Sequence[Term]) -> Configuration:
    """The configuration where these hold; what its strides may be is said of all configurations."""
    label = ", ".join(x for x in (s.label, *map(words, ones)) if x)
    clauses = tuple(c for c in s.clauses if not c.text.endswith(OF_ROWS))
    return replace(s, facts=s.facts.union(ones), clauses=clauses, label=label, rows=names)
