"""The host function read: every path that its tests on sizes and scalars open, as far as the case allows them.

run at some dims -> decisions c1, c2, ... -> for each k: dims that meet c1 .. c(k-1) and not ck -> run there -> ...

The contract excludes a side that no run reaches. Concolic execution: Godefroid, Klarlund, Sen, "DART", 2005.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, combinations_with_replacement, islice, product

import numpy as np

from trilift.lift.capture.trace import Trace
from trilift.lift.cases.declaration import Case, input_of_stride, torch_dtype
from trilift.lift.cases.shapes import elements
from trilift.lift.errors import Place
from trilift.lift.pytorch.host import Decision, HostRun, Note, read_host
from trilift.lift.runtime.budget import BUDGETS, UNLIMITED, Meter, count
from trilift.lift.terms import construct as T
from trilift.lift.terms import index as I
from trilift.lift.terms.fit import Number, value
from trilift.lift.terms.ranges import Ranges
from trilift.lift.terms.term import Term

from ..integers.solver import Solver

Dims = Mapping[str, Number]
CANDIDATES = 4000  # assignments that are tried for one side of a test
MULTIPLIED = 24  # constants, the smallest ones, whose products are tried
POWERS = tuple(sorted({2**p + d for p in range(33) for d in (-1, 0, 1) if 2**p + d > 0}))
SCALARS = (0.0, 1.0, -1.0, 2.0, 0.5, -0.5, 3.7, -1e4, 1e4, 1e-7, 0.123456789)
OUT_OF_STEPS = f"out of steps: the reading of a host function may take {BUDGETS.host.steps:,}"
POWER = "2^"  # a name that no size has
FAR = (4194241, 16777217, 99999999, 1 << 31, (1 << 31) + 1, 1 << 33)
RELATIVE_ERROR = 2e-7


@dataclass(frozen=True, eq=False)
class Path:
    """One way through the host function: what holds on it, and the run that took it."""

    run: HostRun

    @cached_property
    def conditions(self) -> tuple[Term, ...]:
        """The tests of the host function, and of PyTorch within it. The tests by which PyTorch lays out memory, or
        asks whether a size is 0 or 1, are left out: they change no element."""
        return tuple(d.condition for d in self.decisions)

    @cached_property
    def decisions(self) -> tuple[Decision, ...]:
        known = (d for d in self.run.decisions if d.by != "text")
        return tuple(d for d in known if d.by in ("host", "value") or not _degenerate(d, self.sizes))

    @cached_property
    def ordered(self) -> tuple[str, ...]:
        """The inputs of whose strides PyTorch asked which is the smaller, to lay out a new tensor, where the answer for
        equal ones is left out: only in an input that overlaps itself are strides equal where sizes are not 1."""
        left_out = (d.condition for d in self.run.decisions if d.by == "torch" and d not in self.decisions)
        return tuple(dict.fromkeys(x for t in left_out for n in names(t) if (x := input_of_stride(n))))

    @cached_property
    def sizes(self) -> frozenset[Term]:
        """The sizes of tensors, and the products of two."""
        pairs = combinations_with_replacement(self.run.sizes, 2)
        return self.run.sizes.union(I.normal(T.mul(a, b)) for a, b in pairs)

    @cached_property
    def lost(self) -> tuple[Note, ...]:
        """Numbers that were taken out on the way to a result. Those in the text of an error lead to none."""
        return self.run.lost if self.run.raises else (*self.run.lost, *self.run.texts)

    @property
    def trace(self) -> Trace | None:
        return self.run.trace

    def holds(self, dims: Dims) -> bool:
        """Whether these dims take this path."""
        key = tuple(dims.items())
        if key not in self.asked:
            self.asked[key] = all(value(c, dims) is True for c in self.conditions)
        return self.asked[key]

    @cached_property
    def asked(self) -> dict[tuple[tuple[str, Number], ...], bool]:
        """The dims of which this is known."""
        return {}


def _degenerate(d: Decision, sizes: Set[Term]) -> bool:
    """Whether PyTorch asked of a size whether it is 0 or 1, or how a tensor lies in memory, and it is as for large
    sizes."""
    large = {n: 1_000_003 + 1000 * k for k, n in enumerate(names(d.condition))}
    return (d.by == "layout" or _of_one(d.condition, sizes)) and value(d.condition, large) is True


def _of_one(t: Term, sizes: Set[Term]) -> bool:
    """Whether a size of a tensor, or a product of some, is 0 or 1, or not."""
    t = t.args[0] if t.op == "not" else t
    small = [a for a in t.args if a.is_const and a.attr in (0, 1, 2)]
    return t.op in ("eq", "ne", "lt", "le") and bool(small) and all(a.is_const or _is_size(a, sizes) for a in t.args)


def _is_size(t: Term, sizes: Set[Term]) -> bool:
    """Whether it is the size of a tensor or a product of two, or the number beside one: 1 < n and 2 < n + 1 are
    alike."""
    return any(x.op == "size" or x in sizes or _is_product(x) for x in (t, *(I.normal(T.add(t, d)) for d in (1, -1))))


def _is_product(t: Term) -> bool:
    return t.op == "mul" and all(a.is_const or a.op == "size" for a in t.args)


@dataclass(frozen=True, slots=True)
class Open:
    """A side of a test that was not explored: `condition` holds on the side that was."""

    condition: Term
    place: Place | None
    why: str


@dataclass(frozen=True)
class Paths:
    """All that was found. `refused`: what could not be followed. Where nothing is open and nothing refused, the paths
    are all there are."""

    case: Case
    every: tuple[Path, ...] = ()
    open: tuple[Open, ...] = ()
    refused: tuple[Note, ...] = ()
    lost: tuple[Note, ...] = ()  # numbers that the host function took out

    @property
    def read(self) -> tuple[Path, ...]:
        """Those that return."""
        return tuple(p for p in self.every if p.trace is not None)

    @property
    def asked(self) -> tuple[Note, ...]:
        return tuple(dict.fromkeys(n for p in self.every for n in p.run.asked))

    def of(self, dims: Dims) -> Path | None:
        """The path that these dims take."""
        return next((p for p in self.every if p.holds(dims)), None)


def explore(
    case: Case, starts: Sequence[Dims], facts: Iterable[Term], configs: Sequence[int] = (0,), meter: Meter = UNLIMITED
) -> Paths:
    """The paths of the host function from these dims on, in each configuration, and what is open. Once the steps of the
    meter are spent, no more paths are read: what they would be is open."""
    if not hasattr(case.fn, "__code__"):  # no host function: a launch of Triton IR
        return Paths(case)
    given = frozenset((*facts, *_aligned(case)))
    found = [_Exploration(case, given, k, meter).run(starts) for k in configs]
    every = tuple(p for f in found for p in f.every)
    left = {o.condition: o for f in found for o in f.open}
    refused = dict.fromkeys(n for f in found for n in f.refused)
    lost = dict.fromkeys(n for f in found for n in f.lost)
    return Paths(case, every, tuple(left.values()), tuple(refused), tuple(lost))


def _aligned(case: Case) -> Iterator[Term]:
    """Tensors start at a multiple of the size of their elements."""
    for n, s in case.tensors.items():
        if (size := torch_dtype(s.dtype).itemsize) > 1:
            yield T.make("eq", T.make("mod", T.size(f"address({n})"), size), 0)


class _Exploration:
    def __init__(self, case: Case, facts: frozenset[Term], config: int, meter: Meter) -> None:
        self.case, self.facts, self.config, self.meter = case, facts, config, meter
        self.solver = Solver()
        self.paths: list[Path] = []
        self.open: dict[Term, Open] = {}
        self.refused: dict[Note, None] = {}
        self.lost: dict[Note, None] = {}
        self.tried: set[frozenset[Term]] = set()

    def run(self, starts: Sequence[Dims]) -> Paths:
        queue: list[tuple[dict[str, Number], Decision | None]] = [(dict(d), None) for d in starts]
        while queue:
            dims, side_of = queue.pop(0)
            if any(p.holds({**p.run.dims, **dims}) for p in self.paths):
                continue
            if side_of is not None and self.meter.exhausted:
                self.leave(side_of, OUT_OF_STEPS)
                continue
            path = Path(read_host(self.case, dims, self.config))
            if side_of is not None and self.repeats(path):
                self.leave(side_of, "the host function launches more kernels there")
                continue
            if path.run.refused is not None:
                self.refused[path.run.refused] = None
            if path.run.raised is not None and not self.paths:  # where a trace did not
                self.refused[Note(f"{type(path.run.raised).__name__}: {path.run.raised}", None)] = None
            self.lost.update(dict.fromkeys(path.lost))
            self.paths.append(path)
            queue += self.others(path)
        return Paths(self.case, tuple(self.paths), tuple(self.open.values()), tuple(self.refused), tuple(self.lost))

    def repeats(self, path: Path) -> bool:
        """Whether a path makes many more launches than the first one did."""
        first = next((p.trace for p in self.paths if p.trace is not None), None)
        if first is None or path.trace is None:
            return path.run.endless
        return len(path.trace.launches) > len(first.launches) + BUDGETS.host.more_launches

    def others(self, path: Path) -> Iterator[tuple[dict[str, Number], Decision]]:
        """Dims on the other side of each decision: where there are some, with the same answers to what the path leaves
        out. Those at which a size is 1 take a path of their own, which does not cover others."""
        before: list[Term] = []
        left_out: list[Term] = []
        for d in path.run.decisions:
            if d not in path.decisions:
                left_out += [d.condition] if d.by != "text" else []
                continue
            wanted = (*before, T.make("not", d.condition))
            before.append(d.condition)
            if d.by == "value":
                continue
            key = frozenset(wanted)
            if key in self.tried:
                continue
            self.tried.add(key)
            if len(self.tried) > BUDGETS.host.sides or len(self.paths) > BUDGETS.host.paths:
                self.leave(d, "the host function, which has too many paths to read them all,")
                continue
            if self.meter.exhausted:
                self.leave(d, OUT_OF_STEPS)
                continue
            yield from ((dims, d) for dims in self.side(d, wanted, left_out, path.run.dims))

    def side(
        self, d: Decision, wanted: Sequence[Term], left_out: Sequence[Term], base: Dims
    ) -> list[dict[str, Number]]:
        """Dims that meet the conditions; none where a path has some already, or where there can be none."""
        for conditions in ((*left_out, *wanted), wanted) if left_out else (wanted,):
            if any(_meets(conditions, p.run.dims) for p in self.paths):
                return []
            if not self.near(conditions, base) and self.impossible(conditions):
                continue
            found = self.dims(conditions, base) or self.model(conditions, base)
            if found is None:
                self.leave(d, "the host function, which was read at no sizes where this is false,")
                return []
            return [found]
        return []

    def leave(self, d: Decision, why: str) -> None:
        self.open.setdefault(d.condition, Open(d.condition, d.place, why))

    def impossible(self, wanted: Sequence[Term]) -> bool:
        return _never(wanted[-1]) or self.solver.contradictory(self.facts.union(wanted))

    def model(self, wanted: Sequence[Term], base: Dims) -> dict[str, Number] | None:
        found = self.solver.model(self.facts.union(wanted))
        if found is None:
            return None
        dims = {**base, **{n: v for n, v in found.items() if n in base and not isinstance(base[n], float)}}
        return dims if _meets(wanted, dims) and self.allows(dims) else None

    def allows(self, dims: Dims) -> bool:
        return self.case.holds(dims) and all(value(f, dims) is not False for f in self.facts)

    def near(self, wanted: Sequence[Term], base: Dims) -> bool:
        """Whether some dims that differ from the base in one number meet the conditions: asked first, as nothing that
        can be met is impossible, and all pairs of numbers are many."""
        return any(_meets(wanted, d) and self.allows(d) for d in _moved(wanted, base, pairs=False))

    def dims(self, wanted: Sequence[Term], base: Dims) -> dict[str, Number] | None:
        """Dims that meet the conditions, small ones first: the names of the last one moved, one or two at a time."""
        meets = (d for d in _counted(_moved(wanted, base)) if _meets(wanted, d) and self.allows(d))
        few = lambda d: sum(d[n] < 2 for n in self.case.names)  # noqa: E731
        return min(islice(meets, 12), key=lambda d: (few(d), elements(self.case, d)), default=None)


def _counted(tried: Iterable[Dims]) -> Iterator[dict[str, Number]]:
    for d in tried:
        count("sizes tried")
        yield dict(d)


def _never(t: Term) -> bool:
    """Whether a condition over one power of two alone, the next one of some size, is false for each of them: that the
    number of warps min(next_power_of_2(N), 16384) // 256 has a divisor beside powers of two."""
    powers = {s for s in t.walk() if s.op == "next_power_of_2"}
    of = T.rewrite(t, lambda s: T.size(POWER) if s in powers else None)
    if len(powers) != 1 or names(of) != [POWER]:
        return False
    return all(value(of, {POWER: n}) is False for n in (0, *(1 << k for k in range(64))))


