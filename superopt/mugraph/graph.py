"""µGraphs: kernels that exchange tensors, the block of each kernel, and its thread graphs (Mirage, sections 2 and 4).

A kernel runs one block for each tile of its grid axes. Its treatment of an axis is its *mode*:

    grid    tiles of the axis over the blocks               (imap of the paper: axis -> grid dimension)
    loop    tiles of the axis one after the other           (fmap: axis -> for-loop dimension)
    whole   the axis in one tile
    split   parts of the axis over the blocks, tiles of the part one after the other

A tensor that lacks a grid axis is replicated over it (phi). A reduction may stop at the border of a tile, a loop or a
part: `sum` and `dot` are over the tile, `accumulate` over the loop, and a tensor with one entry per part (`Dim.parts`)
is what another kernel sums. Within a kernel each operator is in a loop or in none: a block is straight code and loops,
by turns."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from trilift.lift.errors import Unsupported

from ..program.program import Input, Program

Mode = Literal["grid", "loop", "whole", "split"]
LOOPS = ("loop", "split")
GRIDS = ("grid", "split")
RUNNING = ("accumulate", "accumulate_max")  # over the loop


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

    `dims`: what the result has. `inside`: within a loop, which `loops` tells."""

    out: str
    op: str
    args: tuple[str, ...]
    dims: frozenset[Dim]
    over: tuple[str, ...] = ()
    inside: bool = False


@dataclass(frozen=True)
class Kernel:
    """`modes`, `tiles`: of each axis (a tile of `whole` is the axis, rounded up to a power of two); `operators` in an
    order in which they can run, loads first, stores last; `threads`: the operators of each thread graph, by name."""

    name: str
    modes: dict[str, Mode]
    tiles: dict[str, int]
    operators: tuple[Operator, ...]
    warps: int = 4
    stages: int = 3
    threads: tuple[tuple[str, ...], ...] = ()

    @property
    def loops(self) -> tuple[str, ...]:
        """The axes of its loops."""
        return tuple(a for a, m in self.modes.items() if m in LOOPS)

    def turns(self, d: Dim) -> bool:
        """Whether a loop is along the dimension: where a block makes a part of an axis, within that part."""
        return self.modes[d.axis] in LOOPS and not (d.parts and self.modes[d.axis] == "split")

    @property
    def grid(self) -> tuple[str, ...]:
        return tuple(a for a, m in self.modes.items() if m in GRIDS)

    @property
    def loads(self) -> tuple[Operator, ...]:
        return tuple(o for o in self.operators if o.op == "load")

    @property
    def stores(self) -> tuple[Operator, ...]:
        return tuple(o for o in self.operators if o.op == "store")

    def extent(self, d: Dim) -> int:
        """Of a tile along a dimension: a block has one entry of the parts that it is one of."""
        return 1 if d.parts and self.modes[d.axis] in GRIDS else self.tiles[d.axis]


@dataclass(frozen=True, slots=True)
class ThreadGraph:
    """Elementwise operators of a block that every thread runs one after the other on its own elements: what they make
    stays in registers, `outputs` is what other operators read of it."""

    outputs: tuple[str, ...]
    operators: tuple[Operator, ...]

    @property
    def args(self) -> tuple[str, ...]:
        """The tensors of others that it reads."""
        own = {o.out for o in self.operators}
        return tuple(dict.fromkeys(a for o in self.operators for a in o.args if a not in own))


@dataclass(frozen=True)
class MuGraph:
    """`tensors`: those between kernels and the outputs, by name; `parts`: into how many parts an axis is split; `wide`:
    what kernels make and multiply as matrices may be larger than 16 bits hold."""

    program: Program
    kernels: tuple[Kernel, ...]
    tensors: dict[str, Tensor]
    parts: dict[str, int] = field(default_factory=dict)
    wide: bool = False

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


# ---- loops -----------------------------------------------------------------------------------------------------------


def loops(k: Kernel) -> dict[Operator, str]:
    """The axis of the loop that an operator is in, of those that are in one: the looped axis that its result has, or is
    folded over, or that its arguments differ along. Raises Unsupported where these are several, or none says which."""
    out: dict[Operator, str] = {}
    passing: dict[str, str] = {}  # values that differ from turn to turn
    for o in k.operators:
        if not k.loops or not (o.inside or o.op in RUNNING):
            continue
        own = {d.axis for d in o.dims if k.turns(d)} | {*o.over}.intersection(k.loops)
        own |= {passing[a] for a in _values(o) if a in passing}
        if not own and len(k.loops) > 1:
            raise Unsupported(f"{o.out} is in a loop, but no axis names the loop")
        if len(own) > 1:
            raise Unsupported(f"{o.out} is in a loop within a loop: {', '.join(sorted(own))}")
        out[o] = own.pop() if own else k.loops[0]
        if o.op not in RUNNING and o.op != "store":
            passing[o.out] = out[o]
    return out


