"""Laws that follow from a formula, for tests: KINDS has a row for each kind of law.

A law is emitted only if it is decided for all inputs that the case allows: by what the formula reads and how (axes that
are independent or may be permuted), by rules of its operations (degree, parity, linearity, bounds), or by the prover's
equality of the formula with changed inputs and what the law says of it. Laws that numbers refute are not tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from trilift.lift.cases.declaration import Case, Spec
from trilift.lift.errors import TriliftError
from trilift.lift.language.evaluate import evaluate
from trilift.lift.runtime import budget
from trilift.lift.runtime.budget import BUDGETS, stage
from trilift.lift.terms import construct as T
from trilift.lift.terms.spec import Formula
from trilift.lift.terms.term import Axis, Term

from ..normal_form.enclosure import INF, Enclosure
from ..runs.readings import holds
from . import homogeneity, law_texts, metamorphic
from .equations import Equations, replaced, scaled, shifted, twice
from .metamorphic import Arrays, Call, Trial
from .records import Property
from .symmetries import canonical, exchanged, independent, orbits

__all__ = ["KINDS", "Kind", "check", "properties"]

ACCURATE = 1e-6  # deviation of numbers that do not refute a law
COMBINED_INPUTS = 4  # inputs that are tried in all combinations
SHAPES = 2
STEPS = {"floor", "ceil", "trunc", "round", "sign", "to_int", "argmax", "argmin", "argmax_of", "argmin_of", "fmod",
         "signbit", "lt", "le", "eq", "ne"}  # fmt: skip


def properties(
    case: Case,
    formulas: Sequence[Formula],
    facts: Iterable[Term] = (),
    seed: int = 0,
    steps: int = BUDGETS.tests.laws_steps,
) -> tuple[Property, ...]:
    """The laws that the formulas of a case's outputs obey at all sizes of at least 1 that the case and `facts` allow,
    in the order of the formulas and of KINDS. Inputs that a law does not name are fixed. A law that is not decided
    in so many steps is left out."""
    from ..configurations.launches import facts as facts_of

    known = frozenset(facts_of(case)) | frozenset(facts)
    runs = _runs(case, known, seed)
    with stage("laws", steps) as meter:
        return _found(case, formulas, Equations(case, known, meter), runs)


def _found(case: Case, formulas: Sequence[Formula], equations: Equations, runs: Sequence[Run]) -> tuple[Property, ...]:
    found: list[Property] = []
    for f in formulas:
        s = Subject(case, f, case.name if len(formulas) == 1 else f.name, equations, runs)
        for kind in KINDS.values() if runs and s.says_something else ():
            for p in kind.found(s):
                p = _told(p, kind, s)
                if s.survives(p):
                    s.laws.append(p)
        found += s.laws
    return tuple(found)


def check(p: Property, call: Call, args: Arrays, rng: np.random.Generator) -> float | None:
    """By how much the output of `call` deviates from the law on these arrays, relative to the largest number that is
    compared; None where the law is vacuous at their shapes. How every kind is tested."""
    with np.errstate(all="ignore"):
        return KINDS[p.kind].trial(p, call, args, rng)


Run = tuple[Mapping[str, int | float], Arrays]


def _runs(case: Case, facts: Iterable[Term], seed: int) -> list[Run]:
    """Random inputs at two small shapes."""
    from trilift.lift.cases.shapes import choose
    from trilift.lift.replay.check import arguments, arrays

    shapes = [d for d in choose(case, SHAPES, seed) if all(holds(c, d) for c in facts)]
    return [(d, arrays(case, arguments(case, d, seed + k))) for k, d in enumerate(shapes)]


@dataclass
class Subject:
    """One formula, and what is known of it."""

    case: Case
    written: Formula
    name: str  # what laws call it
    equations: Equations
    runs: Sequence[Run]
    laws: list[Property] = field(default_factory=list)

    @cached_property
    def formula(self) -> Formula:
        return canonical(self.written)

    @property
    def says_something(self) -> bool:
        """Whether it reads an input, and nothing that is undefined."""
        return bool(self.inputs) and not any(t.op == "undef" for t in self.formula.term.walk())

    @cached_property
    def shapes(self) -> dict[str, tuple[Term, ...]]:
        return {x: self.case.dims(x) for x in self.case.tensors}

    @cached_property
    def inputs(self) -> list[str]:
        """The tensors that the formula reads."""
        read = T.reads(self.formula.term)
        return [x for x in self.case.tensors if x in read]

    def reals(self, allowed: Callable[[Spec], bool]) -> list[str]:
        return [x for x in self.inputs if self.case.tensors[x].is_float and allowed(self.case.tensors[x])]

    @cached_property
    def enclosure(self) -> Enclosure:
        return Enclosure(self.case.tensors, self.case.scalars)

    def call(self, dims: Mapping[str, int | float]) -> Call:
        """The output in float64."""
        f = self.written

        def values(args: Arrays) -> np.ndarray:
            with np.errstate(all="ignore"):
                return np.asarray(evaluate(f.term, f.axes, args, dims)).astype(np.float64)

        return values

    def survives(self, p: Property) -> bool:
        """Whether random numbers do not refute a law."""
        for k, (dims, args) in enumerate(self.runs):
            budget.count("trial")
            try:
                found = check(p, self.call(dims), args, np.random.default_rng([7, k]))
            except (TriliftError, ValueError, IndexError):
                return False
            if found is not None and not found <= ACCURATE:
                return False
        return True

    def at(self, positions: Mapping[str, int], dim: int | None) -> dict[str, int] | None:
        """Positions of an axis in inputs and the output, in their order; None where one name would have two."""
        ordered = {x: positions[x] for x in self.inputs if x in positions}
        if dim is None:
            return ordered
        return None if ordered.get(self.written.name, dim) != dim else {**ordered, self.written.name: dim}

    def property(self, kind: str, inputs: Iterable[str], **more: Any) -> Property:
        chosen = set(inputs)
        return Property(kind, self.written.name, "", tuple(x for x in self.inputs if x in chosen), **more)

    def has(self, kinds: Iterable[str], inputs: Iterable[str]) -> bool:
        """Whether a law of one of the kinds is known of some of these inputs."""
        return any(p.kind in kinds and set(p.inputs) <= set(inputs) for p in self.laws)

    def fresh(self, like: str) -> str:
        """A name that nothing in the case has."""
        taken = {*self.case.tensors, *self.case.params, *self.case.scalars, *self.case.names}
        while like in taken:
            like += "'"
        return like


# ---- how the laws are found ------------------------------------------------------------------------------------------

Found = Iterator[Property]


def _independent(s: Subject) -> Found:
    for k, a in enumerate(s.formula.axes):
        positions = independent(s.formula, k, s.shapes)
        at = s.at(positions, k)
        if positions and at is not None and a.size is not T.const(1):
            yield s.property("independent", positions, positions=at)


def _permuted(kind: str) -> Callable[[Subject], Found]:
    def found(s: Subject) -> Found:
        for o in orbits(s.formula, s.shapes):
            positions = dict(o.slots)
            if len(positions) < len(o.slots) or len(o.outputs) != (kind == "equivariant"):
                continue
            at = s.at(positions, o.outputs[0] if o.outputs else None)
            size = s.shapes[o.slots[0][0]][o.slots[0][1]]
            if at is not None and size is not T.const(1):
                yield s.property(kind, positions, positions=at)

    return found


def _unlimited(spec: Spec) -> bool:
    return spec.low is None and spec.high is None and not spec.positive


def _unbounded(spec: Spec) -> bool:
    return spec.low is None and spec.high is None


def _steps(s: Subject, x: str) -> bool:
    """Whether x decides something."""
    return any(t.op in STEPS and x in T.reads(t) for t in s.formula.term.walk())


def _shifted(s: Subject) -> Found:
    for x in s.reals(_unlimited):
        dims = [d for d, n in enumerate(s.shapes[x]) if n is not T.const(1)]
        for dim in () if _steps(s, x) else (*reversed(dims), None):
            if (p := _shift(s, x, dim)) is not None:
                yield p
                break


def _shift(s: Subject, x: str, dim: int | None) -> Property | None:
    name, f = s.fresh("c"), s.formula
    for degree in (0, 1, -1):
        kept = len(f.axes) == len(s.shapes[x])
        index = _aligned(f, s.shapes[x], dim) if dim is not None and degree else ()
        if index is None:
            continue
        at = {} if dim is None else {x: dim} if not (kept and degree) else s.at({x: dim}, dim)
        if at is None:
            continue
        p = s.property("shift", [x], positions=at, degree=degree)
        goal = f.term + T.mul(degree, T.read(name, index)) if degree else f.term
        if s.survives(p) and s.equations.equal(shifted(f.term, x, dim, name), goal):
            return p
    return None


def _aligned(f: Formula, shape: Sequence[Term], dim: int) -> list[Term] | None:
    """The output's index without the dimension, where the output has the dimensions of the input with or without
    it."""
    axes = list(f.axes)
    if len(axes) == len(shape):
        del axes[dim]
    rest = [n for d, n in enumerate(shape) if d != dim]
    same = len(axes) == len(rest) and all(a.size is n for a, n in zip(axes, rest, strict=True))
    return [T.axis(a) for a in axes] if same else None


def _together(xs: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Each input, then several at once."""
    for k in range(1, len(xs) + 1) if len(xs) <= COMBINED_INPUTS else (1, len(xs)):
        yield from combinations(xs, k)


