"""Tile programs: loops over tiles of tensors in memory, as terms (Trinity, table 1), over named axes.

    s ::= store(T, e) | loop(n, s) | s; s
    e ::= load(T) | const[c] | add(e, e) | mul(e, e) | div(e, e) | exp(e) | sqr(e) | sqrt(e) | scale[c](e)
        | map[f](e...) | sum[n](e) | max[n](e)

A loop over n runs its body once for each tile of n, in order; a loop within it over n again, over tiles of that tile.
A load, store or fold in a loop is of the part at the loop's tile: of a tensor without the axis n all of
it. The paper's indices follow: `tile` for an axis of a loop around, `full` for any other; `elem` is a tile of one. A
sum in a loop over its axis is therefore the sum over the tile, and adding it to what a variable holds is a step of the
sum over all. Axes have names and broadcast by them, so that permute, squeeze, unsqueeze and broadcast are not
operations of ours; a matrix product is a sum of a product.

Nothing is zero before it is stored: variables hold anything at first, and a sum over a loop starts by storing 0."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from typing import Literal

from trilift.lift.errors import CaseError
from trilift.lift.terms.term import Term

from ..program.program import FOLDS, Node, Program, node, source

Role = Literal["input", "output", "variable"]
ARITY = {"add": 2, "mul": 2, "div": 2, "exp": 1, "sqr": 1, "sqrt": 1, "scale": 1, "const": 0, "input": 0}


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor in memory: its axes, outermost first. An output is what the program is for; a variable is of no use
    after it. An input that is stored to is an output too (`role` output, and read before it is written)."""

    name: str
    axes: tuple[str, ...]
    role: Role
    dtype: str = "f32"


@dataclass(frozen=True, slots=True)
class Store:
    tensor: str
    value: Node


@dataclass(frozen=True, slots=True)
class Loop:
    axis: str
    body: Statement


@dataclass(frozen=True, slots=True)
class Seq:
    first: Statement
    rest: Statement


Statement = Store | Loop | Seq


@dataclass(frozen=True)
class TileProgram:
    """`sizes`: of each axis, in the order in which values have them; `extents`: the same as terms, where known;
    `parts`: of an axis that enumerates parts of another one, that other, which then is what is within a part."""

    tensors: dict[str, Tensor] = field(hash=False)
    body: Statement
    sizes: dict[str, int] = field(hash=False)
    extents: dict[str, Term] = field(hash=False, default_factory=dict, compare=False)
    parts: dict[str, str] = field(hash=False, default_factory=dict)

    @cached_property
    def outputs(self) -> tuple[str, ...]:
        return tuple(t.name for t in self.tensors.values() if t.role == "output")


def sequence(statements: Sequence[Statement]) -> Statement:
    """One statement, nested to the right. Raises CaseError for none."""
    if not statements:
        raise CaseError("a tile program without a statement")
    return reduce(lambda rest, s: joined(s, rest), reversed(statements[:-1]), statements[-1])


def joined(first: Statement, rest: Statement) -> Statement:
    """first; rest, nested to the right."""
    return joined(first.first, joined(first.rest, rest)) if isinstance(first, Seq) else Seq(first, rest)


def statements(s: Statement) -> Iterator[Statement]:
    """The statements of a sequence."""
    while isinstance(s, Seq):
        yield from statements(s.first)
        s = s.rest
    yield s


def stores(s: Statement) -> Iterator[Store]:
    """Every store, in the order of the text."""
    for one in statements(s):
        if isinstance(one, Store):
            yield one
        elif isinstance(one, Loop):
            yield from stores(one.body)


def loads(e: Node) -> frozenset[str]:
    """The tensors that an expression loads."""
    return frozenset(str(n.attr) for n in e.walk() if n.op == "input")


def folded(e: Node) -> frozenset[str]:
    """The axes of the folds in an expression."""
    return frozenset(str(n.attr) for n in e.walk() if n.op in FOLDS)


def is_product(axis: str, a: frozenset[str], b: frozenset[str]) -> bool:
    """Whether a sum over the axis of a product of values with the axes a and b is a product of matrices."""
    return axis in a & b and bool(a - b) and bool(b - a)


# ---- checks ----------------------------------------------------------------------------------------------------------


