"""µGraphs as Mirage saves them: a list of graphs, each a list of kernel operators.

    graph    = [operator]            operator of a kernel: kn_<name>_op, or kn_customized_op, a block graph
    bgraph   = grid_dim x y z, forloop_range, [operator]     operator of a block: tb_<name>_op
    tb_input_op     dtensor, input_map (imap: grid dimension -> dimension of the tensor, -1: the same for all blocks),
                    forloop_dim (fmap: the dimension that the iterations divide, -1: the same in all)
    tb_output_op    dtensor, output_map (omap: grid dimension -> dimension along which the blocks' tiles are joined)
    tb_accum_*_op   accumulators: what they have after the last iteration is used after the loop

Tensors are named by a number (guid). Each graph is checked for what it must have before it can mean
anything: known tensors, maps to dimensions that exist, sizes that divide."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trilift.lift.errors import CaseError

Shape = tuple[int, ...]
Map = tuple[int | None, int | None, int | None]  # for each dimension of the grid, a dimension of a tensor


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor by its number."""

    guid: int
    shape: Shape


@dataclass(frozen=True, slots=True)
class BlockOperator:
    """One operator of a block. Of an input: `memory`, the tensor in device memory, `map`, and `loop`, the dimension
    that the iterations divide; of an output: `memory` and `map`."""

    op: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    memory: Tensor | None = None
    map: Map = (None, None, None)
    loop: int | None = None


@dataclass(frozen=True, slots=True)
class BlockGraph:
    """The operators of every block of a kernel."""

    grid: tuple[int, int, int]
    iterations: int
    operators: tuple[BlockOperator, ...]


@dataclass(frozen=True, slots=True)
class KernelOperator:
    """One operator between tensors in device memory; `block` where it is a block graph."""

    op: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    block: BlockGraph | None = None


@dataclass(frozen=True, slots=True)
class Graph:
    """One µGraph; `inputs` and `outputs` in the order of the file."""

    operators: tuple[KernelOperator, ...]

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        return tuple(o.outputs[0] for o in self.operators if o.op == "input")

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        return tuple(o.inputs[0] for o in self.operators if o.op == "output")


def read(path: Path | str) -> list[Graph]:
    """The µGraphs of a file. Raises CaseError where it is malformed."""
    try:
        data = json.loads(Path(path).read_text())
    except ValueError as e:
        raise CaseError(f"{Path(path).name} is not JSON", why=str(e)) from None
    return graphs(data)


def graphs(data: Any) -> list[Graph]:
    """The µGraphs of what a file holds. Raises CaseError, with the place in the file."""
    return [_Reader(f"graph {k}").graph(g) for k, g in enumerate(_list(data, "the file"))]


