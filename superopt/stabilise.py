"""exp(S) as exp(S - m) with a running maximum m, where the outputs do not change by it.

Every value has a degree in exp(S): if exp(S) is multiplied by t, the value is multiplied by t to its degree.

    exp: 1    mul, dot: sum of degrees    div: difference    add: they must agree    sum, accumulate, scale: the same

If every output has degree 0, t = exp(-m) may be anything that does not depend on an axis which is summed. m is the
maximum over these axes: of a tile, of the tiles so far in a loop (sums so far are multiplied by exp(m before - m)), of
the parts of a split, each with its own m as one more tensor."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from .mugraph import Dim, Kernel, MuGraph, Operator, Tensor

SAME = ("sum", "accumulate", "max", "load", "store")


class Unstable(Exception):
    """Why exp cannot be stabilised."""


def stabilised(g: MuGraph) -> MuGraph:
    """The graph with maxima subtracted; the graph itself where `unstable` says why not, or there is nothing to do."""
    try:
        return _stabilised(g)
    except Unstable:
        return g


def unstable(g: MuGraph) -> str:
    """Why the exponentials of this graph are not stabilised; "" where they are, or there are none."""
    exps = [o for k in g.kernels for o in k.operators if o.op == "exp"]
    if not exps or any(o.op == "max" for k in g.kernels for o in k.operators):
        return ""
    try:
        _stabilised(g)
    except Unstable as why:
        return str(why)
    return "no maximum is subtracted"


@dataclass
class Degrees:
    """The degree of every value of each kernel, and the axes over which values of other degrees than 0 are summed."""

    graph: MuGraph
    of: dict[tuple[str, str], int] = field(default_factory=dict)  # kernel, value
    stored: dict[str, int] = field(default_factory=dict)
    summed: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        for k in self.graph.kernels:
            for o in k.operators:
                args = [self.stored.get(a, 0) if o.op == "load" else self.of[k.name, a] for a in o.args]
                d = degree(o, args)
                if o.op == "store":
                    self.stored[o.out] = d
                else:
                    self.of[k.name, o.out] = d
                if any(args):
                    self.summed |= {*o.over}
        for name, *_ in self.graph.program.outputs:
            if self.stored[name]:
                raise Unstable(f"{name} changes when every exp(S) is multiplied by a number")


def degree(o: Operator, args: list[int]) -> int:
    """The degree of an operator's result."""
    if o.op == "exp":
        if args[0]:
            raise Unstable("an exponential of exponentials")
        return 1
    if o.op in ("mul", "dot"):
        return sum(args)
    if o.op == "div":
        return args[0] - args[1]
    if o.op == "sqr":
        return 2 * args[0]
    if o.op == "add":
        if args[0] != args[1]:
            raise Unstable(f"{o.out} adds values of the degrees {args[0]} and {args[1]} in exp(S)")
        return args[0]
    if o.op in SAME or o.op.startswith("scale"):
        return args[0]
    if any(args):
        raise Unstable(f"{o.op.partition(':')[0]} of a value that grows with exp(S)")
    return 0


def _stabilised(g: MuGraph) -> MuGraph:
    exps = [(k.name, o) for k in g.kernels for o in k.operators if o.op == "exp"]
    if not exps:
        return g
    if len(exps) > 1:
        raise Unstable("several exponentials")
    degrees = Degrees(g)
    tensors, kernels = dict(g.tensors), []
    relative: dict[str, Tensor] = {}  # the maximum that a stored tensor is relative to
    for k in g.kernels:
        block = _Block(g, k, degrees)
        own = [o for name, o in exps if name == k.name]
        loaded = [o for o in k.loads if degrees.of[k.name, o.out]]
        maxima = list(dict.fromkeys(relative[o.args[0]] for o in loaded if o.args[0] in relative))
        if own and loaded:
            raise Unstable(f"{k.name} has an exponential of its own and one of another kernel")
        if len(maxima) > 1 or (maxima and any(o.args[0] not in relative for o in loaded)):
            raise Unstable(f"{k.name} reads sums that are relative to different maxima")
        carried = maxima[0] if maxima else None
        if own:
            block.shift(own[0])
            if block.top is None:
                raise Unstable("exp(S) is not summed")
        elif loaded and carried is not None and any(d.axis in degrees.summed for d in carried.dims):
            block.weigh(carried, loaded)
        if block.top is not None and any(degrees.stored[o.out] for o in k.stores):
            carried = block.carry(_free(g, tensors))
            tensors[carried.name] = carried
        if carried is not None:
            relative |= {o.out: carried for o in k.stores if degrees.stored[o.out]}
        kernels.append(replace(k, operators=tuple(block.out)))
    return replace(g, kernels=tuple(kernels), tensors=tensors)