def check(p: TileProgram) -> None:
    """Raises CaseError where a tile program is not well-typed."""
    for t in p.tensors.values():
        if len(set(t.axes)) < len(t.axes):
            raise CaseError(f"{t.name} has an axis twice", why=f"its axes are {', '.join(t.axes)}")
        for a in t.axes:
            _known(p, a, t.name)
    _check(p, p.body, set())
    written = {s.tensor for s in stores(p.body)}
    if missing := [o for o in p.outputs if o not in written]:
        raise CaseError(f"the output {missing[0]} is never stored")


def _check(p: TileProgram, s: Statement, around: set[int]) -> None:
    if id(s) in around:
        raise CaseError("a cyclic tile program", why="a statement is within itself")
    if isinstance(s, Seq):
        for one in statements(s):
            _check(p, one, around | {id(s)})
    elif isinstance(s, Loop):
        _known(p, s.axis, "a loop")
        _check(p, s.body, around | {id(s)})
    else:
        _check_store(p, s)


def _check_store(p: TileProgram, s: Store) -> None:
    if s.tensor not in p.tensors:
        raise CaseError(f"a store to {s.tensor}, which is not declared", help=f"there are {', '.join(p.tensors)}")
    if p.tensors[s.tensor].role == "input":
        raise CaseError(f"a store to {s.tensor}, which is an input")
    for n in s.value.walk():
        _check_node(p, n)
    if more := sorted(s.value.axes - {*p.tensors[s.tensor].axes}):
        raise CaseError(f"a value with the axis {more[0]} is stored to {s.tensor}, which has none")


def _check_node(p: TileProgram, n: Node) -> None:
    if n.op == "input":
        if n.attr not in p.tensors:
            raise CaseError(f"a load of {n.attr}, which is not declared", help=f"there are {', '.join(p.tensors)}")
        if n.axes != {*p.tensors[str(n.attr)].axes}:
            raise CaseError(f"{n.attr} is loaded with other axes than it has")
    elif n.op in FOLDS:
        _known(p, str(n.attr), n.op)
    elif n.op != "map" and len(n.args) != ARITY.get(n.op, -1):
        raise CaseError(f"{n.op} of {len(n.args)} values in a tile program")


def _known(p: TileProgram, axis: str, where: str) -> None:
    if axis not in p.sizes:
        raise CaseError(f"{where}: no axis {axis}", help=f"there are {', '.join(p.sizes)}")


# ---- from formulas ---------------------------------------------------------------------------------------------------


def lowered(program: Program) -> TileProgram:
    """A program as stores of one operation each, in the order of its values: the paper's deterministic lowering, before
    any loop. Raises CaseError for an input that is computed from indices, or written in place as a whole."""
    wanted = {v: (name, axes, dtype) for name, axes, v, dtype in reversed(program.outputs)}
    tensors: dict[str, Tensor] = {}
    for x in program.inputs:
        if x.element is not None:
            raise CaseError("a value computed from indices cannot be a tensor of a tile program")
        tensors[x.name] = Tensor(x.name, x.axes, "input", x.dtype)
    if both := [name for name, *_ in program.outputs if name in tensors]:
        raise CaseError(f"{both[0]} is an input and an output of a tile program")
    taken = {*tensors, *(name for name, *_ in program.outputs)}
    fresh = (f"v{k}" for k in range(len(program.nodes) + len(taken)))
    held: dict[Node, Node] = {}
    body: list[Statement] = []
    for n in program.nodes:
        if n.op == "input":
            held[n] = n
            continue
        name, axes, dtype = wanted.get(n) or (_next(fresh, taken), _ordered(program.sizes, n.axes), "f32")
        tensors[name] = Tensor(name, axes, "output" if n in wanted else "variable", dtype)
        body.append(Store(name, node(n.op, *(held[a] for a in n.args), attr=n.attr)))
        held[n] = source(name, axes)
    for name, axes, v, dtype in program.outputs:
        if name not in tensors:
            tensors[name] = Tensor(name, axes, "output", dtype)
            body.append(Store(name, held[v]))
    return TileProgram(tensors, sequence(body), dict(program.sizes), dict(program.extents))


def _next(fresh: Iterator[str], taken: set[str]) -> str:
    return next(n for n in fresh if n not in taken)


def _ordered(sizes: Mapping[str, int], axes: frozenset[str]) -> tuple[str, ...]:
    return tuple(a for a in sizes if a in axes)
