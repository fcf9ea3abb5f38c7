"""Sizes worth trying: at the edges of blocks, where block sizes change, where the contract ends, 0 and 1.

A shape is tried before it is offered: the host function accepts it, and its programs are few enough for an interpreter.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np

from trilift.lift.capture.trace import Trace
from trilift.lift.cases.declaration import Case
from trilift.lift.errors import TriliftError, Unsupported
from trilift.lift.terms import construct as T
from trilift.lift.terms.fit import value
from trilift.lift.terms.term import Term

from ..configurations.relations import ROW, places
from ..model.verdict import Proof
from ..proof.prover import Proving
from ..runs.goals import Targets
from ..runs.trials import EDGES, LARGEST
from .edges import Edge, Group, Jump, edges, groups, jumps, unexplained
from .preconditions import SMALL, allowed, printed
from .records import Dims, Sizes

VALUES = 20  # of one dim
SHAPES = 14  # at edges and jumps that are always tried
TENSOR_ELEMENTS = 20_000  # of the largest tensor
WIDE = 80_000  # where only so many programs make two groups
WORK = 2500  # operations of all programs of one call: about a quarter of a second in an interpreter
POWERS = tuple(2**p for p in range(13))  # between which other launches are looked for
CONFIGS = 4  # autotune configurations that are looked at
CHANGES = 3  # of a jump
SAMPLED = 24  # shapes whose programs are counted
DEAR = 0.2  # of them may be too large
LEAST = 1000  # elements that are always affordable


def sizes(
    case: Case, proofs: Sequence[Proof], provings: Sequence[Proving], seed: int = 0, goal: Targets | None = None
) -> Sizes:
    """The sizes of a case. `goal`: what its outputs should be; with it, a dim at 0 at which an output has elements is
    tried too. Raises CaseError where no sizes meet the case and its contract."""
    from trilift.lift.cases.shapes import choose

    condition, told = allowed(case, proofs, provings)
    within = replace(case, where=condition)
    base, *others = choose(within, 3, seed)
    found = _Found(within, goal, base, seed)
    traces = [t for k in range(CONFIGS) if (t := found.trace(base, k)) is not None]
    found.configs = max((t.configs for t in traces), default=0)
    traces = traces[: found.configs]
    traces += [t for d in others if (t := found.trace(d)) is not None]
    around = edges(case, provings, traces), jumps(case, provings, [condition]), groups(case, provings)
    found.gather(*around, changes=unexplained(case, provings))
    values = found.values()
    return Sizes(values, found.why(), printed(told, case, values), found.first(), found.largest(values))


# ---- sizes -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Target:
    """Sizes at which something happens: a few dims are fixed, one of them is what it is about. `most`: elements of the
    largest tensor."""

    name: str
    at: int
    fixed: Mapping[str, int]
    why: str
    most: int = TENSOR_ELEMENTS


@dataclass
class _Found:
    """Targets, each with a shape that shows it."""

    case: Case
    goal: Targets | None
    base: Dims
    seed: int
    configs: int = 0
    targets: list[tuple[Target, Dims]] = field(default_factory=list)
    runs: dict[tuple[Any, ...], tuple[int, int] | None] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """Dims and integer scalars."""
        return [*self.case.names, *(n for n, s in self.case.scalars.items() if not s.is_float and s.dtype != "bool")]

    def trace(self, dims: Dims, config: int = 0) -> Trace | None:
        """The launches of the host function; None where it refuses the shape, or cannot be examined."""
        from trilift.lift.capture.run import capture

        try:
            return capture(self.case, dims, config=config, seed=self.seed) if self.accepts(dims) else None
        except TriliftError:
            return None

    def accepts(self, dims: Dims) -> bool:
        from trilift.lift.capture.run import raised

        return raised(self.case, self.case.sample(dims, np.random.default_rng(self.seed))) is None

    # ---- targets

    def gather(self, edges: Sequence[Edge], jumps: Sequence[Jump], groups: Sequence[Group], changes: bool) -> None:
        """The targets of every dim that some shape shows."""
        others = self.at_changes() if changes and self.configs == 1 else ()
        found = *self.small(), *self.at_jumps(jumps), *self.at_groups(groups), *others, *self.at_edges(edges)
        for t in (*found, *self.empty()):
            if any(t.name == o.name and t.at == o.at and t.most == o.most for o, _ in self.targets):
                continue
            if (dims := self.shown(t)) is not None:
                self.targets.append((t, dims))

    def small(self) -> Iterator[Target]:
        """1, 2, 3, the ends of what a scalar may be, and what was chosen where some of these are not allowed."""
        for n in self.names:
            own = () if self.case.holds({**self.base, n: SMALL[-1]}) else (int(self.base[n]),)
            for v in dict.fromkeys((*SMALL, *own, *self.ends(n))):
                yield Target(n, v, {n: v}, "")

    def ends(self, name: str) -> Iterator[int]:
        s = self.case.scalars.get(name)
        if s is not None and s.low is not None and (low := value(s.low, self.base)) is not None:
            yield int(low)
        if s is not None and s.high is not None and (high := value(s.high, self.base)) is not None:
            yield int(high) - 1

    def at_edges(self, edges: Sequence[Edge]) -> Iterator[Target]:
        """a * BLOCK + c of every extent, by each of the dims in it."""
        for e in edges:
            why = f"{e.name} = {e.block}" if e.name else f"blocks of {e.block}"
            inside = [n for n in self.names if any(s.op == "size" and s.attr == n for s in e.extent.walk())]
            for name in inside:
                label = why if e.extent is T.size(name) else f"{why} along {_text(e.extent)}"
                for a, c in EDGES if name == inside[-1] else EDGES[1:2]:
                    if (fixed := self.reaching(e.extent, name, a * e.block + c)) is not None:
                        yield Target(name, fixed[name], fixed, f"{label}: one less, all, one more, several blocks")

    def reaching(self, extent: Term, name: str, size: int) -> dict[str, int] | None:
        """The other dims of an extent as small as may be, and this one such that the extent is that size, or as near as
        it gets."""
        others = {str(s.attr): 1 for s in extent.walk() if s.op == "size" and s.attr != name}
        if size < 1 or size > TENSOR_ELEMENTS:
            return None
        at = lambda v: value(extent, {**self.base, **others, name: v})  # noqa: E731
        low, high = 0, size + 1
        while (at(high) or 0) < size and high < 2 * TENSOR_ELEMENTS:
            high *= 2
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if (at(middle) or 0) < size else (low, middle)
        found = [v for v in (high, low) if v > 0 and at(v) is not None]
        best = min(found, key=lambda v: abs(at(v) - size), default=None)
        return None if best is None else {**others, name: best}

    def at_jumps(self, jumps: Sequence[Jump]) -> Iterator[Target]:
        """Both sides of where a term changes."""
        for j in jumps:
            inside = {str(s.attr) for s in j.term.walk() if s.op == "size"}
            for name, like in product((n for n in self.names if n in inside), (self.ones, self.base)):
                found = places(lambda v, t=j.term, n=name, d=like: value(t, {**d, n: v}), ROW)  # type: ignore[misc]
                yield from self.beside(name, found, f"{j.text} changes")

    def at_groups(self, groups: Sequence[Group]) -> Iterator[Target]:
        """The first sizes with programs in a second group: of the smallest groups, and of larger ones."""
        for g in groups:
            inside = [n for n in self.case.names if any(s.attr == n for t in (g.programs, g.size) for s in t.walk())]
            second = T.make("floordiv", T.sub(g.programs, 1), g.size)
            wider = [{**self.ones, n: v} for n in inside for v in self.change(g.size, n, self.ones)]
            for like, name in product((*wider, self.ones), inside):
                for v in self.change(second, name, like):
                    fixed = {n: int(like[n]) for n in inside} | {name: v}
                    yield Target(name, v, fixed, f"more than one group of {_text(g.size)} programs", WIDE)

    def change(self, term: Term, name: str, like: Dims) -> list[int]:
        """The first size at which a term has another value than before."""
        return [b for _, b in places(lambda v: value(term, {**like, name: v}), ROW)[:1]]

    def at_changes(self) -> Iterator[Target]:
        """Both sides of where the host function launches otherwise."""
        for name in self.case.names:
            allowed = [v for v in POWERS if self.case.holds({**self.base, name: v})]
            row = [v for v in allowed if self.largest_of({**self.base, name: v}) <= TENSOR_ELEMENTS]
            found = places(lambda v, n=name: self.launches({**self.base, n: v}), row)  # type: ignore[misc]
            yield from self.beside(name, found, "other launches")

    def beside(self, name: str, found: Sequence[tuple[int, int]], why: str) -> Iterator[Target]:
        """The first of the places, and the last of modest size."""
        beyond = [p for p in found if p[1] > SMALL[-1]]
        modest = [p for p in beyond if p[1] <= LARGEST] or beyond
        for pair in dict.fromkeys((*beyond[:CHANGES], *modest[-1:])):
            yield from (Target(name, v, {name: v}, why) for v in pair)

    def launches(self, dims: Dims) -> Any:
        """Kernels and compile-time numbers of a run."""
        t = self.trace(dims)
        return t and [(e.kernel, [v for n, v in e.args.items() if n in e.constexprs]) for e in t.launches]

    @property
    def ones(self) -> Dims:
        return {**self.base, **dict.fromkeys(self.case.names, 1)}

    @property
    def twos(self) -> Dims:
        return {**self.base, **dict.fromkeys(self.case.names, 2)}

    def empty(self) -> Iterator[Target]:
        for n in self.case.names:
            yield Target(n, 0, {n: 0}, "")

    # ---- shapes

    def shown(self, t: Target) -> Dims | None:
        """A shape that shows a target: allowed, accepted, affordable. Where the size itself is not allowed, the next
        one that is."""
        if t.at == 0:
            return self.without(t.name)
        for d in self.shapes(t):
            if self.affordable(d, t.most):
                return d
        return None

    def shapes(self, t: Target) -> Iterator[Dims]:
        from trilift.lift.cases.shapes import around

        found = [d for like in (self.base, self.ones) if self.case.holds(d := {**like, **t.fixed})]
        if not found and (near := around(self.case, t.fixed, self.base)) is not None:
            found = [near]
        yield from found

    def without(self, name: str) -> Dims | None:
        """The shape with a dim at 0, where the kernel still does what it should."""
        from trilift.lift.replay.check import arguments, arrays

        from ..refutation.search import executed

        d = {**self.base, name: 0}
        if not self.case.holds(d) or (t := self.trace(d)) is None:
            return None
        try:
            for e in t.launches:
                e.module()
        except TriliftError:
            return None
        if all(math.prod(r.shape) == 0 for r in t.outputs.values()):
            written = executed(t, arrays(self.case, arguments(self.case, d, self.seed)))
            return d if isinstance(written, Mapping) and not any(x.size for x in written.values()) else None
        return d if self.equals(d) else None

    def equals(self, dims: Dims) -> bool:
        from ..refutation.search import Passed, Question, attempt

        return self.goal is not None and isinstance(attempt(Question(self.case, self.goal), dims, self.seed, 0), Passed)

    def largest_of(self, dims: Dims) -> int:
        from trilift.lift.cases.shapes import elements

        return elements(self.case, dims)

    def affordable(self, dims: Dims, most: int = TENSOR_ELEMENTS) -> bool:
        """Whether it is, and the host function accepts it."""
        return self.largest_of(dims) <= most and (found := self.run(dims)) is not None and found[0] < WORK

    def run(self, dims: Dims) -> tuple[int, int] | None:
        """How many operations and programs one call executes, none where that cannot be seen; None where the host
        function refuses the shape."""
        key = tuple(sorted(dims.items()))
        if key not in self.runs:
            if (t := self.trace(dims)) is not None:
                self.runs[key] = operations(self.case, t, dims, self.seed), t.programs
            else:
                self.runs[key] = (0, 0) if self.accepts(dims) else None
        return self.runs[key]

    # ---- what is offered

    def values(self) -> dict[str, tuple[int, ...]]:
        out: dict[str, list[int]] = {n: [] for n in self.names}
        for t, _ in self.targets:
            if t.at not in out[t.name] and (t.at == 0 or len(out[t.name]) < VALUES):
                out[t.name].append(t.at)
        return {n: tuple(sorted(v)) for n, v in out.items()}

    def why(self) -> dict[str, str]:
        """The events at the sizes of each dim, each once."""
        offered = self.values()
        said: dict[str, dict[str, None]] = {n: {} for n in self.names}
        for t, _ in self.targets:
            if t.why and t.at in offered[t.name]:
                said[t.name][t.why] = None
        return {n: "; ".join(v) for n, v in said.items()}

    def first(self) -> tuple[Dims, ...]:
        """Shapes that show every target, as many as may be at once; one with a dim at 0 shows nothing else."""
        offered = self.values()
        shown = [(t, d) for t, d in self.targets if t.at in offered[t.name] and (t.at < 2 or t.why)]
        out = [d for t, d in shown if t.at == 0]
        whole = [d for d in (self.base, self.twos, self.ones) if self.case.holds(d) and self.affordable(d)]
        out += [d for d in whole if d in (self.ones, whole[0])]
        left = [(t, d) for t, d in shown if not any(_meets(t, o) for o in out)]
        left.sort(key=lambda e: -self.largest_of(e[1]))
        for _ in range(SHAPES):
            if left:
                (t, d), *left = left
                out.append(self.together(t, d, [o for o, _ in reversed(left)]))
                left = [(o, e) for o, e in left if not _meets(o, out[-1])]
        return tuple(sorted(out, key=lambda d: (self.largest_of(d), sorted(d.items()))))

    def together(self, first: Target, shape: Dims, others: Sequence[Target]) -> Dims:
        """A shape that shows more targets than its own."""
        shapes, fixed = [dict(shape)], dict(first.fixed)
        for o in others:
            more = {**shapes[-1], **o.fixed}
            compatible = all(fixed.get(n, v) == v for n, v in o.fixed.items()) and self.case.holds(more)
            if compatible and self.largest_of(more) <= first.most:
                shapes.append(more)
                fixed |= o.fixed
        return next(d for d in (*reversed(shapes[1:]), shape) if d == shape or self.affordable(d, first.most))

    def largest(self, values: Mapping[str, Sequence[int]]) -> int:
        """Elements up to which most shapes are affordable, by their programs."""
        rng = np.random.default_rng(self.seed)
        each = [found[0] / found[1] for _, d in self.targets if (found := self.run(d)) is not None and found[1]]
        programs = 2 * WORK / max(float(np.median(each)) if each else 1.0, 1.0)
        tried = []
        for _ in range(SAMPLED):
            d = {**self.base, **{n: int(rng.choice(v)) for n, v in values.items() if v}}
            if (
                self.case.holds(d)
                and (size := self.largest_of(d)) <= TENSOR_ELEMENTS
                and (t := self.trace(d)) is not None
            ):
                tried.append((size, t.programs > programs))
        limit = TENSOR_ELEMENTS
        for size, _ in sorted(tried, reverse=True):
            below = [many for n, many in tried if n <= size]
            if np.mean(below) <= DEAR or size <= LEAST:
                break
            limit = size - 1
        return limit


def _meets(t: Target, dims: Dims) -> bool:
    return all(dims[n] == v for n, v in t.fixed.items())


def operations(case: Case, trace: Trace, dims: Dims, seed: int) -> int:
    """How many operations the programs of a run execute; WORK if there are more, or where they cannot be executed."""
    from trilift.lift.interpreter.interpret import Run
    from trilift.lift.replay.check import arguments, arrays
    from trilift.lift.replay.execute import replay
    from trilift.lift.ttir.ir import Op

    from ..runs.isolated_buffers import apart

    count = 0

    class Counting(Run):
        def result(self, op: Op) -> Any:
            nonlocal count
            count += 1
            if count >= WORK:
                raise Unsupported("a run of so many operations")
            return super().result(op)

    try:
        replay(apart(trace), arrays(case, arguments(case, dims, seed)), kind=Counting)
    except (TriliftError, ArithmeticError, ValueError, IndexError, TypeError, MemoryError):
        return min(WORK, max(count, trace.programs))
    return count


def _text(t: Term) -> str:
    from ..wording.user_terms import words

    return words(t)