def _homogeneous(s: Subject) -> Found:
    for xs in _together(s.reals(_unbounded)):
        k = homogeneity.found("degree", s.formula.term, xs)
        if k is not None and not s.has(("homogeneous", "additive"), xs):
            yield s.property("homogeneous", xs, degree=float(k))


def _parity(kind: str, parity: int) -> Callable[[Subject], Found]:
    def found(s: Subject) -> Found:
        for xs in _together(s.reals(_unlimited)):
            if s.has(("odd", "even", "additive"), xs):
                continue
            if homogeneity.found("parity", s.formula.term, xs) == parity or (len(xs) == 1 and _reflected(s, kind, xs)):
                yield s.property(kind, xs)

    return found


def _reflected(s: Subject, kind: str, xs: Sequence[str]) -> bool:
    """Whether f(-x) is proved to be f(x) or -f(x)."""
    t = s.formula.term
    goal = -t if kind == "odd" else t
    return s.survives(s.property(kind, xs)) and s.equations.equal(scaled(t, xs, T.const(-1)), goal)


def _additive(s: Subject) -> Found:
    for xs in _together(s.reals(_unbounded)):
        if homogeneity.found("linearity", s.formula.term, xs) == 1 and not s.has(("additive",), xs):
            yield s.property("additive", xs)


