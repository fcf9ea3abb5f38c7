"""The outputs of a saved µGraph, executed as written, in numbers or in a finite field.

All blocks run at once: a tile has three dimensions of the grid in front, of size 1 where it is the same for all blocks.

    imap x -> d    the tensor's dimension d, divided into the blocks along x       n = gx * rest
    fmap d         what is left of dimension d, divided into the iterations        rest = iterations * tile
    omap x -> d    the tiles of the blocks along x, joined along dimension d"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from trilift.lift.errors import CaseError, Unsupported
from trilift.lift.terms.domain import FLOAT64, Float64

from ..program.numpy_program import matmul
from .graphs import BlockGraph, BlockOperator, Graph, KernelOperator, Map, Shape, Tensor

Apply = Callable[..., Any]


def run(graph: Graph, inputs: Sequence[Any], domain: Float64 = FLOAT64, exact: bool = True) -> list[Any]:
    """The outputs, in their order. `exact`: the inputs have the shapes of the file; else others, that the grid and the
    loops divide. Raises Unsupported for an operator that is not known, CaseError where shapes do not fit."""
    return _Run(domain, exact).graph(graph, list(inputs))


# ---- operators -------------------------------------------------------------------------------------------------------


def _elementwise(op: str) -> Apply:
    return lambda d, *xs: d.apply(op, *xs)


def _total(d: Float64, x: Any, axis: int = -1) -> Any:
    """The sum over a dimension, which stays with size 1."""
    return np.expand_dims(d.fold("sum", x, axis % x.ndim), axis % x.ndim)


def _mean_square(d: Float64, x: Any) -> Any:
    return d.apply("div", _total(d, d.apply("mul", x, x)), d.reals(np.asarray(float(x.shape[-1]))))


def _rms_norm(d: Float64, x: Any) -> Any:
    """x / sqrt(mean(x^2)) along the last dimension."""
    return d.apply("div", x, d.apply("sqrt", _mean_square(d, x)))


def _silu(d: Float64, x: Any) -> Any:
    one = d.reals(np.asarray(1.0))
    return d.apply("div", x, d.apply("add", one, d.apply("exp", d.apply("neg", x))))


def _groups(d: Float64, x: Any, count: int) -> Any:
    """Sums of the entries with the same place in each of `count` equal parts of the last dimension."""
    return d.fold("sum", x.reshape(*x.shape[:-1], count, x.shape[-1] // count), x.ndim - 1)


OPERATORS: dict[str, Apply] = {
    "matmul": matmul, "rms_norm": _rms_norm, "silu": _silu,
    "add": _elementwise("add"), "mul": _elementwise("mul"), "div": _elementwise("div"), "sub": _elementwise("sub"),
    "exp": _elementwise("exp"), "sqrt": _elementwise("sqrt"), "square": lambda d, x: d.apply("mul", x, x),
}  # fmt: skip
REDUCED = {"reduction_0": 0, "reduction_1": 1, "reduction_2": 2}  # sums over a dimension
ARITY = {"matmul": 2, "add": 2, "mul": 2, "div": 2, "sub": 2}


@dataclass(frozen=True)
class Accumulator:
    """`each`: of the tile of an iteration (and the number of groups), `last`: of their sum over the iterations (and how
    many entries of the last dimension it is over)."""

    each: Callable[[Float64, Any, int], Any]
    last: Callable[[Float64, Any, int], Any] = lambda d, x, n: x


def _mean(d: Float64, x: Any, n: int) -> Any:
    return d.apply("div", x, d.reals(np.asarray(float(n))))


ACCUMULATORS: dict[str, Accumulator] = {
    "accum_nored": Accumulator(lambda d, x, n: x),
    "accum_red_ld_sum": Accumulator(lambda d, x, n: _total(d, x)),
    "accum_red_ld_mean": Accumulator(lambda d, x, n: _total(d, x), _mean),
    "accum_red_ld_rms": Accumulator(
        lambda d, x, n: _total(d, d.apply("mul", x, x)), lambda d, x, n: d.apply("sqrt", _mean(d, x, n))
    ),
    "accum_redtox_ld_sum": Accumulator(_groups),
}


# ---- kernels ---------------------------------------------------------------------------------------------------------


@dataclass
class _Run:
    domain: Float64
    exact: bool

    def graph(self, graph: Graph, inputs: list[Any]) -> list[Any]:
        if len(inputs) != len(graph.inputs):
            raise CaseError(
                "the µGraph has a different number of inputs", why=f"{len(graph.inputs)} instead of {len(inputs)}"
            )
        memory: dict[int, Any] = {}
        for o in graph.operators:
            if o.op == "input":
                self.keep(memory, o.outputs[0], inputs.pop(0))
            elif o.block is not None:
                for t, value in self.kernel(o.block, memory).items():
                    self.keep(memory, t, value)
            elif o.op != "output":
                self.keep(memory, o.outputs[0], self.applied(o, [memory[t.guid] for t in o.inputs], 0))
        return [memory[t.guid] for t in graph.outputs]

    def keep(self, memory: dict[int, Any], t: Tensor, value: Any) -> None:
        """The value of a tensor, if it has its shape."""
        shape = np.shape(value)[-len(t.shape) :]
        fits = shape == t.shape if self.exact else [n > 1 for n in shape] == [n > 1 for n in t.shape]
        if not fits:
            raise CaseError("malformed µGraph", why=f"the tensor {t.guid} of shape {t.shape} gets the shape {shape}")
        memory[t.guid] = value

    def applied(self, o: KernelOperator | BlockOperator, xs: list[Any], front: int) -> Any:
        """The result of an operator on arrays with `front` dimensions of the grid."""
        try:
            if o.op in REDUCED and len(xs) == 1:
                return _total(self.domain, xs[0], front + REDUCED[o.op])
            if o.op in OPERATORS and len(xs) == ARITY.get(o.op, 1):
                return OPERATORS[o.op](self.domain, *xs)
        except ValueError as e:  # shapes that numpy does not combine
            raise CaseError("malformed µGraph", why=f"{o.op}: {e}") from None
        raise Unsupported(f"the operator {o.op} with {len(xs)} inputs")

    def kernel(self, b: BlockGraph, memory: dict[int, Any]) -> dict[Tensor, Any]:
        """The tensors that a block graph stores."""
        block = _Block(
            self, b, {o.memory.guid: memory[o.memory.guid] for o in b.operators if o.memory and not o.inputs}
        )
        for k in range(b.iterations):
            block.iteration(k)
        return block.after()


@dataclass
class _Block:
    """`tiles`: of all blocks, in this iteration or after the last; `sums`: of accumulators; `varies`: tiles that are
    another in each iteration, `late`: those that are there only after the loop."""

    owner: _Run
    graph: BlockGraph
    memory: dict[int, Any]
    tiles: dict[int, Any] = field(default_factory=dict)
    sums: dict[int, Any] = field(default_factory=dict)
    varies: set[int] = field(default_factory=set)
    late: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        for o in self.graph.operators:
            here, made = [t.guid for t in o.inputs], {t.guid for t in o.outputs}
            if o.op in ACCUMULATORS:
                if self.late.intersection(here):
                    raise CaseError("malformed µGraph", why=f"{o.op} of a value that is made after the loop")
                self.late |= made
            elif o.loop is not None or self.varies.intersection(here):
                self.varies |= made
            if self.late.intersection(here):
                self.late |= made
            if self.graph.iterations > 1 and self.late.intersection(here) and self.varies.intersection(here):
                raise CaseError("malformed µGraph", why=f"{o.op} of a value of the loop and one that is made after it")

    def iteration(self, k: int) -> None:
        """The operators within the loop."""
        for o in self.graph.operators:
            if o.op == "input":
                self.keep(o, self.load(o, k))
            elif o.op in ACCUMULATORS:
                out = self.step(o)
                at = o.outputs[0].guid
                self.sums[at] = out if k == 0 else self.owner.domain.apply("add", self.sums[at], out)
            elif o.op != "output" and o.outputs[0].guid not in self.late:
                self.keep(o, self.owner.applied(o, self.arguments(o), 3))

    def step(self, o: BlockOperator) -> Any:
        x, given = self.arguments(o)[0], o.inputs[0].shape[-1]
        made = o.outputs[0].shape[-1]
        groups = given // made
        if o.op == "accum_redtox_ld_sum" and (given % made or x.shape[-1] % groups):
            raise CaseError("malformed µGraph", why=f"{x.shape[-1]} entries in groups of {made}")
        return ACCUMULATORS[o.op].each(self.owner.domain, x, groups)

    def after(self) -> dict[Tensor, Any]:
        """The operators after the loop, and what is stored."""
        stored = {}
        for o in self.graph.operators:
            if o.op in ACCUMULATORS:
                entries = self.arguments(o)[0].shape[-1] * self.graph.iterations
                last = ACCUMULATORS[o.op].last(self.owner.domain, self.sums[o.outputs[0].guid], entries)
                self.keep(o, last)
            elif o.op == "output":
                assert o.memory is not None
                stored[o.memory] = self.store(o)
            elif o.outputs[0].guid in self.late:
                self.keep(o, self.owner.applied(o, self.arguments(o), 3))
        return stored

    def keep(self, o: BlockOperator, value: Any) -> None:
        self.owner.keep(self.tiles, o.outputs[0], value)

    def arguments(self, o: BlockOperator) -> list[Any]:
        return [self.tiles[t.guid] for t in o.inputs]

    def load(self, o: BlockOperator, k: int) -> Any:
        assert o.memory is not None
        x = self.memory[o.memory.guid]
        out = divided(x, o.map, self.graph.grid)
        if o.loop is None:
            return out
        at = o.loop + 3
        n = out.shape[at]
        if n % self.graph.iterations:
            raise CaseError("malformed µGraph", why=f"{n} entries in {self.graph.iterations} iterations")
        tile = n // self.graph.iterations
        return out[(slice(None),) * at + (slice(k * tile, (k + 1) * tile),)]

    def store(self, o: BlockOperator) -> Any:
        if o.loop is not None or (self.graph.iterations > 1 and o.inputs[0].guid in self.varies):
            raise Unsupported("an output of every iteration")
        for n, d, name in zip(self.graph.grid, o.map, "xyz", strict=True):
            if n > 1 and d is None:
                raise Unsupported(f"all {n} blocks along {name} store the same tile")
        return joined(self.arguments(o)[0], o.map, self.graph.grid)


def divided(x: Any, map_: Map, grid: tuple[int, int, int]) -> Any:
    """A tensor as the tiles of all blocks: x -> 3, the grid first."""
    shape: list[int] = []
    place: dict[int, int] = {}
    kept: list[int] = []
    for d, n in enumerate(x.shape):
        if d in map_:
            g = map_.index(d)
            if n % grid[g]:
                raise CaseError("malformed µGraph", why=f"{n} entries in {grid[g]} blocks")
            place[g] = len(shape)
            shape += [grid[g], n // grid[g]]
        else:
            shape += [n]
        kept.append(len(shape) - 1)
    present = [g for g in range(3) if g in place]
    out = x.reshape(shape).transpose([*(place[g] for g in present), *kept])
    return out.reshape(*(grid[g] if g in place else 1 for g in range(3)), *out.shape[len(present) :])


def joined(tiles: Any, map_: Map, grid: tuple[int, int, int]) -> Any:
    """The tiles of all blocks as one tensor."""
    inner: Shape = tiles.shape[3:]
    tiles = np.broadcast_to(tiles, (*(n if d is not None else 1 for n, d in zip(grid, map_, strict=True)), *inner))
    order: list[int] = [g for g in range(3) if map_[g] is None]
    for d in range(len(inner)):
        order += [map_.index(d)] if d in map_ else []
        order.append(3 + d)
    out = tiles.transpose(order)
    return out.reshape([n * (grid[map_.index(d)] if d in map_ else 1) for d, n in enumerate(inner)])