@dataclass(frozen=True)
class _Reader:
    """`where`: the place for errors."""

    where: str

    def inside(self, more: str) -> _Reader:
        return _Reader(f"{self.where}, {more}")

    def wrong(self, why: str) -> CaseError:
        return CaseError("malformed µGraph", why=f"{self.where}: {why}")

    def graph(self, data: Any) -> Graph:
        known: dict[int, Tensor] = {}
        operators = []
        for k, o in enumerate(_list(data, self.where)):
            at = self.inside(f"operator {k}")
            out = at.kernel_operator(o)
            at.defined(out.inputs, known)
            at.define(out.outputs, known)
            operators.append(out)
        graph = Graph(tuple(operators))
        if not graph.outputs:
            raise self.wrong("no output")
        return graph

    def kernel_operator(self, data: Any) -> KernelOperator:
        op = self.name(data, "kn_")
        inputs, outputs = self.tensors(data, "input_tensors"), self.tensors(data, "output_tensors")
        self.arity(op, inputs, outputs)
        if op != "customized":
            return KernelOperator(op, inputs, outputs)
        block = self.inside("bgraph").block(self.get(data, "bgraph"))
        stored = [o.memory for o in block.operators if o.op == "output"]
        loaded = {o.memory for o in block.operators if o.op == "input"}
        if stored != list(outputs):
            raise self.wrong("the block graph does not store what the operator gives")
        if not loaded <= set(inputs):
            raise self.wrong("the block graph reads what the operator is not given")
        return KernelOperator(op, inputs, outputs, block)

    def block(self, data: Any) -> BlockGraph:
        sizes = self.get(data, "grid_dim")
        grid = tuple(self.positive(sizes, c) for c in "xyz")
        iterations = self.positive(data, "forloop_range")
        known: dict[int, Tensor] = {}
        operators = []
        for k, o in enumerate(_list(self.get(data, "operators"), self.where)):
            at = self.inside(f"operator {k}")
            out = at.block_operator(o)
            at.divides(out, (grid[0], grid[1], grid[2]), iterations)
            at.defined(out.inputs, known)
            at.define(out.outputs, known)
            operators.append(out)
        return BlockGraph((grid[0], grid[1], grid[2]), iterations, tuple(operators))

    def block_operator(self, data: Any) -> BlockOperator:
        op = self.name(data, "tb_")
        inputs, outputs = self.tensors(data, "input_tensors"), self.tensors(data, "output_tensors")
        self.arity(op, inputs, outputs)
        if op not in ("input", "output"):
            return BlockOperator(op, inputs, outputs)
        memory = self.tensor(self.get(data, "dtensor"))
        loop = self.dimension(data, "forloop_dim", memory) if op == "input" or "forloop_dim" in data else None
        return BlockOperator(op, inputs, outputs, memory, self.map(self.get(data, f"{op}_map"), memory), loop)

    # ---- parts

    def get(self, data: Any, key: str) -> Any:
        if not isinstance(data, Mapping) or key not in data:
            raise self.wrong(f"no {key}")
        return data[key]

    def name(self, data: Any, prefix: str) -> str:
        op = self.get(data, "op_type")
        if not isinstance(op, str) or not op.startswith(prefix) or not op.endswith("_op"):
            raise self.wrong(f"op_type is {op!r}, not {prefix}<name>_op")
        return op.removeprefix(prefix).removesuffix("_op")

    def number(self, data: Any, key: str) -> int:
        n = self.get(data, key)
        if not isinstance(n, int) or isinstance(n, bool):
            raise self.wrong(f"{key} is {n!r}, not a whole number")
        return n

    def positive(self, data: Any, key: str) -> int:
        if (n := self.number(data, key)) < 1:
            raise self.wrong(f"{key} is {n}")
        return n

    def tensors(self, data: Any, key: str) -> tuple[Tensor, ...]:
        return tuple(self.inside(f"{key} {k}").tensor(t) for k, t in enumerate(_list(self.get(data, key), self.where)))

    def tensor(self, data: Any) -> Tensor:
        rank, dims = self.positive(data, "num_dims"), _list(self.get(data, "dim"), self.where)
        if len(dims) < rank or any(not isinstance(d, int) or d < 1 for d in dims[:rank]):
            raise self.wrong(f"the dimensions {dims} are not {rank} positive numbers")
        return Tensor(self.number(data, "guid"), tuple(dims[:rank]))

    def dimension(self, data: Any, key: str, t: Tensor) -> int | None:
        d = self.number(data, key)
        if not -1 <= d < len(t.shape):
            raise self.wrong(f"{key} is {d}, the tensor has {len(t.shape)} dimensions")
        return None if d < 0 else d

    def map(self, data: Any, t: Tensor) -> Map:
        x, y, z = (self.dimension(data, c, t) for c in "xyz")
        used = [d for d in (x, y, z) if d is not None]
        if len(set(used)) < len(used):
            raise self.wrong("two grid dimensions divide the same dimension")
        return x, y, z

    # ---- checks

    def arity(self, op: str, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> None:
        wanted = {"input": (0, 1), "output": (1, 0)}.get(op)
        if wanted is not None and (len(inputs), len(outputs)) != wanted:
            raise self.wrong(f"an {op} with {len(inputs)} inputs and {len(outputs)} outputs")

    def divides(self, o: BlockOperator, grid: tuple[int, int, int], iterations: int) -> None:
        """Whether the tile's shape is the tensor's, divided as the maps say."""
        if o.memory is None:
            return
        tile = (o.outputs or o.inputs)[0]
        parts = [1] * len(o.memory.shape)
        for d, n in (*zip(o.map, grid, strict=True), (o.loop, iterations)):
            if d is not None:
                parts[d] *= n
        if tuple(n * p for n, p in zip(tile.shape, parts, strict=False)) != o.memory.shape:
            whole, part = "x".join(map(str, o.memory.shape)), "x".join(map(str, tile.shape))
            raise self.wrong(f"a tile {part} of a tensor {whole}, which is divided into {parts}")

    def defined(self, tensors: Sequence[Tensor], known: Mapping[int, Tensor]) -> None:
        for t in tensors:
            if known.get(t.guid) != t:
                raise self.wrong(f"the tensor {t.guid} of shape {t.shape} is made by no operator before")

    def define(self, tensors: Sequence[Tensor], known: dict[int, Tensor]) -> None:
        for t in tensors:
            if t.guid in known:
                raise self.wrong(f"the tensor {t.guid} is made twice")
            known[t.guid] = t


def _list(data: Any, where: str) -> list[Any]:
    if not isinstance(data, list):
        raise CaseError("malformed µGraph", why=f"{where}: not a list")
    return data
