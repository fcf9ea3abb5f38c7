"""exp(S) as exp(S - m) with a running maximum m, where the outputs do not change by it.

The exponentials of a group may be multiplied by one factor t (`superopt.mugraph.degrees`), here exp(-m). Each has a
maximum of its own, over the axes that its kernel sums: of a tile, of the tiles so far in a loop (sums so far are
multiplied by exp(m before - m)). A value made of it is *relative* to that maximum: it is V exp(-m) to its degree.
Where values that are relative to different maxima meet, and where values are summed that have a maximum each, as the
parts of a split, they are made relative to one: times exp(m - the larger). A tensor between kernels has its maxima
as one more tensor.

A maximum over nothing is -inf, of a part without elements or a masked tile: values relative to it are 0, whatever they
are relative to, and -inf - -inf is not taken."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from ..mugraph.degrees import Degree, Degrees, Exp, plain
from ..mugraph.graph import RUNNING, Dim, Kernel, MuGraph, Operator, Tensor, loops
from ..program.abstract import templates
from ..program.positions import unbounded

SUMS = ("sum", "dot")  # over the tile


class Unstable(Exception):
    """Why the exponentials of some groups cannot be stabilised."""

    def __init__(self, groups: Iterable[Exp], why: str) -> None:
        super().__init__(why)
        self.groups = tuple(groups)


def stabilised(g: MuGraph) -> MuGraph:
    """The graph with maxima subtracted, but from exponentials of which `unstable` says why not; the graph itself where
    that is all of them, or there are none."""
    return _stabilised(g)[0]


def unstable(g: MuGraph) -> str:
    """Why exponentials of this graph are not stabilised; "" where all are, or there are none."""
    exps = {(k.name, o.out) for k in g.kernels for o in plain(k)}
    if not exps:
        return ""
    fixed = _stabilised(g)[1]
    return "; ".join(dict.fromkeys(fixed.values())) if exps <= {*fixed} else "no maximum is subtracted"


def _stabilised(g: MuGraph) -> tuple[MuGraph, dict[Exp, str]]:
    """The graph, and why exponentials are as they were."""
    fixed: dict[Exp, str] = {}
    while True:
        degrees = Degrees(g, fixed)
        if not degrees.free:
            return g, degrees.fixed
        try:
            return _Writer(g, degrees).graph(), degrees.fixed
        except Unstable as why:
            degrees.fix(why.groups, str(why))
            fixed = degrees.fixed


@dataclass
class _Writer:
    """`relative`: the tensor of maxima that a tensor between kernels is relative to, in each group; `below`: tensors of
    maxima that one is no less than; `empty`: those that may be -inf."""

    g: MuGraph
    degrees: Degrees
    tensors: dict[str, Tensor] = field(default_factory=dict)
    relative: dict[str, dict[Exp, str]] = field(default_factory=dict)
    below: dict[str, set[str]] = field(default_factory=dict)
    empty: set[str] = field(default_factory=set)

    def graph(self) -> MuGraph:
        self.tensors |= self.g.tensors
        kernels = tuple(replace(k, operators=_Kernel(self, k).operators()) for k in self.g.kernels)
        return replace(self.g, kernels=kernels, tensors=self.tensors)

    @cached_property
    def masked(self) -> bool:
        """Whether a score may be minus infinity."""
        elements = [x.element for x in self.g.program.inputs if x.element is not None]
        return any(map(unbounded, [*elements, *templates(self.g.program).values()]))

    def tensor(self, dims: tuple[Dim, ...]) -> str:
        """One more tensor of maxima."""
        taken = {*self.g.memory, *self.tensors, *(o.out for k in self.g.kernels for o in k.operators)}
        name = next(n for n in ("top", *(f"top{k}" for k in range(len(taken) + 1))) if n not in taken)
        self.tensors[name] = Tensor(name, dims, "f32")
        return name


class _Kernel:
    """The operators of a kernel as they become. `base`: the maximum that a value is relative to, in each group; `made`:
    what is new; `below`: maxima that one is no less than; `empty`: those that may be -inf; `tensor`: of maxima that are
    in memory; `loop`: the axis of the loop that a value is made in."""

    def __init__(self, writer: _Writer, k: Kernel) -> None:
        self.writer, self.k = writer, k
        self.out: dict[str, Operator] = {}
        self.stores: list[Operator] = []
        self.tops: list[Operator] = []
        self.base: dict[str, dict[Exp, str]] = {}
        self.made: dict[tuple[object, ...], str] = {}
        self.below: dict[str, set[str]] = {}
        self.empty: set[str] = set()
        self.tensor: dict[str, str] = {}
        self.at = loops(k)
        self.loop = {o.out: a for o, a in self.at.items() if o.op != "store"}
        of = writer.degrees.of
        self.degree: dict[str, Degree] = {o.out: of[k.name, o.out] for o in k.operators if o.op != "store"}

    def operators(self) -> tuple[Operator, ...]:
        for o in self.ordered():
            if o.op == "load":
                self.load(o)
            elif o.op == "store":
                self.store(o)
            elif o.op == "exp" and (self.k.name, o.out) in self.writer.degrees.free:
                self.shift(o)
            elif o.op == "accumulate":
                self.accumulate(o)
            else:
                self.operator(o)
        self.lowered()
        return (*self.used(), *self.stores, *self.tops)

    # ---- the order

    def followers(self, exp: Operator) -> list[Operator]:
        """The exponential, and what grows with it."""
        (group,) = self.degree[exp.out]
        reached = {exp.out: exp}
        for o in self.k.operators:
            if o.op not in ("load", "store") and {*o.args} & {*reached} and group in self.degree[o.out]:
                reached[o.out] = o
        return [*reached.values()]

    def summed(self, exp: Operator) -> set[str]:
        """The axes over which the kernel sums what grows with an exponential."""
        return {a for o in self.followers(exp) for a in o.over}

    def ordered(self) -> list[Operator]:
        """Exponentials that the kernel does not sum, and what is made of them, come late: they may be relative to a
        maximum that is there."""
        free = [o for o in plain(self.k) if (self.k.name, o.out) in self.writer.degrees.free]
        late = {o.out for o in free if not self.summed(o)}
        for o in self.k.operators:
            if o.op not in ("load", "store") and late & {*o.args}:
                late.add(o.out)
        return sorted(self.k.operators, key=lambda o: 2 if o.op == "store" else int(o.out in late))

    # ---- operators

    def load(self, o: Operator) -> None:
        self.add(o)
        loop = self.at.get(o)
        for group, tensor in self.writer.relative.get(o.args[0], {}).items():
            dims = frozenset(self.writer.tensors[tensor].dims)
            looped = any(d.axis == loop and self.k.turns(d) for d in dims)
            m = self.new(tensor, "load", (tensor,), dims, loop=loop if looped else None)
            self.base.setdefault(o.out, {})[group] = m
            self.tensor[m] = tensor
            if tensor in self.writer.empty:
                self.empty.add(m)
            for other in self.tensor:
                for a, b in ((m, other), (other, m)):
                    if self.tensor[a] in self.writer.below.get(self.tensor[b], ()):
                        self.below.setdefault(b, set()).add(a)

    def shift(self, o: Operator) -> None:
        """exp(S) -> exp(S - m), exp(S - m - m) for the second power."""
        ((group, power),), (s,), loop = self.degree[o.out].items(), o.args, self.at.get(o)
        m = self.adopted(o, group)
        if m is None and power > 1:
            raise Unstable([group], f"{o.out} is a power of other exponentials and is not divided by one")
        if m is None:
            axes = self.summed(o) or {d.axis for d in o.dims if self.k.modes[d.axis] == "whole"} & self.reduced(group)
            m = self.highest(s, axes, loop)
        less = s
        for _ in range(power):
            less = self.new(f"{s}_less", "sub", (less, self.finite(m, loop)), o.dims, loop=loop)
        self.add(replace(o, args=(less,)))
        self.base[o.out] = {group: m}

    def reduced(self, group: Exp) -> set[str]:
        """The axes over which some kernel sums what grows with the group."""
        of = self.writer.degrees.of
        every = [(k, o) for k in self.writer.g.kernels for o in k.operators if o.op != "store"]
        return {a for k, o in every if group in of[k.name, o.out] for a in o.over}

    def adopted(self, exp: Operator, group: Exp) -> str | None:
        """The maximum of what an exponential is divided by, where it is neither summed nor added to others before."""
        own = {o.out: o for o in self.followers(exp)}
        if self.summed(exp) or any(o.op == "add" and not {*o.args} <= {*own} for o in own.values()):
            return None
        met = [a for o in self.k.operators if {*own} & {*o.args} and o.op != "store" for a in o.args if a not in own]
        tops = [self.base[a][group] for a in met if group in self.base.get(a, {})]
        there = (m for m in tops if self.out[m].dims <= exp.dims)
        return next((m for m in there if not self.out[m].inside or self.loop[m] == self.at.get(exp)), None)

    def operator(self, o: Operator) -> None:
        """Arguments are made relative to one maximum, sums to one for all terms."""
        args = list(o.args)
        for group in dict.fromkeys(g for a in args for g in self.base.get(a, ())):
            args = self.met(o, args, group)
        self.add(replace(o, args=tuple(args)))
        for a in args:
            for group, m in self.base.get(a, {}).items():
                if group in self.degree[o.out]:
                    self.base.setdefault(o.out, {})[group] = m

    def met(self, o: Operator, args: list[str], group: Exp) -> list[str]:
        loop = self.at.get(o)
        have = [a for a in args if group in self.base.get(a, {})]
        tops = dict.fromkeys(self.base[a][group] for a in have)
        inverse = dict.fromkeys(self.base[a][group] for a in have if self.degree[a][group] < 0)
        m = self.joined([*inverse] if inverse else [*tops], group, loop)
        if group in self.degree[o.out] and o.op in SUMS and (over := {d.axis for d in self.tile(m)} & {*o.over}):
            m = self.highest(m, over, loop)
        spread = frozenset[Dim]() if o.op in SUMS else o.dims
        return [self.rebased(a, group, m, loop, spread) if a in have else a for a in args]

    def accumulate(self, o: Operator) -> None:
        """Sums over the loop of values of degree 1 are relative to the maximum so far."""
        (v, *others), loop = o.args, self.at[o]
        tops: dict[str, Exp] = {}
        if others:  # of exponentials that were stabilised before
            if v in self.base:
                raise Unstable(self.base[v], f"{o.out} is relative to the maximum of other exponentials")
            self.add(o)
            return
        for group, m in self.base.get(v, {}).items():
            if self.varies(m, loop):
                if self.out[m].op != "accumulate_max":
                    m = self.highest(m, {*o.over}, loop)
                v = self.rebased(v, group, m, loop)
                tops[m] = group
        for group in tops.values():
            if self.degree[v][group] != 1 or len(tops) > 1:
                raise Unstable(tops.values(), f"{o.out} has the degree {sum(self.degree[v].values())} in exp(S)")
        self.add(replace(o, args=(v, *tops)))
        if v in self.base:
            self.base[o.out] = self.base[v]

    def store(self, o: Operator) -> None:
        self.stores.append(o)
        loop = self.at.get(o)
        for group, m in self.base.get(o.args[0], {}).items():
            if loop is not None and self.varies(m, loop) and Dim(loop) not in self.out[m].dims:
                raise Unstable([group], f"{o.out} is stored in the loop that finds the maximum")
            self.writer.relative.setdefault(o.out, {})[group] = self.carried(m, o, group)

    def carried(self, m: str, by: Operator, group: Exp) -> str:
        """The maximum as a tensor, which every block stores to its own elements of."""
        memory = self.writer.g.memory
        if m not in self.tensor:
            dims = self.out[m].dims.union(d for d in memory[by.out].dims if d.axis in self.k.grid)
            order = tuple(dict.fromkeys(d for o in self.k.stores for d in memory[o.out].dims if d in dims))
            if {*order} != dims:
                raise Unstable([group], "the maximum has an axis that no stored value has")
            self.tensor[m] = self.writer.tensor(order)
            inside = self.varies(m, self.at.get(by))
            self.tops.append(Operator(self.tensor[m], "store", (m,), dims, inside=inside))
            if m in self.empty:
                self.writer.empty.add(self.tensor[m])
        return self.tensor[m]

    # ---- maxima

    def highest(self, s: str, axes: Iterable[str], loop: str | None) -> str:
        """The maximum of a value over axes, in a loop over one of them that of the turns so far."""
        dims = self.out[s].dims
        over = frozenset(d for d in dims if d.axis in axes)
        left = dims - over
        summed = tuple(sorted({d.axis for d in over}))
        m = self.new("highest", "max", (self.known(s, loop),), left, summed, loop) if over else s
        if loop is not None and loop in axes:
            split = self.k.modes[loop] == "split"
            parts = frozenset({Dim(loop, True)} if split else ())
            tile, m = m, self.new("m_top", "accumulate_max", (m,), left | parts, (loop,), loop)
            empty = self.writer.masked or split
        else:
            tile, empty = m, self.writer.masked or (s in self.empty and not any(d.parts for d in over))
        self.below.setdefault(m, set()).update({s, tile} - {m})
        if empty:
            self.empty.add(m)
        return m

    def joined(self, tops: Sequence[str], group: Exp, loop: str | None) -> str:
        """A maximum that is no less than any of these."""
        m, *rest = tops
        for other in rest:
            if other in self.under(m):
                continue
            if m in self.under(other):
                m = other
                continue
            first, second = sorted((m, other), key=[*self.out].index)
            both = self.known(first, loop, group), self.known(second, loop, group)
            empty = {*both} <= self.empty
            m = self.new("m_joined", "maximum", both, self.out[m].dims | self.out[other].dims, loop=loop)
            self.below[m] = {*both}
            if empty:
                self.empty.add(m)
        return m

    def under(self, m: str) -> set[str]:
        """The maxima that are no more than this one."""
        out, todo = set[str](), [m]
        while todo:
            n = todo.pop()
            if n not in out:
                out.add(n)
                todo += self.below.get(n, ())
        return out

    def rebased(
        self, v: str, group: Exp, m: str, loop: str | None, spread: frozenset[Dim] = frozenset()
    ) -> str:  # fmt: skip
        """The value times exp(the maximum that it is relative to - m), to its degree. It may be spread over axes."""
        own, degree = self.base[v][group], self.degree[v][group]
        if own == m:
            return v
        if degree < 0 or own not in self.under(m):
            raise Unstable([group], f"{v} is relative to a maximum that may be less than that of what it meets")
        dims, its = self.out[v].dims, self.tile(own) | self.tile(m)
        if not its <= dims | spread:
            raise Unstable([group], f"{v} does not have the axes of the maximum that it meets")
        both = self.known(own, loop, group), self.finite(m, loop)
        less = self.new(f"{own}_less", "sub", both, its, loop=loop)
        weight = self.new("weight", "exp", (less,), its, loop=loop)
        for _ in range(degree):
            new = self.new(f"{v}_weighed", "mul", (v, weight), dims | its, loop=loop)
            self.degree[new], self.base[new] = self.degree[v], {**self.base[v], group: m}
            v = new
        return v

    def finite(self, m: str, loop: str | None) -> str:
        """The maximum, 0 for -inf. In its loop the running one is such."""
        if m not in self.empty or (self.out[m].op == "accumulate_max" and self.varies(m, loop)):
            return m
        return self.new("shift", "or_zero", (m,), self.out[m].dims, loop=loop)

    def known(self, m: str, loop: str | None, group: Exp | None = None) -> str:
        """The maximum with its -inf."""
        if self.out[m].op == "accumulate_max" and m in self.empty and self.varies(m, loop):
            groups = self.writer.degrees.free if group is None else [group]
            raise Unstable(groups, "maxima of a loop that may have no elements meet in it")
        return m

    def lowered(self) -> None:
        """Which of the maxima in memory are no more than others, for the kernels that read them."""
        for m, tensor in self.tensor.items():
            below = {self.tensor[n] for n in self.under(m) if n in self.tensor} - {tensor}
            self.writer.below.setdefault(tensor, set()).update(below)

    # ---- writing

    def tile(self, v: str) -> frozenset[Dim]:
        """The dimensions of a value, but the part that the block is."""
        return frozenset(d for d in self.out[v].dims if not d.parts or self.k.modes[d.axis] != "split")

    def varies(self, v: str, loop: str | None) -> bool:
        """Whether a value, in the loop, is another one in every turn."""
        return loop is not None and self.loop.get(v) == loop

    def add(self, o: Operator, loop: str | None = None) -> None:
        self.out[o.out] = o
        if loop is not None:
            self.loop[o.out] = loop

    def new(
        self, wish: str, op: str, args: tuple[str, ...], dims: frozenset[Dim], over: tuple[str, ...] = (),
        loop: str | None = None,
    ) -> str:  # fmt: skip
        """A value that is made once; in the loop where it is another one in every turn."""
        loop = loop if op == "load" or any(self.varies(a, loop) for a in args) else None
        key = op, args, over, loop
        if key not in self.made:
            taken = {o.out for o in self.k.operators} | {*self.out} | {*self.writer.g.memory}
            self.made[key] = next(n for n in (wish, *(f"{wish}{k}" for k in range(len(taken) + 1))) if n not in taken)
            inside = loop is not None and op not in RUNNING
            self.add(Operator(self.made[key], op, args, dims, over, inside), loop)
        return self.made[key]

    def used(self) -> list[Operator]:
        """The operators but new ones that nobody reads."""
        new, read, out = {*self.made.values()}, {o.args[0] for o in (*self.stores, *self.tops)}, list[Operator]()
        for o in reversed(self.out.values()):
            if o.out not in new or o.out in read:
                out.append(o)
                read |= {*o.args} if o.op != "load" else set()
        return out[::-1]
