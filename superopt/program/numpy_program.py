"""The values of a program at one shape: arrays in, arrays out, as numbers or in a finite field.

A sum of a product is a matrix product over the axes that it shares, so that nothing is as large as all axes together:

    sum[k] w[k, n] x[m, k] / s[m]  =  (x / s) @ w        factors with fewer axes go into one that has them all"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from trilift.lift.errors import Unsupported
from trilift.lift.language.evaluate import evaluate
from trilift.lift.terms import term as T
from trilift.lift.terms.domain import FLOAT64, Float64
from trilift.lift.terms.term import Axis, Term

from .formulas import filled
from .positions import at_sizes
from .program import Input, Node, Program

Axes = tuple[str, ...]
Value = tuple[Axes, Any]  # the axes of an array, in order
Product = tuple[list[Node], list[Node], list[Term]]  # factors, divisors, numbers


def values(
    program: Program, tensors: Mapping[str, Any], dims: Mapping[str, int | float], domain: Float64 = FLOAT64
) -> dict[str, Any]:
    """Each output by its name, its dimensions in the program's order. `tensors`: arrays of the domain by the tensor's
    name; `dims`: the numbers of what scales and maps mention. Raises Unsupported."""
    run = _Run(program, tensors, dims, domain)
    return {name: run.at(run.value(v), axes) for name, axes, v, _ in program.outputs}


class _Run:
    def __init__(
        self, program: Program, tensors: Mapping[str, Any], dims: Mapping[str, int | float], domain: Float64
    ) -> None:
        self.program, self.dims, self.domain = program, dims, domain
        self.inputs = {x.name: (x.axes, self._input(x, tensors)) for x in program.inputs}
        self.done: dict[Node, Value] = {}

    def _input(self, x: Input, tensors: Mapping[str, Any]) -> Any:
        if x.element is None:
            return self._checked(x.tensor, x.axes, tensors)
        axes = [Axis(a, T.const(self.program.sizes[a])) for a in x.axes]
        return np.asarray(evaluate(at_sizes(x.element, self.program.sizes), axes, {}, self.dims, self.domain))

    def _checked(self, name: str, axes: Axes, tensors: Mapping[str, Any]) -> Any:
        shape = tuple(self.program.sizes[a] for a in axes)
        if name not in tensors or np.shape(tensors[name]) != shape:
            raise Unsupported(f"the tensor {name} is not of the shape {shape}")
        return tensors[name]

    def value(self, n: Node) -> Value:
        if n not in self.done:
            self.done[n] = self._value(n)
        return self.done[n]

    def _value(self, n: Node) -> Value:
        if n.op == "input":
            return self.inputs[str(n.attr)]
        if n.op == "sum":
            return self._sum(str(n.attr), n.args[0])
        args = [self.value(a) for a in n.args]
        if n.op == "map":
            assert isinstance(n.attr, Term)
            return self._map(n.attr, args)
        if n.op == "scale":
            assert isinstance(n.attr, Term)
            return self.apply("mul", args[0], self.number(n.attr))
        return self.apply("mul", args[0], args[0]) if n.op == "sqr" else self.apply(n.op, *args)

    # ---- sums

    def _sum(self, over: str, body: Node) -> Value:
        factors, divisors, numbers = _product(body)
        rows = [self.value(f) for f in factors] + [self.apply("recip", self.value(d)) for d in divisors]
        rows = self._joined([r for r in rows if over in r[0]]) + self._joined([r for r in rows if over not in r[0]])
        inner, outer = [r for r in rows if over in r[0]], [r for r in rows if over not in r[0]]
        while len(inner) > 2:
            inner = [self.apply("mul", inner[0], inner[1]), *inner[2:]]
        if not inner:
            size = self.program.sizes[over]
            outer.append(((), self.domain.reals(np.asarray(float(size)))))
        out = self._total(over, *inner) if inner else outer.pop()
        for r in [*outer, *map(self.number, numbers)]:
            out = self.apply("mul", out, r)
        return out

    def _joined(self, rows: list[Value]) -> list[Value]:
        """Factors whose axes another one has are multiplied into it."""
        out: list[Value] = []
        for r in sorted(rows, key=lambda v: -len(v[0])):
            k = next((k for k, o in enumerate(out) if set(r[0]) <= set(o[0])), None)
            if k is None:
                out.append(r)
            else:
                out[k] = self.apply("mul", out[k], r)
        return out

    def _total(self, over: str, x: Value, y: Value | None = None) -> Value:
        """The sum over an axis of x or of x y."""
        if y is None:
            rest = tuple(a for a in x[0] if a != over)
            return rest, self.domain.fold("sum", x[1], x[0].index(over))
        both = tuple(a for a in x[0] if a in y[0] and a != over)
        left, right = (tuple(a for a in v[0] if a not in both and a != over) for v in (x, y))
        a, b = self.at(x, (*both, *left, over)), self.at(y, (*both, over, *right))
        shared, m, n, k = (self._extent(axes) for axes in (both, left, right, (over,)))
        out = matmul(self.domain, a.reshape(shared, m, k), b.reshape(shared, k, n))
        axes = (*both, *left, *right)
        return axes, out.reshape([self.program.sizes[c] for c in axes])

    def _extent(self, axes: Axes) -> int:
        return int(np.prod([self.program.sizes[a] for a in axes], dtype=np.int64))

    # ---- functions of elements

    def apply(self, op: str, *xs: Value) -> Value:
        axes = self._union(xs)
        return axes, self.domain.apply(op, *(self._aligned(x, axes) for x in xs))

    def _union(self, xs: Sequence[Value]) -> Axes:
        every = {a for axes, _ in xs for a in axes}
        return tuple(a for a in self.program.sizes if a in every)

    def _aligned(self, x: Value, axes: Axes) -> Any:
        """The array with a dimension for each of the axes, of size 1 where it lacks the axis."""
        own = tuple(a for a in axes if a in x[0])
        return self.at(x, own).reshape([self.program.sizes[a] if a in own else 1 for a in axes])

    def at(self, x: Value, axes: Axes) -> Any:
        """The array with its dimensions in the order of `axes`."""
        return np.transpose(x[1], [x[0].index(a) for a in axes])

    def number(self, t: Term) -> Value:
        return (), np.asarray(evaluate(t, (), {}, self.dims, self.domain)).reshape(())

    def _map(self, template: Term, args: Sequence[Value]) -> Value:
        axes = self._union(args)
        arrays = np.broadcast_arrays(*(self._aligned(x, axes) for x in args))
        over = Axis("element", T.const(max(arrays[0].size, 1)))
        holes = [T.read(f"hole{k}", [T.axis(over)]) for k in range(len(arrays))]
        flat = {f"hole{k}": a.reshape(-1) for k, a in enumerate(arrays)}
        out = evaluate(filled(template, holes), (over,), flat, self.dims, self.domain)
        return axes, np.asarray(out).reshape(arrays[0].shape)


def _product(n: Node) -> Product:
    """The factors, divisors and numbers of a product."""
    if n.op == "mul":
        (f, d, c), (g, e, s) = map(_product, n.args)
        return f + g, d + e, c + s
    if n.op == "div":
        f, d, c = _product(n.args[0])
        return f, [*d, n.args[1]], c
    if n.op == "scale":
        assert isinstance(n.attr, Term)
        f, d, c = _product(n.args[0])
        return f, d, [*c, n.attr]
    return [n], [], []


def matmul(domain: Float64, a: Any, b: Any) -> Any:
    """a @ b in the domain."""
    own = getattr(domain, "matmul", None)
    with np.errstate(all="ignore"):
        return np.matmul(a, b) if own is None else own(a, b)
