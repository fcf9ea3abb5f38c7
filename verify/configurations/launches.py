"""From a case to its configurations: the launches and torch operations of its host function, at every shape.

traces at unlike shapes -> groups with the same events -> numbers as terms -> Configuration per block size class, config
                           (held-back traces confirm them)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property, partial
from itertools import chain, islice, zip_longest
from typing import Any

from trilift.lift.capture.run import capture
from trilift.lift.capture.trace import Descriptor, Launch, TensorRef, TorchOp, Trace
from trilift.lift.cases.declaration import Case, stride_terms
from trilift.lift.cases.parts import may_be_less_than_one
from trilift.lift.cases.shapes import RUN_INPUT_ELEMENTS, around, choose, elements, varied
from trilift.lift.errors import CaseError, Place, TriliftError, Unsupported
from trilift.lift.pytorch import repeated_writes
from trilift.lift.pytorch.host import Copied
from trilift.lift.pytorch.host.global_state import read_in
from trilift.lift.pytorch.host.reference_questions import asking
from trilift.lift.pytorch.host.shims import host_files
from trilift.lift.replay.check import arguments
from trilift.lift.replay.reference import formed, values
from trilift.lift.runtime.budget import BUDGETS, Meter, stage
from trilift.lift.terms import construct as T
from trilift.lift.terms import index as I
from trilift.lift.terms.fit import Number, value
from trilift.lift.terms.term import Term
from trilift.lift.ttir.ir import Module

from ..integers.solver import Solver
from ..model.configuration import Configuration, Event, SymbolicLaunch, View
from ..model.verdict import ELSEWHERE, Clause, aligned, distinct, overlap_free, written_once
from ..wording.user_terms import words
from . import blocks, constants_of_one, grid_limits, host_operations, last_strides, passed_numbers, wide_arguments
from .ambiguity import apart
from .buffers import Buffers, reference
from .host_paths import separating
from .host_reading import Comparison, Path, Paths, explore, telling
from .relations import Refuted, Relations, at, jumps, strided
from .specialisations import Family, reads_beside
from .specialisations import family as family_of

FOUND_ON, HELD_BACK = 10, 4  # traces beside the three that lifting uses
TRACE_ROUNDS = 6  # of more traces, when one held back refutes a term
BESIDE = 12  # traces beside the jumps of terms, at most
SINGLE_CONFIGURATIONS = 4  # configurations that are taken one by one
COMPUTED_ELEMENTS = 10_000_000  # of the largest input, times the largest size: a reference may have as many
EACH = 3  # traces of one configuration of several
ASKED = {"the address of a tensor": "tensors are aligned to 16 bytes"}  # those that the host function makes
LAST = 2  # the largest of the shapes that lifting uses
SHOWN = 4  # sizes in a message
UNLIKE_SHAPES = 6  # of as many sets of constants, where there may be a counterexample
REFUSED = "the host function, which raises elsewhere"
MANY = 30  # traces, where the host function does not do the same at every shape
CONFIGS = 24  # autotune configurations at most


def configurations(
    case: Case,
    seed: int = 0,
    traces: Sequence[Trace] | None = None,
    configs: int = CONFIGS,
    exhaustive: bool = False,
    together: bool = True,
) -> list[Configuration]:
    """The case with symbols for its numbers: one Configuration for every autotune configuration, every class of block
    sizes whose kernels differ, and where the host function asks for a last stride of 1. `traces`: some that exist
    already, of configuration 0. `exhaustive`: kernels are lowered at all block sizes, not at some. `together`:
    configurations that differ in numbers alone are one configuration. Raises CaseError where the host function cannot
    be run, Unsupported, with the place, for what has no meaning here or no relation to the dims."""

    with stage("host function", BUDGETS.host.steps) as meter:

        def read(other: Case) -> list[Configuration]:
            given = traces if other is case else None
            return _configurations(other, seed, given, configs, exhaustive, together, meter)

        return last_strides.both_ways(case, read(case), (*facts(case),), read)


def _configurations(
    case: Case, seed: int, traces: Sequence[Trace] | None, configs: int, exhaustive: bool, together: bool, meter: Meter
) -> list[Configuration]:
    """Those of the layouts that the case draws; `meter`: of reading the host function."""
    out: list[Configuration] = []
    first = _Config(case, seed, 0, traces, exhaustive, meter)
    count = first.traces[0].configs
    limits = _limits(count, configs)
    if together and count > SINGLE_CONFIGURATIONS and (tuned := _tuned(first, min(count, configs))):
        return [
            replace(s, together=True, clauses=(*s.clauses, *limits)) for s in _distinct(map(blocks.numbered, tuned))
        ]
    out += first.configurations()
    for k in range(1, min(count, configs)):
        out += _Config(case, seed, k, None, exhaustive, meter).configurations()
    return [replace(s, clauses=(*s.clauses, *limits)) for s in _distinct(map(blocks.numbered, out))]


def _by_constants(case: Case, traces: Iterable[Trace]) -> tuple[Mapping[str, int | float], ...]:
    """The smallest shape for each set of constants that kernels are compiled for; of many the first."""
    found: dict[object, Mapping[str, int | float]] = {}
    for t in sorted(traces, key=lambda t: elements(case, t.dims)):
        found.setdefault(tuple((launch.kernel, _constants(launch)) for launch in t.launches), t.dims)
    return tuple(islice(found.values(), UNLIKE_SHAPES))


def _limits(count: int, configs: int) -> tuple[Clause, ...]:
    """Autotune configurations that are left out."""
    text = f"autotuning picks one of the first {configs} of {count} configurations"
    return (Clause("config", None, text, "the others are not examined"),) if count > configs else ()


def _tuned(first: _Config, count: int) -> list[Configuration]:
    """Configurations with symbols for what autotuning chooses; none where its choices do not enter as numbers alone."""
    try:
        unlike = _unlike(first, count)
        return _Config(first.case, first.seed, unlike, first.traces, first.exhaustive, first.meter).configurations()
    except (Unsupported, CaseError):
        return []


def _unlike(first: _Config, count: int) -> list[int]:
    """The configurations whose launches differ in more than warps and stages, at the least or the last shape."""
    shapes = [min(first.traces, key=lambda t: elements(first.case, t.dims)).dims, first.traces[LAST].dims]
    found: dict[Any, int] = {}
    for k in range(count):
        traces = [capture(first.case, d, k, first.seed) for d in shapes]
        found.setdefault(tuple(_compiled(launch) for t in traces for launch in t.launches), k)
    return list(found.values())


def _compiled(launch: Launch) -> Any:
    return launch.kernel, launch.grid, _constants(launch), reads_beside(launch)


def _constants(launch: Launch) -> tuple[tuple[str, str], ...]:
    return tuple((n, repr(launch.args[n])) for n in launch.args if n in launch.constexprs)


def _distinct(found: Iterable[Configuration]) -> list[Configuration]:
    """Configurations whose kernels, grids and operands are those of an earlier one add nothing but their label."""
    out: dict[Any, Configuration] = {}
    for s in found:
        key = (s.facts, tuple(_key(e) for e in s.events))
        out[key] = s if key not in out else replace(out[key], label=f"{out[key].label}; {s.label}")
    return list(out.values())


def _key(event: Event) -> Any:
    if not isinstance(event, SymbolicLaunch):
        return event.name
    operands = tuple(_view_key(x) if isinstance(x, View) else x for x in event.operands)
    return event.kernel, id(event.module), operands, event.grid


def _view_key(x: View) -> Any:
    return x.buffer.name, x.offset, x.shape, x.strides


class _Config:
    """One autotune configuration of a case, or several together."""

    def __init__(
        self,
        case: Case,
        seed: int,
        config: int | Sequence[int],
        traces: Sequence[Trace] | None,
        exhaustive: bool,
        meter: Meter,
        depth: int = 0,
    ) -> None:
        self.case, self.seed, self.config, self.exhaustive, self.depth = case, seed, config, exhaustive, depth
        self.meter = meter
        self.configs = [config] if isinstance(config, int) else list(config)
        self.errors: list[TriliftError] = []
        self.captured = 0
        self.beside: list[Trace] = []
        given = list(traces or ()) or [t for d in choose(case, 3, seed) if (t := self.capture(d)) is not None]
        single = FOUND_ON if config == 0 else FOUND_ON // 2
        self.traces = given + self.more(single if len(self.configs) == 1 else self.count(FOUND_ON), given)
        if not self.traces:
            raise self.errors[0]
        self.excluded: list[Clause] = []
        self.unread: list[str] = []

    @cached_property
    def paths(self) -> Paths:
        """The paths of the host function, for each configuration."""
        least = lambda d: min((d[n] for n in self.case.names), default=0)  # noqa: E731
        start = max((t.dims for t in self.traces), key=lambda d: (least(d), elements(self.case, d)))
        return explore(self.case, [start], facts(self.case), self.configs, self.meter)

    def count(self, shapes: int) -> int:
        """How many traces, so that each configuration has some."""
        return max(shapes, EACH * len(self.configs))

    def capture(self, dims: Mapping[str, int | float]) -> Trace | None:
        """Of the next configuration; None where the host function raises: at these dims nothing is claimed."""
        config = self.configs[self.captured % len(self.configs)]
        self.captured += 1
        try:
            return capture(self.case, dims, config, self.seed)
        except (CaseError, Unsupported) as error:
            self.errors.append(error)
            if isinstance(error, Unsupported):
                raise
            return None

    def more(self, count: int, earlier: Sequence[Trace], turn: int = 0) -> list[Trace]:
        """Traces at shapes unlike the earlier ones."""
        found = varied(self.case, count, self.seed + 1000 * turn, [t.dims for t in earlier])
        return [t for d in found if (t := self.capture(d)) is not None]

    def configurations(self) -> list[Configuration]:
        """Terms that a held-back trace refutes are sought again with that trace. Where the host function does not do
        the same at every shape, the configurations of each way, under the condition that leads there."""
        for turn in range(1, TRACE_ROUNDS + 1):
            held = self.more(max(HELD_BACK, len(self.configs)), self.traces, turn)
            try:
                self.elsewhere()
                if len({events_of(t) for t in (*self.traces, *held)}) > 1:
                    return self.parts(held)
                return self.read(held)
            except Refuted as error:
                refuted = str(error)
                self.traces = [*self.traces, *held, *self.beside]
        raise Unsupported(
            f"{refuted} is not a function of the case's dims that further shapes confirm", self.case.place
        )

    def read(self, held: Sequence[Trace]) -> list[Configuration]:
        for n in self.paths.lost:
            why = "it is a plain number there, and another one in another call; traces alone show nothing beyond them"
            raise Unsupported(f"the host function computes with {n.what}", n.place, why)
        found, base, families = self.base(held)
        self.beside = self.at(found.jumps())
        again = found.confirm(self.beside)
        if more := self.at(again.apart()):
            self.beside += more
            found.confirm(self.beside)
        self.agreed(found)
        self.must_be_followed(found)
        given = (
            *self.clauses(found),
            *constants_of_one.clauses(base, families),
            *wide_arguments.clauses(self.case, base, families),
            *grid_limits.clauses(base),
        )
        followed = bool(found.relations.reads)
        base = replace(
            base,
            facts=base.facts.union(self.returned(found), (c.term for c in given if c.term is not None)),
            clauses=(*given, *found.clauses(followed, part=bool(self.depth))),
            runs=(*_by_constants(self.case, (*self.traces, *held, *self.beside)), *self.on_paths()),
        )
        return list(blocks.configurations(base, families, self.exhaustive))

    def on_paths(self) -> Iterator[Mapping[str, Number]]:
        """A shape on each path but the first, of many the first."""
        others = (p for p in self.paths.every[1:] if not p.run.raises)
        return (named(self.case, p.run.dims) for p in islice(others, UNLIKE_SHAPES))

    # ---- what the host function computes

    def must_be_followed(self, found: _Reading) -> None:
        """Raises Unsupported where the host function was not read to its end: traces cover the sizes that were run. A
        kernel without a host function is exempt."""
        if self.case.place is not None and self.case.place.file.endswith(".ttir"):
            return
        tried = "; ".join(at(t) for t in found.relations.run[:SHOWN] if t.dims)
        why = f"what it launches is known at the sizes that were tried only: {tried} ..."
        for n in self.paths.refused:
            raise Unsupported(f"the host function could not be followed: {n.what}", n.place, why)
        for what in self.unread:
            raise Unsupported(f"the host function could not be followed: {what}", self.case.place, why)
        if not found.relations.reads:
            what = "no way through it that was read has the launches and operations that were seen"
            raise Unsupported(f"the host function could not be followed: {what}", self.case.place, why)

    def base(self, held: Sequence[Trace]) -> tuple[_Reading, Configuration, list[Family]]:
        """The reading of traces that the paths agree with; of the traces alone where no path has the same events."""
        mine = [p for p in self.paths.read if p.trace and events_of(p.trace) == events_of(self.traces[0])]
        try:
            found = _Reading(self.case, self.traces, held, mine)
            return found, *found.base(self.configs)
        except Unsupported as error:
            if not mine:
                raise
            found = _Reading(self.case, self.traces, held)
            base = found.base(self.configs)
            self.unread.append(error.what)
            return found, *base

    def elsewhere(self) -> None:
        """Traces on the paths whose events no trace has, where they have small sizes. The others are excluded."""
        for p in self.paths.read:
            known = {events_of(t) for t in self.traces}
            if p.trace is not None and events_of(p.trace) not in known:
                self.traces += self.at([named(self.case, p.run.dims)])

    def agreed(self, found: _Reading) -> None:
        """Traces on the paths that do not agree with the terms. Raises Refuted where there are new ones."""
        differences = [d for ds in found.relations.disagreed.values() for d in ds]
        if fresh := self.at(named(self.case, d.dims) for d in differences if d.dims is not None):
            self.beside += fresh
            raise Refuted(next(d.what for d in differences if d.dims is not None))

    def right(self, found: _Reading) -> list[Path]:
        """The paths that agree with the terms."""
        return [p for k, p in enumerate(found.relations.reads) if k not in found.relations.disagreed]

    def returned(self, found: _Reading) -> set[Term]:
        """The conditions of all paths that agree with the terms: clauses exclude the others, but for those on which the
        host function raises and nothing is claimed."""
        paths = [] if self.unread else [set(p.conditions) for p in self.right(found)]
        return set.intersection(*paths) if paths else set()

    def clauses(self, found: _Reading) -> Iterator[Clause]:
        """Clauses that exclude paths on which the host function does something else, and paths that no run reached."""
        paths = self.paths
        reads, disagreed = found.relations.reads, found.relations.disagreed
        right = self.right(found)
        for p in paths.every if not self.unread else ():
            if p in right:
                continue
            condition = telling([*right, p], [True] * len(right) + [False]) if right else None
            if p.run.refuses:
                yield from () if condition is None else (_elsewhere(condition, None, REFUSED),)
            elif condition is not None:
                place = next((d.place for d in p.decisions if T.make("not", d.condition) is condition), None)
                yield _elsewhere(condition, place)
            else:
                for d in disagreed[reads.index(p)] if p in reads else ():
                    yield _elsewhere(_equal(d.found, d.read), None, f"{d.what}, which is {words(d.read)}")
        for o in paths.open:
            yield _elsewhere(o.condition, o.place, o.why)
        yield from self.notes(len(reads))

    def notes(self, read: int) -> Iterator[Clause]:
        paths = self.paths
        for n in paths.asked:
            yield Clause("config", None, ASKED.get(n.what, n.what), "", n.place)
        known = {n.what for n in paths.asked}
        yield from (Clause("config", None, said) for said in self.of_reference() if said not in known)
        yield from (copied(c) for c in dict.fromkeys(c for p in paths.read for c in changed_copies(p)))
        for name in dict.fromkeys(x for p in paths.read for x in p.ordered):
            yield overlap_free(name, "PyTorch, which orders the dimensions of a new tensor by its strides")
        if read:
            yield Clause("config", None, f"the host function was read: {read} path{'s' * (read > 1)}")

    def of_reference(self) -> list[str]:
        """Sentences on the state that the PyTorch function reads beside its arguments. Where its intermediate tensors
        may be large it is called on tensors without contents."""
        fn = self.case.reference.fn
        if fn is None:
            return []
        files = host_files(fn)

        def call(dims: Mapping[str, int | float]) -> None:
            args = arguments(self.case, dims, self.seed)
            if elements(self.case, dims) * max(dims.values(), default=1) > COMPUTED_ELEMENTS:
                formed(fn, args)
            else:
                values(self.case, fn, args)

        with asking(fn, files) as notes:
            read = [said for t in self.traces for said in read_in(partial(call, t.dims), files)]
        for n in notes.lost:
            why = "it may be another one in another call"
            raise Unsupported(f"the reference computes with {n.what}", n.place, why)
        return list(dict.fromkeys((*read, *(n.what for n in notes.asked))))

    def at(self, shapes: Iterable[Mapping[str, int | float]]) -> list[Trace]:
        """Traces at shapes that were not seen."""
        seen = [t.dims for t in (*self.traces, *self.beside)]
        fresh = (d for d in shapes if d not in seen and elements(self.case, d) <= RUN_INPUT_ELEMENTS)
        return [t for d in islice(fresh, BESIDE) if (t := self.capture(d)) is not None]

    # ---- several ways

    def parts(self, held: Sequence[Trace]) -> list[Configuration]:
        """The largest group of shapes with the same events has to be understood, others may be left out."""
        if self.depth:
            raise Refuted("the sequence of operations of the host function")
        self.traces = [*self.traces, *held]
        if len(self.traces) < MANY:
            self.traces += self.more(MANY, self.traces, TRACE_ROUNDS + 1)
        groups: dict[Any, list[Trace]] = {}
        for t in self.traces:
            groups.setdefault(events_of(t), []).append(t)
        ordered = sorted(groups, key=lambda k: -len(groups[k]))
        out: list[list[Configuration]] = []
        for key in ordered:
            if out and self.meter.exhausted:
                break
            try:
                out.append(self.part(key))
            except (Unsupported, CaseError):
                if key is ordered[0]:
                    raise
        return list(chain.from_iterable(_together(self.case, out)))

    def condition(self, key: Any) -> Term | None:
        inside = [events_of(t) == key for t in self.traces]
        return separating(inside, [t.dims for t in self.traces], self.case.names)

    def sharpen(self, key: Any, condition: Term) -> None:
        """Traces at both sides of the place where the events change, as one dim of the condition grows."""
        for name in dict.fromkeys(s.attr for s in condition.walk() if s.op == "size"):
            mine = [t.dims for t in self.traces if events_of(t) == key]
            pairs = ((a, b.dims[name]) for a in mine for b in self.traces)
            moved = (
                (a, a[name], b)
                for a, b in pairs
                if a[name] != b and elements(self.case, {**a, name: b}) <= RUN_INPUT_ELEMENTS
            )
            wanted = (
                m
                for m in moved
                if value(condition, {**m[0], name: m[2]}) is False and self.case.holds({**m[0], name: m[2]})
            )
            start = next(wanted, None)
            if start is None:
                continue
            dims, inside, outside = start
            while abs(outside - inside) > 1:
                middle = int(inside + outside) // 2
                trace = self.capture({**dims, name: middle}) if self.case.holds({**dims, name: middle}) else None
                if trace is None:
                    break
                self.traces.append(trace)
                if events_of(trace) == key:
                    inside = middle
                else:
                    outside = middle

    def part(self, key: Any) -> list[Configuration]:
        """The configurations of the shapes that have these events."""
        condition = self.condition(key)
        if condition is not None:
            self.sharpen(key, condition)
            condition = self.condition(key)
        shapes = [t.dims for t in self.traces]
        mine = [t for t in self.traces if events_of(t) == key]
        other = next(t for t in self.traces if events_of(t) != key)
        if condition is None:
            raise difference(mine[0], other)
        self.beside = self.at(d for s in shapes[:3] for d in jumps([condition], self.case, s))
        if any((events_of(t) == key) != (value(condition, t.dims) is True) for t in self.beside):
            raise Refuted("the sequence of operations of the host function")
        inner = replace(self.case, where=T.make("and", self.case.where, condition))
        why = difference(mine[0], other)
        elsewhere = f"{ELSEWHERE}: {why.what}"
        clause = Clause("shape", condition, words(condition), elsewhere, why.place)
        found = _Config(
            inner, self.seed, self.config, mine, self.exhaustive, self.meter, self.depth + 1
        ).configurations()
        cases = list(_cases(condition))
        return [
            replace(
                s, facts=s.facts.union(case), clauses=(clause, *s.clauses), label=_labelled(s.label, *map(words, case))
            )
            for s in found
            for case in cases
        ]


def _together(case: Case, parts: list[list[Configuration]]) -> list[list[Configuration]]:
    """The parts with one clause for all, that a shape is of one of them; with none where they leave out no shape. Each
    has its own condition among its facts."""
    terms = [p[0].clauses[0].term for p in parts if p]
    every = T.make("or", False, *(t for t in terms if t is not None))
    if len(parts) < 2 or len(parts) != len(terms):
        return parts
    if Solver().contradictory((*facts(case), T.make("not", every))):
        return [[replace(s, clauses=s.clauses[1:]) for s in p] for p in parts]
    return [[replace(s, clauses=(_of_one(s.clauses[0], every), *s.clauses[1:])) for s in p] for p in parts]


def _of_one(clause: Clause, every: Term) -> Clause:
    """The clause about one part as that about all."""
    return Clause(clause.kind, every, words(every), ELSEWHERE, clause.place)


def _elsewhere(condition: Term, place: Place | None, why: str = "") -> Clause:
    return Clause("shape", condition, words(condition), why or ELSEWHERE, place)


def _equal(a: Term, b: Term) -> Term:
    """a = b, where b is the least of a and others: a is at most those; where it is |a|: a is at least 0."""
    if b.op in ("min", "max") and a in b.args:
        others = [x for x in b.args if x is not a]
        return T.make("and", True, *(T.make("le", *((a, x) if b.op == "min" else (x, a))) for x in others))
    return T.make("le", 0, a) if b.op == "abs" and b.args[0] is a else T.make("eq", a, b)


def named(case: Case, dims: Mapping[str, Number]) -> dict[str, Number]:
    """The numbers of dims and scalars alone."""
    return {n: dims[n] for n in (*case.names, *case.scalars)}


def _within(s: Configuration, case: tuple[Term, ...], clause: Clause) -> Configuration:
    """The configuration where the facts of the case hold too."""
    label = _labelled(s.label, *map(words, case[:1]))
    return replace(s, facts=s.facts.union(case), clauses=(clause, *s.clauses), label=label)


def _cases(condition: Term) -> Iterator[tuple[Term, ...]]:
    """The parts of a disjunction, with n = 1 for what is less than 2."""
    negated = condition.op == "not"
    inner = condition.args[0] if negated else condition
    if inner.op != ("and" if negated else "or"):
        yield from [_case(condition)]
        return
    for part in inner.args:
        if not part.is_const:
            yield _case(T.make("not", part) if negated else part)


def _case(condition: Term) -> tuple[Term, ...]:
    sizes = dict.fromkeys(s for s in condition.walk() if s.op == "size")
    return (condition, *(T.make("eq", n, 1) for n in sizes if condition in _single(n)))


def _single(n: Term) -> tuple[Term, ...]:
    """The conditions n < 2."""
    lower = (T.make("lt", 1, n), T.make("le", 2, n))
    return (T.make("le", n, 1), T.make("lt", n, 2), *(T.make("not", t) for t in lower))


def _labelled(*labels: str) -> str:
    return ", ".join(x for x in labels if x)


class _Reading:
    """Traces with the same events read together. Raises Refuted where a held-back one refutes a term."""

    def __init__(
        self,
        case: Case,
        traces: Sequence[Trace],
        held: Sequence[Trace],
        paths: Sequence[Path] = (),
        comparison: Comparison | None = None,
    ) -> None:
        self.case = case
        if paths and comparison is None:
            comparison = Comparison(case, frozenset(facts(case)), Solver())
        self.relations = Relations(case, traces, held, paths, comparison)
        self.traces = self.relations.all
        self.buffers = Buffers(self.relations)
        self.columns: list[tuple[Any, ...]] = list(zip(*(t.acts for t in self.traces), strict=True))

    def base(self, configs: Sequence[int]) -> tuple[Configuration, list[Family]]:
        """The configuration with the kernels of one trace, and each launch's kernel at all block sizes."""
        read = self.read()
        outputs = {n: self.output(n) for n in self.traces[0].outputs}
        base = Configuration(
            facts=frozenset(facts(self.case)),
            buffers=tuple(self.buffers.every),
            events=tuple(e for e, _ in read if e is not None),
            inputs=self.buffers.inputs,
            outputs=outputs,
            bounds=bounds(self.case),
            distinct=frozenset(n for n, s in self.case.tensors.items() if s.distinct),
            label=f"config {configs[0]}" if self.traces[0].configs > 1 and len(configs) == 1 else "",
        )
        return base, [f for _, f in read if f is not None]

    def event(self, k: int, column: Sequence[Any], families: Mapping[int, Family]) -> Event | None:
        if _is_launch(column):
            return self.launch(column, families[k])
        return host_operations.event(column, self.buffers)

    def of_descriptors(self) -> Iterator[Clause]:
        """The inputs of which the host function makes tensor descriptors lie where one may begin."""
        given = (v for launch in self.traces[0].launches for v in launch.args.values())
        bases = {v.base.buffer.address for v in given if isinstance(v, Descriptor)}
        yield from (aligned(n) for n, x in self.traces[0].inputs.items() if x.buffer.address in bases)

    def launch(self, column: Sequence[Launch], family: Family) -> SymbolicLaunch:
        first = column[0]
        what = f"of {first.kernel}"
        names = operand_names(first)
        unused = [not _is_used(family.base, k) for k in range(len(names))]
        operands = [
            self.operand([c.operands[k] for c in column], f"{names[k]} {what}", first, unused[k])
            for k in range(len(names))
        ]
        operands = passed_numbers.truths(family.base, operands, first.host)
        passed = passed_numbers.as_passed(family.base, operands, self.case.scalars)
        widened = f"{names[passed.unknown]} {what}" if passed.unknown is not None else ""
        before = list(self.relations.known)
        self.relations.known += [t for x in passed.operands for t in _sizes(x) if not t.is_const]
        grid = [self.relations.term([c.grid[k] for c in column], f"grid[{k}] {what}", first.host) for k in range(3)]
        self.relations.known[:] = before
        xyz = (grid[0], grid[1], grid[2])
        return SymbolicLaunch(first.kernel, family.base, passed.operands, xyz, first.host, widened, passed.narrowed)

    def operand(self, values: Sequence[Any], what: str, launch: Launch, unused: bool) -> Term | View:
        pairs = zip(values, self.traces, strict=True)
        values = [reference(v, t) if hasattr(v, "data_ptr") else v for v, t in pairs]
        if all(isinstance(v, TensorRef) for v in values):
            new = host_operations.constant(values, self.buffers, what, launch.host)
            return self.buffers.view(values, what, launch.host, new, address=True)
        if all(isinstance(v, (bool, int, float)) for v in values):
            found = self.relations.maybe(values, what, launch.host) if unused else None
            if unused and found is None:
                return T.scalar(what, T.INT)  # any number
            return found if found is not None else self.relations.term(values, what, launch.host)
        raise Unsupported(f"{what} is a {type(values[0]).__name__}", launch.host)

    def output(self, name: str) -> View:
        refs = [t.outputs[name] for t in self.traces]
        return self.buffers.view(refs, name, self.case.place, host_operations.constant(refs, self.buffers, name, None))

    # ---- confirmation

    def jumps(self) -> Iterator[dict[str, Number]]:
        """Shapes with a dim beyond the largest block that it can cross, and at both sides of the places where the terms
        jump."""
        terms = list(dict.fromkeys(r.term for r in self.relations.found if not r.constant))
        small = self.small()
        blocks = [t.attr for t in self.relations.known if t.is_const and t.type == T.INT and t.attr > 1]
        for n in self.case.names:
            yield from self.crossing(n, sorted(set(blocks), reverse=True), small)
        yield from jumps(terms, self.case, small)

    def apart(self) -> Iterator[dict[str, Number]]:
        """Shapes at which a alternative of a term that fits all that was seen too would differ."""
        return apart(self.relations, self.small(), RUN_INPUT_ELEMENTS)

    def small(self) -> Mapping[str, Number]:
        return min((t.dims for t in self.traces), key=lambda d: max((d[n] for n in self.case.names), default=0))

    def crossing(self, n: str, blocks: Sequence[int], small: Mapping[str, Number]) -> Iterator[dict[str, Number]]:
        """A shape at which the dim is beyond more of the blocks, largest first, than at any shape seen."""
        seen = max(int(t.dims[n]) for t in self.traces)
        for b in blocks:
            if seen > b:
                return
            tried = (around(self.case, {n: v}, small) for v in (2 * b + 1, b + 1))
            fitting = (d for d in tried if d is not None and elements(self.case, d) <= RUN_INPUT_ELEMENTS)
            if (found := next(fitting, None)) is not None:
                yield found
                return

    def confirm(self, traces: Sequence[Trace]) -> _Reading:
        """The same terms again, with these traces held back."""
        if not traces:
            return self
        if any(events_of(t) != events_of(self.traces[0]) for t in traces):
            raise Refuted("the sequence of operations of the host function")
        held = [*self.relations.held, *traces]
        again = _Reading(self.case, self.relations.traces, held, self.relations.reads, self.relations.comparison)
        again.read()
        for name in self.traces[0].outputs:
            again.output(name)
        return again

    def read(self) -> list[tuple[Event | None, Family | None]]:
        """Every event that can be seen, launches with their kernels at all block sizes, which are read first."""
        families: dict[int, Family] = {}
        for k, column in enumerate(self.columns):
            with self.reading(k):
                if _is_launch(column):
                    families[k] = family_of(column, self.relations)
        out: list[tuple[Event | None, Family | None]] = []
        live = host_operations.live(self.traces[0])
        for k, column in enumerate(self.columns):
            with self.reading(k):
                if live[k]:
                    out.append((self.event(k, column, families), families.get(k)))
        return out

    @contextmanager
    def reading(self, k: int) -> Iterator[None]:
        """The numbers of event k are read."""
        self.relations.event = k
        try:
            yield
        finally:
            self.relations.event = None

    # ---- what it rests on

    def clauses(self, followed: bool = False, part: bool = False) -> Iterator[Clause]:
        """`part`: the traces are those of some shapes only, at which the host function does the same."""
        yield from assumed(self.case)
        where = " of those where the host function does this" if part else ""
        seen = "; ".join(at(t) for t in self.relations.run if t.dims)
        found, held = len(self.relations.traces), len(self.relations.held)
        if seen and not followed:
            yield Clause("config", None, f"launch arguments are functions of the dims, found at {found} shapes and "
                         f"confirmed at {held}: {seen}", "the host function is run, not read")  # fmt: skip
        for r in self.relations.found:
            if r.constant and r.what.split(" ")[0].isupper():
                yield Clause("config", None, f"{r.what} is {r.term} at every shape that was tried{where}", "", r.place)
        changed = {ref.buffer.address for e in self.traces[0].events for ref in host_operations.written_by(e)}
        every = (e for t in self.traces for e in t.events)
        yield from (written_once(w.operator, w.place) for w in repeated_writes.of_events(every))
        yield from self.of_descriptors()
        yield from (distinct(n) for n, s in self.case.tensors.items() if s.distinct)
        for name, spec in strided(self.case).items():
            rows = last_strides.OF_ROWS if spec.unit else ""
            yield Clause("layout", None, f"the strides of {name} may be any positive numbers{rows}")
            if self.traces[0].inputs[name].buffer.address in changed:
                yield overlap_free(name, "the host function writes it")


