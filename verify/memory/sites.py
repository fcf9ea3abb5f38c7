"""Accesses as elements of buffers, and what holds when they are executed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from trilift.lift.errors import Place, Unsupported
from trilift.lift.terms import construct as T
from trilift.lift.terms.term import Axis, Term

from ..integers.quotient import between, canonical, replace
from ..integers.solver import Facts
from ..model.configuration import Buffer, SymbolicLaunch, View
from ..model.program import PIDS, Access, Arithmetic, Loop, Program


@dataclass(frozen=True, eq=False, slots=True)
class Site:
    """One access: element `offset` of the buffer of `view`, the operand that its pointer came from, if `guard`."""

    access: Access
    view: View
    offset: Term
    guard: Term
    grid: tuple[Term, Term, Term]

    @property
    def buffer(self) -> Buffer:
        return self.view.buffer

    @property
    def place(self) -> Place | None:
        return self.access.place

    @property
    def writes(self) -> bool:
        return self.access.kind != "load"

    @property
    def text(self) -> str:
        where = f" at line {self.place.line}" if self.place else ""
        kind = self.access.kind if self.access.kind in ("load", "store") else f"atomic {self.access.kind}"
        return f"{kind} of {self.buffer.name}{where}"

    @property
    def unknowns(self) -> dict[Term, Term]:
        """Program ids, counters and lanes, each with the number of its values."""
        return unknowns(self.grid, self.access.loops, self.access.lanes)

    def facts(self) -> Facts:
        """The facts when it is executed: the guard, and where program ids, counters and lanes are."""
        return context(self.grid, self.access.loops, self.access.lanes, self.guard)


def sites(program: Program, launch: SymbolicLaunch) -> tuple[Site, ...]:
    """Every access of the launch. Raises Unsupported where a pointer comes from no tensor."""
    return tuple(s for a in program.accesses for s in locate(a, program, launch))


def locate(access: Access, program: Program, launch: SymbolicLaunch) -> Iterator[Site]:
    """where(c, p, q) as a pointer is p under c and q otherwise."""
    names = {a.name: x for a, x in zip(program.module.entry.args, launch.operands, strict=True)}
    for condition, p in _choices(access.pointer, T.const(True)):
        view = names.get(p.attr, names.get(f"%{p.attr}")) if p.op == "pointer" else None
        if not isinstance(view, View):
            raise Unsupported(f"the address of a {access.kind}", access.place, "it does not point into a tensor")
        guard = T.make("and", access.guard, condition)
        yield Site(access, view, canonical(T.add(view.offset, p.args[0])), guard, program.grid)


def _choices(p: Term, condition: Term) -> Iterator[tuple[Term, Term]]:
    if p.op == "where":
        yield from _choices(p.args[1], T.make("and", condition, p.args[0]))
        yield from _choices(p.args[2], T.make("and", condition, T.make("not", p.args[0])))
    else:
        yield condition, p


def unknowns(grid: Iterable[Term], loops: Iterable[Loop], lanes: Iterable[Axis]) -> dict[Term, Term]:
    """Program ids of axes with more than one program, counters and lanes, each with the number of its values."""
    out = {p: n for p, n in zip(PIDS, grid, strict=True) if n is not T.const(1)}
    out |= {T.axis(loop.counter): loop.trips for loop in loops}
    return out | {T.axis(a): a.size for a in lanes}


def context(grid: Iterable[Term], loops: Iterable[Loop], lanes: Iterable[Axis], guard: Term) -> Facts:
    """Ranges of program ids, counters and lanes; the guard, and those of the loops."""
    grid, loops = tuple(grid), tuple(loops)
    out = [between(u, n) for u, n in unknowns(grid, loops, lanes).items()]
    out += [T.make("eq", p, 0) for p, n in zip(PIDS, grid, strict=True) if n is T.const(1)]
    out += [loop.guard for loop in loops] + [guard]
    return conjuncts(out)


def conjuncts(conditions: Iterable[Term]) -> Facts:
    """One fact for each part of the conditions."""
    parts = (p for c in conditions for p in (c.args if c.op == "and" else (c,)))
    return frozenset(p for p in parts if p is not T.const(True))


def arithmetic_facts(a: Arithmetic, grid: Iterable[Term]) -> Facts:
    """The facts where an integer operation is executed."""
    return context(grid, a.loops, a.lanes, a.guard)


def renamed(site: Site, mark: str) -> dict[Term, Term]:
    """Another program, iteration and lane of the same site: every unknown with another name."""
    out: dict[Term, Term] = {}
    for u, n in site.unknowns.items():
        size = replace(n, out)
        out[u] = T.size(u.attr + mark) if u.op == "size" else T.axis(Axis(u.attr.name + mark, size))
    return out


def moved(facts: Iterable[Term], values: Mapping[Term, Term]) -> Facts:
    return frozenset(replace(f, values) for f in facts)
