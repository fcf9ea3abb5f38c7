"""Algorithm 1 of Mirage at the level of blocks: what the closure over values is compared with.

    generate(G):   if G computes the target: return it
                   for each operator o and inputs I in G with rank(I, o) > rank of the last operator of G:
                       if the abstract expression of o(I) is below the target's: generate(G + o(I))

A state is a prefix of a block graph. Operators are appended in increasing rank, so that a graph is met in one order
only; the rank compares the inputs in descending order. Operators made possible by the newest tensor then come after
all that were possible before, and every graph has an order of increasing rank.

The roles of bits are given, as in a signature of `superopt.search.bodies`; tensors, operators, fingerprints and the
search are made here again, so that one can be tested against the other."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from trilift.lift.errors import Unsupported
from trilift.verify.fields.field import Field
from trilift.verify.fields.op_rows import FIELD, FOLDS

from ..program.abstract import LAWS, Bits, Class, Tables, bits_of, function
from ..program.program import Node, Program
from .bodies import ROLES

TABLE2 = "\n".join(law.partition(" if ")[0] for law in LAWS.splitlines())  # as printed, without conditions on axes
LOOK = 256  # states between two looks at the clock
Id = int
Rank = tuple[int, int, int]  # the larger input, the other one or -1, the number of the operator


@dataclass(frozen=True, slots=True)
class Tensor:
    """A member of a block: an input ("input", its name as the only argument) or an operator on tensors. `kind` is sum
    or
    accumulate or dot, over the bits, or a function; `after`: made after the loop; `form`: its abstract expression."""

    kind: str
    args: tuple[Id, ...]
    over: Bits
    bits: Bits
    after: bool
    form: Class | None


@dataclass(frozen=True, slots=True)
class Step:
    """An operator of a block graph: arguments are names of inputs or numbers of earlier steps."""

    kind: str
    args: tuple[str | int, ...]
    over: Bits = frozenset()


@dataclass
class Enumeration:
    """`states`: prefixes visited, `tests`: fingerprints compared with the target's, `found`: graphs that compute it and
    have no operator that is not used, `complete`: False where a limit ended it."""

    states: int = 0
    tests: int = 0
    found: list[tuple[Step, ...]] = field(default_factory=list)
    seconds: float = 0.0
    complete: bool = True


@dataclass(frozen=True, slots=True)
class Limits:
    """`operators` of a graph. `used`: leaves out prefixes that have more results without a use than the operators that
    are left can take up; no graph is lost by it, but it is not part of Algorithm 1. `seconds` of the enumeration."""

    operators: int = 5
    states: int = 1_000_000
    used: bool = False
    seconds: float = float("inf")


def enumerate_blocks(
    program: Program, modes: Mapping[str, str], table: Tables | None, limits: Limits = Limits(), seed: int = 0
) -> Enumeration:
    """All block graphs of a program with one output. `modes`: of each reduced axis (whole, loop ...); `table`: of the
    abstract expressions, None to search without. Raises Unsupported."""
    return _Search(program, modes, table, limits, Field(np.random.default_rng(seed))).run()


class _Stop(Exception):
    """A limit is reached."""


class _Search:
    def __init__(
        self, program: Program, modes: Mapping[str, str], table: Tables | None, limits: Limits, domain: Field
    ) -> None:
        if len(program.outputs) != 1:
            raise Unsupported("Algorithm 1 for several outputs")
        if len({x.tensor for x in program.inputs}) < len(program.inputs) or any(len(n.args) > 2 for n in program.nodes):
            raise Unsupported("Algorithm 1 for a tensor that is read twice, or a function of three tensors")
        self.program, self.table, self.limits, self.domain = program, table, limits, domain
        self.axes = bits_of(program)
        self.order = [b for bs in self.axes.values() for b in bs]
        roles = {b: r for a, m in modes.items() for b, r in zip(self.axes[a], ROLES[m], strict=True)}
        self.tile, self.loop = (frozenset(b for b, r in roles.items() if r == role) for role in "tf")
        self.functions = sorted({(function(n), len(n.args)) for n in program.nodes if n.op not in ("input", "sum")})
        self.tensors: list[Tensor] = []
        self.known: dict[tuple[str, tuple[Id, ...], Bits], Id] = {}
        self.alone: dict[Id, list[tuple[int, Id]]] = {}
        self.together: dict[tuple[Id, Id], list[tuple[int, Id]]] = {}
        self.values: dict[Id, np.ndarray] = {}
        self.out = Enumeration()

    def run(self) -> Enumeration:
        start = time.perf_counter()
        self.end = start + self.limits.seconds
        for x in self.program.inputs:
            bits = frozenset(b for a in x.axes for b in self.axes[a])
            form = self.table.leaves.get(x.name) if self.table else None
            v = self._tensor("input", (len(self.tensors),), frozenset(), bits, False, form)
            self.values[v] = self.domain.draw(self._shape(bits))
        target = self._evaluated({x.name: self.values[k] for k, x in enumerate(self.program.inputs)})
        self.goal, self.print = frozenset(b for a in self.program.outputs[0][2].axes for b in self.axes[a]), target
        self.given = len(self.tensors)
        try:
            self._extend(list(range(self.given)), [], (-1, -1, -1), 0)
        except _Stop:
            self.out.complete = False
        self.out.seconds = time.perf_counter() - start
        return self.out

    # ---- the search

    def _extend(self, graph: list[Id], ranks: list[Rank], last: Rank, used: int) -> None:
        """Visits a prefix. `used`: a bit for each place in the graph that an operator reads."""
        self.out.states += 1
        if self.out.states > self.limits.states:
            raise _Stop
        if self.out.states % LOOK == 0 and time.perf_counter() > self.end:
            raise _Stop
        if ranks and self._unused(len(graph), used) == 1 and self._is_target(graph[-1]):
            self.out.found.append(self._steps(graph, ranks))
            return
        left = self.limits.operators - len(ranks)
        if not left:
            return
        most = left if self.limits.used else len(graph)
        for rank, v, now in self._candidates(graph, last, used, most):
            graph.append(v)
            ranks.append(rank)
            self._extend(graph, ranks, rank, now)
            graph.pop()
            ranks.pop()

    def _candidates(self, graph: list[Id], last: Rank, used: int, most: int) -> Iterator[tuple[Rank, Id, int]]:
        """Operators of a higher rank than the last one, after which nothing reads at most `most` results; with what is
        used then. Each of two arguments takes up one result and gives one, so that one less can be left."""
        for i in range(max(last[0], 0), len(graph)):
            for k in range(-1, i):
                now = used | 1 << i | (1 << k if k >= 0 else 0)
                if self._unused(len(graph) + 1, now) <= most:
                    for op, v in self._on(graph[i]) if k < 0 else self._of(graph[k], graph[i]):
                        if (i, k, op) > last:
                            yield (i, k, op), v, now

    def _unused(self, length: int, used: int) -> int:
        """How many results of operators nothing reads."""
        return length - self.given - (used >> self.given).bit_count()

    def _steps(self, graph: list[Id], ranks: list[Rank]) -> tuple[Step, ...]:
        """The graph with names for its arguments."""
        names: list[str | int] = [x.name for x in self.program.inputs]
        out = []
        for v, (i, k, _) in zip(graph[self.given :], ranks, strict=True):
            t = self.tensors[v]
            places = [i] if k < 0 else [i, k]
            if len(places) == 2 and (graph[i], graph[k]) != t.args:
                places.reverse()
            out.append(Step(t.kind, tuple(names[p] for p in places), t.over))
            names.append(len(out) - 1)
        return tuple(out)

    # ---- operators

    def _on(self, x: Id) -> list[tuple[int, Id]]:
        """Operators with one argument, by number."""
        if x not in self.alone:
            made = [(self._function(name, (x,))) if n == 1 else None for name, n in self.functions]
            for bs in self.axes.values():
                own = self.tensors[x].bits & frozenset(bs)
                made += [self._sum("sum", x, own & self.tile), self._sum("accumulate", x, own & self.loop)]
            self.alone[x] = [(op, v) for op, v in enumerate(made) if v is not None]
        return self.alone[x]

    def _of(self, x: Id, y: Id) -> list[tuple[int, Id]]:
        """Operators with two arguments, by number; x is the older one in the graph."""
        if (x, y) not in self.together:
            made: list[Id | None] = []
            for name, n in self.functions:
                made.append(self._function(name, (x, y)) if n == 2 else None)
                made.append(self._function(name, (y, x)) if n == 2 and name not in ("add", "mul") else None)
            made += [self._dot(x, y, frozenset(bs)) for bs in self.axes.values()]
            self.together[x, y] = [(op, v) for op, v in enumerate(made) if v is not None]
        return self.together[x, y]

    def _function(self, name: str, args: tuple[Id, ...]) -> Id | None:
        """A function of elements: one tensor has all bits of the others, and both are in the loop or neither."""
        ts = [self.tensors[a] for a in args]
        bits = max((t.bits for t in ts), key=len)
        after = any(t.after for t in ts)
        if any(not t.bits <= bits for t in ts) or (after and any(t.bits & self.loop for t in ts)):
            return None
        form = self._form_of_function(name, ts) if self.table else None
        if self.table and form is None:
            return None
        return self._tensor(name, args, frozenset(), bits, after, form)

    def _form_of_function(self, name: str, ts: list[Tensor]) -> Class | None:
        assert self.table is not None
        forms = [t.form for t in ts]
        if None in forms:
            return None
        if len(ts) == 1:
            return self.table.unary.get((name, forms[0] or ""))
        return self.pairs.get((name, forms[0], forms[1]))

    @cached_property
    def pairs(self) -> dict[tuple[str, Class | None, Class | None], Class]:
        """(function, left, right) -> what it gives."""
        out: dict[tuple[str, Class | None, Class | None], Class] = {}
        for c, rows in (self.table.binary if self.table else {}).items():
            for op, other, left, result in rows:
                out[(op, c, other) if left else (op, other, c)] = result
        return out

    def _sum(self, kind: str, x: Id, over: Bits) -> Id | None:
        """The sum over what an axis has in the tile, or in the loop."""
        t = self.tensors[x]
        if not over or (kind == "accumulate" and t.after):
            return None
        form = self.table.total(over, t.form) if self.table and t.form else None
        if self.table and form is None:
            return None
        return self._tensor(kind, (x,), over, t.bits - over, t.after or kind == "accumulate", form)

    def _dot(self, x: Id, y: Id, axis: Bits) -> Id | None:
        """A product of matrices: both have the same of the axis in the tile, and no other tile of a reduced axis."""
        a, b = self.tensors[x], self.tensors[y]
        over = a.bits & axis & self.tile
        if not over or x == y or b.bits & axis & self.tile != over or a.bits & b.bits & self.tile != over:
            return None
        after = a.after or b.after
        if "mul" not in [n for n, _ in self.functions] or (after and (a.bits | b.bits) & self.loop):
            return None
        product = self._form_of_function("mul", [a, b]) if self.table else None
        form = self.table.total(over, product) if self.table and product else None
        if self.table and form is None:
            return None
        return self._tensor("dot", (x, y), over, (a.bits | b.bits) - over, after, form)

    def _tensor(self, kind: str, args: tuple[Id, ...], over: Bits, bits: Bits, after: bool, form: Class | None) -> Id:
        key = kind, args, over
        if key not in self.known:
            self.known[key] = len(self.tensors)
            self.tensors.append(Tensor(kind, args, over, bits, after, form))
        return self.known[key]

    # ---- fingerprints

    def _is_target(self, v: Id) -> bool:
        if self.tensors[v].bits != self.goal:
            return False
        self.out.tests += 1
        a, b = self._value(v), self.print
        return bool((a["p"] == b["p"]).all() and (a["q"] == b["q"]).all())

    def _value(self, v: Id) -> np.ndarray:
        if v not in self.values:
            t = self.tensors[v]
            args = [self._value(a) for a in t.args]
            if t.kind in ("sum", "accumulate"):
                self.values[v] = self._total(args[0], t.over)
            elif t.kind == "dot":
                self.values[v] = self._total(self._applied("mul", *args), t.over)
            else:
                self.values[v] = self._applied(t.kind, *args)
        return self.values[v]

    def _shape(self, bits: Bits) -> tuple[int, ...]:
        return tuple(2 if b in bits else 1 for b in self.order)

    def _total(self, x: np.ndarray, over: Bits) -> np.ndarray:
        """The sum over bits, whose dimensions get size 1."""
        places = [k for k, b in enumerate(self.order) if b in over]
        rows = np.moveaxis(x, places, range(-len(places), 0))
        rest = rows.shape[: rows.ndim - len(places)]
        return np.asarray(np.expand_dims(FOLDS["sum"](self.domain, rows.reshape(*rest, -1)), places))

    def _applied(self, name: str, *xs: np.ndarray) -> np.ndarray:
        """A function in the field; a number of the program is a random one, any other function a hash."""
        with np.errstate(all="ignore"):
            if name == "sqr":
                return np.asarray(FIELD.rows["mul"](self.domain, xs[0], xs[0]))
            if name in FIELD.rows:
                return np.asarray(FIELD.rows[name](self.domain, *xs))
            if name.startswith("scale:"):
                return np.asarray(
                    FIELD.rows["mul"](self.domain, xs[0], self.domain.hashed(name, self.domain.reals(1.0)))
                )
            return self.domain.hashed(name, *np.broadcast_arrays(*xs))

    def _evaluated(self, inputs: Mapping[str, np.ndarray]) -> np.ndarray:
        """The program's output."""
        done: dict[Node, np.ndarray] = {}
        for n in self.program.nodes:
            if n.op == "input":
                done[n] = inputs[str(n.attr)]
            elif n.op == "sum":
                done[n] = self._total(done[n.args[0]], frozenset(self.axes[str(n.attr)]))
            else:
                done[n] = self._applied(function(n), *(done[a] for a in n.args))
        return done[self.program.outputs[0][2]]