def changed_copies(path: Path) -> Iterator[Copied]:
    """The copies on a path, of those that are none where an input lies otherwise, which some event may write."""
    if path.trace is not None and path.run.copies:
        changed = {ref.buffer.address for e in path.trace.events for ref in host_operations.written_by(e)}
        yield from (replace(c, address=0) for c in path.run.copies if c.address in changed)


def copied(c: Copied) -> Clause:
    """Else the input itself would be written."""
    return Clause("layout", None, f"`{c.call}` copies {c.of}", "the copy, which is written", c.place)


def _is_used(module: Module, k: int) -> bool:
    """Whether any operation of the kernel takes its argument k."""
    taken = (v for op in module.walk() for v in (*op.operands, *(x for _, xs in op.successors for x in xs)))
    return k >= len(module.entry.args) or any(v is module.entry.args[k] for v in taken)


def _sizes(x: Term | View) -> tuple[Term, ...]:
    """The arguments of simple functions for a grid: sizes that the kernel gets, shapes."""
    return x.shape if isinstance(x, View) else (x,) if x.type == T.INT else ()


def _is_launch(column: Sequence[Any]) -> bool:
    return isinstance(column[0], Launch)


def events_of(trace: Trace) -> tuple[Any, ...]:
    """The events but for views in order, without numbers, and the names of the results."""
    return (tuple(trace.outputs), *map(_signature, trace.acts))