def _free(g: MuGraph, tensors: Iterable[str]) -> str:
    taken = {*g.memory, *tensors}
    return next(n for n in ("top", *(f"top{k}" for k in range(len(taken) + 1))) if n not in taken)


class _Block:
    """The operators of a kernel as they become. `top`: the value that is the maximum, and its dimensions."""

    def __init__(self, g: MuGraph, k: Kernel, degrees: Degrees) -> None:
        self.g, self.k, self.degrees = g, k, degrees
        self.out = list(k.operators)
        self.top: tuple[str, frozenset[Dim]] | None = None

    def name(self, wish: str) -> str:
        taken = {o.out for o in self.out} | {*self.g.memory}
        return next(n for n in (wish, *(f"{wish}{k}" for k in range(len(taken) + 1))) if n not in taken)

    def degree(self, value: str) -> int:
        return self.degrees.of.get((self.k.name, value), 0)

    def shift(self, exp: Operator) -> None:
        """exp(S) -> exp(S - m)"""
        s = exp.args[0]
        at = self.out.index(exp)
        made, m = self.maximum(s, self.dims(s), exp.inside)
        if m is None:
            return
        less = Operator(self.name(f"{s}_less"), "sub", (s, m), exp.dims, inside=exp.inside)
        self.out[at : at + 1] = [*made, less, replace(exp, args=(less.out,))]

    def weigh(self, carried: Tensor, loaded: list[Operator]) -> None:
        """Values of another kernel, each relative to its own maximum: times exp(that - the largest)."""
        dims, inside = frozenset(carried.dims), any(o.inside for o in loaded)
        load = Operator(self.name(carried.name), "load", (carried.name,), dims, inside=inside)
        last = max(self.out.index(o) for o in loaded) + 1
        made, m = self.maximum(load.out, dims, inside)
        if m is None:
            raise Unstable("partial results of exponentials that are not summed")
        less = Operator(self.name(f"{load.out}_less"), "sub", (load.out, m), dims, inside=inside)
        weight = Operator(self.name("weight"), "exp", (less.out,), dims, inside=inside)
        more = [load, *made, less, weight]
        renamed = {}
        for o in loaded:
            if not dims <= o.dims or self.degree(o.out) != 1:
                raise Unstable(f"{o.out} does not have the maximum that it is relative to")
            name = self.name(f"{o.out}_weighed")
            renamed[o.out] = name
            more.append(Operator(name, "mul", (o.out, weight.out), o.dims, inside=o.inside))
        rest = [replace(o, args=tuple(renamed.get(a, a) for a in o.args)) for o in self.out[last:]]
        self.out = [*self.out[:last], *more, *rest]

    def maximum(self, s: str, dims: frozenset[Dim], inside: bool) -> tuple[list[Operator], str | None]:
        """The maximum over the axes that are summed, and the name of its value; sums in the loop are rescaled."""
        over = [d for d in dims if d.axis in self.degrees.summed]
        if not over:
            return [], None
        grid = [d.axis for d in over if self.k.modes[d.axis] == "grid"]
        if grid:
            raise Unstable(f"{grid[0]} is summed over blocks")
        axes = tuple(sorted({d.axis for d in over}))
        tile = Operator(self.name("highest"), "max", (s,), dims - {*over}, axes, inside)
        loop = next((d.axis for d in over if self.k.turns(d)), None)
        if loop is None:
            self.top = tile.out, tile.dims
            return [tile], tile.out
        parts = {Dim(loop, True)} if self.k.modes[loop] == "split" else set()
        m = Operator(self.name("m_top"), "accumulate_max", (tile.out,), tile.dims | parts, (loop,))
        self.top = m.out, m.dims
        self.rescale(m.out, loop)
        return [tile, m], m.out

    def rescale(self, m: str, loop: str) -> None:
        """Sums over the loop of values of degree 1 are relative to the maximum so far."""
        for k, o in enumerate(self.out):
            d = self.degree(o.out) if o.op != "store" else self.degree(o.args[0])
            if o.op == "store" and o.inside and d:
                raise Unstable(f"{o.out} is stored in the loop that finds the maximum")
            if o.op == "accumulate" and d and loop in o.over:
                if d != 1:
                    raise Unstable(f"{o.out} has the degree {d} in exp(S)")
                self.out[k] = replace(o, args=(*o.args, m))

    def carry(self, name: str) -> Tensor:
        """The maximum as one more tensor."""
        assert self.top is not None
        value, dims = self.top
        order = tuple(dict.fromkeys(d for o in self.k.stores for d in self.g.memory[o.out].dims if d in dims))
        if {*order} != dims:
            raise Unstable("the maximum has an axis that no stored value has")
        self.out.append(Operator(name, "store", (value,), dims))
        return Tensor(name, order, "f32")

    def dims(self, value: str) -> frozenset[Dim]:
        return next(o.dims for o in self.out if o.out == value and o.op != "store")