def _sums(s: Subject) -> Found:
    f = s.formula
    for k, a in enumerate(f.axes):
        value = _constant_sum(s, k)
        if value is not None and s.equations.equal(T.fold("sum", _bound(a), _with(f, k)), T.const(value)):
            yield s.property("sums", (), positions={s.written.name: k}, value=float(value))


def _bound(a: Axis) -> Axis:
    return Axis(f"{a.name}'", a.size)


def _with(f: Formula, k: int) -> Term:
    return exchanged(f.term, {T.axis(f.axes[k]): T.axis(_bound(f.axes[k]))}.get)


def _constant_sum(s: Subject, axis: int) -> int | None:
    """The whole number that all sums along an axis are."""
    values: set[int] = set()
    for dims, args in s.runs:
        out = s.call(dims)(args)
        total = out.sum(axis)
        scale = max(1.0, float(np.max(np.abs(out), initial=0.0)))
        if not total.size or not np.isfinite(total).all() or abs(float(total.flat[0])) > 1e6:
            return None
        values.add(round(float(total.flat[0])))
        if np.max(np.abs(total - min(values))) > 1e-9 * scale:
            return None
    return values.pop() if len(values) == 1 else None


def _causal(kind: str) -> Callable[[Subject], Found]:
    def found(s: Subject) -> Found:
        for k, a in enumerate(s.formula.axes):
            alone = independent(s.formula, k, s.shapes)
            positions = {x: d for x in s.inputs if (d := _causal_dim(s, kind, x, k, a, alone)) is not None}
            at = s.at(positions, k)
            if at is not None and positions.keys() - alone.keys():
                yield s.property(kind, positions, positions=at)

    return found


def _causal_dim(s: Subject, kind: str, x: str, k: int, a: Axis, alone: Mapping[str, int]) -> int | None:
    """The dimension of x along which no later (earlier) element is used."""
    if x in alone:
        return alone[x]
    for d, n in enumerate(s.shapes[x]):
        at = s.at({x: d}, k)
        if n is not a.size or n is T.const(1) or at is None:
            continue
        if s.survives(s.property(kind, [x], positions=at)) and _proved_causal(s, kind, x, d, a):
            return d
    return None


