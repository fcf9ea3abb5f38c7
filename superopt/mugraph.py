"""µGraphs: kernels that exchange tensors, and the block of each kernel (Mirage, sections 2 and 4).

A kernel runs one block for each tile of its grid axes. What it does with an axis is its *mode*:

    grid    tiles of the axis over the blocks               (imap of the paper: axis -> grid dimension)
    loop    tiles of the axis one after the other           (fmap: axis -> for-loop dimension)
    whole   the axis in one tile
    split   parts of the axis over the blocks, tiles of the part one after the other

A tensor that lacks a grid axis is replicated over it (phi). A reduction may stop at the border of a tile, a loop or a
part: `sum` and `dot` are over the tile, `accumulate` over the loop, and a tensor with one entry per part (`Dim.parts`)
is what another kernel sums. Within a kernel each operator is in the loop, or after it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from .program import Input, Program

Mode = Literal["grid", "loop", "whole", "split"]
LOOPS = ("loop", "split")
GRIDS = ("grid", "split")


@dataclass(frozen=True, slots=True)
class Dim:
    """One dimension of a tensor: an axis, or one entry for each of its parts."""

    axis: str
    parts: bool = False

    def __repr__(self) -> str:
        return f"{self.axis}/parts" if self.parts else self.axis


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor in device memory, its dimensions outermost first."""

    name: str
    dims: tuple[Dim, ...]
    dtype: str


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator of a block. `op`: add, mul, div, exp, sqr, sqrt, a function's name ("scale:..", "map:.."), or

        sum         over the tile of the axes in `over`
        accumulate  over the loop of the axis in `over`, what it has then in the tile stays
        dot         the product of two tiles, summed over the tile of `over`
        load, store `args` or `out` is a tensor in device memory

    `dims`: what the result has. `inside`: within the loop."""

    out: str
    op: str
    args: tuple[str, ...]
    dims: frozenset[Dim]
    over: tuple[str, ...] = ()
    inside: bool = False


@dataclass(frozen=True)
class Kernel:
    """`modes`, `tiles`: of each axis (a tile of `whole` is the axis, rounded up to a power of two); `operators` in an
    order in which they can run, loads first, stores last."""

    name: str
    modes: dict[str, Mode]
    tiles: dict[str, int]
    operators: tuple[Operator, ...]
    warps: int = 4
    stages: int = 3

    @property
    def loop(self) -> str | None:
        return next((a for a, m in self.modes.items() if m in LOOPS), None)

    @property
    def grid(self) -> tuple[str, ...]:
        return tuple(a for a, m in self.modes.items() if m in GRIDS)

    @property
    def loads(self) -> tuple[Operator, ...]:
        return tuple(o for o in self.operators if o.op == "load")

    @property
    def stores(self) -> tuple[Operator, ...]:
        return tuple(o for o in self.operators if o.op == "store")


@dataclass(frozen=True)
class MuGraph:
    """`tensors`: those between kernels and the outputs, by name; `parts`: into how many parts an axis is split."""

    program: Program
    kernels: tuple[Kernel, ...]
    tensors: dict[str, Tensor]
    parts: dict[str, int] = field(default_factory=dict)

    @cached_property
    def memory(self) -> dict[str, Tensor]:
        """All tensors in device memory."""
        inputs = {x.name: Tensor(x.name, tuple(map(Dim, x.axes)), x.dtype) for x in self.program.inputs}
        return inputs | self.tensors

    def extent(self, d: Dim) -> int:
        return self.parts[d.axis] if d.parts else self.program.sizes[d.axis]

    def blocks(self, k: Kernel) -> int:
        """The number of blocks of a kernel."""
        out = 1
        for a in k.grid:
            out *= self.parts[a] if k.modes[a] == "split" else -(-self.program.sizes[a] // k.tiles[a])
        return out

    def input(self, name: str) -> Input | None:
        return next((x for x in self.program.inputs if x.name == name), None)


# ---- text ------------------------------------------------------------------------------------------------------------


def text(g: MuGraph) -> str:
    """The graph as a text that a person can read, one line per operator."""
    return "\n".join(line for k in g.kernels for line in _kernel(g, k))


def _kernel(g: MuGraph, k: Kernel) -> Iterator[str]:
    modes = ", ".join(f"{a} {_mode(g, k, a)}" for a in k.modes)
    yield f"kernel {k.name}: {g.blocks(k)} blocks; {modes}"
    for o in k.operators:
        if o.op == "load":
            yield f"  {_indent(o)}{o.out}{_dims(o)} = load {o.args[0]}"
        elif o.op == "store":
            yield f"  {_indent(o)}store {o.args[0]} to {o.out}"
        else:
            over = f" over {', '.join(o.over)}" if o.over else ""
            yield f"  {_indent(o)}{o.out}{_dims(o)} = {o.op}({', '.join(o.args)}){over}"


def _indent(o: Operator) -> str:
    return "for: " if o.inside else "     "


def _dims(o: Operator) -> str:
    return f"[{', '.join(sorted(map(repr, o.dims)))}]"


def _mode(g: MuGraph, k: Kernel, a: str) -> str:
    mode, tile = k.modes[a], k.tiles[a]
    if mode == "split":
        return f"in {g.parts[a]} parts by {tile}"
    return "whole" if mode == "whole" else f"{mode} by {tile}"
