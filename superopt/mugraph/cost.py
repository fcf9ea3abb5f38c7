"""The cost of a kernel in a model of the GPU: bytes, multiprocessors that have work, flops, exponentials, launches.

The model ranks; it measures nothing. A kernel takes the longest of

    bytes of its tensors / bandwidth of device memory        bytes that blocks read / bandwidth of the L2 cache
    bytes of one block / bandwidth of one multiprocessor     flops, exponentials and other operations / their rates

each counted for whole waves of blocks, and a launch, and a little for each turn of its loop. The roofline of a program
is what the tensors that it must read and write, and its flops as it is written, take by themselves; the tensors alone
are what no plan falls below."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from itertools import product

import numpy as np

from ..program.eager import EagerOperator
from ..program.program import Program
from .graph import GRIDS, LOOPS, Dim
from .reach import Bound, Reach
from .threads import ROWS
from .warps import FEWEST_WARPS, LANES, MOST_PRODUCT_WARPS, PRODUCT_ELEMENTS, PRODUCT_ROWS


@dataclass(frozen=True, slots=True)
class Hardware:
    """Rates per second of one device, all SI; `turn`: seconds for one iteration of a loop beside its work."""

    name: str = "H200"
    multiprocessors: int = 132
    memory: float = 4.3e12
    cache: float = 10e12
    one: float = 50e9  # bytes that one multiprocessor takes
    flops: float = 790e12  # products, on tensor cores
    single: float = 60e12  # products of numbers of 32 bits, which tensor cores take with fewer digits only
    scalar: float = 30e12  # elementwise operations
    exponentials: float = 3.9e12
    launch: float = 2.2e-6
    turn: float = 0.15e-6
    shared: int = 224 << 10  # bytes of shared memory of a block


H200 = Hardware()
SINGLE = ("f32", "f64")
TILES = (1, 16, 32, 64, 128, 256)
PARTS = (2, 4, 8, 16, 32, 64)
LARGEST = 1 << 14  # elements of a tile
ROW = 1 << 13  # elements of a tile that is a whole row
SECTOR = 32  # bytes
BLOCKS_SAMPLED = 16  # along an axis that bounds a loop
STAGES = 3  # tiles of a loop that are in shared memory at a time


def suited(h: Hardware, p: Program) -> Hardware:
    """The device with the rate that products of the program's types have."""
    return replace(h, flops=h.single) if any(x.dtype in SINGLE for x in p.read) else h


def eager_seconds(operators: Sequence[EagerOperator], h: Hardware) -> float:
    """The least that eager PyTorch takes: a launch for each operator, its bytes or its flops at full rate."""
    return sum(h.launch + max(o.moved / h.memory, o.flops / h.flops) for o in operators)


def power(n: int) -> int:
    return 1 << max(0, (n - 1).bit_length())