def _meets(wanted: Sequence[Term], dims: Dims) -> bool:
    return all(value(c, dims) is True for c in reversed(wanted))


def names(t: Term) -> list[str]:
    """The dims and scalars of a term."""
    return list(dict.fromkeys(s.attr for s in t.walk() if s.op in ("size", "scalar")))


def _moved(wanted: Sequence[Term], base: Dims, pairs: bool = True) -> Iterator[dict[str, Number]]:
    """The base with other numbers for one name of the last condition; with `pairs` then for two, then for names of
    all."""
    numbers = _constants(wanted)
    mine = [n for n in names(wanted[-1]) if n in base]
    others = [n for n in dict.fromkeys(n for c in wanted for n in names(c)) if n in base and n not in mine]
    values = {n: list(_values(base[n], numbers)) for n in (*mine, *others)}
    for n in mine:
        yield from ({**base, n: v} for v in values[n])
    both = [*combinations(mine, 2), *product(mine, others)] if pairs else []
    moved = ({**base, a: v, b: w} for a, b in both for v, w in product(values[a][:60], values[b][:60]))
    yield from islice(moved, CANDIDATES)


def _constants(terms: Iterable[Term]) -> list[Number]:
    found = {s.attr for t in terms for s in t.walk() if s.is_const and type(s.attr) in (int, float)}
    return sorted(found, key=abs)


