"""The values of a µGraph, in any domain, and the test that it is its program (Mirage, section 5, theorem 2).

All blocks, turns of the loop and lanes of the tile are axes of one array: every axis of the program has three bits, for
its part, its place in the part, and its lane in the tile. A tile sum is over the bits that a kernel has in the tile,
`accumulate` over those in the loop. A value that a loop leaves unsummed is undefined after it and in other loops, one
that it
accumulates is undefined within it, and a store needs one value for each element of its tensor: a graph for which this
does not hold is invalid, and says where.

The test draws inputs, primes and the root of unity anew for each sample; its bound is that of
`verify.fields.identity_test`. Inputs of one view of a tensor are drawn once, other parts of it, or the same with
more axes, for themselves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from trilift.lift.errors import TriliftError, Unsupported
from trilift.lift.language.definitions import DEFINITIONS
from trilift.lift.language.unfolding import unfold
from trilift.lift.terms import term as T
from trilift.lift.terms.term import Term
from trilift.verify.fields.identity_test import FieldResult, sides

from ..mugraph.graph import RUNNING, Dim, Kernel, MuGraph, Operator, phases
from ..program.abstract import Bits, function
from ..program.program import Node, Program
from .bodies import ROLES

Value = tuple[Bits, Any]  # an array over all bits, of extent 1 along those that it lacks


class Invalid(TriliftError):
    """The graph does not say what its kernels compute."""


def elementwise(domain: Any, op: str, attr: str | Term | None, xs: Sequence[Any]) -> Any:
    """The operation of a node of a program, no fold and no input, on values of its arguments."""
    if op == "sqr":
        return domain.apply("mul", xs[0], xs[0])
    if isinstance(attr, Term):
        if op == "scale":
            return domain.apply("mul", xs[0], template(domain, attr, []))
        return template(domain, attr, list(xs))
    return domain.apply(op, *xs)


def template(domain: Any, t: Term, xs: list[Any]) -> Any:
    """A template at these arguments; a size is a number of its own."""
    if t.op == "scalar" and t.attr in (names := [f"a{k}" for k in range(len(xs))]):
        return xs[names.index(str(t.attr))]
    if t.op == "const":
        return domain.reals(np.asarray(float(t.attr)))
    if t.op in ("size", "scalar"):
        return domain.reals(np.asarray(float(3 + sum(map(ord, str(t.attr))) % 89)))
    if t.op in DEFINITIONS:
        return template(domain, unfold(t), xs)
    args = [template(domain, a, xs) for a in t.args]
    out = args[0]
    if t.op in T.COMMUTATIVE:
        for x in args[1:]:
            out = domain.apply(t.op, out, x)
        return out
    return domain.apply(t.op, *args)


class Meaning:
    """Programs and µGraphs over one domain, at sizes of two parts of two turns of two lanes."""

    def __init__(self, program: Program, domain: Any, templates: dict[str, Term]) -> None:
        self.program, self.domain, self.templates = program, domain, templates
        self.bits = {a: tuple(f"{a}.{k}" for k in range(3)) for a in program.sizes}
        self.order = [b for bs in self.bits.values() for b in bs]

    def of(self, axes: tuple[str, ...]) -> Bits:
        return frozenset(b for a in axes for b in self.bits[a])

    def spread(self, x: Any, axes: tuple[str, ...]) -> Any:
        """A tensor over axes as an array over bits."""
        own = [b for a in axes for b in self.bits[a]]
        x = np.asarray(x).reshape([2] * len(own))
        x = x.transpose([own.index(b) for b in self.order if b in own])
        return x.reshape([2 if b in own else 1 for b in self.order])

    def gathered(self, v: Value, axes: tuple[str, ...]) -> Any:
        """A value as a tensor over axes."""
        own = [b for b in self.order if b in self.of(axes)]
        x = np.broadcast_to(v[1], [2 if b in own else 1 for b in self.order]).reshape([2] * len(own))
        order = [own.index(b) for a in axes for b in self.bits[a]]
        return x.transpose(order).reshape([2 ** len(self.bits[a]) for a in axes])

    def applied(self, op: str, *xs: Any) -> Any:
        """A function of elements."""
        if op.startswith("scale:"):
            return self.domain.apply("mul", xs[0], template(self.domain, self.templates[op], []))
        if op.startswith("map:"):
            return template(self.domain, self.templates[op], list(xs))
        return elementwise(self.domain, op, None, xs)

    def summed(self, x: Any, over: Bits) -> Any:
        for k, b in enumerate(self.order):
            if b in over:
                x = np.expand_dims(self.domain.fold("sum", x, k), k)
        return x

    # ---- programs

    def outputs(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """Of the program as it is written."""
        done: dict[Node, Any] = {}
        for n in self.program.nodes:
            if n.op == "input":
                x = next(x for x in self.program.inputs if x.name == n.attr)
                done[n] = self.spread(inputs[self.program.view(x)], x.axes)
            elif n.op == "sum":
                done[n] = self.summed(done[n.args[0]], self.of((str(n.attr),)))
            else:
                done[n] = self.applied(function(n), *(done[a] for a in n.args))
        return {name: self.gathered((self.of(axes), done[v]), axes) for name, axes, v, _ in self.program.outputs}

    # ---- graphs

    def graph(self, g: MuGraph, inputs: dict[str, Any]) -> dict[str, Any]:
        """Of a µGraph. Raises Invalid."""
        p = self.program
        memory = {x.name: (self.of(x.axes), self.spread(inputs[p.view(x)], x.axes)) for x in p.inputs}
        for k in g.kernels:
            memory |= self.kernel(g, k, memory)
        return {name: self.gathered(memory[name], axes) for name, axes, _, _ in self.program.outputs}

    def kernel(self, g: MuGraph, k: Kernel, memory: dict[str, Value]) -> dict[str, Value]:
        roles = {b: r for a, m in k.modes.items() for b, r in zip(self.bits[a], ROLES[m], strict=True)}
        tile, loop, grid = (frozenset(b for b, r in roles.items() if r == w) for w in "tfg")
        local: dict[str, Value] = {}
        out: dict[str, Value] = {}
        for o in k.operators:
            if o.op == "store":
                out[o.out] = self.stored(g, o, local, loop, grid)
                continue
            values = [self.argument(o, a, memory if o.op == "load" else local, loop) for a in o.args]
            self.together(o, values, loop)
            local[o.out] = self.result(o, values, tile, loop)
        try:
            phases(k)
        except Unsupported as e:
            raise Invalid(f"{k.name} cannot run: {e}") from e
        return out

    def together(self, o: Operator, values: list[Value], loop: Bits) -> None:
        """Raises Invalid for an operator in two loops at once."""
        turns = frozenset[str]().union(*(bits & loop for bits, _ in values)) | (self.of(o.over) & loop)
        if len(own := [a for a, bits in self.bits.items() if turns.intersection(bits)]) > 1:
            raise Invalid(f"{o.out} differs between iterations of the loops over {', '.join(own)}")

    def argument(self, o: Operator, name: str, known: dict[str, Value], loop: Bits) -> Value:
        if name not in known:
            raise Invalid(f"{o.out} uses {name}, which is not available there")
        bits, x = known[name]
        if bits & loop and not o.inside and o.op not in RUNNING:
            raise Invalid(f"{o.out} is outside the loop, but {name} differs between iterations")
        return bits, x

    def result(self, o: Operator, values: list[Value], tile: Bits, loop: Bits) -> Value:
        bits = frozenset[str]().union(*(b for b, _ in values))
        xs = [x for _, x in values]
        own = self.of(o.over)
        if o.op == "load":
            return values[0]
        if o.op == "sum":
            return bits - (own & tile), self.summed(xs[0], own & tile)
        if o.op == "accumulate":
            return bits - (own & loop), self.summed(xs[0], own & loop & bits)
        if o.op == "dot":
            return bits - (own & tile), self.summed(self.domain.apply("mul", *xs), own & tile)
        return bits, self.applied(o.op, *xs)

    def stored(self, g: MuGraph, o: Operator, local: dict[str, Value], loop: Bits, grid: Bits) -> Value:
        if o.args[0] not in local:
            raise Invalid(f"{o.args[0]} is stored but not available there")
        bits, x = local[o.args[0]]
        wanted = self.dims(g.tensors[o.out].dims)
        if bits & loop and not o.inside:
            raise Invalid(f"{o.args[0]} differs between iterations, but is stored after the loop")
        if not bits <= wanted or not grid <= wanted:
            raise Invalid(f"several blocks or lanes store to the same element of {o.out}")
        if not self.dims(tuple(d for d in g.tensors[o.out].dims if d.parts)) <= bits:
            raise Invalid(f"{o.out} has one entry for each part, but {o.args[0]} does not")
        return wanted, np.broadcast_to(x, [2 if b in wanted else 1 for b in self.order])

    def dims(self, dims: tuple[Dim, ...]) -> Bits:
        return frozenset(b for d in dims for b in (self.bits[d.axis][:1] if d.parts else self.bits[d.axis]))


def verify(g: MuGraph, templates: dict[str, Term], seed: int = 0, target: float = 1e-9) -> FieldResult:
    """Whether a µGraph computes its program, on random fields. Raises Invalid."""
    p = g.program
    left: Callable[[Any, dict[str, Any]], dict[str, Any]]
    left = lambda d, xs: Meaning(p, d, templates).graph(g, xs)  # noqa: E731
    right = lambda d, xs: Meaning(p, d, templates).outputs(xs)  # noqa: E731
    shapes = {p.view(x): (8,) * len(x.axes) for x in p.inputs}
    return sides(left, right, shapes, [o[0] for o in p.outputs], seed, target)
