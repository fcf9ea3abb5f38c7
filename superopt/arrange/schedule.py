"""The order of a block's operators with the fewest barriers (Mirage, section 6: operators by their depth).

The depth of an operator is the number of barriers before it: one more than that of an operator from which it reads
through shared memory, no less than that of any other it reads from. Operators of one depth share a barrier. Barriers in
a loop come first, they run in every turn: a loop begins at the first depth from which none is added to those that its
own operators need, and behind a barrier where it follows another one, whose tiles its own may replace. No order has
fewer barriers, in a loop or in all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ..mugraph.graph import Kernel, Operator
from ..mugraph.threads import Unit, exchanged, fused, makes, operators, reads, sides

Edges = Mapping[Unit, Sequence[tuple[Unit, int]]]  # from whom a unit reads, and 1 where that needs a barrier


@dataclass(frozen=True)
class Schedule:
    """`units` in order, with the depth of each, and its side of the loops as in `superopt.mugraph.threads.sides`."""

    kernel: Kernel
    units: tuple[Unit, ...]
    depths: tuple[int, ...]
    sides: tuple[int, ...]

    @property
    def barriers(self) -> int:
        """In the text of the kernel."""
        return max(self.depths, default=0)

    @property
    def barriers_in_loop(self) -> int:
        """Of every turn of a loop; of several loops, in one turn of each."""
        return sum(max(ds) - min(ds) for ds in self.turns.values())

    @property
    def turns(self) -> dict[int, list[int]]:
        """The depths of each loop, by its side."""
        rows = list(zip(self.sides, self.depths, strict=True))
        return {s: [d for side, d in rows if side == s] for s in sorted({*self.sides}) if s % 2}

    @property
    def groups(self) -> tuple[tuple[Unit, ...], ...]:
        """The units between two barriers."""
        rows = list(zip(self.units, self.depths, strict=True))
        return tuple(tuple(u for u, d in rows if d == depth) for depth in range(self.barriers + 1))


def edges(k: Kernel, units: Sequence[Unit]) -> dict[Unit, list[tuple[Unit, int]]]:
    """From whom each unit reads, and 1 where that needs a barrier."""
    maker = {v: u for u in units for v in makes(u)}
    passes = exchanged(k)
    return {u: [(maker[a], int(any((a, o) in passes for o in operators(u)))) for a in reads(u)] for u in units}


def given(k: Kernel) -> Schedule:
    """The units in the order in which the kernel has them, a barrier only where the next one needs it."""
    units, place = fused(k), sides(k)
    side = [place[operators(u)[-1]] for u in units]
    order = sorted(range(len(units)), key=side.__getitem__)
    from_ = edges(k, units)
    depths: dict[Unit, int] = {}
    now, left, entered = 0, 0, 1
    for u, s in ((units[n], side[n]) for n in order):
        first = s % 2 == 1 and s > entered
        now += any(barrier and depths[v] == now for v, barrier in from_[u]) or (first and now == left)
        if s % 2:
            left, entered = now, s
        depths[u] = now
    return Schedule(k, tuple(units[n] for n in order), tuple(depths.values()), tuple(side[n] for n in order))


def scheduled(k: Kernel) -> Schedule:
    """The units by depth; of one depth as the kernel has them. Stores come last."""
    units, place = fused(k), sides(k)
    side = {u: place[operators(u)[-1]] for u in units}
    from_ = edges(k, units)
    depth: dict[Unit, int] = {}
    floor = 0
    left = 0  # the first depth behind the last loop
    for phase in range(max(side.values(), default=0) + 1):
        own = [u for u in units if side[u] == phase]
        if phase % 2:
            floor = _entry(own, from_, depth, max(floor, left))
        for u in own:
            depth[u] = max([floor, *(depth[v] + barrier for v, barrier in from_[u])])
        floor = max((depth[u] for u in own), default=floor)
        left = floor + 1 if phase % 2 else left
    for u in units:
        if _is_store(u) and side[u] % 2 == 0:
            depth[u] = floor
    order = sorted(units, key=lambda u: (side[u], depth[u], _is_store(u)))
    return Schedule(k, tuple(order), tuple(depth[u] for u in order), tuple(side[u] for u in order))


def _entry(own: Sequence[Unit], from_: Edges, depth: Mapping[Unit, int], floor: int) -> int:
    """The depth at which a loop begins: what it reads from before it adds no barrier to it."""
    within = {u: [(v, b) for v, b in from_[u] if v not in depth] for u in own}
    below = dict.fromkeys(own, 0)  # barriers of a turn after a unit
    for u in reversed(own):
        for v, barrier in within[u]:
            below[v] = max(below[v], below[u] + barrier)
    length = max(below.values(), default=0)
    return max([floor, *(depth[v] + b - (length - below[u]) for u in own for v, b in from_[u] if v in depth)])


def _is_store(u: Unit) -> bool:
    return isinstance(u, Operator) and u.op == "store"


def violations(s: Schedule) -> list[str]:
    """Where the schedule is none: values that are read before they are made, or without a barrier; sides of the loops
    out of order; units that are not the kernel's."""
    at = {u: (n, d) for n, (u, d) in enumerate(zip(s.units, s.depths, strict=True))}
    out = ["the units are not those of the kernel"] if {*s.units} != {*fused(s.kernel)} else []
    out += ["depths fall"] if list(s.depths) != sorted(s.depths) else []
    out += ["what runs after the loop comes before it"] if list(s.sides) != sorted(s.sides) else []
    for u, sources in edges(s.kernel, s.units).items():
        for v, barrier in sources:
            if at[v][0] >= at[u][0]:
                out.append(f"{makes(v)[0]} is read before it is made")
            elif at[v][1] + barrier > at[u][1]:
                out.append(f"{makes(v)[0]} is read without a barrier")
    return out


def arranged(s: Schedule) -> Kernel:
    """The kernel with its operators in this order, and its thread graphs."""
    threads = tuple(tuple(o.out for o in operators(u)) for u in s.units if not isinstance(u, Operator))
    return replace(s.kernel, operators=tuple(o for u in s.units for o in operators(u)), threads=threads)
