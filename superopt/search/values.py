"""Every value that an optimal program may compute, closed once (bottom-up) over the operations.

A value is a tensor over bits of axes with random entries of a finite field; an axis that it lacks broadcasts. Values
are equal when their entries are (Mirage, theorem 2: with high probability they then compute the same; what is emitted
is proved again). An operation is tried where the abstract expression of its result is below the target's, which is a
look-up. Neither kernels, grids nor loops occur here: they only say which bits a sum may take where."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations, product
from typing import Any

import numpy as np

from trilift.lift.errors import Unsupported
from trilift.lift.language.infix import spelling
from trilift.lift.terms.term import Term
from trilift.verify.fields.field import Field
from trilift.verify.fields.op_rows import FIELD, FOLDS
from trilift.verify.fields.pairs import Redraw

from ..program.abstract import Bits, Class, Tables, bits_of, function, tables
from ..program.program import Node, Program

CLOSURE_VALUES = 20_000  # values
Id = int


@dataclass(frozen=True, slots=True)
class Edge:
    """One way to make a value: op is a function, "sum" over the bits, or "dot", the sum over the bits of a product."""

    op: str
    args: tuple[Id, ...]
    over: Bits = frozenset()


@dataclass
class Universe:
    """`bits[v]`, `ways[v]`: what value v has and how it is made; `inputs`: by name; `targets`: the outputs."""

    program: Program
    axes: dict[str, tuple[str, ...]]
    table: Tables
    domain: Field
    bits: list[Bits] = field(default_factory=list)
    ways: list[dict[Edge, None]] = field(default_factory=list)
    inputs: dict[str, Id] = field(default_factory=dict)
    targets: tuple[Id, ...] = ()
    names: dict[str, Term] = field(default_factory=dict)  # the templates of functions
    _arrays: list[np.ndarray] = field(default_factory=list)
    _classes: list[set[Class]] = field(default_factory=list)
    _ids: dict[tuple[Bits, bytes], Id] = field(default_factory=dict)
    _of_class: dict[Class, list[Id]] = field(default_factory=lambda: defaultdict(list))
    _work: list[tuple[Id, Class]] = field(default_factory=list)

    @property
    def order(self) -> list[str]:
        return [b for bs in self.axes.values() for b in bs]

    def axis(self, bit: str) -> str:
        return next(a for a, bs in self.axes.items() if bit in bs)

    # ---- values

    def value(self, bits: Bits, array: np.ndarray, c: Class) -> Id:
        """The value with these entries, new or known, now also of class c."""
        key = bits, hashlib.blake2b(np.ascontiguousarray(array).tobytes(), digest_size=16).digest()
        v = self._ids.get(key)
        if v is None:
            if len(self.bits) >= CLOSURE_VALUES:
                raise Unsupported(f"more than {CLOSURE_VALUES} values")
            v = self._ids[key] = len(self.bits)
            self.bits.append(bits)
            self._arrays.append(array)
            self._classes.append(set())
            self.ways.append({})
        if c not in self._classes[v]:
            self._classes[v].add(c)
            self._work.append((v, c))
        return v

    def shape(self, bits: Bits) -> tuple[int, ...]:
        return tuple(2 if b in bits else 1 for b in self.order)

    def applied(self, op: str, *xs: np.ndarray) -> np.ndarray:
        """A function of elements in the field."""
        if op in FIELD.rows:
            return np.asarray(FIELD.rows[op](self.domain, *xs))
        if op == "sqr":
            return np.asarray(FIELD.rows["mul"](self.domain, xs[0], xs[0]))
        head, _, _ = op.partition(":")
        if head == "scale":
            return np.asarray(FIELD.rows["mul"](self.domain, xs[0], self.domain.hashed(op, self.domain.reals(1.0))))
        return self.domain.hashed(op, *np.broadcast_arrays(*xs))

    def summed(self, array: np.ndarray, over: Bits) -> np.ndarray:
        """The sum over bits, which are gone."""
        for k, b in enumerate(self.order):
            if b in over:
                array = np.expand_dims(FOLDS["sum"](self.domain, np.moveaxis(array, k, -1)), k)
        return array

    # ---- the closure

    def close(self) -> None:
        """All values below the targets, from the inputs on."""
        for x in self.program.inputs:
            if x.name in self.table.leaves:
                bits = frozenset(b for a in x.axes for b in self.axes[a])
                array = self._drawn.setdefault((self.program.view(x), tuple(len(self.axes[a]) for a in x.axes)), None)
                if array is None:
                    array = self.domain.draw(tuple(2 ** len(self.axes[a]) for a in x.axes))
                    self._drawn[self.program.view(x), tuple(len(self.axes[a]) for a in x.axes)] = array
                self.inputs[x.name] = self.value(bits, self._spread(array, x.axes), self.table.leaves[x.name])
        while self._work:
            v, c = self._work.pop()
            self._of_class[c].append(v)
            self._grow(v, c)

    _drawn: dict[tuple[str, tuple[int, ...]], Any] = field(default_factory=dict)

    def _spread(self, array: np.ndarray, axes: tuple[str, ...]) -> np.ndarray:
        """A tensor over axes as one over bits, in their order."""
        own = [b for a in axes for b in self.axes[a]]
        array = array.reshape([2] * len(own))
        array = array.transpose([own.index(b) for b in self.order if b in own])
        return array.reshape(self.shape(frozenset(own)))

    def _grow(self, v: Id, c: Class) -> None:
        """The operations on v as of class c with what is known already."""
        for (op, c_), r in self._unary.get(c, ()):
            assert c_ == c
            self._made(op, (v,), r)
        for over in self._subsets(self.bits[v]):
            if (r_ := self.table.total(over, c)) is not None:
                self.enter(Edge("sum", (v,), over), self.bits[v] - over, self.summed(self._arrays[v], over), r_)
        for op, other, left, r in self.table.binary.get(c, ()):
            for w in list(self._of_class.get(other, ())):
                self._pair(op, *((v, w) if left else (w, v)), r)
        for (op, *cs), r in self.table.ternary.items():
            if c in cs:
                for args in product(*([*self._of_class.get(k, ())] for k in cs)):
                    if v in args:
                        self._made(op, args, r)

    def _made(self, op: str, args: tuple[Id, ...], r: Class) -> None:
        sets = [self.bits[a] for a in args]
        largest = max(sets, key=len)
        if all(s <= largest for s in sets):
            try:
                array = self.applied(op, *(self._arrays[a] for a in args))
            except Redraw:
                raise
            self.enter(Edge(op, args), largest, array, r)

    def _pair(self, op: str, x: Id, y: Id, r: Class) -> None:
        self._made(op, (x, y) if op not in ("add", "mul") else tuple(sorted((x, y))), r)
        if op == "mul":
            for over in self._subsets(self.bits[x] & self.bits[y]):
                if (r_ := self.table.total(over, r)) is not None:
                    array = self.summed(self.applied("mul", self._arrays[x], self._arrays[y]), over)
                    edge = Edge("dot", tuple(sorted((x, y))), over)
                    self.enter(edge, (self.bits[x] | self.bits[y]) - over, array, r_)

    def enter(self, e: Edge, bits: Bits, array: np.ndarray, c: Class) -> None:
        """A way to make a value; none from a value that is lost in the field."""
        if (array["p"] < 0).any() and (array["q"] < 0).any():
            return
        v = self.value(bits, array, c)
        if v not in e.args:
            self.ways[v][e] = None

    def _subsets(self, bits: Bits) -> Iterator[Bits]:
        """Sets of bits of one axis."""
        for bs in self.axes.values():
            own = [b for b in bs if b in bits]
            for k in range(1, len(own) + 1):
                yield from map(frozenset, combinations(own, k))

    def __post_init__(self) -> None:
        self._unary: dict[Class, list[tuple[tuple[str, Class], Class]]] = defaultdict(list)
        for (op, c), r in self.table.unary.items():
            self._unary[c].append(((op, c), r))


def universe(program: Program, seed: int = 0, parts: int = 3) -> Universe:
    """The values below a program's outputs. Raises Unsupported where there are too many."""
    axes = bits_of(program, parts)
    table = tables(program, axes)
    rng = np.random.default_rng(seed)
    for _ in range(16):
        out = Universe(program, axes, table, Field(rng))
        try:
            out.close()
            out.targets = tuple(_evaluated(out, v, {}) for _, _, v, _ in program.outputs)
        except Redraw:
            continue
        return out
    raise Unsupported("every random field divides by zero")


def _evaluated(u: Universe, n: Node, done: dict[Node, np.ndarray]) -> Id:
    """The value that the program computes as it is written."""
    for s in n.walk():
        if s.op == "input":
            done[s] = u._arrays[u.inputs[str(s.attr)]]
        elif s.op == "sum":
            done[s] = u.summed(done[s.args[0]], frozenset(u.axes[str(s.attr)]))
        else:
            done[s] = u.applied(function(s), *(done[a] for a in s.args))
        if isinstance(s.attr, Term):
            u.names[f"{s.op}:{spelling(s.attr)}"] = s.attr
    bits = frozenset(b for a in n.axes for b in u.axes[a])
    array = np.broadcast_to(done[n], u.shape(bits))
    key = bits, hashlib.blake2b(np.ascontiguousarray(array).tobytes(), digest_size=16).digest()
    if key not in u._ids:
        raise Unsupported("the search cannot form the program: it has an operation whose tensors only broadcast")
    return u._ids[key]
