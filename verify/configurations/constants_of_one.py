"""Integer arguments that are 1, which Triton makes constants of the kernel: where that is another kernel, they are not.

The general kernel is proved. An argument that may be 1 is looked at alone, and all of them together; where these make
another kernel, the fewest of them that do. Where there are too many to look at, at most one of them is 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations

from trilift.lift.errors import Unsupported
from trilift.lift.terms import construct as T
from trilift.lift.terms.term import Term
from trilift.lift.ttir.specialised import CONSTANT, alike_at_one, specialised

from ..integers.solver import Solver
from ..model.configuration import Configuration, SymbolicLaunch
from ..model.verdict import Clause
from ..wording.user_terms import words
from .specialisations import Family

LOOKED_SETS = 64  # of arguments, beyond single ones
LOOKED_PAIRS = 128
BRANCHES = ("scf.if", "cf.cond_br", "scf.while")
Names = tuple[str, ...]
OfLaunch = Callable[[SymbolicLaunch, Family, frozenset[Term]], Iterator[Clause]]
NEEDED = "Triton, which makes an argument that is 1 a constant of the kernel"


class _TooMany(Exception):
    """More sets than are looked at."""


def clauses(base: Configuration, families: Sequence[Family]) -> Iterator[Clause]:
    """Arguments are not 1 where the kernel would be another one. Raises Unsupported where they always are."""
    yield from of_launches(_of_launch, base, families)


def of_launches(of_launch: OfLaunch, base: Configuration, families: Sequence[Family]) -> Iterator[Clause]:
    """The clauses of each launch with its family, every clause once."""
    launches = [e for e in base.events if isinstance(e, SymbolicLaunch)]
    for launch, family in zip(launches, families, strict=False):
        yield from dict.fromkeys(of_launch(launch, family, base.facts))


def _of_launch(launch: SymbolicLaunch, family: Family, facts: frozenset[Term]) -> Iterator[Clause]:
    bound = family.bound
    if bound is None:
        return
    terms, free = numbers(launch), specialised(bound.kernel, bound.signature)
    if unknown := [n for n in free if f"%{n}" not in {v.name for v in launch.module.entry.args}]:
        raise Unsupported(f"the argument {unknown[0]} of {family.first.kernel}", family.place)
    names = [n for n in free if n in terms and _may_be_one(terms[n], facts)]
    others = {frozenset(terms[n] for n in group): group for group in _others(family, tuple(names))}
    for given, group in others.items():
        if any(fewer < given for fewer in others):
            continue
        other = T.make("or", T.const(False), *(T.make("ne", terms[n], 1) for n in group))
        if other is T.const(False):
            what = f"{', '.join(group)} of {family.first.kernel} is 1, which makes it another kernel"
            raise Unsupported(what, family.place, CONSTANT)
        yield Clause("shape", other, words(other), NEEDED, family.place)


def numbers(launch: SymbolicLaunch) -> dict[str, Term]:
    """The arguments that are numbers, by name."""
    given = zip(launch.module.entry.args, launch.operands, strict=False)
    return {v.name.removeprefix("%"): x for v, x in given if isinstance(x, Term)}


def _others(family: Family, names: Names) -> list[Names]:
    """Sets of arguments that make another kernel where all of them are 1, each without one that has no part in it. A
    kernel with branches may be the same one again where more of them are: of it every two are looked at too."""
    alone = [(n,) for n in names if not _alike(family, (n,))]
    rest = tuple(n for n in names if (n,) not in alone)
    branches = any(op.name in BRANCHES for op in family.base.walk())
    pairs = list(combinations(rest, 2))
    if branches and len(pairs) > LOOKED_PAIRS:
        return [*alone, *pairs]
    two = [p for p in pairs if branches and not _alike(family, p)]
    try:
        return [*alone, *dict.fromkeys([*two, *_smallest(family, rest, [LOOKED_SETS])])]
    except _TooMany:
        return [*alone, *pairs]


def _smallest(family: Family, names: Names, looks: list[int]) -> Iterator[Names]:
    """The smallest of these sets among the names. `looks`: how many more there may be; raises _TooMany after these."""
    if len(names) < 2 or _looked(family, names, looks):
        return
    least = names
    for n in names:
        fewer = tuple(x for x in least if x != n)
        if len(fewer) > 1 and not _looked(family, fewer, looks):
            least = fewer
    yield least
    for n in least:
        yield from _smallest(family, tuple(x for x in names if x != n), looks)


def _looked(family: Family, names: Names, looks: list[int]) -> bool:
    looks[0] -= 1
    if looks[0] < 0:
        raise _TooMany
    return _alike(family, names)


def _alike(family: Family, names: Names) -> bool:
    return family.bound is None or alike_at_one(family.bound, names)


def _may_be_one(t: Term, facts: frozenset[Term]) -> bool:
    return not (t.is_const and t.attr != 1) and not Solver().implies(facts, T.make("ne", t, 1))
