"""Layouts of tensors and tiles, as an integer linear program (Mirage, section 6).

One 0/1 variable for each order of the dimensions of a tensor between kernels, and for each dimension of a tile that may
be its innermost one (K-major, row-major ...). Inputs and outputs have the layout of the program. The cost of a choice,
in nanoseconds of the model:

    a tensor is read or written       whole sectors for each run of elements that the tile has in a row
    its tile has another innermost    the tile is converted, through shared memory
    an operator's result has another  likewise, where both have both dimensions
    an operand of a product           its type may be taken along the sum only (wgmma: all types but 16 bits)
    a product                         runs at a part of the rate with fewer rows than wgmma takes, where columns do

A pair of choices that costs c has one more variable y, with c y in the objective and y >= a + b - 1."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import permutations

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

from ..mugraph.cost import H200, SECTOR, Hardware, itemsize
from ..mugraph.graph import Dim, Kernel, MuGraph, Operator, Tensor, loops
from ..mugraph.precision import HALF
from ..mugraph.threads import ROWS
from .shared_memory import origins

SHARED = 30e12  # bytes per second of all shared memories (128 per clock and multiprocessor)
SYNCHRONOUS = 0.63  # of the rate, that products reach without wgmma
NANO = 1e9
ORDERS = 4  # dimensions of a tensor of which all orders are tried; beyond, each of them as the innermost
TIE = 1e-4  # nanoseconds: what is as good as given stays as given

Key = tuple[str, ...]  # ("memory", tensor) or ("tile", kernel, value)
Option = tuple[Dim, ...]  # an order of dimensions, or the innermost one


@dataclass(frozen=True, slots=True)
class Pair:
    """`cost` is paid where `first` has one of the options `these`, and `second` one of `those`."""

    first: Key
    these: frozenset[Option]
    second: Key
    those: frozenset[Option]
    cost: float


@dataclass
class Problem:
    """One option is chosen of each key; the first one is the given."""

    options: dict[Key, tuple[Option, ...]] = field(default_factory=dict)
    costs: dict[tuple[Key, Option], float] = field(default_factory=dict)
    pairs: list[Pair] = field(default_factory=list)

    def add(self, key: Key, option: Option, cost: float) -> None:
        self.costs[key, option] = self.costs.get((key, option), 0.0) + cost

    def cost(self, chosen: Mapping[Key, Option]) -> float:
        """The cost of a choice."""
        single = sum(c for (key, option), c in self.costs.items() if chosen[key] == option)
        return single + sum(p.cost for p in self.pairs if chosen[p.first] in p.these and chosen[p.second] in p.those)


@dataclass(frozen=True)
class Layouts:
    """`orders`: the dimensions of each tensor between kernels, outermost first; `innermost`: of each tile with two or
    more, by kernel and value; `cost` and what it is with the orders `given`, nanoseconds in the model."""

    orders: dict[str, tuple[Dim, ...]]
    innermost: dict[tuple[str, str], Dim]
    cost: float
    given: float

    def __str__(self) -> str:
        orders = [f"{name}[{', '.join(map(str, dims))}]" for name, dims in self.orders.items()]
        return f"{', '.join(orders) or 'none'}: {self.cost:.1f} ns of the model, {self.given:.1f} as given"


def layouts(g: MuGraph, hardware: Hardware = H200) -> Layouts:
    """The cheapest layouts of a µGraph."""
    p = problem(g, hardware)
    chosen = solve(p)
    fixed = {key: options[:1] if key[0] == "memory" else options for key, options in p.options.items()}
    given = p.cost(solve(replace(p, options=fixed)))
    orders = {key[1]: option for key, option in chosen.items() if key[0] == "memory" and _between(g, key[1])}
    tiles = {(key[1], key[2]): option[0] for key, option in chosen.items() if key[0] == "tile"}
    return Layouts(orders, tiles, p.cost(chosen), given)


def laid_out(g: MuGraph, chosen: Layouts) -> MuGraph:
    """The graph with its tensors in these orders."""
    return replace(g, tensors={n: replace(t, dims=chosen.orders.get(n, t.dims)) for n, t in g.tensors.items()})


def _between(g: MuGraph, name: str) -> bool:
    return name in g.tensors and name not in {out for out, *_ in g.program.outputs}


# ---- the integer program ---------------------------------------------------------------------------------------------


def solve(p: Problem) -> dict[Key, Option]:
    """The cheapest choice (scipy's `milp`). Raises RuntimeError where the solver gives none."""
    columns = {(key, option): n for n, (key, option) in enumerate((k, o) for k, os in p.options.items() for o in os)}
    if len(columns) == len(p.options):
        return {key: options[0] for key, options in p.options.items()}
    total = len(columns) + len(p.pairs)
    objective = np.zeros(total)
    for key, options in p.options.items():
        for n, option in enumerate(options):
            objective[columns[key, option]] = p.costs.get((key, option), 0.0) + TIE * n
    once = np.zeros((len(p.options), total))
    for row, (key, options) in enumerate(p.options.items()):
        once[row, [columns[key, o] for o in options]] = 1
    paid = np.zeros((len(p.pairs), total))
    for row, pair in enumerate(p.pairs):
        for key, some in ((pair.first, pair.these), (pair.second, pair.those)):
            paid[row, [columns[key, o] for o in some if (key, o) in columns]] += 1
        paid[row, len(columns) + row] = -1
        objective[len(columns) + row] = pair.cost
    whole = np.r_[np.ones(len(columns)), np.zeros(len(p.pairs))]
    rules = [LinearConstraint(once, 1, 1), *([LinearConstraint(paid, -np.inf, 1)] if p.pairs else [])]
    found = milp(objective, integrality=whole, bounds=Bounds(0, 1), constraints=rules, options={"mip_rel_gap": 0.0})
    if found.x is None:
        raise RuntimeError(f"milp: {found.message}")
    return {key: max(options, key=lambda o: found.x[columns[key, o]]) for key, options in p.options.items()}


# ---- what layouts cost -----------------------------------------------------------------------------------------------


def problem(g: MuGraph, hardware: Hardware = H200) -> Problem:
    """The choices of a µGraph, and what they cost."""
    p = Problem()
    for t in g.memory.values():
        p.options["memory", t.name] = tuple(_orders(t.dims)) if _between(g, t.name) else (t.dims,)
    for k in g.kernels:
        _Kernel(g, k, hardware, p).add()
    return p


def _orders(dims: tuple[Dim, ...]) -> Iterator[tuple[Dim, ...]]:
    """Orders of dimensions, the given one first."""
    if len(dims) <= ORDERS:
        yield from permutations(dims)
        return
    yield dims
    for d in dims[:-1]:
        yield (*(e for e in dims if e != d), d)


class _Kernel:
    """The choices of one kernel."""

    def __init__(self, g: MuGraph, k: Kernel, hardware: Hardware, p: Problem) -> None:
        self.g, self.k, self.hardware, self.p = g, k, hardware, p
        self.loop, self.types = loops(k), origins(g, k)
        self.values = {o.out: o for o in k.operators if o.op != "store"}

    def add(self) -> None:
        for o in self.values.values():
            if len(wide := self.wide(o)) > 1:
                self.p.options[self.key(o)] = tuple((d,) for d in wide)
        for o in self.k.operators:
            if o.op == "load":
                self.moved(self.g.memory[o.args[0]], o, o)
            elif o.op == "store":
                self.moved(self.g.memory[o.out], self.values[o.args[0]], o)
            elif o.op == "dot" and self.matrices(o):
                self.product(o)
            else:
                for a in dict.fromkeys(o.args):
                    self.agree(self.values[a], o)

    def key(self, o: Operator) -> Key:
        return "tile", self.k.name, o.out

    def wide(self, o: Operator) -> list[Dim]:
        """The dimensions of a tile that has more than one element along them."""
        return [d for d in sorted(o.dims, key=repr) if self.k.extent(d) > 1]

    def elements(self, o: Operator) -> int:
        return math.prod(self.k.extent(d) for d in o.dims)

    def times(self, o: Operator) -> int:
        """How often an operator runs: in every block, and in every turn of the loop that it is in."""
        return self.g.blocks(self.k) * (turns(self.g, self.k, self.loop[o]) if o in self.loop else 1)

    def conversion(self, o: Operator, times: int) -> float:
        """Writing a tile to shared memory and reading it, all threads at once."""
        size = 2 if self.types[o.out] <= {*HALF} and len(self.types[o.out]) == 1 else 4
        return 2 * self.elements(o) * size * times / SHARED * NANO

    def moved(self, t: Tensor, tile: Operator, by: Operator) -> None:
        """A tile of a tensor in device memory."""
        size, times = itemsize(t.dtype), self.times(by)
        whole = self.elements(tile) * size * times / self.hardware.cache * NANO
        inner: dict[Option, set[Option]] = {}
        for order in self.p.options["memory", t.name]:
            self.p.add(("memory", t.name), order, whole * max(1.0, SECTOR / (self.run(order) * size)))
            along = [d for d in order if self.k.extent(d) > 1]
            if along:
                inner.setdefault((along[-1],), set()).add(order)
        if len(self.wide(tile)) > 1:
            every = frozenset((d,) for d in self.wide(tile))
            for d, orders in inner.items():
                self.pair(("memory", t.name), orders, self.key(tile), every - {d}, self.conversion(tile, times))

    def run(self, order: tuple[Dim, ...]) -> int:
        """How many elements of a tile are one after the other in memory."""
        out = 1
        for d in reversed(order):
            out *= min(self.k.extent(d), self.g.extent(d))
            if self.k.extent(d) < self.g.extent(d):
                break
        return out

    def agree(self, a: Operator, o: Operator) -> None:
        """An operator that takes its argument in the layout of its result."""
        mine, its = self.wide(a), self.wide(o)
        if len(mine) < 2 or len(its) < 2:
            return
        for d in mine:
            others = {(e,) for e in its if e != d and e in mine}
            if d in its and others:
                self.pair(self.key(a), [(d,)], self.key(o), others, self.conversion(a, self.times(o)))

    def matrices(self, o: Operator) -> bool:
        return all(len(self.wide(self.values[a])) == 2 for a in o.args) and len(self.wide(o)) == 2

    def product(self, o: Operator) -> None:
        """tl.dot: the innermost dimension of its result is the columns."""
        for a in (self.values[a] for a in dict.fromkeys(o.args)):
            if not self.types[o.out] <= {*HALF} or len(self.types[o.out]) != 1:
                for d in self.wide(a):
                    if d.axis not in o.over:
                        self.p.add(self.key(a), (d,), self.conversion(a, self.times(o)))
        lanes = math.prod(self.k.extent(d) for d in frozenset[Dim]().union(*(self.values[a].dims for a in o.args)))
        seconds = 2 * lanes * self.times(o) / self.hardware.flops
        first, second = self.wide(o)
        for rows, columns in ((first, second), (second, first)):
            if self.k.extent(rows) < ROWS <= self.k.extent(columns):
                self.p.add(self.key(o), (columns,), seconds * (1 / SYNCHRONOUS - 1) * NANO)

    def pair(self, first: Key, these: Iterable[Option], second: Key, those: Iterable[Option], cost: float) -> None:
        self.p.pairs.append(Pair(first, frozenset(these), second, frozenset(those), cost))


def turns(g: MuGraph, k: Kernel, a: str) -> int:
    """Turns of the loop over an axis, in one block."""
    whole = g.program.sizes[a]
    if any(d.axis == a and d.parts for o in k.loads for d in g.memory[o.args[0]].dims):
        whole = g.parts[a]
    elif k.modes[a] == "split":
        whole = -(-whole // g.parts[a])
    return -(-whole // k.tiles[a])