def _values(now: Number, constants: Sequence[Number]) -> Iterator[Number]:
    """Numbers of the same type at and beside constants, their products, powers of two."""
    if isinstance(now, bool):
        yield not now
        return
    if isinstance(now, float):
        near = [float(c) + d for c in constants for d in (0.0, 0.5, -0.5, 1.0, -1.0)]
        scaled = [float(c) * f for c in constants for f in (-1.0, 2.0, 0.5, 1.001, 0.999)]
        yield from dict.fromkeys((*SCALARS, *near, *scaled))
        return
    whole = [int(c) for c in constants if abs(c) < 1 << 40 and c == int(c)]
    products = [a * b for a, b in product(whole[:MULTIPLIED], repeat=2) if abs(a * b) < 1 << 40]
    near = [c + d for c in dict.fromkeys((*whole, *products, *(-c for c in whole))) for d in (0, 1, -1)]
    small = [*range(1, 20), now + 1, now - 1, 2 * now, 0, -1, -2]
    yield from dict.fromkeys((*near, *small, *POWERS))


# ---- terms -----------------------------------------------------------------------------------------------------------


@dataclass
class Comparison:
    """Whether two numbers are the same wherever some conditions hold: by their form and by a solver. Where neither
    shows it and no dims tell them apart, it is not decided."""

    case: Case
    facts: frozenset[Term]
    solver: Solver
    shown: dict[tuple[int, int, Path], bool] = field(default_factory=dict)
    told: dict[tuple[int, int, Path], dict[str, Number] | None] = field(default_factory=dict)

    def same(self, a: Term, b: Term, path: Path) -> bool:
        """Whether they are shown to be the same on the path: reals by their form, as numbers that a kernel gets."""
        if _identical(a, b):
            return True
        key = a.id, b.id, path
        if key not in self.shown:
            self.shown[key] = self.by_samples(a, b, path) is None and self.proved(a, b, path)
        return self.shown[key]

    def proved(self, a: Term, b: Term, path: Path) -> bool:
        """By their form, with the branches that the path takes; then by the solver."""
        a, b = (self.resolved(t, path) for t in (a, b))
        if _identical(a, b):
            return True
        whole = a.type == b.type and a.type in (T.INT, T.BOOL)
        if whole and b.is_const and _ranges(path.conditions, a) == (b.attr, b.attr):
            return True
        return whole and self.solver.contradictory({*self.facts, *path.conditions, _unequal(a, b)})

    def differ(self, a: Term, b: Term, path: Path) -> dict[str, Number] | None:
        """Dims on the path at which they are not the same; None where none were found."""
        if _identical(a, b):
            return None
        if (d := self.by_samples(a, b, path)) is not None:
            return d
        if a.type == b.type == T.INT or a.type == b.type == T.BOOL:
            return self.apart(a, b, path)
        return None

    def by_samples(self, a: Term, b: Term, path: Path) -> dict[str, Number] | None:
        """The first of the samples at which they are not the same."""
        key = a.id, b.id, path
        if key not in self.told:
            every = self.samples(a, b, path)
            self.told[key] = next((d for d in every if _apart(value(a, d), value(b, d))), None)
        return self.told[key]

    def resolved(self, t: Term, path: Path) -> Term:
        """With the branch that the path takes in place of a choice."""

        def taken(s: Term) -> Term | None:
            if s.op != "where":
                return None
            facts = self.facts.union(path.conditions)
            if self.solver.implies(facts, s.args[0]):
                return s.args[1]
            return s.args[2] if self.solver.implies(facts, T.make("not", s.args[0])) else None

        return T.rewrite(t, taken) if any(s.op == "where" for s in t.walk()) else t

    def apart(self, a: Term, b: Term, path: Path) -> dict[str, Number] | None:
        """By the solver."""
        base = path.run.dims
        conditions = (*path.conditions, _unequal(a, b))
        found = self.solver.model(self.facts.union(conditions)) if not self.solver.contradictory(
            self.facts.union(conditions)) else None  # fmt: skip
        if found is None:
            return None
        d = {**base, **{n: v for n, v in found.items() if n in base and not isinstance(base[n], float)}}
        return d if path.holds(d) and self.allows(d) and _apart(value(a, d), value(b, d)) else None

    def samples(self, a: Term, b: Term, path: Path) -> Iterator[dict[str, Number]]:
        base = path.run.dims
        mine = [n for n in dict.fromkeys((*names(a), *names(b))) if n in base]
        numbers = _constants((a, b, *path.conditions))
        values = {n: [*_values(base[n], numbers), *(() if isinstance(base[n], float) else FAR)] for n in mine}
        single = ({**base, n: v} for n in mine for v in values[n])
        pairs = (
            {**base, n: v, m: w} for n, m in combinations(mine, 2) for v, w in product(values[n][::7], values[m][::7])
        )
        every = (base, *single, *islice(pairs, 400))
        return islice((d for d in every if self.allows(d) and path.holds(d)), 600)

    def allows(self, dims: Dims) -> bool:
        return self.case.holds(dims) and all(value(f, dims) is not False for f in self.facts)


