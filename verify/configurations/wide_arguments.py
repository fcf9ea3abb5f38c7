"""Integer arguments that need 64 bits, of which Triton compiles another kernel: one that may ask for their type.

The kernel of 32 bits is proved, in numbers that do not wrap. With 64 bits for all that may need them it has the same
operations of the same constants, but for those that widen, and so has it with 64 bits for one of them alone; where it
has not, these arguments have 32 bits. Of an argument with an annotated type Triton passes the bits that the type has:
it must fit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from trilift.lift.cases.declaration import Case
from trilift.lift.terms import construct as T
from trilift.lift.terms.term import Term
from trilift.lift.ttir.lower import jit_function
from trilift.lift.ttir.specialised import alike_when_wide, parts

from ..integers.solver import Solver
from ..model.configuration import Configuration, SymbolicLaunch
from ..model.verdict import Clause
from ..wording.user_terms import words
from .constants_of_one import numbers, of_launches
from .specialisations import Family

NEEDED = "Triton, which compiles another kernel for an argument of 64 bits"
ANNOTATED = "Triton, which passes as many bits of an argument as its annotated type has"


def clauses(case: Case, base: Configuration, families: Sequence[Family]) -> Iterator[Clause]:
    """Arguments have 32 bits where the kernel would be another one with more, and fit the types that are annotated."""
    yield from of_launches(_of_launch, replace(base, facts=base.facts.union(_declared(case))), families)


def _declared(case: Case) -> Iterator[Term]:
    """The limits of the integer scalars of a case, by their dtypes."""
    for n, s in case.scalars.items():
        yield from _limits(T.size(n), s.dtype)


def _of_launch(launch: SymbolicLaunch, family: Family, facts: frozenset[Term]) -> Iterator[Clause]:
    bound = family.bound
    if bound is None:
        return
    given = numbers(launch)
    kinds = {n: str(kind) for n, (_, kind) in parts(bound.signature).items() if n in given}
    annotated = {p.name for p in jit_function(bound.kernel).params if p.annotation_type}
    for n in (n for n in kinds if n in annotated):
        yield from (Clause("shape", t, words(t), ANNOTATED, family.place) for t in _owed(given[n], kinds[n], facts))
    owed = {n: _owed(given[n], kind, facts) for n, kind in kinds.items() if kind == "i32" and n not in annotated}
    wide = [n for n, limits in owed.items() if limits]
    alone = [n for n in wide if not alike_when_wide(bound, (n,))]
    rest = [n for n in wide if n not in alone]
    together = rest if len(rest) > 1 and not alike_when_wide(bound, rest) else []
    for limit in (t for n in (*alone, *together) for t in owed[n]):
        yield Clause("shape", limit, words(limit), NEEDED, family.place)


def _owed(t: Term, kind: str, facts: frozenset[Term]) -> list[Term]:
    """The limits of an integer type that are not known of a number."""
    return [x for x in _limits(t, kind) if not Solver().implies(facts, x)] if t.type == T.INT else []


def _limits(t: Term, kind: str) -> list[Term]:
    """The limits of an integer type narrower than 64 bits, or without a sign; of another one none."""
    if kind == "i64" or not re.fullmatch(r"[iu]\d+", kind):
        return []
    bits = int(kind[1:])
    least, end = (-(1 << bits - 1), 1 << bits - 1) if kind[0] == "i" else (0, 1 << bits)
    return [T.make("le", least, t), T.make("lt", t, end)]