def difference(a: Trace, b: Trace) -> Unsupported:
    """The first event that only one of two traces has."""
    for x, y in zip_longest(a.acts, b.acts):
        mine, other = (None if e is None else _signature(e) for e in (x, y))
        if mine != other:
            place = next((e.host for e in (x, y) if e is not None), None)
            names = f"{_name(mine)} at {at(a)}, {_name(other)} at {at(b)}"
            return Unsupported(f"the operations of the host function depend on the shape: {names}", place)
    return Unsupported(f"the host function returns {len(a.outputs)} tensors at {at(a)}, {len(b.outputs)} at {at(b)}")


def _signature(event: Launch | TorchOp) -> tuple[Any, ...]:
    if isinstance(event, Launch):
        return "launch", event.kernel, event.file, event.line, len(event.operands), reads_beside(event)
    return "torch", str(event.func), len(event.outputs)


def _name(signature: tuple[Any, ...] | None) -> str:
    return str(signature[1]) if signature else "nothing"


def operand_names(launch: Launch) -> list[str]:
    """The names of the operands: x, sizes[1], a descriptor's numbers desc.0, desc.1 ..."""
    names: list[str] = []
    for name, given in launch.args.items():
        if name in launch.constexprs:
            continue
        count = len(list(_flat(given)))
        names += [name] if count == 1 else [f"{name}.{k}" for k in range(count)]
    spare = len(launch.operands) - len(names)
    return names[: len(launch.operands)] if spare <= 0 else names + [f"operand {len(names) + k}" for k in range(spare)]


