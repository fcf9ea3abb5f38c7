"""Shapes of a class: dims that meet the facts of a configuration, so that what is not proved there is run there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from trilift.lift.cases.declaration import Case
from trilift.lift.cases.shapes import choose
from trilift.lift.errors import CaseError
from trilift.lift.terms import construct as T
from trilift.lift.terms.term import Term

from ..integers.solver import Solver
from ..model.configuration import Configuration, SymbolicLaunch

Dims = dict[str, int | float]


def shapes(case: Case, configuration: Configuration, count: int, seed: int = 0) -> list[Dims]:
    """Up to `count` unlike assignments that the case allows and that meet what the facts of the configuration say of
    dims and scalars; fewer where none is found."""
    known = {*case.names, *case.scalars}
    meant = definitions(configuration.facts, known)
    every = [with_symbols(f, meant) for f in sorted(configuration.facts, key=repr)]
    mine = replace(case, where=T.make("and", True, case.where, *(f for f in every if over(f, known))))
    for n in range(count, 0, -1):
        try:
            return choose(mine, n, seed)
        except CaseError:
            continue
    return []


def at_branches(case: Case, configuration: Configuration, like: Mapping[str, int | float]) -> list[Dims]:
    """A shape for each set of constants that the host function was seen to choose, and on each side of every choice,
    other dims as in `like` where they may be; without shapes that the case excludes."""
    known = {*case.names, *case.scalars}
    facts = frozenset(f for f in (case.where, *configuration.facts) if over(f, known))
    wanted = dict.fromkeys(t for t in _sides(configuration) if over(t, known))
    found = [dict(d) for d in configuration.runs]
    for w in wanted:
        model = Solver().model(facts | {w}) or {}
        dims = {**like, **{n: v for n, v in model.items() if n in known}}
        if model and case.holds(dims):
            found.append(dims)
    return found


def _sides(configuration: Configuration) -> Iterator[Term]:
    """Conditions of one side of a choice: of a grid that does not exceed a number, min(cdiv(N, 64), 300), that it just
    would; of a launch argument where(N == 5003, 1, 0) the condition, and its opposite."""
    launches = [e for e in configuration.events if isinstance(e, SymbolicLaunch)]
    grids = [g for e in launches for g in e.grid]
    scalars = [t for e in launches for t in e.operands if isinstance(t, Term)]
    for t in (s for g in grids for s in g.walk() if s.op == "min"):
        yield from (T.make("eq", a, b.attr + 1) for b in t.args if b.is_const for a in t.args if a is not b)
    for t in (
        s for x in (*grids, *scalars, *sorted(configuration.facts, key=repr)) for s in x.walk() if s.op == "where"
    ):
        yield from (t.args[0], T.make("not", t.args[0]))


def definitions(facts: Iterable[Term], known: Iterable[str]) -> dict[str, Term]:
    """The values of symbols that are not dims, where a fact gives them."""
    known = set(known)
    out: dict[str, Term] = {}
    for f in sorted((f for f in facts if f.op == "eq"), key=repr):
        for a, b in (f.args, f.args[::-1]):
            if a.op == "size" and a.attr not in known and over(b, known):
                out.setdefault(str(a.attr), b)
    return out


def with_symbols(t: Term, meant: Mapping[str, Term]) -> Term:
    """The term with its symbols that are not dims replaced by what they mean."""
    return T.rewrite(t, lambda s: meant.get(str(s.attr)) if s.op == "size" else None)


def over(t: Term, known: Iterable[str]) -> bool:
    """Whether it is an expression over these names."""
    known = set(known)
    return not any(s.op in ("axis", "read", "carry", "undef") for s in t.walk()) and all(
        s.attr in known for s in t.walk() if s.op in ("size", "scalar")
    )
