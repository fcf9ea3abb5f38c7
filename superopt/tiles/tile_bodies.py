"""The computation of a tile program, before any loop: ways to write the values, and which of them are stored.

The laws of values are saturated alone, without statements: no store grows with them. A *body* is drawn from the classes
at random prices of the operations, by its cheapest values with what is shared counted once, once more with the prices
of folds that wait for folds. So quotients before and after a sum, one pass and two, products in either order are all
there. Folds are stored, and what is used twice; the rest is written where it is used. Each body is saturated by the
rules of loops on its own."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field, replace
from itertools import count

from trilift.lift.errors import CaseError

from ..mugraph.cost import H200, Hardware
from ..program.abstract import Class
from ..program.program import FOLDS, Node, Program, node, source
from .rules import ALGEBRA
from .saturate import Classes, Member, Stage, staged
from .tile_program import Statement, Store, Tensor, TileProgram, folded, is_product, loads, sequence, stores

CHOICE_ROUNDS = 6
NODES = 20_000
NOISE = 1.5  # of the logarithms of prices
DEARER = 1.25  # than the cheapest body
WAITING = 0.3  # seconds for a fold that waits for another one, relative to the dearest operation
SHORT = 128  # an axis that fits a tile
Axes = frozenset[str]


def written(program: Program) -> TileProgram:
    """One store for each output, of all that it is."""
    tensors = {x.name: Tensor(x.name, x.axes, "input", x.dtype) for x in program.read}
    tensors |= {name: Tensor(name, axes, "output", dtype) for name, axes, _, dtype in program.outputs}
    body = sequence([Store(name, value) for name, _, value, _ in program.outputs])
    return TileProgram(tensors, body, dict(program.sizes), dict(program.extents))


def bodies(program: Program, most: int, seed: int = 0, hardware: Hardware = H200) -> list[TileProgram]:
    """Up to `most` distinct bodies of a program that are not much dearer than the cheapest one, which is first."""
    p = written(program)
    classes = staged(p, [Stage(ALGEBRA, CHOICE_ROUNDS)], NODES)
    found: dict[frozenset[tuple[str, int]], TileProgram] = {}
    numbers: dict[Hashable, int] = {}
    for k in range(3 * most):
        prices = Prices(classes, hardware, random.Random(f"{seed} {k}"), NOISE if k > 1 else 0.0, WAITING * (k % 2))
        body = _stored(p, prices.values(), once=k % 4 < 3)
        found.setdefault(stored(body, numbers), body)
        if len(found) == most:
            break
    seconds = {b: price(b, hardware) for b in found.values()}
    every = sorted(found.values(), key=lambda b: seconds[b])
    return [arranged(b) for b in every if seconds[b] <= DEARER * seconds[every[0]]]


def price(p: TileProgram, h: Hardware) -> float:
    """Seconds of all operations of a body, each done once, at the rates of the device."""
    total = 0.0
    for n, product in dict.fromkeys(x for s in stores(p.body) for x in operations(s.value)):
        elements = math.prod(p.sizes[a] for a in n.axes | ({str(n.attr)} if n.op in FOLDS else set()))
        total += 2 * elements / h.flops if product else elements / (h.exponentials if n.op == "exp" else h.scalar)
    return total


def operations(value: Node) -> Iterator[tuple[Node, bool]]:
    """The operations of a value, and whether each is a product of matrices; the product inside one is left out."""
    every = [n for n in value.walk() if n.op not in ("input", "const")]
    sums = [n for n in every if n.op == "sum" and n.args[0].op == "mul"]
    products = {n: n.args[0] for n in sums if is_product(str(n.attr), *(x.axes for x in n.args[0].args))}
    yield from ((n, n in products) for n in every if n not in products.values())


def parted(p: TileProgram, axis: str, parts: int) -> TileProgram:
    """The body with an axis in parts: what it folds over the axis it folds within each part, then over the parts, so
    that a kernel may have blocks for the parts. Raises CaseError for an axis that an output has."""
    if any(axis in p.tensors[o].axes for o in p.outputs):
        raise CaseError(f"an output has the axis {axis}")
    of = next(n for n in (f"{axis}_parts{k or ''}" for k in count()) if n not in p.sizes)
    sizes = {b: -(-n // parts) if b == axis else n for a, n in p.sizes.items() for b in ([of, a] if a == axis else [a])}
    sizes[of] = parts
    wider = lambda axes: tuple(b for a in axes for b in ((of, a) if a == axis else (a,)))  # noqa: E731
    tensors = {n: replace(t, axes=wider(t.axes)) for n, t in p.tensors.items()}
    body = list[Statement]()
    for s in stores(p.body):
        value = rebuilt(s.value, lambda n: source(str(n.attr), tensors[str(n.attr)].axes))
        if value.op not in FOLDS or value.attr != axis:
            body.append(Store(s.tensor, value))
            continue
        own = next(n for n in (f"{s.tensor}_parts{k or ''}" for k in count()) if n not in tensors)
        tensors[own] = Tensor(own, tuple(a for a in sizes if a in value.axes), "variable")
        total = node(value.op, source(own, tensors[own].axes), attr=of)
        body += [Store(own, value), Store(s.tensor, total)]
    return arranged(replace(p, tensors=tensors, body=sequence(body), sizes=sizes, parts={**p.parts, of: axis}))


def looped(p: TileProgram) -> list[str]:
    """The axes that a loop is worth: longer than a tile, within parts, or outside of every product and fold, so that
    blocks have one index of them each. None is needed over parts, which only blocks have, nor over what all of the
    program may be looped over."""
    without, within = {*p.parts, *free(p)}, {*p.parts.values()}
    worth = [a for a, n in p.sizes.items() if n > SHORT or a in within or a not in planes(p)]
    return [a for a in worth if a not in without]


def arranged(p: TileProgram) -> TileProgram:
    """The stores of a body with those together that have the same loops, as far as they may change places: what is
    folded over parts is late, and what is in no loop early."""
    axes = {*looped(p)}
    loops = {s: axes & (s.value.axes | folded(s.value)) for s in stores(p.body)}
    left, out = list(loops), list[Store]()
    while left:
        ready = [s for k, s in enumerate(left) if not any(_conflict(s, o) for o in left[:k])]
        same = [s for s in ready if out and loops[s] == loops[out[-1]]]
        first = same[0] if same else min(ready, key=lambda s: (bool(folded(s.value) & {*p.parts}), len(loops[s])))
        out.append(first)
        left.remove(first)
    return replace(p, body=sequence(out))


def _conflict(a: Store, b: Store) -> bool:
    """Whether two stores are not independent, as rules of sequences say it."""
    return a.tensor == b.tensor or a.tensor in loads(b.value) or b.tensor in loads(a.value)


def stored(p: TileProgram, numbers: dict[Hashable, int]) -> frozenset[tuple[str, int]]:
    """The values that a body stores, whatever the order and the names of its variables: numbers of the values over its
    inputs,
    sums and products in any order; of outputs with their names. `numbers`: those that are known, and become known."""
    held: dict[str, int] = {}
    out = set[tuple[str, int]]()

    def number(n: Node) -> int:
        if n.op == "input" and n.attr in held:
            return held[str(n.attr)]
        args = [number(a) for a in n.args]
        key = n.op, n.attr, tuple(sorted(args) if n.op in ("add", "mul") else args)
        return numbers.setdefault(key, len(numbers))

    for s in stores(p.body):
        held[s.tensor] = number(s.value)
        out.add((s.tensor if p.tensors[s.tensor].role == "output" else "", held[s.tensor]))
    return frozenset(out)


def planes(p: TileProgram) -> frozenset[str]:
    """The axes of tiles: of folds, and of products of matrices those that one operand has; none that both operands of
    some product and its result have, of which a tile has one index."""
    out: set[str] = set()
    alone: set[str] = set()
    for n in (n for s in stores(p.body) for n in s.value.walk() if n.op in FOLDS):
        out.add(str(n.attr))
        if n.op == "sum" and n.args[0].op == "mul":
            a, b = (x.axes for x in n.args[0].args)
            if is_product(str(n.attr), a, b):
                out |= a ^ b
                alone |= (a & b) - {n.attr}
    return frozenset(out - alone)


def free(p: TileProgram) -> frozenset[str]:
    """The axes of every output over which nothing is folded: a loop over one may stand around the whole program, or
    around any part of it that is a kernel."""
    every = frozenset(p.sizes).intersection(*(p.tensors[o].axes for o in p.outputs))
    return every.difference(*(folded(s.value) for s in stores(p.body)))


def rebuilt(n: Node, leaf: Callable[[Node], Node]) -> Node:
    """The value with other loads."""
    return leaf(n) if n.op == "input" else node(n.op, *(rebuilt(a, leaf) for a in n.args), attr=n.attr)


# ---- extraction ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Way:
    """A way to make a value: `member` of its class, or with `product` the sum of a product."""

    member: Member
    args: tuple[Class, ...]
    seconds: float
    product: bool = False


@dataclass
class Prices:
    """The cheapest values at the prices of one drawing. `noise`: of their logarithms; `waiting`: of a fold that needs
    another one first."""

    classes: Classes
    hardware: Hardware
    rng: random.Random
    noise: float
    waiting: float
    ways: dict[Class, list[Way]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.axes = axes_of(self.classes)
        for c, members in self.classes.members.items():
            if c in self.axes:
                self.ways[c] = [w for m in members for w in self._ways(c, m) if all(a in self.axes for a in w.args)]
        dearest = max((w.seconds for ws in self.ways.values() for w in ws), default=0.0)
        self.wait = self.waiting * dearest

    def _ways(self, c: Class, m: Member) -> Iterator[Way]:
        factor = math.exp(self.noise * self.rng.gauss(0, 1))
        h = self.hardware
        if m.op in ("Sum", "Max"):
            over = self.axes.get(m.args[0], frozenset()) | {m.texts[0]}
            yield Way(m, m.args, factor * self.elements(over) / h.scalar)
            for inner in self.classes.members[m.args[0]] if m.op == "Sum" else ():
                if inner.op == "Mul" and all(a in self.axes for a in inner.args):
                    a, b = (self.axes[x] for x in inner.args)
                    if is_product(m.texts[0], a, b):
                        yield Way(m, inner.args, factor * 2 * self.elements(a | b) / h.flops, True)
        else:
            rate = h.exponentials if m.op == "Exp" else h.scalar
            yield Way(m, m.args, 0.0 if m.op in ("Var", "Const") else factor * self.elements(self.axes[c]) / rate)

    def elements(self, axes: Axes) -> float:
        return float(math.prod(self.classes.program.sizes[a] for a in axes))

    def values(self) -> dict[str, Node]:
        """A value for each output."""
        chosen = self._improved(self._cheapest())
        done: dict[Class, Node] = {}
        return {t: self._node(c, chosen, done) for t, c in roots(self.classes).items()}

    def _cheapest(self) -> dict[Class, Way]:
        """For each class the way whose values cost least, each counted wherever it is used, by Knuth's generalisation
        of Dijkstra's algorithm as a fixed point."""
        cost: dict[Class, tuple[float, int]] = {}  # seconds, folds one after the other
        chosen: dict[Class, Way] = {}
        changed = True
        while changed:
            changed = False
            for c, ways in self.ways.items():
                for w in ways:
                    if any(a not in cost for a in w.args):
                        continue
                    deep = max((cost[a][1] for a in w.args), default=0) + (w.member.op in ("Sum", "Max"))
                    own = w.seconds + sum(cost[a][0] for a in w.args)
                    if c not in cost or self._key(own, deep) < self._key(*cost[c]) * (1 - 1e-9) - 1e-30:
                        cost[c], chosen[c], changed = (own, deep), w, True
        return chosen

    def _key(self, seconds: float, deep: int) -> float:
        return seconds + deep * self.wait

    def _improved(self, chosen: dict[Class, Way]) -> dict[Class, Way]:
        """Other ways tried for one value after the other, as long as all that is needed costs less."""
        total = self._total(chosen)
        for _ in range(3):
            before = total
            for c in self._needed(chosen) or ():
                for w in self.ways[c]:
                    trial = {**chosen, c: w}
                    if w is not chosen[c] and (cost := self._total(trial)) < total * (1 - 1e-9):
                        chosen, total = trial, cost
            if total == before:
                break
        return chosen

    def _total(self, chosen: dict[Class, Way]) -> float:
        order = self._needed(chosen)
        if order is None:
            return math.inf
        deep: dict[Class, int] = {}
        for c in order:
            w = chosen[c]
            deep[c] = max((deep[a] for a in w.args), default=0) + (w.member.op in ("Sum", "Max"))
        return self._key(sum(chosen[c].seconds for c in order), max(deep.values(), default=0))

    def _needed(self, chosen: dict[Class, Way]) -> list[Class] | None:
        """The classes below the outputs, arguments first; None where they run in a circle."""
        out: dict[Class, None] = {}
        open_: set[Class] = set()

        def visit(c: Class) -> bool:
            if c in out:
                return True
            if c in open_ or c not in chosen:
                return False
            open_.add(c)
            fine = all(visit(a) for a in chosen[c].args)
            open_.discard(c)
            out[c] = None
            return fine

        return list(out) if all(visit(c) for c in roots(self.classes).values()) else None

    def _node(self, c: Class, chosen: dict[Class, Way], done: dict[Class, Node]) -> Node:
        if c not in done:
            w = chosen[c]
            args = [self._node(a, chosen, done) for a in w.args]
            done[c] = self.classes.node(w.member, [node("mul", *args)] if w.product else args)
        return done[c]