def itemsize(dtype: str) -> int:
    return max(1, int("".join(c for c in dtype if c.isdigit()) or 8) // 8)


@dataclass(frozen=True, slots=True)
class Work:
    """An operation of a block: `kind` is dot, exp or another; over tiles of these dims, in the loop over an axis or in
    none."""

    kind: str
    dims: frozenset[Dim]
    loop: str | None
    result: frozenset[Dim] = frozenset()
    alone: frozenset[Dim] = frozenset()  # dims of a dot that is of one index of them each: of tile 1
    free: tuple[frozenset[Dim], ...] = ()  # dims of each operand of a dot that the other lacks: one has a tile
    made: tuple[frozenset[Dim], ...] = ()  # arguments of a dot that the block computes: they pass through shared memory


@dataclass(frozen=True, slots=True)
class Traffic:
    """A tensor that is loaded or stored, its dims outermost first."""

    dims: tuple[Dim, ...]
    size: int  # bytes of an element
    store: bool = False


@dataclass(frozen=True)
class Shape:
    """A kernel without numbers: the mode of each axis, what it moves and does, how far its loops go."""

    modes: tuple[tuple[str, str], ...]
    traffic: tuple[Traffic, ...]
    work: tuple[Work, ...]
    reaches: tuple[tuple[str, Reach], ...] = ()  # of loops that a mask ends early


@dataclass(frozen=True, slots=True)
class Choice:
    """The numbers of a kernel: tile of each axis, its seconds in the model."""

    tiles: dict[str, int]
    seconds: float
    blocks: int


@dataclass
class Model:
    """Costs of kernels of one program on one device."""

    program: Program
    hardware: Hardware = H200
    _known: dict[tuple[Shape, tuple[tuple[str, int], ...]], Choice | None] = field(default_factory=dict)

    def best(self, s: Shape, parts: dict[str, int]) -> Choice | None:
        """The cheapest numbers where the axes have these parts; None where none fits."""
        used = {d.axis for t in s.traffic for d in t.dims if d.parts} | {
            a for a, m in s.modes if m in ("split", "grid")
        }
        key = s, tuple(sorted((a, p) for a, p in parts.items() if a in used))
        if key not in self._known:
            self._known[key] = self._best(s, parts)
        return self._known[key]

    def _best(self, s: Shape, parts: dict[str, int]) -> Choice | None:
        options = [list(self._options(a, m, parts)) for a, m in s.modes]
        if not all(options):
            return None
        names = [a for a, _ in s.modes]
        counts = [np.arange(len(o)) for o in options]
        grid = [g.ravel() for g in np.meshgrid(*counts, indexing="ij")] if counts else []
        column = {
            a: [np.array(x, float)[g] for x in zip(*o, strict=True)]
            for a, o, g in zip(names, options, grid, strict=True)
        }
        seconds, blocks = self._seconds(s, column)
        k = int(np.argmin(seconds)) if seconds.size else 0
        if not seconds.size or not np.isfinite(seconds[k]):
            return None
        return Choice({a: int(column[a][0][k]) for a in names}, float(seconds[k]), int(blocks[k]))

    def _options(self, axis: str, mode: str, parts: dict[str, int]) -> Iterator[tuple[int, int, int]]:
        """(tile, blocks, turns) of an axis."""
        n = self.program.sizes[axis]
        if mode == "whole":
            if n <= ROW:
                yield power(n), 1, 1
        elif mode == "parts":
            yield power(parts[axis]), 1, 1
        else:
            for t in TILES:
                if (t == 1 and mode in ("loop", "split")) or t > max(16, power(n)):
                    continue
                if mode == "loop":
                    yield t, 1, -(-n // t)
                elif mode == "split":
                    each = -(-n // (parts[axis] * t)) * t  # of a part, in tiles
                    if -(-n // each) == parts[axis]:
                        yield t, parts[axis], each // t
                elif axis not in parts or -(-n // t) == parts[axis]:
                    yield t, -(-n // t), 1

    def _seconds(self, s: Shape, column: dict[str, list[np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
        h, one = self.hardware, np.ones(1)
        tile = {a: c[0] for a, c in column.items()}
        count = {a: c[1] for a, c in column.items()}
        turns = {a: column[a][2] for a, m in s.modes if m in LOOPS}
        blocks = math.prod(count.values(), start=one)
        modes, dots = dict(s.modes), any(w.kind == "dot" for w in s.work)
        narrow = max((t.size for t in s.traffic if not t.store), default=2)
        waves = np.ceil(blocks / h.multiprocessors)
        for a, r in s.reaches:
            turns[a] = turns[a] * self._visited(a, r, tile, waves)
        bad = np.zeros_like(blocks, bool)
        moved, unique = 0.0 * blocks, 0.0
        shared = dict.fromkeys([None, *turns], 0.0 * blocks)  # of each loop, and what is there in all
        for t in s.traffic:
            sizes = {d: one if d.parts and modes[d.axis] in GRIDS else tile[d.axis] for d in t.dims}
            elements = math.prod(sizes.values(), start=one)
            bad = bad | (elements > LARGEST)
            loop = next((d.axis for d in t.dims if d.axis in turns and not d.parts), None)
            inner = sizes[t.dims[-1]] * t.size if t.dims else SECTOR * one
            moved = moved + elements * t.size * np.maximum(1, SECTOR / inner) * turns.get(loop or "", 1)
            unique += math.prod(self._extent(d, column) for d in t.dims) * t.size
            if not t.store:
                shared[loop] = shared[loop] + elements * t.size * (STAGES if loop else dots)
            if t.store:
                lacking = [count[a] for a in count if a not in {d.axis for d in t.dims}]
                bad = bad | (math.prod(lacking, start=one) > 1)
        bad = bad | _spilling([w for w in s.work if w.kind == "dot"], tile)
        flops, exps, others = 0.0 * blocks, 0.0 * blocks, 0.0 * blocks
        for w in s.work:
            sizes = {d: tile[d.axis] for d in w.dims}
            times = turns.get(w.loop or "", 1)
            if w.kind == "dot":
                elements = math.prod((np.where(x > 1, np.maximum(16, x), one) for x in sizes.values()), start=one)
                flops = flops + 2 * elements * times
                bad = bad | _not_matrices(w, sizes)
                for dims in w.made:
                    rows = reduce(np.maximum, (tile[d.axis] for d in dims & w.result), one)
                    stored = (rows < ROWS) | (len(w.made) > 1)  # else in registers, as in `superopt.mugraph.threads`
                    used = stored * math.prod((tile[d.axis] for d in dims), start=one) * narrow
                    shared[w.loop] = shared[w.loop] + used
            else:
                elements = math.prod(sizes.values(), start=one)
                exps, others = (
                    (exps + elements * times, others) if w.kind == "exp" else (exps, others + elements * times)
                )
            result = math.prod((tile[d.axis] for d in w.result), start=one)
            bad = bad | (result > LARGEST)
            bad = bad | (sum((tile[d.axis] > 1).astype(int) for d in w.result) > 2) if w.result else bad
        together = shared[None] + reduce(lambda x, y: np.maximum(x, y), (shared[a] for a in turns), 0.0 * blocks)
        bad = bad | (together > h.shared)
        per = h.multiprocessors
        memory = np.maximum(unique / h.memory, np.maximum(blocks * moved / h.cache, waves * moved / h.one))
        compute = waves * (flops / (h.flops / per) + exps / (h.exponentials / per) + others / (h.scalar / per))
        seconds = h.launch + np.maximum(memory, compute) + sum(turns.values(), start=0.0 if turns else one) * h.turn
        return np.where(bad, np.inf, seconds), np.broadcast_to(blocks, bad.shape)

    def _visited(self, loop: str, r: Reach, tile: dict[str, np.ndarray], waves: np.ndarray) -> np.ndarray:
        """The share of its turns that a loop makes: the mean of the blocks that run one after the other, and no less
        than the longest block's in one of the waves."""
        every = self.program.sizes[loop]
        shares = []
        for k in range(BLOCKS_SAMPLED):
            low, high = 0.0 * waves, every + 0.0 * waves
            for bounds, side in ((r.least, -1), (r.most, 1)):
                for b in bounds:
                    offset = self._offset(b)
                    width = (tile[b.axis] if b.axis else 0.0) + tile[loop]
                    at = self.program.sizes[b.axis] * (k + 0.5) / BLOCKS_SAMPLED if b.axis else 0.0
                    if offset is not None and side < 0:
                        low = np.maximum(low, at + offset - width / 2)
                    elif offset is not None:
                        high = np.minimum(high, at + offset + width / 2)
            shares.append(np.clip((high - low) / every, 0.0, 1.0))
        share: np.ndarray = np.maximum(np.mean(shares, axis=0), np.max(shares, axis=0) / waves)
        return share

    def _offset(self, b: Bound) -> int | None:
        """The number that a bound adds to an index; None where the sizes of the program do not tell it."""
        known = {t: self.program.sizes[a] for a, t in self.program.extents.items()}
        return b.constant + sum(n * known[t] for n, t in b.terms) if all(t in known for _, t in b.terms) else None

    def _extent(self, d: Dim, column: dict[str, list[np.ndarray]]) -> float:
        if not d.parts:
            return self.program.sizes[d.axis]
        return float(np.max(column[d.axis][1])) if np.max(column[d.axis][1]) > 1 else float(np.max(column[d.axis][0]))

    # ---- bounds

    @cached_property
    def bytes(self) -> float:
        """Of all tensors, or parts of them, that the program reads and writes, once each."""
        every: dict[str, float] = {}
        for x in self.program.read:
            part = [f"{p.start}:{[self.program.sizes[a] for a in p.axes]}" for p in x.parts]
            every[" ".join([x.tensor, *part])] = math.prod(self.program.sizes[a] for a in x.axes) * itemsize(x.dtype)
        for name, axes, _, dtype in self.program.outputs:
            every[f"output {name}"] = math.prod(self.program.sizes[a] for a in axes) * itemsize(dtype)
        return sum(every.values())

    def tensor(self, dims: Sequence[Dim], size: int = 4) -> float:
        """Bytes of a tensor between kernels, at least: an axis in parts has two."""
        return math.prod(2 if d.parts else self.program.sizes[d.axis] for d in dims) * size

    @property
    def floor(self) -> float:
        """Seconds that no plan falls below: its inputs and outputs are moved once. Products and exponentials do not
        count: algebra lowers their number, as (q k) v = q (k v) does."""
        return self.bytes / self.hardware.memory

    @cached_property
    def roofline(self) -> float:
        """Seconds of the program as it is written: its bytes, its products and its exponentials, at full rate."""
        flops = exps = 0.0
        for n in self.program.nodes:
            full = math.prod(self.program.sizes[a] for a in n.axes | ({str(n.attr)} if n.op == "sum" else set()))
            if n.op == "sum":
                flops += 2 * full if _is_product(n.args[0]) else 0
            exps += full if n.op == "exp" else 0
        h = self.hardware
        return max(self.bytes / h.memory, flops / h.flops, exps / h.exponentials)


def _not_matrices(w: Work, tile: dict[Dim, np.ndarray]) -> np.ndarray:
    """Whether the operands of a dot have another shape than [rows, over] and [over, columns], of 16 or more each."""
    bad = reduce(np.logical_or, (tile[d] > 1 for d in w.alone), np.zeros(1, bool))
    bad = reduce(np.logical_or, (tile[d] < 16 for d in w.dims - w.alone - frozenset().union(*w.free)), bad)
    for own in filter(None, w.free):
        wide = sum((tile[d] > 1).astype(int) for d in own)
        bad = reduce(np.logical_or, ((tile[d] > 1) & (tile[d] < 16) for d in own), bad | (wide != 1))
    return bad


def _spilling(dots: Sequence[Work], tile: dict[str, np.ndarray]) -> np.ndarray:
    """Whether the results of the products of one loop are more than the registers of a block hold: of as many warps as
    have rows of them."""
    one = np.ones(1)
    held: dict[str | None, np.ndarray] = {}
    rows = np.full(1, np.inf)
    for w in dots:
        sizes = [tile[d.axis] for d in w.result]
        held[w.loop] = held.get(w.loop, 0.0) + math.prod(sizes, start=one)
        rows = reduce(np.minimum, (np.where(x > 1, x, np.inf) for x in sizes), rows)
    warps = np.clip(np.floor(rows / PRODUCT_ROWS), FEWEST_WARPS, MOST_PRODUCT_WARPS)
    return reduce(np.logical_or, (x > warps * LANES * PRODUCT_ELEMENTS for x in held.values()), np.zeros(1, bool))


def _is_product(n: object) -> bool:
    """Whether a sum of this is a product of matrices."""
    op, args = n.op, n.args  # type: ignore[attr-defined]
    if op == "div":
        return _is_product(args[0])
    return (
        op == "mul"
        and args[0].axes != args[1].axes
        and not args[0].axes <= args[1].axes
        and not args[1].axes <= args[0].axes
    )


def assignments(axes: Sequence[str], program: Program) -> Iterator[dict[str, int]]:
    """Numbers of parts for these axes."""
    for ps in product(PARTS, repeat=len(axes)):
        if all(p <= program.sizes[a] for a, p in zip(axes, ps, strict=True)):
            yield dict(zip(axes, ps, strict=True))
