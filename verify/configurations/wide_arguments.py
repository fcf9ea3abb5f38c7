"""Integer arguments that need 64 bits, of which Triton compiles another kernel: one that may ask for their type.

The kernel of 32 bits is proved, in numbers that do not wrap. With 64 bits for all that may need them it has the same
operations of the same constants, but for those that widen, and so has it with 64 bits for one of them alone; where it
has not, these arguments have 32 bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trilift.lift.terms import construct as T
from trilift.lift.terms.term import Term
from trilift.lift.ttir.specialised import alike_when_wide

from ..integers.solver import Solver
from ..model.configuration import Configuration, SymbolicLaunch
from ..model.verdict import Clause
from ..wording.user_terms import words
from .constants_of_one import numbers, of_launches
from .specialisations import Family

NEEDED = "Triton, which compiles another kernel for an argument of 64 bits"
LEAST, END = -(1 << 31), 1 << 31


def clauses(base: Configuration, families: Sequence[Family]) -> Iterator[Clause]:
    """Arguments have 32 bits where the kernel would be another one with more."""
    yield from of_launches(_of_launch, base, families)


def _of_launch(launch: SymbolicLaunch, family: Family, facts: frozenset[Term]) -> Iterator[Clause]:
    bound = family.bound
    if bound is None:
        return
    given = numbers(launch)
    owed = {n: _owed(given[n], facts) for n, kind in bound.signature.items() if kind == "i32" and n in given}
    wide = [n for n, limits in owed.items() if limits]
    alone = [n for n in wide if not alike_when_wide(bound, (n,))]
    rest = [n for n in wide if n not in alone]
    together = rest if len(rest) > 1 and not alike_when_wide(bound, rest) else []
    for limit in (t for n in (*alone, *together) for t in owed[n]):
        yield Clause("shape", limit, words(limit), NEEDED, family.place)


def _owed(t: Term, facts: frozenset[Term]) -> list[Term]:
    """The limits of 32 bits that are not known of a number."""
    limits = (T.make("le", LEAST, t), T.make("lt", t, END))
    return [] if t.is_const else [x for x in limits if not Solver().implies(facts, x)]
