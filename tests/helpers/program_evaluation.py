"""Runs a `verify.model.program.Program` on numbers: its terms with program ids, lanes and counters filled in."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import Any

import numpy as np

from trilift.lift.terms import term as T
from trilift.lift.terms.ops import OPS, ORDERED
from trilift.lift.terms.term import Axis, Term
from trilift.verify.execution.tile import generic
from trilift.verify.model.program import PIDS, Access, Carry, Loop, Program

ATOMICS = {"add": np.add, "max": np.fmax, "min": np.fmin, "bitor": np.bitwise_or, "bitand": np.bitwise_and}
FOLDS: dict[str, Any] = {
    "sum": np.sum, "prod": np.prod, "amax": np.fmax.reduce, "amin": np.fmin.reduce, "argmax": np.argmax,
    "argmin": np.argmin,
}  # fmt: skip


class Evaluation:
    """`symbols`: numbers of sizes and scalars; `memory`: argument name -> (cells, number of the first cell)."""

    def __init__(self, program: Program, symbols: dict[str, Any], memory: dict[str, tuple[np.ndarray, int]]) -> None:
        self.program, self.symbols, self.memory = program, dict(symbols), memory
        self.memo: dict[Any, np.ndarray] = {}
        self.tiles: dict[Any, np.ndarray] = {}
        self.trips: dict[Any, int] = {}
        self.axes: dict[Axis, tuple[Any, Any]] = {}  # value, token

    # ---- a launch

    def launch(self, grid: tuple[int, int, int]) -> None:
        with np.errstate(all="ignore"):
            for z, y, x in product(*(range(n) for n in grid[::-1])):
                self.symbols |= {p.attr: v for p, v in zip(PIDS, (x, y, z), strict=True)}
                for cache in (self.memo, self.tiles, self.trips):
                    cache.clear()
                self.program_instance()

    def program_instance(self) -> None:
        """All stores of one program: values first (from the memory before it), then the writes, in program order."""
        writes: list[tuple[Any, Any]] = []
        for a in self.program.accesses:
            if a.kind != "load":
                self.iterations(a, a.loops, (), writes)
        for _, (kind, cells, at, value) in sorted(writes, key=lambda w: w[0]):
            if kind == "store":
                cells[at] = value
            else:
                ATOMICS[kind].at(cells, at, value)

    def iterations(self, a: Access, loops: tuple[Loop, ...], moment: tuple[int, ...], writes: list[Any]) -> None:
        if not loops:
            return self.access(a, moment, writes)
        for n in range(self.trip_count(loops[0])):
            self.axes[loops[0].counter] = (n, n)
            self.iterations(a, loops[1:], (*moment, n), writes)
        self.axes.pop(loops[0].counter, None)
        return None

    def access(self, a: Access, moment: tuple[int, ...], writes: list[Any]) -> None:
        assert a.value is not None, f"{a.kind} at {a.place} writes nothing"
        shape = self.shape([x.size for x in a.lanes])
        self.bind(a.lanes)
        depth = len(shape)
        guard, offset, value = (
            np.broadcast_to(self.value(t, depth), shape) for t in (a.guard, a.pointer.args[0], a.value)
        )
        live = np.nonzero(guard) if shape else (guard.reshape(1).nonzero()[0],)
        pick = (lambda x: x[live]) if shape else (lambda x: x.reshape(1)[live])
        cells, start = self.memory[a.pointer.attr]
        at = pick(offset).astype(np.int64) + start
        assert ((at >= 0) & (at < len(cells))).all(), f"{a.kind} at {a.place} out of bounds"
        writes.append(((moment, a.order), (a.kind, cells, at, pick(value).astype(cells.dtype))))
        for x in a.lanes:
            del self.axes[x]

    def shape(self, extents: Iterable[Term | int]) -> tuple[int, ...]:
        return tuple(int(self.value(T.const(n), 0)) for n in extents)

    def bind(self, axes: tuple[Axis, ...]) -> None:
        for d, (x, n) in enumerate(zip(axes, self.shape(x.size for x in axes), strict=True)):
            self.axes[x] = (np.arange(n).reshape([-1 if k == d else 1 for k in range(len(axes))]), (d, len(axes)))

    # ---- loops

    def trip_count(self, loop: Loop) -> int:
        if loop.trips.op != "trips":
            return int(self.value(loop.trips, 0))
        assert loop.condition is not None
        key = (loop, *(self.axes[o.counter][1] for o in loop.outer))
        if key not in self.trips:
            n, kept = 0, self.axes.get(loop.counter)
            while True:
                self.axes[loop.counter] = (n, n)
                if not self.value(loop.condition, 0):
                    break
                n += 1
            self.axes.pop(loop.counter)
            if kept:
                self.axes[loop.counter] = kept
            self.trips[key] = n
        return self.trips[key]

    def carry(self, c: Carry, n: int, outer: tuple[int, ...]) -> np.ndarray:
        """The whole tile of a loop variable at iteration n."""
        key = (c, n, outer)
        if key in self.tiles:
            return self.tiles[key]
        for m in range(n):
            self.carry(c, m, outer)
        kept, self.axes = self.axes, {}
        for o, v in zip(c.loop.outer, outer, strict=True):
            self.axes[o.counter] = (v, v)
        if n > 0:
            self.axes[c.loop.counter] = (n - 1, n - 1)
        axes = generic(c.type.shape)
        self.bind(axes)
        term = (c.next if n > 0 else c.init)([T.axis(x) for x in axes])
        self.tiles[key] = np.array(np.broadcast_to(self.value(term, len(axes)), self.shape(c.type.shape)))
        self.axes = kept
        return self.tiles[key]

    # ---- terms

    def value(self, t: Term, depth: int) -> np.ndarray:
        """The numbers of a term, in arrays of at most `depth` dimensions."""
        key = (t.id, depth, tuple(sorted((a.name, str(self.axes[a][1])) for a in t.free)))
        if key not in self.memo:
            self.memo[key] = self.compute(t, depth)
        return self.memo[key]

    def compute(self, t: Term, depth: int) -> Any:
        if t.op in FOLDS:
            return self.fold(t, depth)
        match t.op:
            case "const":
                return np.asarray(t.attr)
            case "size" | "scalar":
                return np.asarray(self.symbols[t.attr])
            case "axis":
                return np.asarray(self.axes[t.attr][0])
            case "undef":
                return np.asarray(np.nan if t.type == T.REAL else True if t.type == T.BOOL else 0x5A5A5A5A)
            case "trips":
                return np.asarray(self.trip_count(next(o for o in self.program.loops if o.trips.attr == t.attr)))
            case "where":
                return self.choice(t, depth)
        xs = [self.value(a, depth) for a in t.args]
        match t.op:
            case "read":
                cells, start = self.memory[t.attr.split("@")[0]]
                got = cells[np.clip(xs[0].astype(np.int64) + start, 0, len(cells) - 1)]
                return got.astype(np.float64 if t.type == T.REAL else np.int64)
            case "carry":
                return self.carried(t, xs)
        assert t.op in OPS, t.op
        xs = [x.astype(np.int64) if x.dtype.kind in "iu" else x for x in xs]
        row = OPS[t.op]
        if row.arity >= 0 or t.op in ORDERED:
            return np.asarray(row.numpy(*xs))
        out = xs[0]
        for x in xs[1:]:
            out = row.numpy(out, x)
        return np.asarray(out)

    def choice(self, t: Term, depth: int) -> np.ndarray:
        """Known conditions decide first: the other branch may be outside everything."""
        c = self.value(t.args[0], depth)
        if c.size and (c.all() or not c.any()):
            return self.value(t.args[1 if c.all() else 2], depth)
        return np.where(c, self.value(t.args[1], depth), self.value(t.args[2], depth))

    def fold(self, t: Term, depth: int) -> np.ndarray:
        over, n = t.attr, int(self.value(t.attr.size, 0))
        kept = self.axes.get(over)
        self.axes[over] = (np.arange(n).reshape((n,) + (1,) * depth), ("fold", depth))
        body = self.value(t.args[0], depth + 1)
        del self.axes[over]
        if kept:
            self.axes[over] = kept
        body = np.broadcast_to(body, np.broadcast_shapes(body.shape, (n,) + (1,) * depth))
        return np.asarray(FOLDS[t.op](body, axis=0))

    def carried(self, t: Term, xs: list[np.ndarray]) -> np.ndarray:
        c: Carry = t.attr
        k = 1 + len(c.loop.outer)
        tile = self.carry(c, int(xs[0].ravel()[0]), tuple(int(x.ravel()[0]) for x in xs[1:k]))
        lanes = [np.clip(x, 0, n - 1) for x, n in zip(xs[k:], tile.shape, strict=True)]
        return tile[tuple(lanes)] if lanes else tile