def phases(k: Kernel) -> tuple[list[Operator], ...]:
    """Straight code and loops by turns: operators before the first loop, in it, after it, ..., after the last one; each
    in the kernel's order. Loops come in the order in which they need each other; all else is made as late as it can be.
    Raises Unsupported where there is no such order, or something needs what an iteration made outside of its loop."""
    loop = loops(k)
    order = _in_order(k, loop)
    place = {o: 2 * order.index(a) + 1 for o, a in loop.items()}
    users: dict[str, list[Operator]] = defaultdict(list)
    for o in k.operators:
        for a in _values(o):
            users[a].append(o)
    for o in reversed(k.operators):
        if o not in place:
            own = users[o.out] if o.op != "store" else []
            place[o] = min((place[u] - place[u] % 2 for u in own), default=2 * len(order))
    _checked(k, loop, place)
    return tuple([o for o in k.operators if place[o] == p] for p in range(2 * len(order) + 1))


def _values(o: Operator) -> tuple[str, ...]:
    """The values of the block that an operator reads."""
    return () if o.op == "load" else o.args


def _in_order(k: Kernel, loop: dict[Operator, str]) -> list[str]:
    """The loops, each after those of which it needs what they accumulate."""
    needs: dict[str, frozenset[str]] = {}
    before: dict[str, frozenset[str]] = dict.fromkeys(loop.values(), frozenset())
    for o in k.operators:
        own = frozenset[str]().union(*(needs.get(a, frozenset()) for a in _values(o)))
        if o in loop:
            before[loop[o]] |= own - {loop[o]}
            own |= {loop[o]}
        if o.op != "store":
            needs[o.out] = own
    order: list[str] = []
    while len(order) < len(before):
        ready = next((a for a in before if a not in order and before[a] <= {*order}), None)
        if ready is None:
            raise Unsupported(f"circular dependency between loops: {', '.join(sorted({*before} - {*order}))}")
        order.append(ready)
    return order


def _checked(k: Kernel, loop: dict[Operator, str], place: dict[Operator, int]) -> None:
    """Raises Unsupported where an operator reads what is not there yet, or no more."""
    made = {o.out: o for o in k.operators if o.op != "store"}
    for o in k.operators:
        for m in (made[a] for a in _values(o) if a in made):
            same = o in loop and loop[o] == loop.get(m)
            if m in loop and m.op not in RUNNING and not same:
                raise Unsupported(f"{o.out} needs a value of an iteration after the loop")
            if (same and m.op == "accumulate") or (not same and place[o] < place[m]):
                raise Unsupported(f"{m.out} is needed in the loop that makes it")


# ---- text ------------------------------------------------------------------------------------------------------------


def text(g: MuGraph) -> str:
    """The graph as a text that a person can read, one line per operator."""
    return "\n".join(line for k in g.kernels for line in _kernel(g, k))


def _kernel(g: MuGraph, k: Kernel) -> Iterator[str]:
    modes = ", ".join(f"{a} {_mode(g, k, a)}" for a in k.modes)
    yield f"kernel {k.name}: {g.blocks(k)} blocks; {modes}"
    thread = {name: n for n, names in enumerate(k.threads, 1) for name in names}
    for o in k.operators:
        if o.op == "load":
            yield f"  {_indent(o)}{o.out}{_dims(o)} = load {o.args[0]}"
        elif o.op == "store":
            yield f"  {_indent(o)}store {o.args[0]} to {o.out}"
        else:
            over = f" over {', '.join(o.over)}" if o.over else ""
            within = f"thread {thread[o.out]}: " if o.out in thread else ""
            yield f"  {_indent(o)}{within}{o.out}{_dims(o)} = {o.op}({', '.join(o.args)}){over}"


def _indent(o: Operator) -> str:
    return "for: " if o.inside else "     "


def _dims(o: Operator) -> str:
    return f"[{', '.join(sorted(map(repr, o.dims)))}]"


def _mode(g: MuGraph, k: Kernel, a: str) -> str:
    mode, tile = k.modes[a], k.tiles[a]
    if mode == "split":
        return f"in {g.parts[a]} parts by {tile}"
    return "whole" if mode == "whole" else f"{mode} by {tile}"
