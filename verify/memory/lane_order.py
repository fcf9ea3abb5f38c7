"""The order of two accesses of one program to one element of global memory, one of them a store or an atomic.

Triton compiles a program to many threads, and promises an order between

    what one thread does                 in program order, at one address
    what tl.debug_barrier() separates    bar.sync of PTX, for all threads of the program
    a value and what is made of it       a store of x[i] + 1 comes after the load of x[i], if one lane loads it

and nothing else: a launch boundary orders programs, an atomic here orders only itself. Which thread has a lane is the
compiler's choice, for each access anew. Two accesses of tiles of one shape and element type are taken to give a lane
to one thread; where a proof needs it a clause says so. A scalar is loaded by every thread, and stored by one.

    u, v in range, guards, address(u) = address(v), u before v
    -----------------------------------------------------------
    lane(u) = lane(v), or a barrier is executed after u and before v
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from trilift.lift.terms import construct as T
from trilift.lift.terms.term import Term
from trilift.lift.ttir.ir import Op, Value

from ..integers.logical_index import asking, split
from ..integers.quotient import between, canonical, equalities, expand, minus, replace
from ..integers.solver import Facts, Solver
from ..model.barriers import pipelined
from ..model.configuration import View
from ..model.program import PIDS, Access, Barrier
from ..model.slices import ancestors
from ..model.verdict import Clause, Condition
from .sites import Site, conjuncts, moved

KIND = "order of lanes"


@dataclass(frozen=True, eq=False)
class Order:
    """Everything that puts the accesses of one launch in order. `barriers`: without loop variables; `raw`: each access
    as it was executed, by its order; `users`: operations that use a result; `bases`: the tensors of pointer arguments;
    `positions`: of the operations, in the order of the text."""

    barriers: Sequence[Barrier]
    raw: Mapping[int, Access]
    facts: Facts
    solver: Solver
    users: Mapping[Value, Sequence[Op]]
    bases: Mapping[str, View]
    positions: Mapping[Op, int]
    views: Sequence[View] = ()

    def checked(self, sites: Sequence[Site]) -> Iterator[Condition | Clause]:
        """For each two sites that may touch one element in one program: a condition where they are not in order, and a
        clause where that rests on the threads of lanes."""
        for earlier, later in pairs(sites):
            found = self.of(earlier, later)
            if found is not None:
                yield found

    def of(self, a: Site, b: Site) -> Condition | Clause | None:
        """That a comes before b wherever both touch one element and a is executed first; None where no question
        remains, a clause where a lane needs one thread for both."""
        if self.waits(a, b):
            return None
        every = list(orders(a, b))
        made = self.made_of(a, b) and all(case.facts or self.alone(a, case) for case in every)
        cases = [case for case in every if not (made and not case.facts)]
        if all(self.apart(a, b, case) for case in cases):
            return None
        what, start = f"the {a.text} comes before the {b.text} in every lane", time.monotonic()
        for case in cases:
            known, barriers = self.question(a, b, case)
            goal = T.make("or", T.const(False), *barriers, *self.own_lane(a, b, case))
            before = len(self.solver.records)
            if not self.solver.implies(known, goal, what, b.place):
                del self.solver.records[before:]
                if (meeting := self.reduction(a, b)) is not None:
                    return through(meeting, a, b)
                seconds, why = time.monotonic() - start, missing(a, b)
                return Condition(what, known, goal, False, "linear", seconds, b.place, why, kind=KIND)
        return None if made or a.access.op is b.access.op or not a.access.lanes else one_thread(a, b)

    def apart(self, a: Site, b: Site, case: Case) -> bool:
        """Whether they never touch one element in this order, or a barrier is between."""
        if distant(replace(a.offset, case.values), b.offset):
            return True
        known, barriers = self.question(a, b, case)
        return self.solver.implies(known, T.make("or", T.const(False), *barriers))

    # ---- one question

    def question(self, a: Site, b: Site, case: Case) -> tuple[Facts, list[Term]]:
        """The facts where both touch one element in this order, and that a barrier is between."""
        known = self.facts | b.facts() | moved(a.facts(), case.values) | conjuncts(case.facts)
        known |= frozenset(self.same_element(a, b, known, case))
        return known, [t for x in self.barriers for t in self.separates(x, a, b, case)]

    def same_element(self, a: Site, b: Site, known: Facts, case: Case) -> Iterator[Term]:
        """One offset, and one index in a view whose index both have."""
        there = replace(a.offset, case.values)
        yield T.make("eq", canonical(there), canonical(b.offset))
        ask, equal = asking(known, self.solver), equalities(known)
        for view in self.views:
            if view.buffer is not a.buffer:
                continue
            first, second = split(there, view, ask, equal), split(b.offset, view, ask, equal)
            if first is not None and second is not None:
                yield from (T.make("eq", x, y) for x, y in zip(first.index, second.index, strict=True))
                return

    def separates(self, barrier: Barrier, a: Site, b: Site, case: Case) -> Iterator[Term]:
        """That the barrier is executed after a and before b: in the iteration of a, in that of b, else in the first."""
        for mine, theirs in ((a, b), (b, a)):
            values: dict[Term, Term] = {}
            for loop in barrier.loops:
                n = T.axis(loop.counter)
                ways = {a: case.values.get(n, n) if loop in a.access.loops else None,
                        b: n if loop in b.access.loops else None}  # fmt: skip
                values[n] = next((w for w in (ways[mine], ways[theirs]) if w is not None), T.const(0))
            inside = [replace(barrier.guard, values)]
            for loop in barrier.loops:
                inside += [
                    replace(loop.guard, values),
                    between(values[T.axis(loop.counter)], replace(loop.trips, values)),
                ]
            after = _before(a, case.values, barrier, values)
            yield T.make("and", T.const(True), after, _follows(barrier, values, b), *inside)

    def own_lane(self, a: Site, b: Site, case: Case) -> list[Term]:
        """That it is one lane, where lanes of both have one thread."""
        if not self.alike(a, b):
            return []
        lanes = zip(a.access.lanes, b.access.lanes, strict=True)
        return [T.make("and", T.const(True), *(T.make("eq", case.values[T.axis(x)], T.axis(y)) for x, y in lanes))]

    def alike(self, a: Site, b: Site) -> bool:
        """Whether both have tiles of one shape and element type; scalars: whether only the thread that stores uses what
        is loaded."""
        shapes = [[x.size for x in s.access.lanes] for s in (a, b)]
        if shapes[0] != shapes[1] or a.access.type.element != b.access.type.element:
            return False
        return bool(shapes[0]) or all(s.writes or self.stays(s.access.op) for s in (a, b))

    # ---- values

    def stays(self, load: Op) -> bool:
        """Whether a scalar only goes into scalars that are stored: by the one thread that stores scalars."""
        todo, seen = [load], {load}
        while todo:
            for user in (u for r in todo.pop().results for u in self.users.get(r, ())):
                if user.name in STORES and not any(v.type.shape for v in user.operands):
                    continue
                scalar = user.results and not user.regions and not any(r.type.shape for r in user.results)
                if not scalar or (user.name not in LOCAL and not user.name.startswith(("arith.", "math."))):
                    return False
                if user not in seen:
                    seen.add(user)
                    todo.append(user)
        return True

    def waits(self, a: Site, b: Site) -> bool:
        """Whether a store depends on a reduction of all that a load found."""
        return self.every_copy(a) and reduced(a.access.op, b.access.op)

    def made_of(self, a: Site, b: Site) -> bool:
        """Whether a store of an element depends on what the load found there in the same iteration."""
        return self.every_copy(a) and reads_there(self.raw[a.access.order], self.raw[b.access.order], self.bases)

    def alone(self, a: Site, case: Case) -> bool:
        """Whether no two lanes of a load, nor two iterations that come before a store, find one element: the value that
        is stored there waits for one of them, and not for the other."""
        again = [u for u, v in case.values.items() if u is not v and u in a.unknowns]
        known = self.facts | a.facts() | moved(a.facts(), case.values)
        known |= frozenset(self.same_element(a, a, known, case))
        goal = T.make("and", T.const(True), *(T.make("eq", case.values[u], u) for u in again))
        return self.solver.implies(known, goal)

    def every_copy(self, a: Site) -> bool:
        """Whether a load is of a tile, or of a number that only the thread uses that stores: all threads load it."""
        return a.access.kind == "load" and (bool(a.access.lanes) or self.stays(a.access.op))

    def reduction(self, a: Site, b: Site) -> Op | None:
        """A reduction of a tile to one number behind a load, on which a store depends: its threads exchange what they
        have, and so are all past the load."""
        if a.access.kind != "load" or not b.writes or a.access.op not in self.positions:
            return None
        full = [op for op in ancestors(b.access.op.operands) if is_full(op)]
        later = [op for op in full if self.positions.get(op, -1) > self.positions[a.access.op]]
        return min(later, key=lambda op: self.positions[op], default=None)


STORES = frozenset(("tt.store",))
LOCAL = frozenset(("tt.addptr", "tt.bitcast", "tt.fp_to_fp", "tt.int_to_ptr", "tt.ptr_to_int"))


@dataclass(frozen=True, eq=False)
class Case:
    """One way of coming first: the unknowns of the earlier site, and the facts about them; none in one iteration."""

    values: Mapping[Term, Term]
    facts: tuple[Term, ...]


def distant(a: Term, b: Term) -> bool:
    """Whether two offsets differ by a number that no lanes make 0: by 1024 + i - j for i, j < 1024."""
    low, high = 0, 0
    for monomial, factor in minus(expand(canonical(a)), expand(canonical(b))).items():
        ends = [0, int(factor)] if monomial else [int(factor)] * 2
        for t in monomial:
            if len(monomial) > 1 or t.op != "axis" or not t.attr.size.is_const or factor != int(factor):
                return False
            ends = [0, int(factor) * (int(t.attr.size.attr) - 1)]
        low, high = low + min(ends), high + max(ends)
    return low > 0 or high < 0


def pairs(sites: Sequence[Site]) -> Iterator[tuple[Site, Site]]:
    """(earlier, later) sites of one buffer, one of which writes. Atomics of one kind commute."""
    for a in sites:
        for b in sites:
            if a.buffer is not b.buffer or not (a.writes or b.writes):
                continue
            if a.access.kind == b.access.kind not in ("store", "load"):
                continue
            if a.access.order < b.access.order or any(x in b.access.loops for x in a.access.loops):
                yield a, b


def orders(a: Site, b: Site) -> Iterator[Case]:
    """The ways in which a comes before b: in an earlier iteration of a common loop, else in the order of the sites."""
    common = [x for x in a.access.loops if x in b.access.loops]
    for k in range(len(common) + 1):
        if k == len(common) and a.access.order >= b.access.order:
            return
        same = {T.axis(x.counter): T.axis(x.counter) for x in common[:k]}
        values = another(a, {**same, **{p: p for p in PIDS}})
        facts = [T.make("lt", values[n], n) for x in common[k : k + 1] for n in (T.axis(x.counter),)]
        yield Case(values, tuple(facts))


def another(site: Site, kept: Mapping[Term, Term]) -> dict[Term, Term]:
    """Another iteration and lane of a site in the same program: every unknown with another name but those kept."""
    out = dict(kept)
    for u, n in site.unknowns.items():
        if u not in out:
            size = replace(n, out)
            out[u] = T.size(f"{u.attr}'") if u.op == "size" else T.axis(T.Axis(f"{u.attr.name}'", size))
    return out


def _before(a: Site, values: Mapping[Term, Term], barrier: Barrier, at: Mapping[Term, Term]) -> Term:
    """Does the access come before the barrier? Iterations of loops around both, then the order of the sites."""
    out = T.const(a.access.order < barrier.order)
    for loop in reversed([x for x in a.access.loops if x in barrier.loops]):
        n = T.axis(loop.counter)
        out = _lexicographic(values[n], at[n], out)
    return out


def _follows(barrier: Barrier, at: Mapping[Term, Term], b: Site) -> Term:
    """Does the barrier come before the access?"""
    out = T.const(barrier.order <= b.access.order)
    for loop in reversed([x for x in b.access.loops if x in barrier.loops]):
        n = T.axis(loop.counter)
        out = _lexicographic(at[n], n, out)
    return out


def _lexicographic(m: Term, n: Term, rest: Term) -> Term:
    return T.make("or", T.make("lt", m, n), T.make("and", T.make("eq", m, n), rest))


# ---- values ----------------------------------------------------------------------------------------------------------


def reads_there(load: Access, store: Access, bases: Mapping[str, View]) -> bool:
    """Whether the value stored to an element is made of what the load found in that element."""
    if store.value is None or store.pointer.op != "pointer" or load.kind != "load":
        return False
    target, view = canonical(store.pointer.args[0]), bases.get(str(store.pointer.attr).removeprefix("%"))
    same = [n for n, v in bases.items() if view is not None and (v.buffer, v.offset) == (view.buffer, view.offset)]
    names = {f"{mark}{n}@{load.site}" for n in same for mark in ("", "%")}
    return any(
        t.op == "read" and t.attr in names and any(canonical(o) is target for o in _readings(t.args[0], store))
        for t in store.value.walk()
    )


def _readings(offset: Term, store: Access) -> Iterator[Term]:
    """The offset; with an axis that a reduction binds, of the size of a lane, as that lane."""
    yield offset
    mine = {*store.lanes, *(loop.counter for loop in store.loops)}
    for bound in [x for x in offset.free if x not in mine]:
        for lane in store.lanes:
            if lane.size is bound.size:
                yield T.substitute(offset, {bound: T.axis(lane)})


def reduced(load: Op, store: Op) -> bool:
    """Whether the store depends on a reduction to one number of all that was loaded."""
    full = [op for op in ancestors(store.operands) if is_full(op)]
    return any(load in ancestors(op.operands) for op in full)


def is_full(op: Op) -> bool:
    """Whether it makes one number of a tile."""
    return op.name == "tt.reduce" and not op.results[0].type.shape


# ---- words -----------------------------------------------------------------------------------------------------------


def lines(a: Site, b: Site) -> str:
    """The places of both."""
    found = sorted({s.place.line for s in (a, b) if s.place})
    return " and ".join(f"line {n}" for n in found) if len(found) != 1 else f"them (line {found[0]})"


def missing(a: Site, b: Site) -> str:
    """The message for a program that does not order two accesses: the risk, and where a barrier goes."""
    where = "between two iterations" if a.access.op is b.access.op else f"between {lines(a, b)}"
    return f"another lane may touch the element at the same time; put tl.debug_barrier() {where}"


def one_thread(a: Site, b: Site) -> Clause:
    """The clause that a lane of both has one thread."""
    verbs = sorted({(s.place.line if s.place else 0, _verb(s)) for s in (a, b)})
    how = " and ".join(f"{verb} (line {line})" if line else verb for line, verb in verbs)
    return Clause(
        "lanes", None, f"one thread {how} each element of {a.buffer.name}", "lanes without tl.debug_barrier()"
    )


def sides(c: Condition) -> tuple[str, str]:
    """The two accesses of a condition of this kind, in words."""
    first, _, second = c.what.partition(" comes before the ")
    return first.removeprefix("the "), second.removesuffix(" in every lane")


def through(op: Op, a: Site, b: Site) -> Clause:
    """The clause that the threads of a program meet in a reduction."""
    where = f" at line {op.place.line}" if op.place else ""
    text = f"all threads are past the {a.text} when the reduction{where} ends, before the {b.text}"
    return Clause("lanes", None, text, "lanes without tl.debug_barrier()")


def _verb(s: Site) -> str:
    return {"load": "loads", "store": "stores"}.get(s.access.kind, "updates")


# ---- loops that Triton pipelines -------------------------------------------------------------------------------------

AHEAD = "loads in a pipelined loop"


def in_pipeline(sites: Sequence[Site]) -> Iterator[Condition]:
    """A condition that is not shown for each load in a pipelined loop that also stores to its buffer: Triton may load
    for later iterations first."""
    for load in (s for s in sites if not s.writes):
        for loop in (x for x in load.access.loops if pipelined(x.op)):
            store = next((s for s in sites if s.writes and s.buffer is load.buffer and loop in s.access.loops), None)
            if store is not None:
                why = f"Triton pipelines the loop: the {load.text} may come before an earlier {store.text}"
                what = f"the {load.text} reads nothing that the loop stores"
                yield Condition(what, frozenset(), T.const(False), False, "linear", 0.0, load.place, why, kind=AHEAD)
                break
