"""Integer arguments that are 1, which Triton makes constants of the kernel: where that is another kernel, they are not.

The general kernel is proved. An argument that may be 1 is looked at alone, and all of them together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trilift.lift.errors import Unsupported
from trilift.lift.terms import construct as T
from trilift.lift.terms.term import Term
from trilift.lift.ttir.specialised import alike_at_one, specialised

from ..integers.solver import Solver
from ..model.configuration import Configuration, SymbolicLaunch
from ..model.verdict import Clause
from ..wording.user_terms import words
from .specialisations import Family

NEEDED = "Triton, which makes an argument that is 1 a constant of the kernel"


def clauses(base: Configuration, families: Sequence[Family]) -> Iterator[Clause]:
    """Arguments are not 1 where the kernel would be another one. Raises Unsupported where they always are."""
    launches = [e for e in base.events if isinstance(e, SymbolicLaunch)]
    for launch, family in zip(launches, families, strict=False):
        yield from dict.fromkeys(_of_launch(launch, family, base.facts))


def _of_launch(launch: SymbolicLaunch, family: Family, facts: frozenset[Term]) -> Iterator[Clause]:
    bound = family.bound
    if bound is None:
        return
    given = zip(launch.module.entry.args, launch.operands, strict=False)
    terms = {v.name.removeprefix("%"): x for v, x in given if isinstance(x, Term)}
    names = [n for n in specialised(bound.kernel, bound.signature) if n in terms and _may_be_one(terms[n], facts)]
    alone = [n for n in names if not _alike(family, (n,))]
    together = [names] if len(names) > 1 and not alone and not _alike(family, tuple(names)) else []
    for group in [[n] for n in alone] + together:
        other = T.make("or", T.const(False), *(T.make("ne", terms[n], 1) for n in group))
        if other is T.const(False):
            what = f"{', '.join(group)} of {family.first.kernel} is 1, which makes it another kernel"
            raise Unsupported(what, family.place, "Triton makes it a constant, with which Python computes")
        yield Clause("shape", other, words(other), NEEDED, family.place)


def _alike(family: Family, names: tuple[str, ...]) -> bool:
    bound = family.bound
    return bound is None or alike_at_one(bound.kernel, bound.signature, bound.constexprs, bound.options, names)


def _may_be_one(t: Term, facts: frozenset[Term]) -> bool:
    return not (t.is_const and t.attr != 1) and not Solver().implies(facts, T.make("ne", t, 1))