def _identical(a: Term, b: Term) -> bool:
    """Whether they are one term, equal as polynomials of integers, or numbers that are one in single precision."""
    if a is b:
        return True
    if a.type == b.type == T.INT:
        return I.normal(T.sub(a, b)) is T.const(0)
    if a.is_const and b.is_const and T.BOOL not in (a.type, b.type):
        return _single(a.attr) == _single(b.attr)
    return False


def _ranges(conditions: Iterable[Term], t: Term) -> tuple[float, float]:
    """Numbers that the term cannot leave where the conditions hold."""
    every = Ranges()
    return every.of(t, every.facts(*map(_positively, conditions)))


def _positively(t: Term) -> Term:
    """b < a for not a <= b; other conditions as they are."""
    if t.op == "not" and t.args[0].op in ("le", "lt"):
        a, b = t.args[0].args
        return T.make("lt" if t.args[0].op == "le" else "le", b, a)
    return t


def _single(v: float) -> float:
    """The number that a kernel gets for a real of the host function."""
    with np.errstate(all="ignore"):
        return float(np.float32(v))


def _unequal(a: Term, b: Term) -> Term:
    return T.make("not", T.make("eq", a, b))


def _apart(x: Number | None, y: Number | None) -> bool:
    """Whether two numbers differ by more than one number does that is computed in two ways."""
    if x is None or y is None or not (math.isfinite(x) and math.isfinite(y)):
        return False
    if isinstance(x, bool) or isinstance(y, bool) or (isinstance(x, int) and isinstance(y, int)):
        return bool(x != y)
    return bool(abs(x - y) > RELATIVE_ERROR * max(abs(x), abs(y)))


def telling(paths: Sequence[Path], inside: Sequence[bool]) -> Term | None:
    """A condition that the paths inside imply and the others contradict, one of their decisions if that will do."""
    mine = [p for p, x in zip(paths, inside, strict=True) if x]
    rest = [p for p, x in zip(paths, inside, strict=True) if not x]
    if not mine or not rest:
        return T.const(bool(mine))
    for p in (*mine, *rest):
        for c in p.conditions:
            for t in (c, T.make("not", c)):
                no = T.make("not", t)
                if all(t in q.conditions for q in mine) and all(no in q.conditions for q in rest):
                    return t
    few = mine if len(mine) <= len(rest) else rest
    whole = T.make("or", False, *(T.make("and", True, *_needed(q.conditions)) for q in few))
    return whole if few is mine else T.make("not", whole)


def _needed(conditions: Sequence[Term]) -> list[Term]:
    """Without those that follow from the others."""
    solver, left = Solver(), list(conditions)
    for c in conditions:
        rest = [t for t in left if t is not c]
        if solver.implies(rest, c):
            left = rest
    return left