def roots(classes: Classes) -> dict[str, Class]:
    """The class of what is stored to each output, where there are no rules of statements."""
    out: dict[str, Class] = {}
    stack = [classes.root]
    while stack:
        [m] = classes.members[stack.pop()]
        if m.op == "Store":
            out[m.texts[0]] = m.args[0]
        stack += m.args if m.op == "Seq" else ()
    return out


def axes_of(classes: Classes) -> dict[Class, Axes]:
    """The axes of each class of values: those that every member found has."""
    return classes.fixed(lambda m, known: _axes(classes, m, known), frozenset.intersection)


def _axes(classes: Classes, m: Member, known: dict[Class, Axes]) -> Axes | None:
    if m.op in ("Store", "Loop", "Seq") or any(a not in known for a in m.args):
        return None
    if m.op == "Var":
        return frozenset(classes.program.tensors[m.texts[0]].axes)
    every = frozenset[str]().union(*(known[a] for a in m.args))
    return every - {m.texts[0]} if m.op in ("Sum", "Max") else every


# ---- stores ----------------------------------------------------------------------------------------------------------


def _stored(p: TileProgram, values: dict[str, Node], once: bool) -> TileProgram:
    """The program that stores the outputs, folds, and what is used twice; that only where it is dear unless `once`."""
    outputs = {v: t for t, v in values.items()}
    every = list(dict.fromkeys(n for v in values.values() for n in v.walk()))
    uses = Counter(a for n in every for a in dict.fromkeys(n.args))
    tensors, body = dict(p.tensors), list[Statement]()
    held: dict[Node, Node] = {}
    for n in every:
        if n.op == "input":
            held[n] = n
            continue
        new = node(n.op, *(held[a] for a in n.args), attr=n.attr)
        held[n] = new
        shared = uses[n] > 1 and (once or any(m.op == "exp" for m in new.walk()))
        if n in outputs or n.op in FOLDS or shared:
            held[n] = _kept(p, tensors, body, new, outputs.get(n))
    for t, v in values.items():  # two outputs of one value
        if outputs[v] != t:
            body.append(Store(t, held[v]))
    return replace(p, tensors=tensors, body=sequence(body))


def _kept(
    p: TileProgram, tensors: dict[str, Tensor], body: list[Statement], value: Node, output: str | None
) -> Node:  # fmt: skip
    """A store of the value; what is loaded for it from there on."""
    name = output or next(n for n in (f"t{k}" for k in count()) if n not in tensors)
    if output is None:
        tensors[name] = Tensor(name, tuple(a for a in p.sizes if a in value.axes), "variable")
    body.append(Store(name, value))
    return source(name, tensors[name].axes)


__all__ = ["Prices", "bodies", "written"]
