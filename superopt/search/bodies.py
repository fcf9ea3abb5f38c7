"""The possible computations of one kernel: values in the roles that a signature gives to bits, cuts, and derivations.

A signature gives each reduced axis a mode, which gives its three bits (which part, where in the part, where in the
tile) a role in the grid, the loop or the tile:

    whole  t t t      loop  f f t      grid  g t t      split  g f t      parts  t - -

A `sum` or `dot` takes all bits of an axis that are in the tile, `accumulate` all that are in the loop; the bit in the
grid stays, and what is stored then has one entry per part, which a kernel with mode `parts` reads. A value is made in
the loop or after it: one with loop bits never leaves the loop, and nothing that is made after it enters it.

The boundary between kernels is a cut: what one kernel reads is a set of leaves from which its values follow, found as
k-feasible cuts are in technology mapping."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import count, product

from ..mugraph.graph import LOOPS
from ..program.abstract import Bits
from .values import Edge, Id, Universe

ROLES: dict[str, str] = {"whole": "ttt", "loop": "fft", "grid": "gtt", "split": "gft", "parts": "t--"}
Point = tuple[Id, bool]  # a value, and whether it is made after the loop
Cut = frozenset[Id]
Mask = int  # a cut, with a bit for each of its values


@dataclass(frozen=True, slots=True)
class Step:
    """One operation of a block: `kind` is a function, sum, accumulate or dot."""

    out: Point
    edge: Edge
    kind: str
    args: tuple[Point, ...]


@dataclass(frozen=True)
class Signature:
    """The mode of each reduced axis."""

    modes: tuple[tuple[str, str], ...]

    @cached_property
    def by_axis(self) -> dict[str, str]:
        return dict(self.modes)

    @cached_property
    def loop(self) -> str | None:
        """The axis of the loop."""
        return next((a for a, m in self.modes if m in LOOPS), None)

    def bits(self, u: Universe, role: str) -> Bits:
        """The bits in this role; those of axes that nothing sums are tiles of the grid."""
        return frozenset(b for a, m in self.modes for b, r in zip(u.axes[a], ROLES[m], strict=True) if r == role)


def signatures(u: Universe) -> Iterator[Signature]:
    """All with at most one loop."""
    axes = u.program.reduced
    for modes in product(ROLES, repeat=len(axes)):
        if sum(m in LOOPS for m in modes) <= 1:
            yield Signature(tuple(zip(axes, modes, strict=True)))


@dataclass
class Block:
    """The operations that are legal under one signature."""

    u: Universe
    signature: Signature

    def __post_init__(self) -> None:
        self.tile, self.loop, self.grid, self.absent = (self.signature.bits(self.u, r) for r in "tfg-")
        self.values = [v for v, bits in enumerate(self.u.bits) if not bits & self.absent]
        self.steps: dict[Point, list[Step]] = defaultdict(list)
        self.uses: dict[Point, list[Step]] = defaultdict(list)
        for v in self.values:
            for e in (e for e in self.u.ways[v] if not any(self.u.bits[a] & self.absent for a in e.args)):
                for s in self._steps(v, e):
                    self.steps[s.out].append(s)
                    for a in dict.fromkeys(s.args):
                        self.uses[a].append(s)

    def kind(self, e: Edge) -> str | None:
        """The operation's form in a block; None where it cannot be in one."""
        if not e.over:
            return e.op
        own = frozenset(self.u.axes[self.u.axis(next(iter(e.over)))])
        here = [self.u.bits[a] & own for a in e.args]
        if e.op == "dot":
            return "dot" if all(h & self.tile == e.over for h in here) and self._plane(e) else None
        if e.over == here[0] & self.tile:
            return "sum"
        return "accumulate" if e.over == here[0] & self.loop else None

    def _plane(self, e: Edge) -> bool:
        """Whether the arguments share no other tile of a reduced axis: the tile of a dot has two dimensions."""
        both = self.u.bits[e.args[0]] & self.u.bits[e.args[1]]
        return len(e.args) == 2 and e.args[0] != e.args[1] and both & self.tile == e.over

    def _steps(self, v: Id, e: Edge) -> Iterator[Step]:
        kind = self.kind(e)
        if kind is None:
            return
        looped = [bool(self.u.bits[a] & self.loop) for a in e.args]
        if kind == "accumulate":
            yield Step((v, True), e, kind, tuple((a, False) for a in e.args))
            return
        if self.u.bits[v] & self.loop:
            yield Step((v, False), e, kind, tuple((a, False) for a in e.args))
            return
        if any(looped):
            return
        for after in product((False, True), repeat=len(e.args)) if self.loop else [(False,) * len(e.args)]:
            yield Step((v, any(after)), e, kind, tuple(zip(e.args, after, strict=True)))

    # ---- cuts

    def cuts(self, most: int) -> dict[Point, set[Cut]]:
        """For each value the sets of at most `most` values, made by other kernels, from which it follows. A set of two
        or more that contains another one is left out: it costs more to read, and no sum of it is saved."""
        inputs = set(self.u.inputs.values())
        found: dict[Point, set[Mask]] = defaultdict(set)
        new: dict[Point, set[Mask]] = defaultdict(set)
        for v in self.values:
            new[v, False] = found[v, False] = {0 if v in inputs else 1 << v}
        work = list(new)
        while work:
            p = work.pop()
            fresh = new.pop(p, set()) & found[p]
            for s in self.uses[p] if fresh else ():
                made = fresh
                for a in set(s.args) - {p}:
                    made = {c | d for c in made for d in found[a] if (c | d).bit_count() <= most}
                made = made - found[s.out]
                if made:
                    found[s.out] = _smallest(found[s.out] | made)
                    if kept := made & found[s.out]:
                        if s.out not in new:
                            work.append(s.out)
                        new[s.out] |= kept
        return {p: set(map(_cut, masks)) for p, masks in found.items()}

    # ---- derivations

    def derivation(
        self, outputs: tuple[Id, ...], leaves: Cut, weight: Callable[[Step], float]
    ) -> tuple[Step, ...] | None:
        """The cheapest operations found that make the outputs from the inputs and the leaves, in order; what is used
        twice counts once. None if there are none."""
        best = self._cheapest(outputs, leaves, weight)
        if best is None:
            return None
        chosen, ends = best
        return self._improved(chosen, ends, leaves, weight)

    def _cheapest(
        self, outputs: tuple[Id, ...], leaves: Cut, weight: Callable[[Step], float]
    ) -> tuple[dict[Point, Step], list[Point]] | None:
        """A step for each value, by Knuth's generalisation of Dijkstra's algorithm: the cost of a value is that of its
        step and of its arguments."""
        free = {*self.u.inputs.values(), *leaves}
        cost: dict[Point, float] = {}
        chosen: dict[Point, Step] = {}
        missing: dict[int, int] = {}
        tick = count()
        heap: list[tuple[float, int, Point, Step | None]] = [(0.0, next(tick), (v, False), None) for v in sorted(free)]
        heapq.heapify(heap)
        while heap:
            c, _, p, how = heapq.heappop(heap)
            if p in cost:
                continue
            cost[p] = c
            if how is not None:
                chosen[p] = how
            for s in self.uses[p]:
                left = missing.setdefault(id(s), len(set(s.args))) - 1
                missing[id(s)] = left
                if left == 0 and s.out not in cost and not (s.out[0] in free and not s.out[1]):
                    total = weight(s) + sum(cost[a] for a in set(s.args))
                    heapq.heappush(heap, (total, next(tick), s.out, s))
        ends = [min(((v, a) for a in (False, True) if (v, a) in cost), key=cost.__getitem__, default=None)
                for v in outputs]  # fmt: skip
        return None if None in ends else (chosen, [e for e in ends if e is not None])

    def _improved(
        self, chosen: dict[Point, Step], ends: list[Point], leaves: Cut, weight: Callable[[Step], float]
    ) -> tuple[Step, ...]:
        """Other steps tried for one value after the other, as long as the sum over all distinct ones falls."""
        order = _ordered(chosen, ends)
        assert order is not None
        total = sum(map(weight, order))
        for _ in range(4):
            before = total
            for s in order:
                for other in self.steps[s.out]:
                    if other is s or any(a not in chosen and not self._given(a, leaves) for a in other.args):
                        continue
                    trial = {**chosen, s.out: other}
                    new = _ordered(trial, ends)
                    if new is not None and (cost := sum(map(weight, new))) < total:
                        chosen, order, total = trial, new, cost
                        break
            if total == before:
                break
        return order

    def _given(self, p: Point, leaves: Cut) -> bool:
        return not p[1] and (p[0] in leaves or p[0] in self.u.inputs.values())