def _proved_causal(s: Subject, kind: str, x: str, dim: int, a: Axis) -> bool:
    i, t = T.size(s.fresh("i'")), s.formula.term
    later = kind == "causal"
    order = (lambda u, v: T.make("lt", u, v)) if later else (lambda u, v: T.make("lt", v, u))
    new = replaced(t, x, dim, lambda e: order(i, e), s.fresh(f"{x}'"))
    facts = (T.make("le", 0, i), T.make("lt", i, a.size), T.make("not", order(i, T.axis(a))))
    return s.equations.equal(new, t, *facts)


def _idempotent(s: Subject) -> Found:
    sizes = [a.size for a in s.formula.axes]
    for x in s.reals(_unlimited):
        same = len(sizes) == len(s.shapes[x]) and all(n is m for n, m in zip(sizes, s.shapes[x], strict=True))
        p = s.property("idempotent", [x])
        tried = same and s.written.dtype == s.case.tensors[x].dtype and s.survives(p)
        if tried and s.equations.equal(twice(s.formula, x), s.formula.term):
            yield p


def _bounded(s: Subject) -> Found:
    low, high = s.enclosure.of(s.formula.term)
    if s.formula.term.type != T.BOOL and (low > -INF or high < INF):
        yield s.property("bounded", (), bounds=(low, high))


def _monotone(s: Subject) -> Found:
    for direction in (1, -1):
        xs = [x for x in s.reals(lambda spec: True) if homogeneity.slope(s.formula.term, {x}, s.enclosure) == direction]
        if xs:
            yield s.property("monotone", xs, degree=float(direction))


# ---- the kinds -------------------------------------------------------------------------------------------------------


def _told(p: Property, kind: Kind, s: Subject) -> Property:
    return Property(p.kind, p.output, kind.law(p, s), p.inputs, p.positions, p.degree, p.value, p.bounds)


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of law. `change`: what is done to the inputs; `relation`: what the outputs must then be; `found`: the laws
    of this kind that are decided; `law`: the equation; `trial`: how it is tried on numbers."""

    name: str
    change: str
    relation: str
    found: Callable[[Subject], Found]
    law: Callable[[Property, Subject], str]
    trial: Trial


def _rows(*rows: Kind) -> dict[str, Kind]:
    return {r.name: r for r in rows}


KINDS: dict[str, Kind] = _rows(
    Kind("independent", "every slice but the i-th of each input is replaced", "the i-th slice of the output stays",
         _independent, lambda p, s: law_texts.slices(s, p, "{}"), metamorphic.independent),
    Kind("equivariant", "the inputs are permuted along the axis", "the output is permuted along it",
         _permuted("equivariant"), law_texts.permuted, metamorphic.permuted),
    Kind("invariant", "the inputs are permuted along the axis", "the output stays",
         _permuted("invariant"), law_texts.permuted, metamorphic.permuted),
    Kind("causal", "every slice of the inputs after the i-th is replaced", "the output up to the i-th slice stays",
         _causal("causal"), lambda p, s: law_texts.slices(s, p, ":{} + 1"), metamorphic.causal),
    Kind("anticausal", "every slice of the inputs before the i-th is replaced", "the output from the i-th slice stays",
         _causal("anticausal"), lambda p, s: law_texts.slices(s, p, "{}:"), metamorphic.causal),
    Kind("shift", "c is added to the input: of size 1 along the axis, else of its shape; without an axis a number",
         "degree * c is added to the output", _shifted, law_texts.shifted, metamorphic.shifted),
    Kind("additive", "the inputs are the sums of two draws, x + x'", "the output is the sum of theirs",
         _additive, law_texts.additive, metamorphic.added),
    Kind("homogeneous", "the inputs are multiplied with a number c > 0", "the output is multiplied with c ** degree",
         _homogeneous, law_texts.homogeneous, metamorphic.scaled),
    Kind("odd", "the inputs change their sign", "the output changes its sign",
         _parity("odd", -1), law_texts.negated, metamorphic.negated),
    Kind("even", "the inputs change their sign", "the output stays",
         _parity("even", 1), law_texts.negated, metamorphic.negated),
    Kind("sums", "nothing", "the output sums to `value` along the axis",
         _sums, law_texts.summed, metamorphic.summed),
    Kind("idempotent", "the input is the output", "the output stays",
         _idempotent, law_texts.repeated, metamorphic.repeated),
    Kind("bounded", "nothing", "the output lies between `bounds`", _bounded, law_texts.bounded, metamorphic.bounded),
    Kind("monotone", "elements of the inputs grow", "no element of the output falls (degree 1) or grows (degree -1)",
         _monotone, law_texts.monotone, metamorphic.ordered),
)  # fmt: skip
