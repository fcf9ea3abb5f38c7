"""Tile programs at random: from a grammar, and around a planted term.

Drawer(rng).program()        stores one after the other that have to do with each other, loops over the same axis, sums
                             of products and quotients, sums that go on from what a variable holds
Drawer(rng).planted(looks)   a program that holds what a rule looks for: its holes filled, loops around it, statements
                             before and after

The filling of a hole often loads or stores a tensor that was used already, so that parts depend on each other in every
way. Sizes do not divide by tiles, and no variable is 0 at first."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from trilift.lift.errors import CaseError
from trilift.lift.terms import term as T
from trilift.lift.terms.domain import FLOAT64
from trilift.verify.fields.field import Field

from ..program.program import Node, node, source
from .rules import FUNCTIONS
from .tile_program import Loop, Seq, Statement, Store, Tensor, TileProgram, check, loads, sequence, stores

SIZES = {"m": 5, "n": 3, "k": 4}
TENSORS = {t.name: t for t in (
    Tensor("x", ("m", "k"), "input"), Tensor("w", ("k", "n"), "input"), Tensor("g", ("m",), "input"),
    Tensor("h", ("k",), "input"),
    Tensor("o", ("m", "n"), "output"), Tensor("p", ("m",), "output"), Tensor("r", (), "output"),
    Tensor("a", ("m", "k"), "variable"), Tensor("b", ("m",), "variable"), Tensor("c", ("k",), "variable"),
    Tensor("d", ("m", "n"), "variable"), Tensor("e", (), "variable"), Tensor("f", ("k",), "variable"),
    Tensor("u", ("n",), "variable"), Tensor("v", ("n",), "variable"),
)}  # fmt: skip
STORED = tuple(t for t in TENSORS.values() if t.role != "input")
SIGNATURE = {  # what the arguments of a term are: tensor, axis, constant, function, value, statement
    "Store": "tv", "Loop": "as", "Seq": "ss", "Var": "t", "Const": "c", "Add": "vv", "Mul": "vv", "Div": "vv",
    "Exp": "v", "Sum": "av", "Max": "av", "Fun": "fv", "Fun2": "fvv", "Fun3": "fvvv",
}  # fmt: skip
CONSTANTS = {"0": T.const(0), "-inf": T.const(-np.inf)}
Tree = str | list[Any]  # "hole", '"name"' or [head, arguments ...]
FILLS = 60  # of one planted term, until it is well-typed


# ---- terms with holes ------------------------------------------------------------------------------------------------


def tree(text: str) -> Tree:
    """The term of a text in the language of the e-graph."""
    stack: list[list[Any]] = [[]]
    for word in re.findall(r'[()]|"[^"]*"|[^\s()]+', text):
        if word == "(":
            stack.append([])
        elif word == ")":
            done = stack.pop()
            stack[-1].append(done)
        else:
            stack[-1].append(word)
    return stack[0][0]  # type: ignore[no-any-return]


def holes(t: Tree, kind: str) -> Iterator[tuple[str, str]]:
    """The holes of a term, each with what it is."""
    if isinstance(t, str):
        if not t.startswith('"'):
            yield t, kind
        return
    for kind, a in zip(SIGNATURE[t[0]], t[1:], strict=True):
        yield from holes(a, kind)


def folds(t: Tree) -> list[str]:
    """The axes of the folds that a value is, from the outer to the inner one."""
    return [t[1], *folds(t[2])] if not isinstance(t, str) and t[0] in ("Sum", "Max") else []


def shapes(t: Tree, parts: Sequence[str] = ()) -> Iterator[tuple[str, Sequence[str], Sequence[str]]]:
    """Of the tensors that a term stores to, the axes that they had better lack, and have: what holds a fold lacks its
    axes; what is stored later beside a fold over two axes, `parts`, may hold its parts."""
    if isinstance(t, str):
        return
    if t[0] == "Store":
        bare = isinstance(t[2], str) and len(parts) > 1
        yield t[1], parts[1:] if bare else folds(t[2]), parts[:1] if bare else ()
        return
    own = parts
    for a in t[1:]:
        yield from shapes(a, own)
        own = folds(a[2]) or own if not isinstance(a, str) and a[0] == "Store" else own


def is_value(t: Tree) -> bool:
    return not isinstance(t, str) and t[0] not in ("Store", "Loop", "Seq")


@dataclass
class Filled:
    """Terms with holes as parts of programs. `names`: of axes, tensors and constants; the others are of values and of
    statements."""

    names: Mapping[str, str]
    values: Mapping[str, Node] = field(default_factory=dict)
    statements: Mapping[str, Statement] = field(default_factory=dict)

    def name(self, t: Tree) -> str:
        assert isinstance(t, str)
        return t.strip('"') if t.startswith('"') else self.names[t]

    def statement(self, t: Tree) -> Statement:
        if isinstance(t, str):
            return self.statements[t]
        if t[0] == "Store":
            return Store(self.name(t[1]), self.value(t[2]))
        if t[0] == "Loop":
            return Loop(self.name(t[1]), self.statement(t[2]))
        return Seq(self.statement(t[1]), self.statement(t[2]))

    def value(self, t: Tree) -> Node:
        if isinstance(t, str):
            return self.values[t]
        if t[0] == "Var":
            return loaded(self.name(t[1]))
        if t[0] == "Const":
            return node("const", attr=CONSTANTS[self.name(t[1])])
        args = [self.value(a) for kind, a in zip(SIGNATURE[t[0]], t[1:], strict=True) if kind == "v"]
        if t[0] in ("Sum", "Max"):
            return node(t[0].lower(), *args, attr=self.name(t[1]))
        if t[0].startswith("Fun"):
            op, attr = FUNCTIONS[self.name(t[1])]
            return node(op, *args, attr=attr)
        return node(t[0].lower(), *args)

    def room(self, t: Tree, axes: frozenset[str], out: dict[str, frozenset[str]]) -> None:
        """The axes that what fills each hole for a value may have, so that stores are well-typed; `axes` around."""
        if isinstance(t, str):
            out[t] = out.get(t, axes) & axes
            return
        more = frozenset({self.name(t[1])}) if t[0] in ("Sum", "Max") else frozenset()
        own = frozenset(TENSORS[self.name(t[1])].axes) if t[0] == "Store" else axes | more
        for kind, a in zip(SIGNATURE[t[0]], t[1:], strict=True):
            if kind in "vs":
                self.room(a, own, out)


def loaded(name: str) -> Node:
    return source(name, TENSORS[name].axes)


# ---- programs --------------------------------------------------------------------------------------------------------


@dataclass
class Drawer:
    """Programs at random; `used`: tensors of what was drawn so far, which are taken more often than others, and so are
    those with an axis of `over`."""

    rng: random.Random
    most: int = 4
    used: list[str] = field(default_factory=list)
    over: tuple[str, ...] = ()

    def program(self) -> TileProgram:
        self.used, self.over = [], ()
        return around(self.sequence(self.rng.randint(2, self.most), 2))

    def planted(self, looks: Sequence[str]) -> TileProgram:
        """A program with one of these terms in it. Raises CaseError where none is found that is well-typed."""
        for _ in range(FILLS):
            self.used = []
            p = around(self.context(self.filled(tree(self.rng.choice([*looks])))))
            try:
                check(p)
            except CaseError:
                continue
            return p
        raise CaseError(f"no program contains {looks[0]}")

    # ---- planted terms

    def filled(self, t: Tree) -> Statement:
        """The term with its holes filled, in a store where it is a value."""
        if is_value(t):
            t = self.stored(t)
        every = dict(holes(t, "s"))
        names = {h: self.rng.choice([*SIZES]) for h, kind in every.items() if kind == "a"}
        if len(names) == 2 and self.rng.random() < 0.7:
            names = dict(zip(names, self.rng.sample([*SIZES], 2), strict=True))
        self.over = tuple(names.values())
        names |= {h: self.rng.choice([*CONSTANTS]) for h, kind in every.items() if kind == "c"}
        wanted = {h: ([names[a] for a in no], [names[a] for a in yes]) for h, no, yes in reversed([*shapes(t)])}
        for h in (h for h, kind in every.items() if kind == "t"):
            lacking, having = wanted.get(h, ([], [])) if self.rng.random() < 0.85 else ([], [])
            names[h] = self.tensor(lacking, having, [*names.values()])
            self.used += [names[h]] if self.rng.random() < 0.4 else []
        room: dict[str, frozenset[str]] = {}
        Filled(names).room(t, frozenset(), room)
        values = {h: self.within(room[h]) for h, kind in every.items() if kind == "v"}
        parts = {h: self.small() for h, kind in every.items() if kind == "s"}
        return Filled(names, values, parts).statement(t)

    def stored(self, t: Tree) -> Tree:
        """A store of a value, or of a value that is made of it."""
        form = self.rng.random()
        if form < 0.3:
            t = ["Sum", "around", t]
        elif form < 0.6:
            t = [self.rng.choice(["Add", "Mul", "Div"]), t, "beside"]
        return ["Store", "target", t]

    def context(self, s: Statement) -> Statement:
        """The statement with loops around it, and others before and after."""
        for _ in range(self.rng.choice([0, 0, 1, 1, 2])):
            form = self.rng.random()
            if form < 0.4:
                s = Loop(self.rng.choice([*SIZES]), s)
            else:  # not nested to the right, so that what was the end of a sequence still is
                s = Seq(s, self.small()) if form < 0.7 else Seq(self.small(), s)
        return s

    def small(self) -> Statement:
        """A statement for a hole: a store, sometimes in a loop, or two."""
        form = self.rng.random()
        s = self.store(self.rng.choice([0, 1]))
        if form < 0.25:
            return Loop(self.rng.choice([*SIZES]), s)
        return Seq(s, self.store(0)) if form < 0.4 else s

    def within(self, axes: frozenset[str]) -> Node:
        """A value that has no other axes than these."""
        value = self.value(self.rng.choice([0, 0, 1, 1, 2]), axes)
        if self.over and self.rng.random() < 0.12:  # a fold within what is folded
            inner = node(self.rng.choice(["sum", "max"]), self.load(axes), attr=self.rng.choice(self.over))
            value = node(self.rng.choice(["add", "mul"]), value, inner)
        return self.folded(axes, value)

    # ---- statements and values

    def sequence(self, count: int, loops: int) -> Statement:
        axis = self.rng.choice([*SIZES])
        found = [self.statement(loops, axis) for _ in range(count)]
        return sequence(found)

    def statement(self, loops: int, axis: str) -> Statement:
        """A store, or a loop, often over the same axis as those beside it."""
        if loops and self.rng.random() < 0.45:
            over = axis if self.rng.random() < 0.7 else self.rng.choice([*SIZES])
            return Loop(over, self.sequence(self.rng.randint(1, 2), loops - 1))
        return self.store(2)

    def store(self, depth: int) -> Statement:
        t = TENSORS[self.tensor()]
        axes = frozenset(t.axes)
        value, held = self.folded(axes, self.value(depth)), loaded(t.name)
        form = self.rng.random()
        if form < 0.3:  # a step of a sum, or of a recurrence, of which the order matters
            more = node("mul", held, self.folded(axes, self.load())) if form < 0.12 else held
            value = node("add", more, value)
        elif form < 0.5:
            value = node(self.rng.choice(["mul", "div"]), value, self.folded(axes, self.load()))
        self.used.append(t.name)
        return Store(t.name, value)

    def folded(self, axes: frozenset[str], value: Node) -> Node:
        """The value with sums, rarely maxima, over what axes it has more."""
        for a in SIZES:
            if (a in value.axes and a not in axes) or (a not in axes and self.rng.random() < 0.15):
                value = node("max" if self.rng.random() < 0.2 else "sum", value, attr=a)
        return value

    def tensor(self, lacking: Sequence[str] = (), having: Sequence[str] = (), others: Sequence[str] = ()) -> str:
        """One to store to, without some axes and with others, rarely one of the others."""
        known = [u for u in self.used if TENSORS[u].role != "input"]
        if known and self.rng.random() < (0.1 if lacking else 0.3):
            return self.rng.choice(known)
        fit = [t.name for t in STORED if not {*lacking} & {*t.axes} and {*having} <= {*t.axes}]
        return self.rng.choice([t for t in fit if t not in others] or fit or [t.name for t in STORED])

    def load(self, axes: frozenset[str] | None = None) -> Node:
        """A load, of a tensor that fits these axes if there is one."""
        known = self.used and self.rng.random() < 0.6
        names = self.used[-self.rng.choice([1, 9]) :] if known else [*TENSORS]
        fit = [n for n in names if axes is None or axes.issuperset(TENSORS[n].axes)]
        over = [n for n in fit if {*self.over} & {*TENSORS[n].axes}]
        return loaded(self.rng.choice(over if over and self.rng.random() < 0.6 else fit or names))

    def value(self, depth: int, axes: frozenset[str] | None = None) -> Node:
        if not depth or self.rng.random() < 0.25:
            return self.load(axes)
        op = self.rng.choice(["add", "mul", "mul", "div", "div", "sqrt", "sum", "exp"])
        if op == "exp":  # of inputs, so that no number is too large
            x, w = loaded("x"), loaded("w")
            return node(op, self.rng.choice([x, w, node("add", x, w), loaded("h")]))
        first = self.value(depth - 1, axes)
        if op == "sqrt":
            return node(op, first)
        if op == "sum":
            return node(op, first, attr=self.rng.choice([*SIZES]))
        return node(op, first, self.value(depth - 1, axes))


def around(body: Statement) -> TileProgram:
    """The program of a statement: what it stores of the outputs are outputs."""
    written = {s.tensor for s in stores(body)}
    roles = {n: t.role if t.role != "output" or n in written else "variable" for n, t in TENSORS.items()}
    return TileProgram({n: Tensor(n, t.axes, roles[n], t.dtype) for n, t in TENSORS.items()}, body, dict(SIZES))


def numbers(p: TileProgram, rng: np.random.Generator, domain: Any = FLOAT64) -> dict[str, Any]:
    """Something for each tensor, never 0: one in three times all are positive, so that no root or quotient is lost, and
    one in three times some elements of a tensor that is loaded are -inf, as what a mask hides."""
    out: dict[str, Any] = {}
    form = rng.random()
    for t in p.tensors.values():
        shape = tuple(p.sizes[a] for a in t.axes)
        sign = rng.choice([-1.0, 1.0]) if form < 2 / 3 else 1.0
        out[t.name] = domain.draw(shape) if isinstance(domain, Field) else sign * rng.uniform(0.5, 1.5, shape)
    if form < 1 / 3:
        name = rng.choice(sorted({n for s in stores(p.body) for n in loads(s.value)}) or [*out])
        out[name] = np.where(_hidden(rng, out[name].shape), domain.reals(np.asarray(-np.inf)), out[name])
    return out


def _hidden(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    """Some elements of a tensor, or all but the last ones along an axis."""
    if not shape or rng.random() < 0.3:
        return rng.random(shape) < 0.5
    axis = int(rng.integers(len(shape)))
    return np.indices(shape)[axis] < rng.integers(1, shape[axis])


def tiles_of(p: TileProgram, rng: random.Random) -> dict[str, int]:
    """Lanes of a tile of each axis; most do not divide it."""
    return {a: rng.randint(1, n) for a, n in p.sizes.items()}