def _cut(m: Mask) -> Cut:
    return frozenset(v for v in range(m.bit_length()) if m >> v & 1)


def _smallest(cuts: set[Mask]) -> set[Mask]:
    """Without sets of two or more that contain another one."""
    few = {c for c in cuts if c.bit_count() < 2}
    if 0 in few:
        return few
    single = 0
    for c in few:
        single |= c
    rest = sorted((c for c in cuts - few if not c & single), key=int.bit_count)
    out: list[Mask] = []
    smaller: list[Mask] = []  # those with fewer values
    for c in rest:
        if out and out[-1].bit_count() < c.bit_count():
            smaller = list(out)
        if not any(d & c == d for d in smaller):
            out.append(c)
    return few.union(out)


def _ordered(chosen: dict[Point, Step], ends: list[Point]) -> tuple[Step, ...] | None:
    """The steps below the ends, arguments first; None where they run in a circle."""
    out: dict[Point, Step] = {}
    open_: set[Point] = set()

    def visit(p: Point) -> bool:
        if p in out or p not in chosen:
            return True
        if p in open_:
            return False
        open_.add(p)
        if not all(visit(a) for a in chosen[p].args):
            return False
        open_.discard(p)
        out[p] = chosen[p]
        return True

    return tuple(out.values()) if all(visit(p) for p in ends) else None
