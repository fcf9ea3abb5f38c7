"""Every element written, by whom, and by nobody else.

A store site has the index `index(u)` in a view, for unknowns u: program id, iterations, lanes. Its inverse w(e) says
who writes element e. Proved are, each under the facts of the case:

    C(e)  =>  w(e) is in range, meets the guard, and index(w(e)) = e         `condition`: C, which may be true
    u in range, guard(u)  =>  w(index(u)) = u                               `recovered`: the u for which that is so

    every e meets some C            every element is written
    all program ids recovered       no two programs write one element by this site
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from trilift.lift.errors import Place
from trilift.lift.terms import construct as T
from trilift.lift.terms.term import Axis, Term

from ..integers.logical_index import Decoded, asking, layout, rewritten, split
from ..integers.quotient import Ask, between, canonical, equalities, expand, reduce, replace, same
from ..integers.solver import Facts, Solver
from ..model.configuration import View
from ..model.program import PIDS
from ..model.verdict import Condition
from .address_inverse import System
from .element_position import DistinctInputs
from .element_position import settled as settled_positions
from .sites import Site, conjuncts, moved, renamed


@dataclass(frozen=True, eq=False, slots=True)
class Written:
    """Element `index` of `view` is written by `inverse` (unknown -> term over index), if `condition`. `goals`: all that
    makes it a writer. `decoded`: the index over the unknowns. `recovered`: unknowns that an element determines.
    `positions`: what is known of the positions of elements in the inverse."""

    site: Site
    view: View
    index: tuple[Axis, ...]
    decoded: Decoded
    inverse: Mapping[Term, Term]
    goals: tuple[Term, ...]
    condition: tuple[Term, ...]
    recovered: frozenset[Term]
    positions: Facts = frozenset()

    @property
    def value(self) -> Term:
        """The value stored at `index`."""
        assert self.site.access.value is not None
        return replace(self.site.access.value, self.inverse)

    @property
    def sole(self) -> bool:
        """No two programs write one element by this site."""
        return all(u in self.recovered for u in self.site.unknowns if u in PIDS)


@dataclass(frozen=True, slots=True)
class Missing:
    """The obstacle: the goal that does not follow, over index axes or unknowns; in words."""

    goal: Term
    text: str
    place: Place | None = None


def index_axes(view: View) -> tuple[Axis, ...]:
    """The logical index of a view, as axes."""
    return tuple(Axis(f"index{d}", n) for d, n in enumerate(view.shape))


def index_facts(index: Iterable[Axis]) -> Facts:
    return conjuncts(between(T.axis(a), a.size) for a in index)


def written(site: Site, view: View, facts: Facts, solver: Solver) -> Written | Missing:
    """The inverse of a store site, and what it needs to be one; Missing where there is no index or no inverse."""
    equal = equalities(facts)
    inside = facts | site.facts()
    ask = asking(inside, solver, f"index of the {site.text}")
    decoded = split(site.offset, view, ask, equal)
    if decoded is None:
        return Missing(T.const(False), f"could not express the {site.text} as an index of the tensor", site.place)
    index = index_axes(rewritten(view, equal))
    system = solve(site, decoded, index, facts | index_facts(index), solver, equal)
    inverse = system.solve()
    if inverse is None:
        return Missing(
            T.const(False), f"could not determine which program writes an element by the {site.text}", site.place
        )
    facts |= system.positions
    goals = (*system.found, *_goals(site, decoded, index, inverse, equal))
    condition = open_goals(goals, facts | index_facts(index), solver, f"{site.text}: its writer")
    back = {
        u for u, w in inverse.items() if equals(found(w, index, decoded, ask, solver.distinct), replace(u, equal), ask)
    }
    return Written(site, view, index, decoded, inverse, goals, condition, frozenset(back), frozenset(system.positions))


def found(t: Term, index: Sequence[Axis], decoded: Decoded, ask: Ask, distinct: DistinctInputs) -> Term:
    """A term over `index` at a decoded element, in the simpler of two ways: digit by digit, or with the last digit of a
    number as what the others leave of it, so that its digits together are the number again. Positions of elements of
    `distinct` inputs are their indices."""
    digits = {T.axis(a): x for a, x in zip(index, decoded.index, strict=True)}
    last = {}
    for g in decoded.groups:
        *others, unit = (T.axis(index[d]) for d in g.dims)
        last[unit] = T.sub(g.value, T.add(*map(T.mul, others, g.weights)))
    ways = (reduce(settled_positions(replace(x, digits), distinct, ask), ask) for x in (t, replace(t, last)))
    return min(ways, key=lambda x: sum(1 for _ in x.walk()))


def solve(
    site: Site, decoded: Decoded, index: Sequence[Axis], facts: Facts, solver: Solver, equal: Mapping[Term, Term]
) -> System:
    """The equations for the unknowns that write element `index`."""
    sizes = {u: canonical(replace(n, equal)) for u, n in site.unknowns.items()}
    system = System(sizes, asking(facts, solver, "writer"), solver.distinct)
    for g in decoded.groups:
        system.require(g.value, T.add(*(T.mul(T.axis(index[d]), w) for d, w in zip(g.dims, g.weights, strict=True))))
    return system


def _goals(
    site: Site, decoded: Decoded, index: Sequence[Axis], inverse: Mapping[Term, Term], equal: Mapping[Term, Term]
) -> tuple[Term, ...]:
    """In range, guarded, and at the element."""
    element = {d: T.axis(a) for d, a in enumerate(index)}
    out = []
    values = {**dict.fromkeys(PIDS, T.const(0)), **inverse}
    for f in sorted(site.facts(), key=lambda t: t.id):
        out.append(replace(replace(f, equal), values))
    for g in decoded.groups:
        flat = T.add(*(T.mul(element[d], w) for d, w in zip(g.dims, g.weights, strict=True)))
        out.append(T.make("eq", replace(g.value, values), flat))
    grouped = {d for g in decoded.groups for d in g.dims}
    out += [T.make("eq", element[d], 0) for d in element if d not in grouped]
    return tuple(out)


def open_goals(goals: Iterable[Term], facts: Facts, solver: Solver, what: str) -> tuple[Term, ...]:
    """Some of the goals, from which, with the facts, all the others follow."""
    left = [g for g in goals if not holds(g, asking(facts, solver, what))]
    for g in list(reversed(left)):
        others = facts | frozenset(x for x in left if x is not g)
        if holds(g, asking(others, solver, what)):
            left.remove(g)
    return tuple(left)


def holds(goal: Term, ask: Ask) -> bool:
    """Does it follow, with its quotients reduced or as it is?"""
    if goal.op == "eq" and goal.args[0].type == T.INT:
        return equals(goal.args[0], goal.args[1], ask)
    return ask(simpler := reduce(goal, ask)) or (simpler is not goal and ask(goal))


def equals(a: Term, b: Term, ask: Ask) -> bool:
    if expand(a) == expand(b):
        return True
    x, y = reduce(a, ask), reduce(b, ask)
    return same(x, y, ask) or ask(T.make("eq", x, y))


# ---- together --------------------------------------------------------------------------------------------------------


def covered(writers: Sequence[Written], facts: Facts, solver: Solver) -> Condition:
    """Every element is written by some site. The writers are of one view."""
    first = writers[0]
    if any(w.view != first.view for w in writers):
        raise ValueError("writers of different views")
    goal = T.make("or", *(_all(w.condition) for w in writers))
    what = f"every element of {first.view.buffer.name} is written"
    return asked(what, facts | index_facts(first.index), goal, solver, first.site.place)


def sole_writers(writers: Sequence[Written], facts: Facts, solver: Solver) -> list[Condition]:
    """No element is written by two programs: neither by one site, nor by two. The writers are of one view."""
    if any(w.view != writers[0].view for w in writers):
        raise ValueError("writers of different views")
    if not writers:
        return []
    out = [injective(writers[0].view, facts, solver)]
    for w in writers:
        lost = [u for u in w.site.unknowns if u in PIDS and u not in w.recovered]
        what = f"at most one program writes each element by the {w.site.text}"
        out.append(_one_program(w, lost, what, facts, solver) if lost else settled(what, facts, w.site.place))
    pairs = [(v, w) for k, w in enumerate(writers) for v in writers[:k]]
    return out + [_same_program(v, w, facts, solver) for v, w in pairs]


def _one_program(w: Written, lost: Sequence[Term], what: str, facts: Facts, solver: Solver) -> Condition:
    """Asked of the solver: two programs with the same index are one."""
    other = renamed(w.site, "'")
    known = facts | w.site.facts() | moved(w.site.facts(), other)
    known |= {T.make("eq", x, replace(x, other)) for x in w.decoded.index}
    return asked(what, known, _all(T.make("eq", u, other[u]) for u in lost), solver, w.site.place)


def _same_program(v: Written, w: Written, facts: Facts, solver: Solver) -> Condition:
    """An element that both sites write is written by one program."""
    what = f"if the {v.site.text} and the {w.site.text} write one element, one program does both"
    pids = [u for u in (*v.site.unknowns, *w.site.unknowns) if u in PIDS]
    known = facts | index_facts(w.index) | _certain(v) | _certain(w)
    if v.sole and w.sole:
        goal = _all(T.make("eq", v.inverse[u], w.inverse[u]) for u in dict.fromkeys(pids))
        return asked(what, known, goal, solver, w.site.place)
    other = renamed(w.site, "'")
    known = facts | v.site.facts() | moved(w.site.facts(), other)
    known |= {T.make("eq", x, replace(y, other)) for x, y in zip(v.decoded.index, w.decoded.index, strict=True)}
    goal = _all(T.make("eq", u, other[u]) for u in dict.fromkeys(pids))
    return asked(what, known, goal, solver, w.site.place)


def _certain(w: Written) -> Facts:
    """The facts about every element that the site writes: the goals about unknowns that an element determines."""
    lost = w.inverse.keys() - w.recovered
    return conjuncts(g for g in w.goals) if not lost else frozenset()


def injective(view: View, facts: Facts, solver: Solver) -> Condition:
    """Two indices in range are never at one element: each stride is larger than all that lies below it."""
    view = rewritten(view, equalities(facts))
    goals: list[Term] = []
    below: Term = T.const(0)
    for d in reversed(layout(view)):
        stride, n = view.strides[d], view.shape[d]
        goals.append(T.make("lt", below, stride))
        below = canonical(T.add(below, T.mul(T.sub(n, 1), stride)))
    counted = set(layout(view))
    goals += [T.make("le", n, 1) for d, n in enumerate(view.shape) if d not in counted]
    goal = _all(goals)
    return asked(f"the elements of a view of {view.buffer.name} are at distinct places", facts, goal, solver)


def asked(what: str, facts: Facts, goal: Term, solver: Solver, place: Place | None = None) -> Condition:
    """The condition that the goal follows from the facts, decided."""
    start, before = time.monotonic(), len(solver.records)
    ok = holds(goal, asking(facts, solver, what))
    asked_ = solver.records[before:]
    by, smt = (asked_[-1].by, asked_[-1].smt) if asked_ else ("normal form", "")
    return Condition(what, facts, goal, ok, by, time.monotonic() - start, place, "" if ok else f"{goal}", smt)


def _all(conditions: Iterable[Term]) -> Term:
    return T.make("and", True, *conditions)


def settled(what: str, facts: Facts, place: Place | None) -> Condition:
    """A consequence of the conditions that were asked when an inverse was found."""
    return Condition(what, facts, T.const(True), True, "inverse", 0.0, place)


# ---- loads of what is written ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Found:
    """The contents that a load reads: "initial", what was there before the launch; "stored", what `writer` stored in
    the same program, at `inverse` (unknowns of the store -> terms over those of the load); "unknown", because `why`."""

    kind: str
    writer: Written | None = None
    inverse: Mapping[Term, Term] | None = None
    why: str = ""

    @property
    def value(self) -> Term:
        assert self.writer is not None and self.inverse is not None and self.writer.site.access.value is not None
        return replace(self.writer.site.access.value, self.inverse)


def read_after_write(load: Site, writers: Sequence[Written | Site], facts: Facts, solver: Solver) -> Found:
    """The contents that a load reads in a buffer that the launch also writes. `writers`: every site that writes the
    buffer."""
    before: list[tuple[Written, dict[Term, Term]]] = []
    for w in writers:
        if isinstance(w, Site):
            return Found("unknown", why=f"could not determine what the {w.text} writes")
        met = _met(load, w, facts, solver)
        if isinstance(met, str):
            return Found("unknown", why=met)
        if met:
            before.append((w, met))
    if not before:
        return Found("initial")
    if len(before) > 1:
        return Found("unknown", why=f"the {load.text} reads what one of several stores wrote")
    return Found("stored", *before[0])


def _met(load: Site, w: Written, facts: Facts, solver: Solver) -> dict[Term, Term] | str:
    """{} if no execution of the store that the load can see writes its element; the inverse if one certainly does."""
    inside = facts | load.facts()
    ask = asking(inside, solver, f"{load.text} and {w.site.text}")
    decoded = split(load.offset, w.view, ask, equalities(inside))
    if not injective(w.view, facts, solver).holds or decoded is None:
        return f"could not express the {load.text} as an index of the written tensor"
    there = {T.axis(a): x for a, x in zip(w.index, decoded.index, strict=True)}
    if w.inverse.keys() - w.recovered:
        return _never_met(load, w, decoded, inside, solver)
    inverse = {u: found(x, w.index, decoded, ask, solver.distinct) for u, x in w.inverse.items()}
    hit = conjuncts(replace(g, there) for g in w.goals)
    hitting = asking(inside | hit, solver, f"{load.text} and {w.site.text}")
    if hitting(T.const(False)):
        return {}
    if not all(equals(x, u, hitting) for u, x in inverse.items() if u in PIDS):
        return f"the {load.text} may read what another program stores"
    earlier = precedes(w.site, load, inverse)
    if hitting(T.make("not", earlier)):
        return {}
    if all(holds(g, ask) for g in (*hit, earlier)):
        return inverse if w.site.access.kind == "store" else f"the {load.text} reads the result of an atomic"
    return f"the {load.text} reads what was stored only in some cases"


def _never_met(load: Site, w: Written, decoded: Decoded, inside: Facts, solver: Solver) -> dict[Term, Term] | str:
    """For stores that write an element more than once: every execution that meets the load comes later."""
    other = renamed(w.site, "'")
    meets = inside | moved(w.site.facts(), other)
    meets |= {T.make("eq", x, replace(y, other)) for x, y in zip(decoded.index, w.decoded.index, strict=True)}
    apart = [T.make("eq", u, other[u]) for u in w.site.unknowns if u in PIDS]
    goal = _all([*apart, T.make("not", precedes(w.site, load, other))])
    if solver.implies(meets, goal, f"{load.text} and {w.site.text}", load.place):
        return {}
    return f"the {load.text} may read what the {w.site.text} stores"


def precedes(first: Site, second: Site, values: Mapping[Term, Term]) -> Term:
    """Does `first`, its unknowns having these values, come before `second` in a program? Iterations of the loops around
    both in lexicographic order, then the order of the sites."""
    out = T.const(first.access.order < second.access.order)
    for loop in reversed([x for x in first.access.loops if x in second.access.loops]):
        n = T.axis(loop.counter)
        m = values[n]
        out = T.make("or", T.make("lt", m, n), T.make("and", T.make("eq", m, n), out))
    return out