def _flat(value: Any) -> Iterator[Any]:
    if isinstance(value, tuple):
        for v in value:
            yield from _flat(v)
    else:
        yield value


# ---- what is known of the dims --------------------------------------------------------------------------------------


def facts(case: Case) -> Iterator[Term]:
    """Sizes are at least 1, `where` holds, scalars meet their limits; strides of strided inputs are positive."""
    yield from _least(case)
    yield from _where(case)
    for n, s in case.scalars.items():
        if s.dtype == "bool":
            continue
        symbol = T.scalar(n) if s.is_float else T.size(n)
        if s.low is not None:
            yield T.make("le", s.low, symbol)
        if s.high is not None:
            yield T.make("lt", symbol, s.high)
        if s.positive:
            yield T.make("lt", 0, symbol)
    for n, spec in strided(case).items():
        yield from (T.make("le", 1, t) for t in stride_terms(n, spec) if t.op == "size")


def _least(case: Case) -> Iterator[Term]:
    """The assumptions that dims and integer scalars are at least 1."""
    for n in case.names:
        yield T.make("le", 1, T.size(n))
    for name in case.tensors:
        yield from (T.make("le", 1, e) for e in case.dims(name) if not e.is_const and e.op != "size")
    yield from (T.make("le", 1, T.size(n)) for n, s in case.scalars.items() if may_be_less_than_one(s))


