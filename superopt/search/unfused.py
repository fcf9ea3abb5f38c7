"""The program as it is written: one kernel for each operation, with no search. It always fits, and is never fast.

x * y -> a kernel over tiles of the result
sum over k of f(..), and of products with what only they use -> a kernel with a loop over k
exp, with the sums over it -> a kernel with whole rows, which finds the maximum that is subtracted"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import cast

from trilift.lift.errors import Unsupported

from ..mugraph.cost import H200, Hardware, Model, Shape, Traffic, Work, itemsize
from ..mugraph.graph import LOOPS, Dim, Kernel, Mode, MuGraph, Operator, Tensor
from ..program.abstract import function
from ..program.program import FOLDS, Node, Program

INLINED = ("mul", "div", "scale")


def unfused(program: Program, hardware: Hardware = H200) -> tuple[MuGraph, float]:
    """The µGraph, and its seconds in the model. Raises Unsupported where a row does not fit into a block."""
    return _Writer(program, Model(program, hardware)).graph()


@dataclass
class _Writer:
    """`names`: of the values in memory."""

    program: Program
    model: Model
    names: dict[Node, str] = field(default_factory=dict)
    tensors: dict[str, Tensor] = field(default_factory=dict)
    kernels: list[Kernel] = field(default_factory=list)
    seconds: float = 0.0

    def graph(self) -> tuple[MuGraph, float]:
        self.wanted = {v: (name, axes, dtype) for name, axes, v, dtype in self.program.outputs}
        self.names |= {n: str(n.attr) for n in self.program.nodes if n.op == "input"}
        for n in self.program.nodes:
            if n not in self.names and not self.inlined(n):
                self.kernel([n, *self.sums_over(n)])
        for name, axes, v, dtype in self.program.outputs:
            if self.names[v] != name:
                self.copy(v, name, axes, dtype)
        return MuGraph(self.program, tuple(self.kernels), self.tensors), self.seconds

    def inlined(self, n: Node) -> bool:
        """A node with the axes of a term of a sum that only this sum needs is made where it is summed."""
        if n.op not in INLINED or n in self.wanted:
            return False
        after = [m for m in self.program.nodes if n in m.args]
        while len(after) == 1 and after[0].axes == n.axes and self.inlined(after[0]):
            after = [m for m in self.program.nodes if after[0] in m.args]
        return len(after) == 1 and after[0].op == "sum" and after[0].args[0].axes == n.axes

    def sums_over(self, n: Node) -> list[Node]:
        """The sums over an exponential, which need its maximum as it does."""
        return [m for m in self.program.nodes if n.op == "exp" and m.op == "sum" and m.args[0] is n]

    # ---- one kernel

    def kernel(self, made: Sequence[Node]) -> None:
        """A kernel that makes these values, the later ones from the first."""
        first = made[0]
        sums = {str(n.attr) for n in made if n.op in FOLDS}
        loop = str(first.attr) if first.op == "sum" else None
        modes = {a: "loop" if a == loop else "whole" if a in sums else "grid" for a in self.ordered(first.axes | sums)}
        block = Block(self.names, modes)
        for n in made:
            if n.op == "sum" and loop is not None:
                block.accumulate(n)
            else:
                block.make(n)
        for n in made:
            block.store(n, self.stored(n))
        self.add(block, made)

    def copy(self, v: Node, name: str, axes: tuple[str, ...], dtype: str) -> None:
        """An output that is an input, or another output too."""
        self.tensors[name] = Tensor(name, tuple(map(Dim, axes)), dtype)
        block = Block(self.names, dict.fromkeys(self.ordered(v.axes), "grid"))
        block.value(v)
        block.store(v, name)
        self.add(block, [v])

    def add(self, block: Block, made: Sequence[Node]) -> None:
        modes = tuple(block.modes.items())
        choice = self.model.best(Shape(modes, tuple(self.traffic(block)), tuple(block.work)), {})
        if choice is None:
            named = ", ".join(f"{a} = {self.program.sizes[a]}" for a, m in modes if m == "whole")
            raise Unsupported(f"no tiles of {made[0].op} fit into the memory of a block: {named}")
        name = f"kernel{len(self.kernels)}"
        self.kernels.append(Kernel(name, cast(dict[str, Mode], block.modes), choice.tiles, tuple(block.operators)))
        self.seconds += choice.seconds

    def traffic(self, block: Block) -> list[Traffic]:
        memory = {x.name: (tuple(map(Dim, x.axes)), x.dtype) for x in self.program.inputs}
        memory |= {t.name: (t.dims, t.dtype) for t in self.tensors.values()}
        moved = [(o.args[0], False) for o in block.operators if o.op == "load"]
        moved += [(o.out, True) for o in block.operators if o.op == "store"]
        return [Traffic(memory[name][0], itemsize(memory[name][1]), store) for name, store in moved]

    def stored(self, n: Node) -> str:
        """The tensor of a value: an output, or one of our own in 32 bits."""
        taken = {*self.names.values(), *self.tensors, *(o[0] for o in self.program.outputs)}
        name, axes, dtype = self.wanted.get(n) or (
            next(x for k in count() if (x := f"value{k}") not in taken), self.ordered(n.axes), "f32",
        )  # fmt: skip
        self.names[n] = name
        self.tensors[name] = Tensor(name, tuple(map(Dim, axes)), dtype)
        return name

    def ordered(self, axes: frozenset[str] | set[str]) -> tuple[str, ...]:
        return tuple(a for a in self.program.sizes if a in axes)


@dataclass
class Block:
    """The operators of one kernel, and what the model counts of them. `local`: values that the block has; `parts`: of
    an axis that enumerates parts of another one, that other; `single`: axes of which a block has one index."""

    names: dict[Node, str]
    modes: dict[str, str]
    parts: dict[str, str] = field(default_factory=dict)
    single: frozenset[str] = frozenset()
    operators: list[Operator] = field(default_factory=list)
    work: list[Work] = field(default_factory=list)
    local: dict[Node, str] = field(default_factory=dict)

    def make(self, n: Node) -> str:
        """The value from its arguments, in the loop over an axis that it has."""
        if n.op == "const":
            raise Unsupported("a number as a separate operand")
        over = self.over(n) if n.op in FOLDS else ()
        args = [self.value(a) for a in n.args]
        self.local[n] = self.operator(n.op if over else function(n), args, n.axes, over)
        return self.local[n]

    def loop(self, axes: Iterable[str]) -> str | None:
        """The axis of a loop among these."""
        return next((a for a in sorted(axes) if self.modes.get(a) in LOOPS), None)

    def accumulate(self, n: Node) -> None:
        """A sum over a loop, of a product of matrices where its term is one."""
        over = (str(n.attr),)
        part = self.product(n, over) or self.operator("sum", [self.value(n.args[0])], n.axes, over)
        self.local[n] = self.operator("accumulate", [part], n.axes, over)

    def product(self, n: Node, over: tuple[str, ...]) -> str | None:
        """c (x y) / d with d over axes of x is the product of c x / d and y."""
        term, after = n.args[0], list[Node]()
        while term not in self.names and term.op in ("scale", "div"):
            term, after = term.args[0], [term, *after]
        if term in self.names or term.op != "mul":
            return None
        a, b = (x.axes for x in term.args)
        sides = [next((k for k in (0, 1) if _divisor(x) <= term.args[k].axes), None) for x in after]
        if None in sides or not {*over} <= a & b or any(not self.dims(x - self.single) for x in (a - b, b - a)):
            return None
        values = [self.value(x) for x in term.args]
        for x, k in zip(after, sides, strict=True):
            assert k is not None
            args = [values[k], *(self.value(d) for d in x.args[1:])]
            values[k] = self.operator(function(x), args, term.args[k].axes)
        alone = (a & b) - {*over} | (a ^ b) & self.single
        free = tuple(self.dims(x - self.single) for x in (a - b, b - a))
        return self.operator("dot", values, n.axes, over, self.dims(alone), free)

    def value(self, n: Node) -> str:
        """A value of the block: one that it has, or that is in memory, or else is made now."""
        if n not in self.local and n not in self.names:
            return self.make(n)
        if n not in self.local:
            self.local[n] = f"{self.names[n]}_tile"
            looped = self.loop(n.axes) is not None
            load = Operator(self.local[n], "load", (self.names[n],), self.dims(n.axes), (), looped)
            self.operators.insert(self.loads(), load)
        return self.local[n]

    def loads(self) -> int:
        return sum(o.op == "load" for o in self.operators)

    def operator(
        self, kind: str, args: Sequence[str], axes: frozenset[str], over: tuple[str, ...] = (),
        alone: frozenset[Dim] = frozenset(), free: tuple[frozenset[Dim], ...] = (),
    ) -> str:  # fmt: skip
        name, loop = f"v{len(self.operators)}", self.loop({*axes, *over})
        self.operators.append(Operator(name, kind, tuple(args), self.dims(axes), over, loop is not None))
        read = self.dims(axes) | (self.dims({*over}) if kind != "accumulate" else frozenset())
        loaded = {o.out for o in self.operators if o.op == "load"}
        made = tuple(o.dims for o in self.operators if o.out in args and o.out not in loaded) if kind == "dot" else ()
        self.work.append(Work(kind.partition(":")[0], read, loop, self.dims(axes), alone, free, made))
        return name

    def store(self, n: Node, name: str) -> None:
        looped = self.loop(n.axes) is not None
        self.operators.append(Operator(name, "store", (self.local[n],), self.dims(n.axes), (), looped))

    def over(self, n: Node) -> tuple[str, ...]:
        """The axis of a fold, in the terms of a kernel: of its parts, where these are what it is over."""
        return (self.parts.get(str(n.attr), str(n.attr)),)

    def dims(self, axes: frozenset[str] | set[str]) -> frozenset[Dim]:
        """The dimensions of a tile with these axes: of an axis in parts what is within a part, or in a kernel that
        reads parts one entry for each; a block that makes one part has no dimension for it."""
        out = {Dim(a, self.modes.get(a) == "parts") for a in axes if a not in self.parts}
        whole = {self.parts[a] for a in axes if a in self.parts} - {d.axis for d in out}
        return frozenset(out | {Dim(a, True) for a in whole if self.modes[a] == "parts"})


def _divisor(n: Node) -> frozenset[str]:
    return n.args[1].axes if n.op == "div" else frozenset()
