"""Where the tiles of a block are in shared memory (Mirage, section 6: dynamic storage allocation).

A tile is there from the barrier after which it is written to the last one after which it is read, tiles that a loop
needs in every turn for all of that loop; two that are there at a time must not overlap. The offsets are optimal for few
tiles (branch and bound), else those of best fit: largest first, each into the smallest gap that holds it. No plan is
smaller than what is there at one time. The plan does not contain the compiler's own conversions between registers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

from ..mugraph.cost import itemsize
from ..mugraph.graph import Dim, Kernel, MuGraph, Operator
from ..mugraph.precision import HALF, precise
from ..mugraph.threads import FOLDS, ROWS, copied, exchanged, operators
from .schedule import Schedule

ALIGNED = 16  # bytes
EXACT = 9  # buffers of which an optimal plan is found
STEPS = 200_000  # of the branch and bound
LEAST = 16  # lanes of an operand of a product


@dataclass(frozen=True, slots=True)
class Buffer:
    """A tile in shared memory: `size` in bytes, `copies` included; there from depth `first` to `last` of the
    schedule, both inclusive."""

    name: str
    size: int
    first: int
    last: int
    copies: int = 1

    def meets(self, other: Buffer) -> bool:
        """Whether both are there at a time."""
        return self.first <= other.last and other.first <= self.last


@dataclass(frozen=True)
class Memory:
    """`offsets` of the buffers, in bytes; `bytes` that they take, `best_fit` what best fit takes, `bound` what no plan
    goes below; `exact`: no plan takes less."""

    buffers: tuple[Buffer, ...]
    offsets: tuple[int, ...]
    bytes: int
    best_fit: int
    bound: int
    exact: bool


# ---- what is in shared memory ----------------------------------------------------------------------------------------


def buffers(g: MuGraph, s: Schedule) -> tuple[Buffer, ...]:
    """The tiles of a scheduled block that are in shared memory."""
    k = s.kernel
    at = {o: (d, side) for u, d, side in zip(s.units, s.depths, s.sides, strict=True) for o in operators(u)}
    turns = s.turns
    readers: dict[str, list[Operator]] = {}
    for name, o in exchanged(k):
        readers.setdefault(name, []).append(o)
    out, types, wide = [], origins(g, k), precise(g)
    for o in k.operators:
        if o.op == "store" or o.out not in readers:
            continue
        depth, side = at[o]
        copies = _copies(k, o) if side % 2 else 1
        whole = {at[r][1] for r in readers[o.out]} - {side}  # what a loop reads that did not make it, it reads again
        first = min([depth, *(turns[side] if copies > 1 else ())])
        last = max([depth, *(at[r][0] for r in readers[o.out]), *(turns[side] if copies > 1 else ())])
        last = max([last, *(d for s in whole if s % 2 for d in turns[s])])
        own = types[o.out]
        half = len(own) == 1 and own <= {*HALF} and not any((k.name, r.out) in wide for r in readers[o.out])
        size = -(-_bytes(g, k, o, half) // ALIGNED) * ALIGNED
        out.append(Buffer(o.out, size * copies, first, last, copies))
    return tuple(out)


def _copies(k: Kernel, o: Operator) -> int:
    """How many turns of the loop have their own copy of a tile that is loaded ahead."""
    if o.op != "load" or o.out not in copied(k):
        return 1
    products = [u for u in k.operators if u.op == "dot" and o.out in u.args]  # asynchronous: kept for one more turn
    kept = any(max((k.extent(d) for d in u.dims), default=1) >= ROWS for u in products)
    return max(1, k.stages - (not kept))


def _bytes(g: MuGraph, k: Kernel, o: Operator, half: bool) -> int:
    """Of one copy: a loaded tile, an operand of a product in the type of the product, a result of each warp."""
    lanes = math.prod(k.extent(d) for d in o.dims)
    if o.op in FOLDS:
        return lanes * 4 * k.warps
    if o.op == "load":
        return lanes * itemsize(g.memory[o.args[0]].dtype)
    return math.prod(_padded(k, d) for d in o.dims) * (2 if half else 4)


def _padded(k: Kernel, d: Dim) -> int:
    return max(LEAST, k.extent(d)) if k.extent(d) > 1 else 1


def origins(g: MuGraph, k: Kernel) -> dict[str, frozenset[str]]:
    """The element types of the tensors of which each value is made."""
    out: dict[str, frozenset[str]] = {}
    for o in k.operators:
        if o.op == "load":
            out[o.out] = frozenset({g.memory[o.args[0]].dtype})
        elif o.op != "store":
            out[o.out] = frozenset[str]().union(*(out[a] for a in o.args))
    return out


# ---- offsets ---------------------------------------------------------------------------------------------------------


def plan(bs: Sequence[Buffer]) -> Memory:
    """Offsets for buffers: optimal for up to `EXACT`, where the search ends in `STEPS`; else those of best fit."""
    fit, least = best_fit(bs), bound(bs)
    offsets: Sequence[int] = fit
    exact = top(bs, fit) == least
    if not exact and len(bs) <= EXACT:
        offsets, exact = _optimal(bs, fit, least)
    return Memory(tuple(bs), tuple(offsets), top(bs, offsets), top(bs, fit), least, exact)


def top(bs: Sequence[Buffer], offsets: Sequence[int]) -> int:
    """Bytes that buffers at these offsets take."""
    return max((b.size + x for b, x in zip(bs, offsets, strict=True)), default=0)


def bound(bs: Sequence[Buffer]) -> int:
    """The most bytes that are there at a time; most are there when one of them begins."""
    return max((sum(b.size for b in bs if b.first <= t <= b.last) for t in {b.first for b in bs}), default=0)


def best_fit(bs: Sequence[Buffer]) -> list[int]:
    """Offsets: the largest first, each in the smallest gap that holds it, else above all."""
    offsets: dict[int, int] = {}
    for k in sorted(range(len(bs)), key=lambda k: (-bs[k].size, bs[k].first, k)):
        gaps = [(end - start, start) for start, end in _gaps(bs[k], ((bs[j], x) for j, x in offsets.items()))]
        offsets[k] = min(g for g in gaps if g[0] >= bs[k].size)[1]
    return [offsets[k] for k in range(len(bs))]


def _gaps(b: Buffer, placed: Iterable[tuple[Buffer, int]]) -> list[tuple[int, float]]:
    """(start, end) of what is free for a buffer, from below; the last one has no end."""
    taken = sorted((x, x + other.size) for other, x in placed if other.meets(b))
    out: list[tuple[int, float]] = []
    end = 0
    for start, stop in taken:
        if start > end:
            out.append((end, start))
        end = max(end, stop)
    return [*out, (end, math.inf)]


def _optimal(bs: Sequence[Buffer], start: Sequence[int], least: int) -> tuple[Sequence[int], bool]:
    """The best offsets, and whether the search ended. In some optimal plan no buffer can be moved down; its buffers,
    by their offsets, are each at the lowest place that those before leave free."""
    best, height, steps = list(start), top(bs, start), 0

    def place(placed: list[tuple[int, int]], high: int) -> None:
        nonlocal best, height, steps
        steps += 1
        if high >= height or height == least or steps > STEPS:
            return
        if len(placed) == len(bs):
            at = dict(placed)
            best, height = [at[k] for k in range(len(bs))], high
            return
        lowest = placed[-1][1] if placed else 0
        used = {k for k, _ in placed}
        for k in range(len(bs)):
            if k in used:
                continue
            gaps = _gaps(bs[k], ((bs[j], x) for j, x in placed))
            x = next(a for a, end in gaps if end - a >= bs[k].size)
            if x >= lowest:
                place([*placed, (k, x)], max(high, x + bs[k].size))

    place([], 0)
    return best, steps <= STEPS or height == least


def overlaps(bs: Sequence[Buffer], offsets: Sequence[int]) -> list[tuple[str, str]]:
    """Pairs of buffers that are there at a time and share bytes: none in a plan."""
    rows = list(zip(bs, offsets, strict=True))
    return [
        (a.name, b.name) for (a, x), (b, y) in combinations(rows, 2) if a.meets(b) and x < y + b.size and y < x + a.size
    ]
