"""The best µGraphs of a program: kernels chosen from the outputs down, best first under admissible bounds.

A plan is a list of kernels; what it still needs are values that other kernels have to make. A kernel is (signature, the
values that it stores, its leaves); its bound is a launch and the bytes of what it exchanges with other kernels, and all
of a plan together takes its launches and the time to move the inputs and outputs. A kernel is derived and its numbers
chosen only when its plan comes first. Nothing that the size limits allow is left out, but for plans whose bound is
above the best one found."""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, count
from typing import cast

from ..mugraph.cost import H200, Choice, Hardware, Model, Shape, Traffic, Work, assignments, itemsize
from ..mugraph.graph import Dim, Kernel, Mode, MuGraph, Operator, Tensor
from ..mugraph.reach import Reach, reach
from ..program.program import Program
from .bodies import Block, Cut, Point, Step, signatures
from .values import Id, Universe, universe

FREE = ("sqr", "sqrt", "scale")  # not counted among the operators of a block, as accum-rms is one operator in the paper
WITHIN = 1.3  # plans this much worse than the best are kept
OFTEN = 0.1  # seconds between two words about how far it is


@dataclass(frozen=True, slots=True)
class Limits:
    """How far the search goes. `leaves`: values that a kernel reads from other kernels; `engine`: "mugraph" for the
    search of this file, "tiles" for `superopt.tiles.engine`, to which `kernels`, `seconds` and `keep` apply;
    `states`: plans that are looked at; `seconds`: the outer time limit."""

    kernels: int = 5
    operators: int = 11
    leaves: int = 2
    seconds: float = 60.0
    keep: int = 10
    states: int = 200_000
    engine: str = "mugraph"


USUAL = Limits()


@dataclass(frozen=True, slots=True)
class Made:
    """One kernel of a plan, by the signature's number, what it stores and what it reads from others."""

    signature: int
    outputs: tuple[Id, ...]
    leaves: Cut


@dataclass(frozen=True, slots=True)
class Body:
    """A kernel with its operations, without numbers."""

    made: Made
    steps: tuple[Step, ...]
    shape: Shape


@dataclass(frozen=True, slots=True)
class Plan:
    """Kernels, the last one first, with the numbers of each; `seconds` in the model."""

    bodies: tuple[Body, ...]
    choices: tuple[Choice, ...]
    parts: dict[str, int]
    seconds: float


@dataclass
class Found:
    """The result of a search: plans, best first, and how far it went. `excluded`: the bound at which it stopped, so
    that every plan that was not looked at takes longer in the model; None where it ended early. `late`: the outer
    time limit ended it."""

    universe: Universe
    plans: list[Plan]
    states: int
    candidates: int
    seconds: float
    excluded: float | None
    model: Model
    late: bool = False


@dataclass(frozen=True, slots=True)
class Reached:
    """How far a search is: plans looked at, kernels derived, seconds of the best plan so far and of the roofline."""

    states: int
    candidates: int
    best: float | None
    roofline: float


Hear = Callable[[Reached], None]


