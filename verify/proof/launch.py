"""One launch of a configuration, executed: its accesses as elements of buffers, without loop variables and loads."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from trilift.lift.terms.term import Term
from trilift.lift.ttir.ir import Op

from ..loops.invariant import Loops
from ..memory.contents import Content
from ..memory.sites import Site, locate
from ..memory.stores import Found
from ..model.configuration import Buffer, SymbolicLaunch, View
from ..model.program import Access, Loop, Program


@dataclass
class Launched:
    """One launch of a configuration, executed. `sites`: its accesses without loop variables. `seen`: what loads
    of what the launch writes find. `forwarding`: stores whose values are being looked up. `left`: what it wrote holds
    afterwards."""

    launch: SymbolicLaunch
    program: Program
    loops: Loops
    sites: tuple[Site, ...] = ()
    written_to: set[Buffer] = field(default_factory=set)
    seen: dict[tuple[int, Buffer], Found] = field(default_factory=dict)
    forwarding: set[Op] = field(default_factory=set)
    resolved_loops: dict[int, Loop] = field(default_factory=dict)
    left: dict[Buffer, Content] = field(default_factory=dict)

    @property
    def views(self) -> dict[str, View]:
        """The buffers of the pointer arguments."""
        arguments = zip(self.program.module.entry.args, self.launch.operands, strict=True)
        return {a.name.removeprefix("%"): x for a, x in arguments if isinstance(x, View)}

    def plain(self, t: Term) -> Term:
        """A term without names for what depends on the program id."""
        return t if self.loops.names is None else self.loops.names.plain(t)

    def located(self, a: Access) -> tuple[Site, ...]:
        """The access as elements of buffers."""
        return tuple(locate(a, self.program, self.launch))

    def named(self, site: Site) -> Site | None:
        """The site with names for what depends on the program id; None where there is nothing to name."""
        if self.loops.names is None or not self.loops.names.definitions:
            return None
        resolved = self.loops.resolved
        for a in self.program.accesses:
            if a.op is site.access.op and a.order == site.access.order:
                around = tuple(replace(x, trips=resolved(x.trips), guard=resolved(x.guard)) for x in a.loops)
                guard, pointer = resolved(a.guard), resolved(a.pointer)
                value = resolved(a.value) if a.value is not None and a.kind != "load" else None
                found = self.located(replace(a, guard=guard, pointer=pointer, value=value, loops=around))
                same = [s for s in found if s.view is site.view and s.access.lanes == site.access.lanes]
                if len(same) == 1:
                    return same[0]
        return None

    def may_touch(self, a: Access, buffer: Buffer) -> bool:
        """Whether an access may be to the buffer."""
        names = {str(p.attr).removeprefix("%") for p in a.pointer.walk() if p.op == "pointer"}
        return any(v.buffer is buffer for n, v in self.views.items() if n in names)

    def around(self, loop: Loop) -> Loop:
        """The loop with its length and guard over sizes, program ids and counters only."""
        if id(loop) not in self.resolved_loops:
            condition = None if loop.condition is None else self.loops.resolved(loop.condition)
            condition = None if condition is None else self.plain(condition)
            trips, guard = (self.plain(self.loops.resolved(t)) for t in (loop.trips, loop.guard))
            self.resolved_loops[id(loop)] = replace(loop, trips=trips, guard=guard, condition=condition)
        return self.resolved_loops[id(loop)]
