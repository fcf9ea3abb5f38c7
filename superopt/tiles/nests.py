"""Loops of a tile program: from the classes of equal statements the cheapest nests, at most so many kernels.

A kernel is one part of the program's sequence. Its outermost loops whose turns have nothing to do with each other are
its grid. A stored tensor is in registers as long as the same turn of the same loop loads it; what another kernel loads
went through device memory, which is charged to the load. A tensor that would have to be loaded again in another loop of
the
same kernel excludes the nest, except for a whole program that is not a kernel otherwise: there a block may load what it
stored to
device memory itself. Tiles have a nominal size here: the model of `superopt.mugraph.cost` chooses them for what
comes out.

A loop over n is parallel if every tensor that it writes has n, or is a variable that is not exposed in its body (each
block has its own). Programs are counted exactly: those of the e-graph with no loop within a loop over its axis."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from ..mugraph.cost import H200, LARGEST, Hardware, itemsize, power
from ..program.abstract import Class
from .analyses import NONE, Analyses, Names
from .saturate import Member
from .tile_program import Loop, Statement, Store, TileProgram, joined, sequence

INFINITE = math.inf


@dataclass(frozen=True, slots=True)
class Nest:
    """One kernel: `grid` axes, outermost first; `body` runs in each block. `seconds`: at nominal tiles. `spilled`: the
    variables that a block loads again from device memory."""

    grid: tuple[str, ...]
    body: Statement
    seconds: float
    spilled: Names = NONE

    @property
    def statement(self) -> Statement:
        out = self.body
        for n in reversed(self.grid):
            out = Loop(n, out)
        return out


@dataclass(frozen=True, slots=True)
class Nests:
    """A program as kernels, in the order in which they run."""

    kernels: tuple[Nest, ...]

    @property
    def seconds(self) -> float:
        return sum(k.seconds for k in self.kernels)

    def program(self, p: TileProgram) -> TileProgram:
        """The tile program that they are."""
        return replace(p, body=sequence([k.statement for k in self.kernels]))


@dataclass(frozen=True, slots=True)
class Around:
    """Where a statement is: `grid` axes, `loops` around it in the block, `here`: what registers hold, `written` by the
    kernel; `kept`: what is loaded after the statement, so that no loop of its own may leave a tile of it alone, unless
    it is `spilled`."""

    grid: Names
    loops: Names
    here: Names
    written: Names
    kept: Names = NONE
    spilled: Names = NONE

    @property
    def tiled(self) -> Names:
        return self.grid | self.loops


@dataclass(frozen=True, slots=True)
class Kernel:
    """The grid and the body of a kernel."""

    seconds: float
    grid: tuple[str, ...]
    body: Class
    around: Around


Sequence = tuple[float, tuple[Kernel, ...]]  # seconds, kernels


@dataclass
class Extraction:
    """The cheapest kernels of one e-graph, by what is known of it. `tile`: the nominal size of a tile; `deep`: how many
    loops of a block may be in each other; `room`: elements of a tile, at most."""

    known: Analyses
    tile: int = 64
    deep: int = 1
    room: int = LARGEST
    hardware: Hardware = H200
    _bodies: dict[tuple[Class, Around], tuple[float, Member | None]] = field(default_factory=dict)
    _kernels: dict[tuple[Class, Names, Names, Names, Names], Kernel | None] = field(default_factory=dict)
    _sequences: dict[tuple[Class, int], Sequence] = field(default_factory=dict)
    _open: set[tuple[Class, Around]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.p = self.known.p
        self.members = self.known.classes.members
        self.tiles = {a: self.tile if a in self.known.planes and a not in self.p.parts else 1 for a in self.p.sizes}

    # ---- sizes

    def trips(self, n: str) -> int:
        return -(-self.p.sizes[n] // min(self.tiles[n], self.p.sizes[n]))

    def lanes(self, axes: Names, tiled: Names) -> int:
        """Elements of a tile."""
        return math.prod(power(min(self.tiles[a], self.p.sizes[a]) if a in tiled else self.p.sizes[a]) for a in axes)

    def turns(self, axes: Names) -> int:
        return math.prod(self.trips(a) for a in axes)

    # ---- kernels

    def best(self, most: int) -> list[Nests]:
        """For each number of kernels up to `most` the cheapest program, where there is one."""
        found = [self._sequence(self.known.given.root, k) for k in range(1, most + 1)]
        if found[0][0] == INFINITE and (one := self.spilling(self.known.given.root)) is not None:
            found[0] = one.seconds, (one,)
        out = []
        for cost, kernels in found:
            if cost < INFINITE:
                nests = Nests(tuple(self._nest(k) for k in kernels))
                if self.private(nests) and nests not in out:
                    out.append(nests)
        return out

    def _nest(self, k: Kernel) -> Nest:
        return Nest(k.grid, self._term(k.body, k.around), k.seconds, k.around.spilled)

    def _sequence(self, c: Class, kernels: int) -> Sequence:
        """The cheapest way to run a statement as exactly so many kernels."""
        if (c, kernels) not in self._sequences:
            self._sequences[c, kernels] = self._split(c, kernels)
        return self._sequences[c, kernels]

    def _split(self, c: Class, kernels: int) -> Sequence:
        if kernels == 1:
            found = self.kernel(c)
            return (found.seconds, (found,)) if found else (INFINITE, ())
        best: Sequence = (INFINITE, ())
        for a, b in self.known.cuts.get(c, ()):
            first = self.kernel(a, self.known.exposed[b])
            if first is not None and first.seconds < best[0]:
                cost, rest = self._sequence(b, kernels - 1)
                best = min(best, (first.seconds + cost, (first, *rest)), key=lambda found: found[0])
        return best

    def kernel(self, c: Class, later: Names = NONE) -> Kernel | None:
        """The cheapest way to run a statement as one kernel; None for none. `later`: what other kernels load after."""
        written = self.known.written[c]
        return self._kernel(c, self.known.free(c, later), written, written & later)

    def spilling(self, c: Class) -> Kernel | None:
        """One kernel whose blocks load again what they stored to device memory, of as few variables as will do."""
        written = self.known.written[c]
        spilled = frozenset(t for t in written if self.p.tensors[t].role == "variable")
        best = self._kernel(c, self.known.free(c), written, NONE, spilled)
        for t in sorted(spilled) if best is not None else ():
            less = self._kernel(c, self.known.free(c), written, NONE, spilled - {t})
            if less is not None:
                best, spilled = less, spilled - {t}
        return best

    def _kernel(
        self, c: Class, grid: tuple[str, ...], written: Names, later: Names, spilled: Names = NONE
    ) -> Kernel | None:
        """`spilled`: what may go through device memory, where it is of the block alone: it has the axes of the grid."""
        key = c, frozenset(grid), written, later, spilled
        if key not in self._kernels:
            own = frozenset(t for t in spilled if {*grid} <= {*self.p.tensors[t].axes})
            around = Around(frozenset(grid), NONE, self.known.written[c] - own, written, spilled=own)
            split = {a for t in written for a in self.p.tensors[t].axes if a in self.p.parts}  # blocks, not turns
            cost = self.body(c, around) if split <= {*grid} else INFINITE
            best = Kernel(cost + self.hardware.launch, grid, c, around) if cost < INFINITE else None
            for m in self.members[c]:
                if m.op == "Loop" and m.texts[0] not in grid and self.known.parallel(m.texts[0], m.args[0], later):
                    found = self._kernel(m.args[0], (*grid, m.texts[0]), written, later, spilled)
                    if found is not None and (best is None or found.seconds < best.seconds):
                        best = found
            self._kernels[key] = best
        return self._kernels[key]

    def private(self, nests: Nests) -> bool:
        """Whether no kernel loads what each block of another one has by itself."""
        for k in nests.kernels:
            alone = {t for t in written_by(k.body) if not {*k.grid} <= {*self.p.tensors[t].axes}}
            if any(alone & loaded_by(other.body) for other in nests.kernels if other is not k):
                return False
        return True

    # ---- bodies

    def body(self, c: Class, around: Around) -> float:
        """Seconds of a statement in all turns around it."""
        return self._body(c, around)[0]

    def _body(self, c: Class, around: Around) -> tuple[float, Member | None]:
        around = self.narrowed(c, around)
        key = c, around
        if key in self._bodies:
            return self._bodies[key]
        if key in self._open:
            return INFINITE, None
        self._open.add(key)
        best: tuple[float, Member | None] = (INFINITE, None)
        for m in self.members[c]:
            cost = self._cost(m, around)
            if cost < best[0]:
                best = cost, m
        self._open.discard(key)
        self._bodies[key] = best
        return best

    def _cost(self, m: Member, around: Around) -> float:
        if m.op == "Store":
            return self._store(m.texts[0], m.args[0], around)
        if m.op == "Seq":
            first = self.body(m.args[0], self.before(around, m))
            return first + self.body(m.args[1], around) if first < INFINITE else first
        n, inner = m.texts[0], m.args[0]
        gone = any(n in self.p.tensors[t].axes for t in around.kept & self.known.written[inner])
        if gone or n in around.tiled or len(around.loops) == self.deep:
            return INFINITE
        return self.body(inner, self.within(around, n, inner)) + self.trips(n) * self.hardware.turn

    def narrowed(self, c: Class, around: Around) -> Around:
        """Without tensors that the statement has nothing to do with: the rest is the same for many places."""
        loaded, own = self.known.loaded[c], self.known.written[c]
        here, written, spilled = around.here & loaded, around.written & loaded, around.spilled & (loaded | own)
        return Around(around.grid, around.loops, here, written, around.kept & own, spilled)

    def before(self, around: Around, m: Member) -> Around:
        """Of the first part of a sequence: what the rest loads of it is kept."""
        later = self.known.exposed[m.args[1]] & self.known.written[m.args[0]]
        return replace(around, kept=around.kept | (later - around.spilled))

    def within(self, around: Around, n: str, inner: Class) -> Around:
        """In a loop over n: what registers hold of n outside of it is out of reach there."""
        kept = frozenset(t for t in around.here if n not in self.p.tensors[t].axes)
        return replace(around, loops=around.loops | {n}, here=kept | self.known.written[inner])

    def _store(self, t: str, e: Class, around: Around) -> float:
        x = self.p.tensors[t]
        if self.lanes(frozenset(x.axes), around.tiled) > self.room:
            return INFINITE
        cost = self._value(e, around)
        if x.role == "output":
            cost += self._moved(frozenset(x.axes), itemsize(x.dtype), around)
        return cost

    def _value(self, c: Class, around: Around) -> float:
        """Seconds of a value, its loads included, in all turns."""
        m = self.known.value(c)
        if m.op == "Const":
            return 0.0
        if m.op == "Var":
            return self._load(m.texts[0], around)
        if m.op in ("Sum", "Max") and m.texts[0] in {*self.p.parts.values()} - around.tiled:
            return INFINITE  # within a part it is a loop
        h, turns = self.hardware, self.turns(around.tiled)
        rate = min(1.0, self.turns(around.grid) / h.multiprocessors)  # of the device that has work
        over = self.known.axes[c] | ({m.texts[0]} if m.op in ("Sum", "Max") else NONE)
        if (product := self.known.product(m)) is not None:
            if max(self.lanes(x, around.tiled) for x in (*product, self.known.axes[c])) > self.room:
                return INFINITE
            flops = 2 * self.lanes(over, around.tiled) * turns
            return flops / h.flops / rate + sum(self._value(x, around) for x in self.known.value(m.args[0]).args)
        lanes = self.lanes(over, around.tiled)
        if lanes > self.room:
            return INFINITE
        each = h.exponentials if m.op == "Exp" else h.scalar
        return lanes * turns / each / rate + sum(self._value(a, around) for a in m.args)

    def _load(self, t: str, around: Around) -> float:
        if t in around.here:
            return 0.0
        if t in around.written and t not in around.spilled:
            return INFINITE
        x = self.p.tensors[t]
        if self.lanes(frozenset(x.axes), around.tiled) > self.room:
            return INFINITE
        once = self._moved(frozenset(x.axes), itemsize(x.dtype), around)
        return once if x.role == "input" else once + self._whole(frozenset(x.axes)) * 4 / self.hardware.memory

    def _moved(self, axes: Names, size: int, around: Around) -> float:
        """Seconds to move a tensor in every turn: from device memory once, then from the cache, at the rate of the
        multiprocessors that have work."""
        h, whole = self.hardware, self._whole(axes) * size
        every = whole * self.turns(around.tiled - axes)
        return max(whole / h.memory, every / h.cache, every / (h.one * min(h.multiprocessors, self.turns(around.grid))))

    def _whole(self, axes: Names) -> int:
        return math.prod(self.p.sizes[a] for a in axes)

    # ---- terms

    def _term(self, c: Class, around: Around) -> Statement:
        _, m = self._body(c, around)
        assert m is not None
        if m.op == "Store":
            return Store(m.texts[0], self.known.node(m.args[0]))
        if m.op == "Seq":
            return joined(self._term(m.args[0], self.before(around, m)), self._term(m.args[1], around))
        return Loop(m.texts[0], self._term(m.args[0], self.within(around, m.texts[0], m.args[0])))


def written_by(s: Statement) -> set[str]:
    """The tensors that a statement stores to."""
    if isinstance(s, Store):
        return {s.tensor}
    return written_by(s.body) if isinstance(s, Loop) else written_by(s.first) | written_by(s.rest)


def loaded_by(s: Statement) -> set[str]:
    """The tensors that a statement loads."""
    if isinstance(s, Store):
        return {str(n.attr) for n in s.value.walk() if n.op == "input"}
    return loaded_by(s.body) if isinstance(s, Loop) else loaded_by(s.first) | loaded_by(s.rest)
