"""Rules of tile programs tried on random programs: what the e-graph makes of one has to do the same to every tensor.

Sizes do not divide by tiles, tiles of nested loops over one axis differ from their tile, and no variable is 0 at first.
A program is drawn from a grammar that has what the rules look for: stores one after the other that have to do with each
other, loops over the same axis, sums of products and quotients, sums that go on from what a variable holds."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lift import term as T
from lift.domain import FLOAT64
from verify.field import Field
from verify.pairs import Redraw

from .program import Node, node, source
from .saturate import saturated
from .tile_program import Loop, Seq, Statement, Store, Tensor, TileProgram, sequence
from .tile_rules import Rule
from .tile_run import run

SIZES = {"m": 5, "n": 3, "k": 4}
TENSORS = (
    Tensor("x", ("m", "k"), "input"), Tensor("w", ("k", "n"), "input"), Tensor("g", ("m",), "input"),
    Tensor("o", ("m", "n"), "output"), Tensor("p", ("m",), "output"), Tensor("r", (), "output"),
    Tensor("a", ("m", "k"), "variable"), Tensor("b", ("m",), "variable"), Tensor("c", ("k",), "variable"),
    Tensor("d", ("m", "n"), "variable"),
)  # fmt: skip
NEAR = 1e-7


# ---- random programs -------------------------------------------------------------------------------------------------


@dataclass
class Drawer:
    """Programs at random; `written`: tensors that were stored so far, which are loaded more often than others."""

    rng: random.Random
    most: int = 4

    def program(self) -> TileProgram:
        self.written: list[str] = []
        body = self.sequence(self.rng.randint(2, self.most), 2)
        for t in TENSORS:
            if t.role == "output" and t.name not in self.written:
                body = Seq(body, Store(t.name, node("const", attr=T.const(1))))
        return TileProgram({t.name: t for t in TENSORS}, body, dict(SIZES))

    def sequence(self, count: int, loops: int) -> Statement:
        axis = self.rng.choice([*SIZES])
        found = [self.statement(loops, axis) for _ in range(count)]
        return sequence(found)

    def statement(self, loops: int, axis: str) -> Statement:
        """A store, or a loop, often over the same axis as those beside it."""
        if loops and self.rng.random() < 0.45:
            over = axis if self.rng.random() < 0.7 else self.rng.choice([*SIZES])
            return Loop(over, self.sequence(self.rng.randint(1, 2), loops - 1))
        t = self.rng.choice([t for t in TENSORS if t.role != "input" and (loops or len(t.axes) < 2)])
        value, held = self.folded(t, self.value(2)), source(t.name, t.axes)
        form = self.rng.random()
        if form < 0.3:  # a step of a sum, or of a recurrence, of which the order matters
            more = node("mul", held, self.folded(t, self.load())) if form < 0.12 else held
            value = node("add", more, value)
        elif form < 0.5:
            value = node(self.rng.choice(["mul", "div"]), value, self.folded(t, self.load()))
        self.written.append(t.name)
        return Store(t.name, value)

    def folded(self, t: Tensor, value: Node) -> Node:
        """A value that has no other axes than the tensor: sums, rarely maxima, over what it has more."""
        for a in SIZES:
            if a in value.axes and a not in t.axes or a not in t.axes and self.rng.random() < 0.15:
                value = node("max" if self.rng.random() < 0.2 else "sum", value, attr=a)
        return value

    def load(self) -> Node:
        known = self.rng.random() < 0.6
        names = self.written[-self.rng.choice([1, 9]) :] if self.written and known else [t.name for t in TENSORS]
        name = self.rng.choice(names)
        t = next(t for t in TENSORS if t.name == name)
        return source(t.name, t.axes)

    def value(self, depth: int) -> Node:
        if not depth or self.rng.random() < 0.25:
            return self.load()
        op = self.rng.choice(["add", "mul", "mul", "div", "div", "sqrt", "sum", "exp"])
        if op == "exp":  # of inputs, so that no number is too large
            x, w = (source(t.name, t.axes) for t in TENSORS[:2])
            return node(op, self.rng.choice([x, w, node("add", x, w)]))
        first = self.value(depth - 1)
        if op == "sqrt":
            return node(op, first)
        if op == "sum":
            return node(op, first, attr=self.rng.choice([*SIZES]))
        return node(op, first, self.value(depth - 1))


# ---- runs ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Found:
    """A program that differs from the one that it was made of: at `tiles`, in `tensor`."""

    program: TileProgram
    made: TileProgram
    tiles: dict[str, int]
    tensor: str


def numbers(p: TileProgram, rng: np.random.Generator, domain: Any = FLOAT64) -> dict[str, Any]:
    """Something for each tensor; no quotient of positive numbers is lost, and nothing is 0."""
    out: dict[str, Any] = {}
    for t in p.tensors.values():
        shape = tuple(p.sizes[a] for a in t.axes)
        out[t.name] = domain.draw(shape) if isinstance(domain, Field) else rng.uniform(0.5, 1.5, shape)
    return out


def tiles_of(p: TileProgram, rng: random.Random) -> dict[str, int]:
    return {a: rng.randint(1, n) for a, n in p.sizes.items()}


def differing(p: TileProgram, q: TileProgram, xs: Mapping[str, Any], tiles: Mapping[str, int]) -> str:
    """The first tensor in which two programs leave other numbers; "" for none. What cannot be run differs in all."""
    left = run(p, xs, tiles)
    try:
        right = run(q, xs, tiles)
    except ValueError:  # a value with an axis that its tensor has not
        return next(iter(left))
    for name, x in left.items():
        if np.isfinite(x).all() and not np.allclose(x, right[name], rtol=NEAR, atol=0):
            return name
    return ""


def differing_in_field(p: TileProgram, q: TileProgram, tiles: Mapping[str, int], rng: np.random.Generator) -> str:
    """The same in a random field, where equal rational functions are equal. Raises Redraw."""
    domain = Field(rng)
    xs = numbers(p, rng, domain)
    left, right = run(p, xs, tiles, domain), run(q, xs, tiles, domain)
    for name in left:
        for k in "pq":  # where a residue is lost nothing is told
            known = (left[name][k] >= 0) & (right[name][k] >= 0)
            if (known & (left[name][k] != right[name][k])).any():
                return name
    return ""


@dataclass
class Tried:
    """What trials of a rule gave: programs that it applied to, programs that were made of them, the first that
    differs."""

    rule: Rule
    applied: int = 0
    made: int = 0
    wrong: int = 0
    found: Found | None = None


def tried(rule: Rule, count: int, seed: int = 0, twin: bool = False, each: int = 4, most: int = 400) -> Tried:
    """A rule alone, or its twin, on random programs until it applied to so many; a twin until it is wrong once."""
    rng, out = random.Random(f"{rule.name} {seed}"), Tried(rule)
    for _ in range(most):
        if out.applied >= count or twin and out.found:
            break
        p = Drawer(rng).program()
        classes = saturated(p, [rule], 2, twins=twin)
        if not classes.applied:
            continue
        out.applied += 1
        xs = numbers(p, np.random.default_rng(rng.randrange(1 << 30)))
        for _ in range(each):
            made, tiles = classes.drawn(rng, 8), tiles_of(p, rng)
            out.made += 1
            if tensor := differing(p, made, xs, tiles):
                out.wrong += 1
                out.found = out.found or Found(p, made, tiles, tensor)
    return out


def all_rules(
    count: int, rules: Sequence[Rule], seed: int = 0, rounds: int = 3, nodes: int = 3000, each: int = 3
) -> Iterator[Found | None]:
    """All rules together: for each of so many random programs None, or what was made of it and differs in a field."""
    rng = random.Random(seed)
    for _ in range(count):
        p = Drawer(rng).program()
        classes = saturated(p, rules, rounds, nodes)
        found = None
        for _ in range(each):
            made, tiles = classes.drawn(rng, 10), tiles_of(p, rng)
            try:
                tensor = differing_in_field(p, made, tiles, np.random.default_rng(rng.randrange(1 << 30)))
            except Redraw:
                continue
            found = found or (Found(p, made, tiles, tensor) if tensor else None)
        yield found
