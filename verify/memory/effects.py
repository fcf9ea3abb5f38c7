"""The contents that one launch leaves in a buffer, element by element.

stores     where(C(e), value(w(e)), before(e)): C, w of `verify.memory.stores`; several stores: the later one
           in program order
atomics    before(e) + sum[u: u in range, guard(u), index(u) = e] value(u), u all program ids, counters and lanes;
           those that the element determines are w(e)

C says that w(e) writes e. That nobody else does later, or only the same value, is shown for every u that writes:

    u in range, guard(u)  =>  C(index(u)), and value(u) = value(w(index(u))) or u comes before w(index(u))

which is true of itself where u = w(index(u)).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from trilift.lift.terms import construct as T
from trilift.lift.terms.term import Axis, Term

from ..integers.logical_index import asking
from ..integers.quotient import equalities, reduce, replace
from ..integers.solver import Facts, Solver
from ..model.configuration import View
from ..model.program import PIDS, Element
from ..model.verdict import Clause
from ..normal_form.algebra import ALL, Undecided
from .sites import Site, conjuncts
from .stores import Missing, Written, holds, index_facts, open_goals, precedes, written

Agree = Callable[[Term, Term, Facts], bool]  # are two terms equal under facts?
COMBINED = {"add": ("sum", "add", 0), "max": ("amax", "max", -math.inf), "min": ("amin", "min", math.inf)}


@dataclass(frozen=True, slots=True)
class Effect:
    """Element `index` holds where(condition, value, ...) for a store; for an atomic, `value` is what is combined."""

    index: tuple[Axis, ...]
    condition: Term
    value: Term

    def at(self, index: Sequence[Term]) -> tuple[Term, Term]:
        """Condition and value at a logical index."""
        images = dict(zip(self.index, index, strict=True))
        return T.substitute(self.condition, images), T.substitute(self.value, images)


def left(sites: Sequence[Site], view: View, before: Element, facts: Facts, solver: Solver, agree: Agree) -> Element:
    """The contents of a view without two indices at one element after a launch with these writes to its buffer; all of
    them write in the view. `before`: what it held. Raises Undecided where that is not known."""
    kinds = {s.access.kind for s in sites}
    if kinds == {"store"}:
        effects = stored(sites, view, facts, solver, agree)
        return lambda index: _chosen(effects, index, before)
    kind = kinds.pop()
    if kinds or kind not in COMBINED or view.dtype.startswith("u"):
        first = next(s for s in sites if s.access.kind != "store")
        raise Undecided(f"{first.text} has no closed form", first.place)
    effects = [contribution(s, view, facts, solver) for s in sites]
    return lambda index: T.make(COMBINED[kind][1], before(index), *(e.at(index)[1] for e in effects))


def _chosen(effects: Iterable[Effect], index: Sequence[Term], before: Element) -> Term:
    """The latest of the effects whose condition holds; `before` is looked at only where it may matter."""
    chain = []
    for condition, value in (e.at(index) for e in reversed(list(effects))):
        chain.append((condition, value))
        if condition is T.const(True):
            break
    out = chain.pop()[1] if chain[-1][0] is T.const(True) else before(index)
    for condition, value in reversed(chain):
        out = T.where(condition, value, out)
    return out


# ---- stores ----------------------------------------------------------------------------------------------------------


def stored(sites: Sequence[Site], view: View, facts: Facts, solver: Solver, agree: Agree) -> list[Effect]:
    """One effect for each store, earliest first. Raises Undecided."""
    everyone = []
    for s in sorted(sites, key=lambda s: s.access.order):
        w = written(s, view, facts, solver)
        if isinstance(w, Missing):
            raise Undecided(w.text, w.place)
        exact(w, facts, solver, agree)
        everyone.append(w)
    for v, w in combinations(everyone, 2):
        in_order(v, w, facts, solver)
    return [Effect(w.index, T.make("and", True, *w.condition), _simple(w, facts, solver)) for w in everyone]


def _simple(w: Written, facts: Facts, solver: Solver) -> Term:
    """The value that the inverse stores; what is known of positions of elements is known nowhere else."""
    if not w.positions:
        return value(w)
    ask = asking(facts | index_facts(w.index) | w.positions | frozenset(w.condition), solver)
    reduced = T.rewrite(value(w), lambda s: reduce(s, ask) if s.type == T.INT and s.args else None)
    return T.rewrite(reduced, lambda s: s.args[1] if s.op == "where" and holds(s.args[0], ask) else None)


def value(w: Written) -> Term:
    """The value that the inverse stores."""
    assert w.site.access.value is not None
    return replace(w.site.access.value, _everyone(w))


def _everyone(w: Written) -> dict[Term, Term]:
    return {**dict.fromkeys(PIDS, T.const(0)), **w.inverse}


def exact(w: Written, facts: Facts, solver: Solver, agree: Agree) -> None:
    """Raises Undecided unless the inverse stands for all who write an element by this site."""
    if not w.inverse.keys() - w.recovered:
        return
    inside = facts | w.site.facts()
    there = {T.axis(a): x for a, x in zip(w.index, w.decoded.index, strict=True)}
    ask = asking(inside, solver, f"{w.site.text}: its writer")
    if not all(holds(replace(g, there), ask) for g in w.condition):
        raise Undecided(f"could not determine which elements the {w.site.text} writes", w.site.place)
    if ask(_not_later(w, there)):
        return
    assert w.site.access.value is not None
    if not agree(w.site.access.value, replace(value(w), there), inside):
        raise Undecided(f"the {w.site.text} may write two values to one element", w.site.place)


def _not_later(w: Written, there: Mapping[Term, Term]) -> Term:
    """Whoever writes an element does so no later than the inverse, in the same program and lane: iterations in
    lexicographic order."""
    counters = [T.axis(loop.counter) for loop in w.site.access.loops]
    if w.inverse.keys() - w.recovered - set(counters):
        return T.const(False)
    out = T.const(True)
    for n in reversed(counters):
        last = replace(w.inverse[n], there)
        out = T.make("or", T.make("lt", n, last), T.make("and", T.make("eq", n, last), out))
    return out


def in_order(v: Written, w: Written, facts: Facts, solver: Solver) -> None:
    """Raises Undecided unless whatever both sites write, w writes later, in the same program."""
    both = facts | index_facts(w.index) | conjuncts((*v.condition, *w.condition))
    ask = asking(both, solver, f"the {v.site.text} and the {w.site.text}")
    if ask(T.const(False)):
        return
    clash = Undecided(f"the {v.site.text} and the {w.site.text} may write one element", w.site.place)
    if (v.inverse.keys() - v.recovered) or (w.inverse.keys() - w.recovered):
        raise clash
    mine, theirs = _everyone(v), _everyone(w)
    goals = [T.make("eq", mine[p], theirs[p]) for p in PIDS]
    goals.append(replace(precedes(v.site, w.site, v.inverse), theirs))
    if not all(holds(g, ask) for g in goals):
        raise clash


# ---- atomics ---------------------------------------------------------------------------------------------------------


def contribution(site: Site, view: View, facts: Facts, solver: Solver) -> Effect:
    """The total that all executions of an atomic add to an element, or bring to its maximum or minimum."""
    w = written(site, view, facts, solver)
    if isinstance(w, Missing):
        raise Undecided(w.text, w.place)
    kind, _, unit = COMBINED[site.access.kind]
    assert site.access.value is not None
    lost = [u for u in site.unknowns if u not in w.recovered]
    bound = _bound(lost, [site.access.value, *site.facts()])
    images = {**dict.fromkeys(PIDS, T.const(0)), **w.inverse, **{u: T.axis(a) for u, a in bound.items()}}
    guards = conjuncts(replace(g, images) for g in (*site.facts(), *_meeting(w, facts)))
    there = facts | index_facts(w.index)
    outer = open_goals([g for g in guards if not g.free & set(bound.values())], there, solver, site.text)
    inner = _simpler([g for g in guards if g.free & set(bound.values())], there, solver)
    body = replace(site.access.value, images)
    for a in reversed(bound.values()):
        mine = [g for g in inner if a in g.free]
        inner = [g for g in inner if a not in g.free]
        body = T.fold(kind, a, T.where(T.make("and", True, *mine), body, unit))
    return Effect(w.index, T.const(True), T.where(T.make("and", True, *outer), body, unit))


def _meeting(w: Written, facts: Facts) -> list[Term]:
    """index(u) = e."""
    element = [T.axis(a) for a in w.index]
    out = []
    for g in w.decoded.groups:
        flat = T.add(*(T.mul(element[d], x) for d, x in zip(g.dims, g.weights, strict=True)))
        out.append(T.make("eq", replace(g.value, equalities(facts)), flat))
    grouped = {d for g in w.decoded.groups for d in g.dims}
    return out + [T.make("eq", e, 0) for d, e in enumerate(element) if d not in grouped]


def _bound(unknowns: Sequence[Term], terms: Iterable[Term]) -> dict[Term, Axis]:
    """An axis for each unknown that none of the terms binds; its guards restrict it."""
    taken = {s.attr.name for t in terms for s in t.walk() if s.op in T.FOLDS or s.op == "axis"}
    out: dict[Term, Axis] = {}
    for u in unknowns:
        name = f"each {u.attr if u.op == 'size' else u.attr.name}"
        while name in taken:
            name += "'"
        taken.add(name)
        out[u] = Axis(name, ALL)
    return out


def _simpler(guards: Sequence[Term], facts: Facts, solver: Solver) -> list[Term]:
    """Guards with fewer quotients, without those that hold anyway."""
    ask = asking(facts, solver)
    simple = (reduce(g, ask) for g in guards)
    return [g for g in simple if g is not T.const(True)]


def forwarded(w: Written, content: Term, index: Sequence[Term]) -> Term:
    """The value that a load of element `index` reads where the inverse stored `content` there."""
    return T.substitute(replace(content, _everyone(w)), dict(zip(w.index, index, strict=True)))


def accumulated(site: Site) -> Clause | None:
    """The clause that integers added up by an atomic fit their type."""
    if site.access.kind != "add" or not site.access.type.is_int:
        return None
    text = f"the sums in {site.buffer.name} fit {site.access.type.bits} bits"
    return Clause("nowrap", None, text, "integer arithmetic", site.place)
