"""Kernels of a tile program as a µGraph, which is emitted and verified as any other.

A variable is the value that it holds at that place of the program: what is loaded in the kernel that stores it is in
registers, and a step of a sum in a loop is what `accumulate` does. A block has loops one after the other; those over
one axis are one loop of the µGraph, and refused where the second needs what the first one sums."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, count
from typing import cast

from trilift.lift.errors import Unsupported

from ..mugraph.cost import Model, Shape, Traffic, assignments, itemsize
from ..mugraph.graph import Dim, Kernel, Mode, MuGraph, Tensor, phases
from ..program.program import FOLDS, Node, Program, node, source
from ..search.unfused import Block
from .nests import Nest, Nests, loaded_by, written_by
from .tile_bodies import planes, rebuilt
from .tile_program import Loop, Store, TileProgram, statements


def mugraph(nests: Nests, p: TileProgram, program: Program, model: Model) -> tuple[MuGraph, float]:
    """The µGraph of a program's nests, with its tiles and numbers of parts, and its seconds in the model. Raises
    Unsupported for a kernel that has no such form, or no tiles."""
    if again := sorted(t for n in nests.kernels for t in n.spilled):
        raise Unsupported(f"a block that loads {', '.join(again)} again from device memory")
    made = (_Writer(nests, p, program, model, parts) for parts in assignments(list(p.parts.values()), program))
    best, why = None, Unsupported("no number of parts fits")
    for writer in made:
        try:
            graph, seconds = writer.graph()
        except NoTiles as e:
            why = e
            continue
        if best is None or seconds < best[1]:
            best = graph, seconds
    if best is None:
        raise why
    return best


class NoTiles(Unsupported):
    """No tiles fit into the memory of a block."""


@dataclass
class _Writer:
    """`held`: what each tensor holds so far; `names`: of the values in memory."""

    nests: Nests
    p: TileProgram
    program: Program
    model: Model
    parts: dict[str, int]
    held: dict[str, Node] = field(default_factory=dict)
    names: dict[Node, str] = field(default_factory=dict)
    tensors: dict[str, Tensor] = field(default_factory=dict)
    kernels: list[Kernel] = field(default_factory=list)
    seconds: float = 0.0

    def graph(self) -> tuple[MuGraph, float]:
        for x in self.program.inputs:
            self.held[x.name] = source(x.name, self.p.tensors[x.name].axes)
            self.names[self.held[x.name]] = x.name
        for k, nest in enumerate(self.nests.kernels):
            rest = self.nests.kernels[k + 1 :]
            later = frozenset[str]().union(*(loaded_by(n.body) for n in rest))
            self.kernel(nest, later, frozenset[str]().union(*(written_by(n.body) for n in rest)))
        return MuGraph(self.program, tuple(self.kernels), self.tensors, self.parts), self.seconds

    def kernel(self, nest: Nest, later: frozenset[str], again: frozenset[str]) -> None:
        """A kernel; `later`: what others load after it, `again`: what they store."""
        loops = [s.axis for s in statements(nest.body) if isinstance(s, Loop)]
        block = Block(dict(self.names), self.modes(nest, loops), self.p.parts, frozenset(nest.grid) - planes(self.p))
        writer = _Kernel(nest, self.held, block)
        writer.statements()
        stored = [t for t in sorted(written_by(nest.body)) if self.wanted(t, later, again)]
        if not stored:
            return
        for t in stored:
            tensor = self.p.tensors[t]
            if not {*loops} & {*tensor.axes} <= self.held[t].axes:
                raise Unsupported(f"{t} is the same in every iteration of the loop that stores it")
            writer.block.value(self.held[t])
            if tensor.role != "output" or t not in again:
                writer.block.store(self.held[t], t)
                self.tensors[t] = Tensor(t, self.dims(tensor.axes), tensor.dtype)
        for t in (t for t in stored if t in later):
            own = self.p.tensors[t].role != "output"
            self.names[self.held[t]] = t if own else self.copy(t, writer.block)
        self.add(writer)

    def copy(self, t: str, block: Block) -> str:
        """A tensor of our own for what an output holds: others load it as it was computed, not as it is rounded."""
        taken = {*self.tensors, *self.p.tensors}
        name = next(n for k in count() if (n := f"{t}_copy{k or ''}") not in taken)
        self.tensors[name] = Tensor(name, self.dims(self.p.tensors[t].axes), "f32")
        block.store(self.held[t], name)
        return name

    def modes(self, nest: Nest, loops: Sequence[str]) -> dict[str, str]:
        """The role of each axis in the kernel. Raises Unsupported for parts that are not looped over in their block."""
        out = {a: "grid" if a in nest.grid else "loop" if a in loops else "whole" for a in self.program.sizes}
        for of, a in self.p.parts.items():
            if of in loops or (of in nest.grid and a not in loops):
                raise Unsupported(f"parts of {a} without a loop over it")
            out[a] = "split" if of in nest.grid else "parts" if a not in loops and a not in nest.grid else out[a]
        return out

    def dims(self, axes: Sequence[str]) -> tuple[Dim, ...]:
        """The dimensions of a tensor."""
        parts = self.p.parts
        return tuple(Dim(parts.get(a, a), a in parts) for a in axes if parts.get(a) not in axes)

    def wanted(self, t: str, later: frozenset[str], again: frozenset[str]) -> bool:
        """Whether a tensor is stored to memory: an output at last, and what is loaded and no number."""
        last = self.p.tensors[t].role == "output" and t not in again
        return last or (t in later and self.held[t].op != "const")

    def add(self, writer: _Kernel) -> None:
        """The kernel with its tiles."""
        block = writer.block
        used = {d.axis for o in block.operators for d in o.dims} | {a for o in block.operators for a in o.over}
        modes = {a: m for a, m in block.modes.items() if a in used}
        choice = self.model.best(Shape(tuple(modes.items()), tuple(self.traffic(block)), tuple(block.work)), self.parts)
        if choice is None:
            raise NoTiles("no tiles fit into the memory of a block")
        name = f"kernel{len(self.kernels)}" if len(self.nests.kernels) > 1 else "kernel"
        lasting = {a: "whole" if m == "parts" else m for a, m in modes.items()}
        kernel = Kernel(name, cast(dict[str, Mode], lasting), choice.tiles, tuple(block.operators))
        self.kernels.append(replace(kernel, operators=tuple(chain(*phases(kernel)))))
        self.seconds += choice.seconds

    def traffic(self, block: Block) -> Iterator[Traffic]:
        memory = {x.name: (tuple(map(Dim, x.axes)), x.dtype) for x in self.program.inputs}
        memory |= {t.name: (t.dims, t.dtype) for t in self.tensors.values()}
        for o in block.operators:
            if o.op in ("load", "store"):
                dims, dtype = memory[o.args[0] if o.op == "load" else o.out]
                yield Traffic(dims, itemsize(dtype), o.op == "store")


@dataclass
class _Kernel:
    """The operators of one kernel."""

    nest: Nest
    held: dict[str, Node]
    block: Block

    def statements(self) -> None:
        """The values made outside loops and in them; `held` is what the tensors hold afterwards."""
        for s in statements(self.nest.body):
            if isinstance(s, Loop):
                self.turn(s)
            elif isinstance(s, Store):
                self.held[s.tensor] = self.made(inlined(s.value, self.held))

    def turn(self, loop: Loop) -> None:
        """One turn of the loop: sums that go on are accumulated, all else is gone after it."""
        inner = dict(self.held)
        after: dict[str, Node] = {}
        stored: set[str] = set()
        for s in statements(loop.body):
            if not isinstance(s, Store):
                raise Unsupported("a loop in the loop of a block")
            rest = step(s, loop.axis)
            if s.tensor in after or (rest is not None and s.tensor in stored):
                raise Unsupported(f"{s.tensor} is stored twice in the loop that sums it")
            stored.add(s.tensor)
            if rest is None:
                inner[s.tensor] = self.made(inlined(s.value, inner), loop.axis)
                continue
            total = node("sum", inlined(rest, inner), attr=loop.axis)
            self.block.accumulate(total)
            first = self.held[s.tensor]
            after[s.tensor] = total if _is_zero(first) else node("add", first, total)
            inner.pop(s.tensor, None)
        self.held |= after
        for t in written_by(loop.body) - {*after}:
            self.held[t] = inner[t]

    def made(self, n: Node, loop: str | None = None) -> Node:
        """The value, in registers from now on; `loop`: in the turns of which it is made. A sum over the axis of another
        loop of the kernel is what that loop accumulates."""
        if n.op in ("input", "const") or n in self.block.local or n in self.block.names:
            return n
        if n.op in FOLDS:
            axis = str(n.attr)
            if loop == axis or (n.op == "max" and self.block.loop({axis})):
                raise Unsupported(f"a {n.op} over {axis} that is not a running sum")
            if n.op == "max":
                self.made(n.args[0], loop)
                self.block.make(n)
            elif self.block.loop({axis}):
                self.block.accumulate(n)
            elif made := self.block.product(n, self.block.over(n)):
                self.block.local[n] = made
            else:
                self.block.make(n)
        else:
            for a in n.args:
                self.made(a, loop)
            self.block.make(n)
        return n


def step(s: Store, axis: str) -> Node | None:
    """e where a store is t = t + sum(axis, e)."""
    if s.value.op != "add":
        return None
    for held, total in (s.value.args, s.value.args[::-1]):
        if held.op == "input" and held.attr == s.tensor and total.op == "sum" and total.attr == axis:
            return total.args[0]
    return None


def inlined(n: Node, held: Mapping[str, Node]) -> Node:
    """The value with what its tensors hold in their place. Raises Unsupported for one that holds nothing known."""

    def leaf(x: Node) -> Node:
        if x.attr not in held:
            raise Unsupported(f"{x.attr} is loaded before its sum is complete")
        return held[str(x.attr)]

    return rebuilt(n, leaf)


def _is_zero(n: Node) -> bool:
    return n.op == "const" and getattr(n.attr, "attr", None) == 0
