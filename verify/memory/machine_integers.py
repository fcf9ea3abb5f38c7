"""Integers of PyTorch's operators that must fit their dtype, as clauses: over the sizes where a bound is found that
sensible sizes meet, over the data else.

    sum over k of n[k] fits 32 bits, n[k] < 1000000      ->  999999 * B < 2^31
    x[n] * y[n] fits 32 bits                             ->  -2147483648 <= x[n] * y[n] < 2147483648
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from trilift.lift.pytorch.machine_integers import Fits
from trilift.lift.terms import construct as T
from trilift.lift.terms.fit import value
from trilift.lift.terms.term import FOLDS, Term

from ..integers.bounded_solver import BoundedSolver
from ..integers.bounds import upper
from ..integers.logical_index import asking
from ..integers.quotient import Ask, Poly, between, equalities, expand, plus, reduce, replace, scale, times, to_term
from ..integers.solver import Facts
from ..model.configuration import View
from ..model.verdict import Clause
from ..normal_form.enclosure import Enclosure
from ..wording.user_terms import words
from .safety import ARITHMETIC, below, largest, may_fit, without_negative
from .sites import conjuncts

SENSIBLE_SIZE = 64  # a bound that fails where all sizes are this is not offered as a clause over the sizes
LOCAL = ("axis", "read", "carry", "opaque", "undef", "trips")
DATA = (*FOLDS, "where", "read", "max", "min")
DIVISION = "a quotient of integers"
DEPTH = 6  # folds and choices in one another


def fitting(
    owed: Iterable[Fits], facts: Facts, solver: BoundedSolver, views: Mapping[str, View] | None = None
) -> list[Clause]:
    """The clauses under which every owed number fits; those that follow from others are left out."""
    found: dict[tuple[Term, int], Clause] = {}
    over_data: dict[Term, Clause] = {}
    for o in sorted(owed, key=lambda o: o.high - o.low):  # what fits 32 bits fits 64
        if o.is_divisor:
            goal = T.make("ne", o.term, 0)
            if not _Bounds(facts, solver).ask(o.term)(goal):
                over_data[o.term] = Clause("value", goal, words(goal, views), DIVISION, o.place)
            continue
        for bound, bits in _bounds(o, facts, solver):
            if bound is not None:
                found.setdefault((bound, bits), below(bound, bits, o.place))
            elif o.term not in over_data:
                text = f"{o.low} <= {words(o.term, views)} < {o.high}"
                known = _Bounds(facts, solver).known(o.term)
                met = None if may_fit(o.term, (o.low, o.high), known, solver) else T.const(False)
                over_data[o.term] = Clause("nowrap", met, text, ARITHMETIC, o.place, o.term)
    return [*largest(found, facts, solver), *over_data.values()]


def _bounds(o: Fits, facts: Facts, solver: BoundedSolver) -> list[tuple[Term | None, int]]:
    """Terms over the sizes and n that must be less than 2^(n - 1); one None where there is none for one side."""
    high, low = (o.high - 1).bit_length() + 1, (-o.low).bit_length() if o.low else 1
    out: list[tuple[Term | None, int]] = []
    bounds = _Bounds(facts, solver)
    for x, top, bits in ((o.term, o.high, high), (T.mul(-1, o.term), 1 - o.low, low)):
        if bounds.ask(o.term)(T.make("lt", x, top)):
            continue
        if o.term.type == T.REAL and Enclosure({}, {}).of(x)[1] < top:  # trunc(min(x, 127))
            continue
        bound = bounds.of(x) if o.term.type == T.INT else None
        if bound is not None and bounds.ask(T.const(0))(T.make("lt", bound, top)):
            continue
        if bound is None or not o.low or not _sensible(bound, top):
            return [(None, 0)]
        out.append((without_negative(bound, bounds.ask(T.const(0))), bits))
    return out


def _sensible(bound: Term, top: int) -> bool:
    """Whether a bound is met where all sizes are small."""
    sizes = {str(s.attr): SENSIBLE_SIZE for s in bound.walk() if s.op == "size"}
    found = value(bound, sizes) if all(s.op != "scalar" for s in bound.walk()) else None
    return found is not None and found < top


@dataclass(frozen=True, slots=True)
class _Bounds:
    """Upper bounds over the sizes of terms over axes and elements of integer tensors."""

    facts: Facts
    solver: BoundedSolver

    def known(self, t: Term) -> Facts:
        """The facts, the ranges of the axes of a term, and the bounds of the elements that it reads."""
        inside = conjuncts(between(T.axis(a), a.size) for a in t.free)
        return frozenset(self.solver.with_bounds(self.facts | inside, t))

    def ask(self, t: Term) -> Ask:
        """Questions where the axes of t are in their ranges."""
        return asking(self.known(t), self.solver)

    def of(self, t: Term, depth: int = DEPTH) -> Term | None:
        """A term over sizes that is at least t."""
        known = self.known(t)
        ask = asking(known, self.solver)
        plain = self.plain(reduce(replace(t, equalities(self.facts)), ask), depth, ask)
        return None if plain is None else upper(plain, _is_local, known, ask)

    def plain(self, t: Term, depth: int, ask: Ask) -> Term | None:
        """A term that is at least t, with bounds of folds, choices and elements instead of them."""
        out: Poly = {}
        for monomial, c in expand(t).items():
            hard = [a for a in monomial if a.op in DATA]
            rest = [a for a in monomial if a.op not in DATA]
            if not hard:
                out = plus(out, {monomial: c})
                continue
            if not depth or not all(ask(T.make("le", 0, a)) for a in rest):
                return None
            most = self.product(hard, 1 if c > 0 else -1, depth)
            if most is None:
                return None
            out = plus(out, scale(times(expand(most), expand(T.mul(1, *rest))), abs(c)))
        return to_term(out)

    def product(self, factors: list[Term], sign: int, depth: int) -> Term | None:
        """At least sign * the product: of one factor, or of numbers between numbers."""
        if len(factors) == 1:
            return self.atom(factors[0], sign, depth)
        corners = [1]
        for a in factors:
            most, least = self.atom(a, 1, depth), self.atom(a, -1, depth)
            if most is None or least is None or not (most.is_const and least.is_const):
                return None
            corners = [x * y for x in corners for y in (int(most.attr), -int(least.attr))]
        return T.const(max(sign * x for x in corners))

    def atom(self, a: Term, sign: int, depth: int) -> Term | None:
        """At least sign * a."""
        if a.type == T.REAL:
            return None
        if a.op == "read":
            low, high = self.solver.bounds.get(str(a.attr), (None, None))
            end = high if sign > 0 else low
            return None if end is None else T.sub(end, 1) if sign > 0 else T.mul(-1, end)
        if a.op in ("where", "max", "min"):
            return self.either(a.args[1:] if a.op == "where" else a.args, sign, depth)
        if a.op in ("argmax", "argmin"):
            return T.sub(a.attr.size, 1) if sign > 0 else T.const(0)
        body = self.of(T.mul(sign, a.args[0]), depth - 1) if a.op != "prod" else None
        if body is None or a.op in ("amax", "amin"):
            return body
        n = a.attr.size
        if any(s.op in LOCAL for s in n.walk()):
            return None
        ask = self.ask(T.const(0))
        if ask(T.make("le", body, 0)):
            return T.const(0)
        return T.mul(n, body if ask(T.make("le", 0, body)) else T.make("max", 0, body))

    def either(self, choices: Iterable[Term], sign: int, depth: int) -> Term | None:
        """At least each of several."""
        out: Term | None = None
        for x in choices:
            bound = self.of(T.mul(sign, x), depth - 1)
            if bound is None:
                return None
            ask = self.ask(T.const(0))
            if out is None or ask(T.make("le", out, bound)):
                out = bound
            elif not ask(T.make("le", bound, out)):
                return None
        return out


def _is_local(t: Term) -> bool:
    """Whether a term speaks of one index, or of data."""
    return any(s.op in LOCAL or s.op in FOLDS for s in t.walk())
