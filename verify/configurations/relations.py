"""Numbers of traces as terms over dims and scalars, found on some traces and confirmed on others.

A term is the simplest one that fits (`lift.terms.fit`); it has to hold on traces that it was not found on, among
them shapes at and beside the places where it jumps: cdiv(N, 1024) is asked at N = 1023, 1024, 1025.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypeVar

from trilift.lift.capture.trace import Trace
from trilift.lift.cases.declaration import Case, stride_terms
from trilift.lift.errors import Place, Unsupported
from trilift.lift.language.case_spec import Spec
from trilift.lift.pytorch.host import term_of
from trilift.lift.terms import construct as T
from trilift.lift.terms.fit import Number, fit, value
from trilift.lift.terms.term import Term

from ..integers.quotient import replace as substituted
from .host_reading import Comparison, Path, telling

V = TypeVar("V")
Environment = Mapping[str, Number]
REAL_RELATIVE_ERROR = 2e-7  # of reals: an argument may have gone through an f32
MOST_BRANCHES = 4  # of one number of the host function
LEAST = 4  # traces that a varying number is found on, at least
JUMPS = {"floordiv", "mod", "next_power_of_2", "min", "max", "lt", "le", "eq", "ne"}


class Refuted(Exception):
    """A term does not hold on the traces that were held back."""


@dataclass(frozen=True, slots=True)
class Relation:
    """`what`, of the event at `place`, is `term`."""

    what: str
    term: Term
    place: Place | None
    constant: bool  # had one value only


@dataclass(frozen=True, slots=True)
class Difference:
    """`what` is `found` at the shapes that were run, and `read` on a path of the host function: another number at
    `dims`. Without dims nothing shows that it is the same one."""

    what: str
    found: Term
    read: Term
    dims: Mapping[str, Number] | None


@dataclass(eq=False, slots=True)
class Relations:
    """`traces`: those that terms are found on; `held` are held back; `reads` are paths of the host function, whose
    numbers carry the terms that they are. Values are given for all of them, in this order. Raises Refuted where a term
    does not hold on the held ones. `disagreed`: the paths on which a term is not what the host function computes."""

    case: Case
    traces: Sequence[Trace]
    held: Sequence[Trace]
    reads: Sequence[Path] = ()
    comparison: Comparison | None = None
    disagreed: dict[int, list[Difference]] = field(default_factory=dict)
    bound: list[dict[Term, Term]] = field(default_factory=list)  # of each path, what block sizes are there
    known: list[Term] = field(default_factory=list)  # block sizes: other numbers may be simple functions of them
    blocks: dict[object, Term] = field(default_factory=dict)  # relation, or name and values -> the block size's symbol
    found: list[Relation] = field(default_factory=list)
    environments: list[dict[str, Number]] = field(default_factory=list)
    tuned: dict[str, int] = field(default_factory=dict)  # symbol of a tuned parameter -> the event that it is of
    event: int | None = None  # which is read now: tuned parameters of others may have any value

    def __post_init__(self) -> None:
        self.environments = [environment(self.case, t) for t in self.all]
        self.bound = [{} for _ in self.reads]

    @property
    def all(self) -> list[Trace]:
        return [*self.run, *(p.trace for p in self.reads if p.trace is not None)]

    @property
    def run(self) -> list[Trace]:
        """Those that were run."""
        return [*self.traces, *self.held]

    def of_runs(self, values: Sequence[V]) -> Sequence[V]:
        """The values of the traces that were run."""
        return values[: len(self.run)]

    def term(self, values: Sequence[Number], what: str, place: Place | None = None) -> Term:
        """The term that has these values. Raises Unsupported if none has."""
        found = self.maybe(values, what, place)
        if found is None:
            raise self.unfit(values, what, place)
        return found

    def maybe(self, values: Sequence[Number], what: str, place: Place | None = None) -> Term | None:
        """The term that has these values; None if nothing fits. None among the values: any number would do there."""
        runs = self.of_runs(list(zip(values, self.environments, strict=True)))
        rows = [(v, e, k >= len(self.traces)) for k, (v, e) in enumerate(runs) if v is not None]
        if not rows:
            return T.const(0)
        first = rows[0][0]
        constant = all(type(v) is type(first) and v == first for v, _, _ in rows)
        try:
            found, refuted = T.const(first) if constant else self.varying(rows, what), None
        except Refuted as error:
            found, refuted = None, error
        settled = self.settled(found, values, what)
        if settled is None and refuted is not None:
            raise refuted
        if settled is not None:
            self.found.append(Relation(what, settled, place, settled.is_const))
        return settled

    # ---- what the host function computes

    def settled(self, found: Term | None, values: Sequence[Number], what: str) -> Term | None:
        """The term itself where each path is shown to compute it. Where that is open, what the paths compute, if it was
        seen as well. Where a path computes something else, or nothing shows what, it is noted."""
        reads = [(k, v) for k, v in enumerate(values[len(self.run) :]) if v is not None]
        if not reads or self.comparison is None:
            return found
        doubtful = [] if found is None else [(k, v) for k, v in reads if not self.same(found, v, k)]
        if found is not None and not doubtful:
            return found
        apart = {} if found is None else {k: d for k, v in doubtful if (d := self.differ(found, v, k)) is not None}
        for part in ([(k, v) for k, v in reads if k not in apart], reads):
            if (known := self.computed_and_seen(part, values)) is not None:
                self.disagree(what, known, [(k, v) for k, v in reads if (k, v) not in part], apart)
                return known
        if found is not None:
            self.disagree(what, found, doubtful, apart)
        return found

    def disagree(
        self, what: str, t: Term, reads: Sequence[tuple[int, Number]], apart: Mapping[int, Mapping[str, Number]]
    ) -> None:
        """Notes the paths that are not shown to compute the term."""
        for k, v in reads:
            self.disagreed.setdefault(k, []).append(Difference(what, t, term_of(v), apart.get(k)))

    def computed_and_seen(self, reads: Sequence[tuple[int, Number]], values: Sequence[Number]) -> Term | None:
        """A term that each of these paths computes and that has the values of the runs."""
        return next((t for t in self.candidates(reads) if self.seen(t, values) and self.agree(t, reads)), None)

    def agree(self, t: Term, reads: Sequence[tuple[int, Number]]) -> bool:
        """Whether each path is shown to compute the term."""
        return all(self.same(t, v, k) for k, v in reads)

    def same(self, t: Term, v: Number, k: int) -> bool:
        """Whether the term is shown to be the number v of path k."""
        assert self.comparison is not None
        return self.comparison.same(self.here(t, k), term_of(v), self.reads[k])

    def differ(self, t: Term, v: Number, k: int) -> Mapping[str, Number] | None:
        """Dims at which the term is not the number v of path k."""
        assert self.comparison is not None
        return self.comparison.differ(self.here(t, k), term_of(v), self.reads[k])

    def here(self, t: Term, k: int) -> Term:
        """The term with what block sizes are on path k."""
        return substituted(t, self.bound[k]) if self.bound[k] else t

    def computed(self, t: Term | None, values: Sequence[Number]) -> Term | None:
        """The term if each path computes it."""
        reads = enumerate(values[len(self.run) :])
        return t if t is not None and self.agree(t, list(reads)) else None

    def seen(self, t: Term, values: Sequence[Number]) -> bool:
        """Whether it has the values of the runs."""
        rows = self.of_runs(list(zip(values, self.environments, strict=True)))
        return all(v is None or agrees(t, e, v) for v, e in rows)

    def candidates(self, reads: Sequence[tuple[int, Number]]) -> Iterable[Term]:
        """The terms that the paths may compute: one path's term; one of several, and the condition that leads to
        each."""
        terms = list(dict.fromkeys(term_of(v) for _, v in reads))
        yield from terms
        if not 1 < len(terms) <= MOST_BRANCHES or len({t.type == T.BOOL for t in terms}) > 1:
            return
        of = [term_of(v) for _, v in reads]
        for last in reversed(terms):
            chosen: Term | None = last
            for t in terms:
                if t is not last and chosen is not None:
                    chosen = self.chosen([k for k, _ in reads], [s is t for s in of], t, chosen)
            if chosen is not None:
                yield chosen

    def chosen(self, paths: Sequence[int], inside: Sequence[bool], a: Term, b: Term) -> Term | None:
        """One term on the paths inside, another one on the others."""
        condition = telling([self.reads[k] for k in paths], inside)
        if condition is None:
            return None
        if a.type == T.BOOL and a.is_const and b.is_const:
            return condition if a.attr else T.make("not", condition)
        return T.where(condition, a, b)

    def varying(self, rows: Sequence[tuple[Number, Environment, bool]], what: str) -> Term | None:
        """A name of the case, else a term over dims, scalars and block sizes, else one with strides too."""
        seen = [(v, e) for v, e, held in rows if not held]
        if len(seen) < LEAST:
            raise Refuted(f"{what}, seen at {len(seen)} shapes only,")
        values = [v for v, _ in seen]
        every = [e for _, e in seen]
        hidden = {n for n, event in self.tuned.items() if event != self.event}
        every = [{n: v for n, v in e.items() if n not in hidden} for e in every] if hidden else every
        found = _leaf(values, every)
        for environments in ([_unstrided(e) for e in every], every) if found is None else ():
            names = environments[0].keys()
            known = tuple(t for t in self.known if all(s.attr in names for s in t.walk() if s.op == "size"))
            found = fit(values, environments, known)
            if found is not None or len(names) == len(every[0]):
                break
        if found is not None and not all(agrees(found, e, v) for v, e, held in rows if held):
            raise Refuted(what)
        return found

    def unfit(self, values: Sequence[Number], what: str, place: Place | None) -> Unsupported:
        seen = "; ".join(f"{v} at {at(t)}" for v, t in list(zip(values, self.all, strict=True))[:4])
        advice = "make the number it depends on a dim or a scalar of the case"
        return Unsupported(
            f"{what} is none of the functions of the case's dims that are tried", place, f"it is {seen}", advice
        )

    def block(self, name: str, term: Term | None, values: Sequence[int]) -> Term:
        """The symbol of a block size, one for all that have the same relation, or the same name and values; later
        numbers may be functions of it."""
        return self.symbol(term if term is not None else (name, tuple(values)), name, values)

    def option(self, name: str, values: Sequence[int]) -> Term:
        """The symbol of a parameter that autotuning chooses, of one launch."""
        symbol = self.symbol((name, tuple(values), self.event), name, values)
        assert self.event is not None
        self.tuned[symbol.attr] = self.event
        return symbol

    def symbol(self, key: object, name: str, values: Sequence[int]) -> Term:
        if key not in self.blocks:
            taken = self.environments[0].keys() | self.case.tensors.keys()
            fresh = next(n for k in range(len(taken) + 2) if (n := f"{name}{k or ''}") not in taken)
            for e, v in zip(self.environments, values, strict=True):
                e[fresh] = v
            self.blocks[key] = T.size(fresh)
            for known, v in zip(self.bound, values[len(self.run) :], strict=True):
                known[T.size(fresh)] = term_of(v)
        return self.blocks[key]


def _leaf(values: Sequence[Number], environments: Sequence[Environment]) -> Term | None:
    """The name that has these values."""
    if not all(isinstance(v, int) and not isinstance(v, bool) for v in values):
        return None
    names = sorted(environments[0], key=lambda n: (n.startswith("stride("), n))
    hit = (
        n for n in names if all(isinstance(e[n], int) and e[n] == v for v, e in zip(values, environments, strict=True))
    )
    name = next(hit, None)
    return None if name is None else T.size(name)


def _unstrided(e: Environment) -> Environment:
    return {n: v for n, v in e.items() if not n.startswith("stride(")}


def at(trace: Trace) -> str:
    return ", ".join(f"{n}={v}" for n, v in trace.dims.items())


def agrees(term: Term, numbers: Environment, expected: Number) -> bool:
    """Whether the term has this value: integers and booleans exactly, reals within an f32 rounding."""
    got = value(term, numbers)
    if got is None or isinstance(got, bool) != isinstance(expected, bool):
        return False
    exact = isinstance(expected, (bool, int))
    return bool(got == expected if exact else abs(got - expected) <= REAL_RELATIVE_ERROR * abs(expected))


def strided(case: Case) -> dict[str, Spec]:
    """The inputs whose strides are arbitrary."""
    return {n: s for n, s in case.tensors.items() if s.strided and s.shape}


def environment(case: Case, trace: Trace) -> dict[str, Number]:
    """The numbers of a trace: dims, scalars, and the strides of strided inputs, called stride(x,0)."""
    seen = (
        (t, v)
        for n, s in strided(case).items()
        for t, v in zip(stride_terms(n, s), trace.inputs[n].strides, strict=True)
    )
    strides = {t.attr: v for t, v in seen if t.op == "size"}
    truths = {n for n, s in case.scalars.items() if s.dtype == "bool"}
    return {n: v for n, v in trace.dims.items() if n not in truths} | strides


ROW = tuple(sorted({m * 2**p for p in range(13) for m in (1, 3)}))  # sizes between which jumps are looked for


def jumps(terms: Sequence[Term], case: Case, dims: Mapping[str, Number]) -> Iterator[dict[str, Number]]:
    """Shapes at both sides of the places where a subterm jumps, as one dim grows from these dims."""
    parts = dict.fromkeys(s for t in terms for s in t.walk() if s.op in JUMPS)
    for part in parts:
        for name in dict.fromkeys(s.attr for s in part.walk() if s.op == "size" and s.attr in case.names):
            yield from _beside(part, name, case, dims)


def _beside(part: Term, name: str, case: Case, dims: Mapping[str, Number]) -> Iterator[dict[str, Number]]:
    """At most two jumps: the first beyond small sizes, and the last that a shape of modest size has."""
    allowed = [v for v in ROW if case.holds({**dims, name: v})]
    found = places(lambda v: value(part, {**dims, name: v}), allowed)
    for k in dict.fromkeys((0, len(found) - 1) if found else ()):
        yield from (d for v in found[k] if case.holds(d := {**dims, name: v}))


def places(at: Callable[[int], object], sizes: Sequence[int]) -> list[tuple[int, int]]:
    """Neighbouring integers at which a function is not the same: one pair between two of these sizes at most."""
    found = []
    for low, high in pairwise(sizes):
        before = at(low)
        if before != at(high):
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if at(middle) == before else (low, middle)
            found.append((low, high))
    return found


def constants(found: Sequence[Relation]) -> Iterator[tuple[str, object]]:
    """The values that never changed."""
    yield from ((r.what, r.term.attr) for r in found if r.constant)