@dataclass
class Search:
    """One search over a closed universe; `hear` is told how far it is, about every `OFTEN` seconds."""

    u: Universe
    model: Model
    limits: Limits = USUAL
    hear: Hear = lambda reached: None
    bodies: dict[Made, Body | None] = field(default_factory=dict)
    _makers: dict[tuple[Id, ...], list[Made]] = field(default_factory=dict)
    _dims: dict[Id, tuple[Dim, ...] | None] = field(default_factory=dict)

    @cached_property
    def blocks(self) -> list[Block]:
        return [Block(self.u, s) for s in signatures(self.u)]

    @cached_property
    def cuts(self) -> list[dict[Id, list[Cut]]]:
        """For each signature, of each value, what it may be made from; without the value itself."""
        out = []
        for b in self.blocks:
            found: dict[Id, set[Cut]] = {}
            for (v, _), cuts in b.cuts(self.limits.leaves).items():
                found.setdefault(v, set()).update(c for c in cuts if v not in c)
            out.append({v: sorted(cs, key=sorted) for v, cs in found.items() if self.storable(b, v)})
        return out

    # ---- values in memory

    def dims(self, v: Id) -> tuple[Dim, ...] | None:
        """The dimensions of a value in memory, in the order of the program's axes; None where it has part of a part."""
        if v not in self._dims:
            own = {a: (self.u.bits[v] & frozenset(bs), bs) for a, bs in self.u.axes.items()}
            whole = all(here in (frozenset(), frozenset(bs), frozenset(bs[:1])) for here, bs in own.values())
            dims = tuple(Dim(a, here != frozenset(bs)) for a, (here, bs) in own.items() if here)
            self._dims[v] = dims if whole else None
        return self._dims[v]

    def storable(self, b: Block, v: Id) -> bool:
        """Whether a kernel with this signature may store the value: no loop bits, all bits of its grid."""
        bits = self.u.bits[v]
        return not bits & b.loop and b.grid <= bits and self.dims(v) is not None and v not in self.u.inputs.values()

    # ---- kernels

    def makers(self, wanted: tuple[Id, ...]) -> list[Made]:
        """Kernels that store all of these."""
        if wanted not in self._makers:
            self._makers[wanted] = list(self._made(wanted))
        return self._makers[wanted]

    def _made(self, wanted: tuple[Id, ...]) -> Iterator[Made]:
        for k, b in enumerate(self.blocks):
            options = [self.cuts[k].get(v, []) for v in wanted]
            if not all(options):
                continue
            joined: set[Cut] = {frozenset()}
            for cuts in options:
                joined = {c | d for c in joined for d in cuts if len(c | d) <= self.limits.leaves}
            for leaves in sorted(joined, key=sorted):
                readable = all(self.dims(v) is not None for v in leaves)
                if readable and not leaves & set(wanted) and self._sane(b, leaves):
                    yield Made(k, wanted, leaves)

    def _sane(self, b: Block, leaves: Cut) -> bool:
        """Parts are read where the signature says so, and only there: else the same kernel has another signature."""
        read = {d.axis for v in leaves for d in self.dims(v) or () if d.parts}
        return read == {a for a, m in b.signature.modes if m == "parts"}

    def body(self, m: Made) -> Body | None:
        """Its operations, the cheapest found; None where the limit on operators is exceeded or there are none."""
        if m not in self.bodies:
            self.bodies[m] = self._body(m)
        return self.bodies[m]

    def _body(self, m: Made) -> Body | None:
        b = self.blocks[m.signature]
        weight = self._weights(b)
        steps = b.derivation(m.outputs, m.leaves, weight)
        if not steps or sum(s.kind.partition(":")[0] not in FREE for s in steps) > self.limits.operators:
            return None
        made = {s.out for s in steps}
        here = frozenset[str]().union(*(self.u.bits[v] for s in steps for v in (s.out[0], *s.edge.args)))
        if any(m != "whole" and not here & frozenset(self.u.axes[a]) for a, m in b.signature.modes):
            return None
        read = {a for s in steps for a in s.args if a not in made}
        shape = self._shape(b, m, steps, {v for v, _ in read})
        return None if _has_parts_of_tiles(shape) else Body(m, steps, shape)

    def _weights(self, b: Block) -> Weights:
        return Weights(self.u, b, self.model.program)

    def _shape(self, b: Block, m: Made, steps: tuple[Step, ...], read: set[Id]) -> Shape:
        values = read | {s.out[0] for s in steps}
        axes = [a for a in self.u.axes if any(self.u.bits[v] & frozenset(self.u.axes[a]) for v in values)]
        modes = tuple((a, b.signature.by_axis.get(a, "grid")) for a in axes)
        names = {v: n for n, v in self.u.inputs.items()}
        traffic, computed = [], set[Id]()
        for v in sorted(read):
            x = next((i for i in self.model.program.inputs if i.name == names.get(v)), None)
            dims = tuple(map(Dim, x.axes)) if x else self.dims(v)
            if x is None or x.element is None:
                traffic.append(Traffic(dims or (), itemsize(x.dtype) if x else 4))
            else:
                computed.add(v)
        outs = dict(zip(self.u.targets, self.model.program.outputs, strict=True))
        for v in m.outputs:
            dims = tuple(map(Dim, outs[v][1])) if v in outs else self.dims(v)
            traffic.append(Traffic(dims or (), itemsize(outs[v][3]) if v in outs else 4, True))
        own = {s.out for s in steps} | {a for s in steps for a in s.args if a[0] in computed}
        loop = {v: b.signature.loop if self.u.bits[v] & b.loop else None for v in computed}
        masks = [Work("map", t, loop[v], t) for v in sorted(computed) for t in [self.tile(b, v)]]
        work = (*masks, *(self._work(b, s, own) for s in steps))
        return Shape(modes, tuple(traffic), work, self._reaches(b, steps, read, dict(modes)))

    def _reaches(
        self, b: Block, steps: tuple[Step, ...], read: set[Id], modes: dict[str, str]
    ) -> tuple[tuple[str, Reach], ...]:
        """Of the loop of a block, where a mask ends it."""
        a = b.signature.loop
        if a is None or modes.get(a) != "loop":
            return ()
        names = {v: n for n, v in self.u.inputs.items()}
        elements = {x.name: x.element for x in self.model.program.inputs}
        loads = {f"{v}": elements.get(names[v]) for v in read if v in names and self.u.bits[v] & b.loop}
        made = {s.out for s in steps}
        inside = [
            Operator(f"{s.out}", s.kind, tuple(f"{p if p in made else p[0]}" for p in s.args), frozenset())
            for s in steps
            if self.inside(b, s)
        ]
        grid = frozenset(x for x, m in modes.items() if m == "grid")
        found = reach(inside, loads, self.model.program, a, grid)
        return ((a, found),) if found else ()

    def _work(self, b: Block, s: Step, own: set[Point]) -> Work:
        dims = frozenset[Dim]().union(*(self.tile(b, a) for a, _ in s.args))
        alone = frozenset[Dim]()
        made: tuple[frozenset[Dim], ...] = ()
        free: tuple[frozenset[Dim], ...] = ()
        if s.kind == "dot":
            made = tuple(self.tile(b, a[0]) for a in s.args if a in own)
            alone = (self.tile(b, s.args[0][0]) & self.tile(b, s.args[1][0])) - {
                Dim(self.u.axis(x)) for x in s.edge.over
            }
            alone -= {Dim(self.u.axis(x), True) for x in s.edge.over}
            left, right = (self.tile(b, a) for a, _ in s.args)
            free = left - right, right - left
        loop = b.signature.loop if self.inside(b, s) else None
        return Work(s.kind.partition(":")[0], dims, loop, self.tile(b, s.out[0]), alone, free, made)

    def tile(self, b: Block, v: Id) -> frozenset[Dim]:
        """The dimensions of a value within a block: axes of which it has bits in the tile, and parallel axes."""
        out = set()
        for a, bs in self.u.axes.items():
            own = self.u.bits[v] & frozenset(bs)
            if own and (a not in b.signature.by_axis or own & b.tile):
                out.add(Dim(a, b.signature.by_axis.get(a) == "parts"))
        return frozenset(out)

    def inside(self, b: Block, s: Step) -> bool:
        """Whether a step runs in the loop: those that have to do with the loop's bits do."""
        return bool(b.loop) and (s.kind == "accumulate" or bool(self.u.bits[s.out[0]] & b.loop) or any(
            self.u.bits[a] & b.loop for a, _ in s.args))  # fmt: skip

    # ---- plans

    def run(self) -> Found:
        """Best first over plans."""
        start, tick = time.perf_counter(), count()
        h, roof = self.model.hardware, self.model.roofline
        heap: list[tuple[float, int, tuple[Made, ...], frozenset[Id], tuple[float, ...]]] = []
        goal = frozenset(self.u.targets)
        heapq.heappush(heap, (h.launch + self.model.floor, next(tick), (), goal, ()))
        plans: list[Plan] = []
        states = 0
        seen: set[tuple[frozenset[Made], frozenset[Id]]] = set()
        excluded: float | None = None
        told, late = start, False
        while heap:
            if (now := time.perf_counter()) - told > OFTEN:
                told = now
                self.hear(Reached(states, self._derived(), plans[0].seconds if plans else None, roof))
            bound, _, made, pending, costs = heapq.heappop(heap)
            limit = plans[0].seconds * WITHIN if plans else float("inf")
            if bound > limit or (len(plans) >= self.limits.keep and bound > plans[-1].seconds):
                excluded = bound
                break
            states += 1
            late = time.perf_counter() - start > self.limits.seconds
            if states > self.limits.states or late:
                break
            if len(costs) < len(made):  # the kernel that was added last has no numbers yet
                body = self.body(made[-1])
                cost = self._least(body) if body else None
                if cost is None:
                    continue
                new = (*costs, cost)
                heapq.heappush(heap, (self._bound(new, made, pending), next(tick), made, pending, new))
                continue
            if not pending:
                plans += [p for p in [self._plan(made)] if p is not None]
                plans.sort(key=lambda p: p.seconds)
                del plans[self.limits.keep :]
                continue
            if len(made) == self.limits.kernels:
                continue
            for m in self._next(pending):
                rest = (pending - set(m.outputs)) | m.leaves
                key = frozenset((*made, m)), rest
                if key not in seen and not any(set(m.leaves) & set(x.outputs) for x in made):
                    seen.add(key)
                    heapq.heappush(heap, (self._bound(costs, (*made, m), rest), next(tick), (*made, m), rest, costs))
        self.hear(Reached(states, self._derived(), plans[0].seconds if plans else None, roof))
        seconds = time.perf_counter() - start
        return Found(self.u, plans, states, self._derived(), seconds, excluded if plans else None, self.model, late)

    def _derived(self) -> int:
        return sum(b is not None for b in self.bodies.values())

    def _next(self, pending: frozenset[Id]) -> Iterator[Made]:
        """Kernels that make the first of the pending values, alone or with others of them."""
        first, *others = sorted(pending)
        for k in range(len(others) + 1):
            for more in combinations(others, k):
                yield from self.makers((first, *more))

    def _bound(self, costs: tuple[float, ...], made: tuple[Made, ...], pending: frozenset[Id]) -> float:
        h = self.model.hardware
        open_ = len(made) - len(costs) + bool(pending)
        known = sum(costs) + open_ * h.launch
        exchanged = sum(
            self.model.tensor(self.dims(v) or ()) for m in made[len(costs) :] for v in (*m.leaves, *m.outputs)
        )
        every = (len(made) + bool(pending)) * h.launch + self.model.floor
        return max(known + exchanged / h.memory, every)

    def _least(self, body: Body) -> float | None:
        """The cost with the best numbers of parts."""
        found = [c.seconds for p in self._parts([body]) if (c := self.model.best(body.shape, p)) is not None]
        return min(found, default=None)

    def _parts(self, bodies: list[Body]) -> Iterator[dict[str, int]]:
        axes = sorted({d.axis for b in bodies for t in b.shape.traffic for d in t.dims if d.parts}
                      | {a for b in bodies for a, m in b.shape.modes if m == "split"})  # fmt: skip
        return assignments(axes, self.model.program)

    def _plan(self, made: tuple[Made, ...]) -> Plan | None:
        bodies = [b for b in map(self.body, made) if b is not None]
        best: Plan | None = None
        for parts in self._parts(bodies):
            choices = [self.model.best(b.shape, parts) for b in bodies]
            if any(c is None for c in choices):
                continue
            total = sum(c.seconds for c in choices if c)
            if best is None or total < best.seconds:
                best = Plan(tuple(bodies), tuple(c for c in choices if c), parts, total)
        return best

    # ---- graphs

    def graph(self, plan: Plan) -> MuGraph:
        """The µGraph of a plan: kernels in the order in which they run."""
        outs = dict(zip(self.u.targets, self.model.program.outputs, strict=True))
        names = {v: n for n, v in self.u.inputs.items()} | {v: o[0] for v, o in outs.items()}
        tensors: dict[str, Tensor] = {o[0]: Tensor(o[0], tuple(map(Dim, o[1])), o[3]) for o in outs.values()}
        kernels: list[Kernel] = []
        taken = {*names.values()}
        bodies = list(reversed(list(zip(plan.bodies, plan.choices, strict=True))))
        for body, _ in bodies:
            for v in body.made.outputs:
                if v not in names:
                    names[v] = next(n for n in (f"part{k}" for k in count()) if n not in taken)
                    taken.add(names[v])
                    tensors[names[v]] = Tensor(names[v], self.dims(v) or (), "f32")
        for k, (body, choice) in enumerate(bodies):
            kernels.append(self._kernel(f"kernel{k}" if len(bodies) > 1 else "kernel", body, choice, names))
        return MuGraph(self.model.program, tuple(kernels), tensors, plan.parts)

    def _kernel(self, name: str, body: Body, choice: Choice, names: dict[Id, str]) -> Kernel:
        b = self.blocks[body.made.signature]
        local = {s.out: f"v{k}" for k, s in enumerate(body.steps)}
        operators: list[Operator] = []
        loaded: dict[Id, str] = {}
        for s in body.steps:
            for v in (a[0] for a in s.args if a not in local):
                if v not in loaded:
                    loaded[v] = f"{names[v]}_tile"
                    inside = bool(self.u.bits[v] & b.loop)
                    operators.append(Operator(loaded[v], "load", (names[v],), self.tile(b, v), (), inside))
        for s in body.steps:
            args = tuple(local[a] if a in local else loaded[a[0]] for a in s.args)
            over = tuple(sorted({self.u.axis(x) for x in s.edge.over}))
            operators.append(Operator(local[s.out], s.kind, args, self.tile(b, s.out[0]), over, self.inside(b, s)))
        for v in body.made.outputs:
            at = local[(v, True)] if (v, True) in local else local[(v, False)]
            operators.append(Operator(names[v], "store", (at,), self.tile(b, v)))
        modes: dict[str, Mode] = {a: self._mode(body, a, m) for a, m in body.shape.modes}
        return Kernel(name, modes, choice.tiles, in_stages(operators))

    def _mode(self, body: Body, axis: str, mode: str) -> Mode:
        """An axis that some stored value lacks is in one block: its tile is all of it."""
        stored = [t.dims for t in body.shape.traffic if t.store]
        lacking = any(axis not in {d.axis for d in dims} for dims in stored)
        return "whole" if mode == "parts" or (mode == "grid" and lacking) else cast(Mode, mode)