def _where(case: Case) -> tuple[Term, ...]:
    return case.where.args if case.where.op == "and" else () if case.where.is_const else (case.where,)


def assumed(case: Case) -> Iterator[Clause]:
    """The clauses for what is assumed of sizes and scalars and not said by the case."""
    said = frozenset(_where(case))
    for t in dict.fromkeys(_least(case)):
        if not t.is_const and not any(_at_least_one(c, t.args[1]) for c in said) and not _of_sizes(t.args[1]):
            yield Clause("size", t, f"1 <= {words(t.args[1])}")


def _of_sizes(e: Term) -> bool:
    """Whether an expression is at least 1 because the sizes in it are: 2 * H, M * N."""
    return e.op != "size" and I.nonnegative(T.sub(e, 1))


def _at_least_one(condition: Term, n: Term) -> bool:
    """Whether a condition of the case is a lower limit c <= n, c < n or c == n with c >= 1."""
    if condition.op not in ("le", "lt", "eq"):
        return False
    for low, high in (condition.args, condition.args[::-1] if condition.op == "eq" else condition.args):
        if high is n and low.is_const and low.attr + (condition.op == "lt") >= 1:
            return True
    return False


def bounds(case: Case) -> dict[str, tuple[Term, Term]]:
    """low <= v < high for the elements of integer inputs with both limits."""
    given = {n: (s.low, s.high) for n, s in case.tensors.items() if not s.is_float and s.dtype != "bool"}
    return {n: (low, high) for n, (low, high) in given.items() if low is not None and high is not None}


__all__ = ["bounds", "facts", "configurations"]
