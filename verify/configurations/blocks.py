"""Kernels at every block size: parameters that are compile-time and follow from the shape.

A block size is a symbol of its own, B, with what is known of it as facts: B = next_power_of_2(N), a power of two,
1 <= B <= 2^20, which is the largest tensor that Triton compiles. The kernel is lowered at some of its values (or all)
and the modules are made one (`antiunify`); where they differ in more than numbers, B = 1 for example, each class of
values is a Configuration. In the module of a Configuration extents of `Type.shape` and numbers among the attributes
may be terms.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, product
from typing import Any

from trilift.lift.errors import Unsupported
from trilift.lift.terms import construct as T
from trilift.lift.terms.fit import value
from trilift.lift.terms.term import Term
from trilift.lift.ttir.ir import Module

from ..integers.logical_index import asking
from ..integers.quotient import Ask, canonical, equalities, reduce
from ..integers.quotient import replace as substituted
from ..integers.solver import Solver
from ..model.configuration import Configuration, Event, SymbolicLaunch, View
from ..model.verdict import Clause
from ..wording.user_terms import words
from .antiunify import Different, alike, antiunify, extents
from .specialisations import Choice, Combo, Family, Parameter

Grid = tuple[Term, Term, Term]
LARGEST = 2**20  # elements of one tensor: TRITON_MAX_TENSOR_NUMEL
TRIED = (1, 2, 8, 64, 1024)  # of a power of two, beside those of the traces
TRIED_OTHER = (1, 2, 3, 4, 8, 17, 32, 100)  # of any other integer
SEEN = 3  # values of the traces that are lowered, at most
CELLS = 16  # classes of one kernel, at most
SETTINGS = 64  # of one configuration, at most


# ---- classes of block sizes ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Range:
    """low <= value <= high; no upper end when `high` is None. `tried`: the values at which the kernel was lowered."""

    low: Any
    high: int | None
    tried: tuple[Any, ...]

    @property
    def single(self) -> bool:
        return bool(self.low == self.high)


@dataclass(frozen=True, eq=False, slots=True)
class Class:
    """One kernel for a class of block sizes, and the facts that say which."""

    module: Module
    facts: tuple[Term, ...]
    clauses: tuple[Clause, ...]
    label: str
    width: int  # how many ranges are more than one value


def configurations(base: Configuration, families: Sequence[Family], exhaustive: bool) -> Iterator[Configuration]:
    """The configuration for each class of block sizes, the widest first."""
    found = []
    named = _named(families)
    base = replace(base, events=tuple(_by_names(e, named) for e in base.events))
    for parts in _compatible(base.facts, families, [classes(f, exhaustive) for f in families]):
        given = base.facts.union(*(p.facts for p in parts), *_divisors(parts))
        facts = frozenset((*(T.rewrite(f, named.get) for f in given), *(T.make("eq", k, v) for k, v in named.items())))
        if any(p.label for p in parts) and Solver().implies(facts, T.const(False)):
            continue
        modules = iter(parts)
        fixed = equalities(f for f in facts if any(a.is_const for a in f.args))
        ask = asking(facts, Solver()) if fixed else None
        events = tuple(
            replace(e, module=next(modules).module, grid=_at(e.grid, fixed, ask))
            if isinstance(e, SymbolicLaunch)
            else e
            for e in base.events
        )
        label = ", ".join(x for x in (base.label, *dict.fromkeys(p.label for p in parts)) if x)
        clauses = (*base.clauses, *dict.fromkeys(c for p in parts for c in p.clauses))
        found.append(
            (sum(p.width for p in parts), replace(base, facts=facts, events=events, clauses=clauses, label=label))
        )
    yield from (s for _, s in sorted(found, key=lambda e: -e[0]))


def _named(families: Sequence[Family]) -> dict[Term, Term]:
    """Block sizes as terms over the dims, each written with the symbols of those within it -> their symbols."""
    parameters = {
        p.symbol: p.relation for f in families for p in (*f.parameters, *f.following) if p.relation is not None
    }
    out: dict[Term, Term] = {}
    for symbol, relation in sorted(parameters.items(), key=lambda pair: sum(1 for _ in pair[1].walk())):
        out.setdefault(T.rewrite(relation, out.get), symbol)
    return out


def _by_names(e: Event, named: Mapping[Term, Term]) -> Event:
    """The launch with a grid and numbers that name its block sizes."""
    if not isinstance(e, SymbolicLaunch):
        return e
    x, y, z = (T.rewrite(g, named.get) for g in e.grid)
    operands = tuple(T.rewrite(n, named.get) if isinstance(n, Term) else n for n in e.operands)
    return replace(e, grid=(x, y, z), operands=operands)


def _compatible(
    facts: frozenset[Term], families: Sequence[Family], every: Sequence[Sequence[Class]]
) -> list[tuple[Class, ...]]:
    """A class for each launch, without those that contradict each other."""
    found: list[tuple[Class, ...]] = [()]
    for f, mine in zip(families, every, strict=True):
        pairs = [(*parts, c) for parts in found for c in mine]
        found = [parts for parts in pairs if not _excluded(facts.union(*(p.facts for p in parts)))]
        if len(found) > SETTINGS:
            raise Unsupported(f"the block sizes of {f.first.kernel}", f.place, "too many classes of values")
    return found


def _excluded(facts: frozenset[Term]) -> bool:
    return any(f.is_const and f.attr is False for f in facts) or _contradictory(facts)


def _divisors(parts: Sequence[Class]) -> Iterator[list[Term]]:
    """The least of several powers of two divides each of them."""
    facts = [f for p in parts for f in p.facts]
    powers = {n: s for f in facts if f.op == "eq" for n, s in (f.args, f.args[::-1]) if s.op == "next_power_of_2"}

    def is_power(t: Term) -> bool:
        known = t.op == "next_power_of_2" or t in powers
        return known or (t.is_const and t.attr > 0 and t.attr & (t.attr - 1) == 0)

    for f in facts:
        for least, n in (f.args, f.args[::-1]) if f.op == "eq" else ():
            if least.op == "min" and all(map(is_power, least.args)):
                yield [T.make("eq", T.make("mod", x, n), 0) for x in least.args]


def numbered(s: Configuration) -> Configuration:
    """The configuration with a number for each size that its facts say is one, in its tensors and operands."""
    fixed = {n: v for n, v in equalities(f for f in s.facts if any(a.is_const for a in f.args)).items() if v.is_const}
    if not fixed:
        return s

    def at(x: Term | View) -> Any:
        if isinstance(x, Term):
            return substituted(x, fixed)
        return replace(x, offset=at(x.offset), shape=tuple(map(at, x.shape)), strides=tuple(map(at, x.strides)))

    def event(e: Event) -> Event:
        if isinstance(e, SymbolicLaunch):
            return replace(e, operands=tuple(map(at, e.operands)))
        return replace(e, outputs=tuple(map(at, e.outputs)))

    inputs, outputs = ({n: at(v) for n, v in x.items()} for x in (s.inputs, s.outputs))
    return replace(s, events=tuple(map(event, s.events)), inputs=inputs, outputs=outputs)


def _at(grid: Grid, fixed: Mapping[Term, Term], ask: Ask | None) -> Grid:
    """The grid where some sizes are numbers."""
    if ask is None:
        return grid
    x, y, z = (reduce(substituted(g, fixed), ask) for g in grid)
    return x, y, z


def _contradictory(facts: frozenset[Term]) -> bool:
    """A symbol below and above at once: the ranges of launches that share a block size."""
    low: dict[Term, int] = {}
    high: dict[Term, int] = {}
    for f in facts:
        if f.op == "le" and f.args[0].is_const:
            low[f.args[1]] = max(low.get(f.args[1], f.args[0].attr), f.args[0].attr)
        if f.op == "le" and f.args[1].is_const:
            high[f.args[0]] = min(high.get(f.args[0], f.args[1].attr), f.args[1].attr)
    return any(bool(low[t] > high[t]) for t in low if t in high)


def classes(f: Family, exhaustive: bool) -> list[Class]:
    """Raises Unsupported where no class of values is understood."""
    if not f.parameters and not f.choices:
        return [Class(f.base, (), (), "", 0)]
    out: list[Class] = []
    for said in product(*(c.values for c in f.choices)):
        chosen = dict(zip((c.name for c in f.choices), said, strict=True))
        given = [t for c in f.choices if (t := _given(c, chosen[c.name])) is not None]
        label = ", ".join(f"{n}={v}" for n, v in chosen.items())
        for c in _sized(f, chosen, exhaustive):
            joined = ", ".join(x for x in (label, c.label) if x)
            out.append(replace(c, facts=(*c.facts, *given), label=joined))
    if not out:
        f.at(f.seen()[0])  # raises what Triton says
        raise Unsupported(f"the block sizes of {f.first.kernel}", f.place, "no two of them give the same operations")
    return out


def _given(c: Choice, v: Any) -> Term | None:
    if c.relation is None:
        return None
    return c.relation if v else T.make("not", c.relation)


def _sized(f: Family, chosen: Combo, exhaustive: bool) -> Iterator[Class]:
    """The classes at one choice of words: a box of ranges each."""
    middle = _middle(f, chosen)
    if middle is None:
        return
    ranges = [list(_ranges(f, p, middle, exhaustive)) for p in f.parameters]
    cells = list(product(*ranges))
    if len(cells) > CELLS:
        raise Unsupported(f"the block sizes of {f.first.kernel}", f.place, f"{len(cells)} classes of values")
    for cell in cells:
        yield from _cell(f, cell, chosen, middle)


def _middle(f: Family, chosen: Combo) -> Combo | None:
    """Values of one trace at which the kernel compiles, those of ordinary size first."""
    combos = [{**c, **chosen} for c in f.seen()]
    names = [p.name for p in f.parameters]
    ordinary = sorted(combos, key=lambda c: sum(abs(int(c[n]).bit_length() - 6) for n in names))
    return next((c for c in ordinary if f.module(c) is not None), None)


def _ranges(f: Family, p: Parameter, middle: Combo, exhaustive: bool) -> Iterator[Range]:
    """Runs of values of p with the same operations, the other parameters in the middle."""
    kind = _Kinds(f, p, middle)
    if p.real:
        if all(kind(v) == kind(p.values[0]) is not None for v in _spread(p)):
            yield Range(min(_spread(p)), None, tuple(_spread(p)))
    elif p.tuned:
        yield from _tuned_ranges(p, kind)
    else:
        yield from _searched_ranges(p, kind, exhaustive)


@dataclass
class _Kinds:
    """The kind of operations that the kernel has at a value of the parameter: a number, None where it does not
    compile."""

    family: Family
    parameter: Parameter
    middle: Combo
    seen: dict[Any, int | None] = field(default_factory=dict)
    kernels: list[Module] = field(default_factory=list)  # one of each kind

    def __call__(self, v: Any) -> int | None:
        if v not in self.seen:
            module = self.family.module({**self.middle, self.parameter.name: v})
            same = (k for k, m in enumerate(self.kernels) if module is not None and alike(m, module))
            self.seen[v] = None if module is None else next(same, len(self.kernels))
            if module is not None and self.seen[v] == len(self.kernels):
                self.kernels.append(module)
        return self.seen[v]


def _tuned_ranges(p: Parameter, kind: _Kinds) -> Iterator[Range]:
    for v in p.values:
        kind(v)
    for run in _runs(kind, sorted(kind.seen)):
        if kind(run[0]) is not None:
            yield Range(run[0], run[-1], tuple(run))


def _searched_ranges(p: Parameter, kind: _Kinds, exhaustive: bool) -> Iterator[Range]:
    domain = [2**k for k in range(21)]
    for v in domain if p.power and (exhaustive or p.decides) else _tried(p):
        kind(v)
    for a, b in pairwise(sorted(kind.seen)):
        if kind(a) != kind(b):
            _bisect(kind, a, b, p.power, p.step)
    known = sorted(kind.seen)
    for run in _runs(kind, known):
        if kind(run[0]) is not None:
            yield from _range(p, run, open_end=run[-1] == known[-1], kind=kind)


def _runs(kind: Any, known: Sequence[int]) -> list[list[int]]:
    """Neighbours of one kind together."""
    runs: list[list[int]] = []
    for v in known:
        if runs and kind(runs[-1][-1]) == kind(v):
            runs[-1].append(v)
        else:
            runs.append([v])
    return runs


def _tried(p: Parameter) -> list[int]:
    if not p.power:
        return sorted({*(v * p.step for v in TRIED_OTHER), *_spread(p), *(v for v in p.compared if v % p.step == 0)})
    return sorted({*TRIED, *_spread(p), LARGEST})


def _spread(p: Parameter) -> list[Any]:
    """Some values of the traces, from the least to the greatest."""
    seen = sorted(p.values)
    return [seen[k * (len(seen) - 1) // (SEEN - 1)] for k in range(SEEN)]


def _bisect(kind: Any, a: int, b: int, power: bool, step: int) -> None:
    """Lower until the values at which the operations change are next to each other."""
    while (b // a > 2) if power else (b - a > step):
        m = 1 << ((a.bit_length() + b.bit_length()) // 2 - 1) if power else (a + b) // (2 * step) * step
        if kind(m) == kind(a):
            a = m
        else:
            b = m


def _range(p: Parameter, run: list[int], open_end: bool, kind: Any) -> Iterator[Range]:
    """One run as a range, lowered at three values at least; a short one value by value."""
    low, high = run[0], run[-1]
    powers = (1 << k for k in range(21))
    inside = [v for v in powers if low <= v <= high] if p.power else list(range(low, high + 1, p.step))
    if len(inside) < 3 and not (open_end and not p.power):
        yield from (Range(v, v, (v,)) for v in inside)
        return
    tried = run if len(run) > 2 else sorted({*run, *inside[1:3]})
    if all(kind(v) == kind(low) for v in tried):
        yield Range(low, None if open_end and not p.power else high, tuple(tried))
    else:
        yield from (Range(v, v, (v,)) for v in run)


def _cell(f: Family, cell: tuple[Range, ...], chosen: Combo, middle: Combo) -> Iterator[Class]:
    """The kernel of one box. Combinations that Triton does not compile are left out."""
    combos = [c for c in _combos(f, cell, chosen, middle) if f.module(c) is not None]
    if not combos:
        return
    try:
        yield _class(f, cell, combos, middle, ())
    except Different as why:
        parts = _parted(f, cell, combos)
        if parts is None:
            yield from _one_by_one(f, combos, str(why))
        for condition, mine in parts or ():
            try:
                yield _class(f, cell, mine, middle, (condition,))
            except Different as again:
                yield from _one_by_one(f, mine, str(again))


def _class(
    f: Family, cell: tuple[Range, ...], combos: Sequence[Combo], middle: Combo, given: tuple[Term, ...]
) -> Class:
    """The kernel at these combinations, for all of the box where `given` holds. Raises Different."""
    names = [p.name for p in f.parameters]
    modules = [f.module(c) for c in combos]
    symbols = {p.name: p.symbol for p, r in zip(f.parameters, cell, strict=True) if not r.single}
    every = [f.complete(c) for c in combos]
    symbols |= {p.name: p.symbol for p in f.following if len({c[p.name] for c in every}) > 1}
    module = antiunify([m for m in modules if m is not None], every, symbols)
    facts = [t for p, r in zip(f.parameters, cell, strict=True) for t in _facts(p, r)]
    facts += [t for p in f.following for t in _following(p)]
    facts += [t for shape in extents(module) for t in _fits(shape)]
    facts += [*_options(f, cell), *given]
    facts += _constant(f, every, facts)
    seen = {n: {c[n] for c in combos} for n in names}
    seen |= {p.name: v for p in f.following if len(v := {c[p.name] for c in every}) > 1}
    places = [f"{n}: {', '.join(map(str, sorted(v)))}" for n, v in seen.items()]
    text = f"{f.first.kernel} was lowered at {'; '.join(places)}, and has the same operations at all of them"
    ends = [(p.name, r) for p, r in zip(f.parameters, cell, strict=True) if not p.real]
    label = ", ".join([*(f"{n}={r.low}" if r.single else f"{n}>={r.low}" for n, r in ends), *map(str, given)])
    lowered = [Clause("config", None, text, "block sizes between them are not lowered", f.place)] if places else []
    clauses = (*lowered, *(c for p, r in zip(f.parameters, cell, strict=True) for c in _ends(f, p, r, middle)))
    return Class(module, tuple(facts), clauses, label, len(symbols))


def _constant(f: Family, combos: Sequence[Combo], facts: Sequence[Term]) -> list[Term]:
    """Parameters that follow from others and have one value in all combinations, where the facts allow no other
    value."""
    one = [(p.symbol, next(iter(v))) for p in f.following if len(v := {c[p.name] for c in combos}) == 1]
    every = [T.make("eq", symbol, v) for symbol, v in one if symbol.op == "size"]
    return [t for t in every if Solver().implies(frozenset(facts), t)]


def _parted(f: Family, cell: tuple[Range, ...], combos: Sequence[Combo]) -> list[tuple[Term, list[Combo]]] | None:
    """Two kernels in one box, told apart by which of two block sizes is larger, also where they differ by a step."""
    ends = {p.name: r for p, r in zip(f.parameters, cell, strict=True) if not p.real}
    whole = [p for p in f.parameters if p.name in ends]
    kernels: list[Module] = []

    def kind(c: Combo) -> int | None:
        module = f.module(c)
        if module is None:
            return None
        found = next((k for k, m in enumerate(kernels) if alike(m, module)), len(kernels))
        if found == len(kernels):
            kernels.append(module)
        return found

    kinds = [kind(c) for c in combos]
    for p, q in ((p, q) for p in whole for q in whole if p is not q and len(kernels) == 2):
        if len({(c[p.name] <= c[q.name], k) for c, k in zip(combos, kinds, strict=True)}) > 2:
            continue
        near = [{**c, p.name: c[q.name] + d} for c in combos for d in (0, p.step) if _allowed(p, ends, c[q.name] + d)]
        more = [c for c in {tuple(c.items()): c for c in near}.values() if c not in combos and kind(c) is not None]
        every = [*combos, *more]
        below = next((kind(c) for c in every if c[p.name] <= c[q.name]), None)
        if below is None or len(kernels) > 2 or any((kind(c) == below) != (c[p.name] <= c[q.name]) for c in every):
            continue
        condition = T.make("le", p.symbol, q.symbol)
        sides = ((condition, True), (T.make("lt", q.symbol, p.symbol), False))
        return [(x, [c for c in every if (c[p.name] <= c[q.name]) is side]) for x, side in sides]
    return None


def _allowed(p: Parameter, ends: Mapping[str, Range], v: int) -> bool:
    """Whether a parameter can have this value in the box."""
    r = ends[p.name]
    whole = v % p.step == 0 and (not p.power or v & (v - 1) == 0) and (not p.tuned or v in p.values)
    return whole and r.low <= v <= (r.high or v)


def _ends(f: Family, p: Parameter, r: Range, middle: Combo) -> Iterator[Clause]:
    """The ends beyond which Triton does not compile the kernel, or unrolls it to many operations."""
    if p.tuned:
        return
    below, above = (r.low // 2, 2 * (r.high or 1)) if p.power else (r.low - 1 if not p.real else 0, 0)
    if below >= 1 and below % p.step == 0 and f.module({**middle, p.name: below}) is None:
        yield _end(f, p, {**middle, p.name: below}, "lt", r.low)
    if p.power and r.high is not None and f.module({**middle, p.name: above}) is None:
        yield _end(f, p, {**middle, p.name: above}, "gt", r.high)


def _end(f: Family, p: Parameter, beyond: Combo, side: str, end: int) -> Clause:
    """`side`: "lt" for values below the end, "gt" for values above it."""
    pair = (end, p.symbol) if side == "lt" else (p.symbol, end)
    if tuple(beyond.items()) not in f.unrolled:
        text = f"Triton does not compile {f.first.kernel} at {p.name} {'<' if side == 'lt' else '>'} {end}"
        return Clause("config", T.make("le", *pair), text, "", f.place)
    known = T.make("le", *(p.relation if x is p.symbol and p.relation is not None else x for x in pair))
    return Clause(
        "shape",
        known,
        words(known),
        f"{f.first.kernel}, whose loops are unrolled to too many operations elsewhere",
        f.place,
    )


def _combos(f: Family, cell: tuple[Range, ...], chosen: Combo, middle: Combo) -> Iterator[Combo]:
    """One parameter varied at a time, all of them together, and the values of traces in the box."""
    names = [p.name for p in f.parameters]
    ends = dict(zip(names, cell, strict=True))
    reals = {p.name for p in f.parameters if p.real}

    def inside(n: str, v: Any) -> bool:
        return n in reals or bool(ends[n].low <= v <= (ends[n].high or v))

    center = {n: middle[n] if inside(n, middle[n]) else r.tried[len(r.tried) // 2] for n, r in ends.items()}
    found = [{**center, n: v} for n, r in zip(names, cell, strict=True) for v in r.tried]
    if len(names) > 1:
        found += [{n: r.tried[k % len(r.tried)] for n, r in zip(names, cell, strict=True)} for k in range(3)]
    found += [{**center, **c} for c in f.options() if all(inside(n, v) for n, v in c.items())]
    found += [{n: c[n] for n in names} for c in f.seen()[:SEEN] if all(inside(n, c[n]) for n in names)]
    seen: set[Any] = set()
    for c in found:
        if (key := tuple(c.items())) not in seen:
            seen.add(key)
            yield {**middle, **c, **chosen}


def _following(p: Parameter) -> Iterator[Term]:
    if p.relation is not None:
        yield T.make("eq", p.symbol, p.relation)
        yield from _enough(p.symbol, p.relation)


def _options(f: Family, cell: tuple[Range, ...]) -> list[Term]:
    """The configurations of autotuning that are in the box: one of them it is."""
    symbols = {p.name: p.symbol for p in f.parameters if p.tuned}
    ends = {p.name: r for p, r in zip(f.parameters, cell, strict=True) if p.tuned}
    inside = [c for c in f.options() if all(ends[n].low <= v <= ends[n].high for n, v in c.items())]
    cases = [T.make("and", True, *(T.make("eq", symbols[n], v) for n, v in c.items())) for c in inside]
    return [T.make("or", False, *cases)] if cases else []


def _one_by_one(f: Family, combos: Sequence[Combo], why: str) -> Iterator[Class]:
    """Where the modules do not become one: the values that were lowered, and no others."""
    for c in combos:
        module = f.module(c)
        assert module is not None
        facts = tuple(T.make("eq", p.symbol, c[p.name]) for p in f.parameters)
        facts += tuple(t for p in (*f.parameters, *f.following) for t in _following(p))
        names = ", ".join(f"{p.name}={c[p.name]}" for p in f.parameters)
        text = f"{f.first.kernel} at {names} only: at other values its operations differ ({why})"
        term = T.make("and", True, *facts[: len(f.parameters)])
        yield Class(module, facts, (Clause("config", term, text, "", f.place),), names, 0)


def _facts(p: Parameter, r: Range) -> Iterator[Term]:
    if p.real:
        return
    if p.relation is not None:
        yield T.make("eq", p.symbol, p.relation)
        yield from _enough(p.symbol, p.relation)
    if r.single:
        yield T.make("eq", p.symbol, r.low)
        if r.low == 1 and p.symbol.op == "mul":  # of sizes, which are not negative
            yield from (T.make("eq", n, 1) for n in p.symbol.args if n.op == "size")
    yield T.make("le", r.low, p.symbol)
    if r.high is not None:
        yield T.make("le", p.symbol, r.high)


def _enough(symbol: Term, relation: Term) -> Iterator[Term]:
    """a <= B * n, where B is the next power of two of cdiv(a, n)."""
    if relation.op == "next_power_of_2" and relation.args[0].op == "floordiv":
        a, n = relation.args[0].args
        yield T.make("le", canonical(T.add(a, 1, T.mul(-1, n))), T.mul(symbol, n))


def _fits(shape: Sequence[Term | int]) -> Iterator[Term]:
    """Triton's limits on the extents of a tensor: powers of two, 2^20 elements at most."""
    yield T.make("le", T.mul(1, *shape), LARGEST)
    for n in shape:
        if isinstance(n, Term):
            yield T.make("eq", n, T.make("next_power_of_2", n))
            yield T.make("le", 1, n)


def numbers(found: Mapping[str, int], facts: Sequence[Term]) -> bool:
    """Whether all facts hold at these numbers."""
    return all(value(t, found) is True for t in facts)