def _has_parts_of_tiles(shape: Shape) -> bool:
    """Whether there is one entry for each tile of the grid: an axis in parts of one turn is the same kernel."""
    tiled = {a for a, m in shape.modes if m == "grid"}
    return any(d.parts and d.axis in tiled for t in shape.traffic for d in t.dims)


def in_stages(operators: list[Operator]) -> tuple[Operator, ...]:
    """The operators before the loop, in it, and after it."""
    late: set[str] = set()
    for o in operators:
        if o.inside or any(a in late for a in o.args):
            late.add(o.out)
    before = [o for o in operators if not o.inside and o.out not in late and o.op != "store"]
    inside = [o for o in operators if o.inside]
    return (*before, *inside, *(o for o in operators if o not in before and not o.inside))


@dataclass
class Weights:
    """The cost of a step while derivations are compared: its elements over all blocks, dots and exponentials more."""

    u: Universe
    block: Block
    program: Program

    def __call__(self, s: Step) -> float:
        bits = frozenset[str]().union(*(self.u.bits[a] for a, _ in s.args))
        elements = 1.0
        for a, bs in self.u.axes.items():
            own = bits & frozenset(bs)
            elements *= self.program.sizes[a] ** (len(own) / len(bs))
        return elements * {"dot": 0.1, "exp": 8.0, "accumulate": 1.5}.get(s.kind, 1.0) + 1.0


def search(
    program: Program, limits: Limits = USUAL, hardware: Hardware = H200, seed: int = 0,
    hear: Hear = lambda reached: None,
) -> Found:  # fmt: skip
    """The best plans of a program in the model. Raises Unsupported where the program is too large."""
    start = time.perf_counter()
    found = Search(universe(program, seed), Model(program, hardware), limits, hear).run()
    found.seconds = time.perf_counter() - start
    return found


def graphs(found: Found) -> list[MuGraph]:
    """The µGraphs of the plans found, best first."""
    s = Search(found.universe, found.model)
    return [s.graph(p) for p in found.plans]
