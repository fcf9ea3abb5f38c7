"""The normal form of a term under facts: ratios of sums of  c * monomial * exp(polynomial)  with folds as atoms.

    exp(a - b) = exp(a) / exp(b)     so the rescaling of an online softmax cancels by itself
    sum[j: g] c * f(j) = c * sum[j: g] f(j)     what does not depend on j moves out; g are guards, not a range

A condition on integers that the facts do not decide ends the attempt with `Split`: whoever can, tries again under each
answer. Every step that is true only under a condition says so with `Algebra.assume`: cancelled factors are not 0, roots
are of nonnegative numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, TypeVar

from trilift.lift.language.unfolding import unfold
from trilift.lift.runtime.budget import UNLIMITED, Meter
from trilift.lift.runtime.budget import count as counted
from trilift.lift.runtime.session import memo, table
from trilift.lift.runtime.strategy import Closers
from trilift.lift.terms import construct as T
from trilift.lift.terms.definedness import MINUS_FLAG, NAN_FLAG, PLUS_FLAG
from trilift.lift.terms.extended import EXTENDED, NOT_A_NUMBER, classes_of
from trilift.lift.terms.extended import NAN as IS_NAN
from trilift.lift.terms.meanings import Domain, meaning
from trilift.lift.terms.term import Axis, Term

from ..integers.solver import Solver
from . import poly as P
from .literals import opposite
from .poly import ONE, ONE_KEY, POLYS, ZERO, Monomial, Number, Poly, Power, atom, number, structural
from .poly import Undecided as Undecided
from .rules import indicator

if TYPE_CHECKING:
    from .rules.fold import Fold

Facts = frozenset[Term]
Answer = TypeVar("Answer", bound=Callable[..., Any])
SideConditions = dict[tuple[str, Term, int], "Context"]  # kind, term, context id -> context
MONOMIALS = 3_000  # of one polynomial
LONGEST_ROOT = 4  # monomials of a root that is looked for
LARGEST_POWER = 8  # of what is written out for the exponential of a logarithm
MINUS_INF, PLUS_INF = P.pinned(number(-math.inf)), P.pinned(number(math.inf))
NAN = P.pinned(atom(T.pinned(T.scalar(NOT_A_NUMBER))))  # a value that is NaN for all inputs that meet the facts
ALL = T.pinned(T.size("*"))  # the size of a bound variable that only its guards restrict


class DivisionByZero(Undecided):
    """1 / 0, which is infinite: nothing says of which sign."""


class Undefined(Undecided):
    """A value that nobody defined is used."""


class Split(Exception):
    """A condition that the facts do not decide."""

    def __init__(self, literal: Term) -> None:
        super().__init__(repr(literal))
        self.literal = literal


@dataclass(frozen=True, eq=False, slots=True)
class Context:
    """The facts that hold in a case of a proof. Contexts are hash-consed, so a context is its own key."""

    facts: Facts
    id: int
    axes: frozenset[Axis]

    def __repr__(self) -> str:
        return f"Context({len(self.facts)} facts)"


@memo
def _variable(k: int) -> Axis:
    return Axis(f"~{k}", ALL)


@dataclass
class Algebra:
    """Normal forms of one proof. Owed is (kind, term, context) of what was used without proof: "nonzero", "nonneg",
    "positive", "finite", of a condition "holds"; `collecting` gathers it."""

    solver: Solver
    # of each tensor the monomials that step from row to row, not within a row
    strides: Mapping[str, frozenset[Term]] = field(default_factory=dict)
    pending: list[SideConditions] = field(
        default_factory=lambda: [{}]
    )  # of the normal form being computed, innermost last
    contexts: dict[Facts, Context] = field(default_factory=dict)
    memo: dict[tuple[int, int], tuple[Poly | Split | Undecided, SideConditions]] = field(default_factory=dict)
    numbers: dict[tuple[int, int], SideConditions] = field(default_factory=dict)  # what terms owe to be no NaN
    decided: dict[tuple[int, int], bool | None] = field(default_factory=dict)
    dead: dict[int, bool] = field(default_factory=dict)
    # polynomials that some side writes as plainly positive, or not negative
    above: set[tuple[Poly, Context, bool]] = field(default_factory=set)
    told: dict[int, list[tuple[bool, Fold]]] = field(
        default_factory=dict
    )  # sets that facts call empty or not, by context
    asking: bool = False  # whether such sets contradict each other
    products: dict[tuple[int, int], Poly] = field(default_factory=dict)
    shifting: list[tuple[Facts, Poly]] = field(default_factory=list)  # sums whose variable is being shifted
    closed: Closers = field(default_factory=Closers)  # which strategies closed goals
    meter: Meter = field(default=UNLIMITED, repr=False)

    # ---- contexts

    def context(self, facts: Iterable[Term]) -> Context:
        """The context of these facts, conjunctions opened."""
        return self._context(frozenset(opened(facts)))

    def _context(self, flat: Facts) -> Context:
        found = self.contexts.get(flat)
        if found is None:
            axes = frozenset[Axis]().union(*(f.free for f in flat))
            found = self.contexts[flat] = Context(flat, len(self.contexts), axes)
        return found

    def given(self, ctx: Context, *facts: Term) -> Context:
        """The context with more facts."""
        return self._context(ctx.facts.union(opened(facts)))

    def impossible(self, ctx: Context) -> bool:
        """Whether the facts contradict each other."""
        if ctx.id not in self.dead:
            self.dead[ctx.id] = False  # what is asked of the sets asks this again
            dead = T.const(False) in ctx.facts or any(T.make("not", f) in ctx.facts for f in ctx.facts)
            dead = dead or self.solver.contradictory(ctx.facts)
            self.dead[ctx.id] = dead or ANSWERS["contradiction of sets"](self, ctx)
        return self.dead[ctx.id]

    def implied(self, ctx: Context, goal: Term) -> bool:
        """Whether the facts imply a condition."""
        if goal.is_const:
            return bool(goal.attr)
        return goal in ctx.facts or self.decide(goal, ctx) is True

    def decide(self, literal: Term, ctx: Context) -> bool | None:
        """True or False where the facts decide a literal in normal form."""
        if literal.is_const:
            return bool(literal.attr)
        if literal in ctx.facts:
            return True
        if T.make("not", literal) in ctx.facts:
            return False
        key = (literal.id, ctx.id)
        if key not in self.decided:
            answer: bool | None = None
            if self.solver.implies(ctx.facts, literal):
                answer = True
            elif self.solver.implies(ctx.facts, T.make("not", literal)):
                answer = False
            self.decided[key] = answer
        return self.decided[key]

    def variable(self, ctx: Context, *avoid: Iterable[Axis]) -> Axis:
        """The first integer variable that neither the facts nor `avoid` mention: one question, one name."""
        taken = ctx.axes.union(*avoid)
        return next(v for v in map(_variable, count(1)) if v not in taken)

    # ---- normal forms

    def normal(self, t: Term, ctx: Context) -> Poly:
        """The normal form. Raises Split on a condition that the facts leave open, Undecided, Undefined."""
        key = (t.id, ctx.id if conditional(t) else -1)
        known = self.memo.get(key)
        if known is None:
            self.meter.spend("normal form")
            with self.collecting() as side_conditions:
                known = self.memo[key] = (self._normal(t, ctx), side_conditions)
        found, side_conditions = known
        self.pending[-1].update(side_conditions)
        if isinstance(found, Exception):
            raise found
        return found

    def _normal(self, t: Term, ctx: Context) -> Poly | Split | Undecided:
        try:
            found = RULES.get(t.op, opaque)(self, t, ctx)
        except (Split, Undecided) as stop:
            return stop
        except RecursionError:
            return Undecided("the terms are nested too deeply")
        if len(found.terms) > MONOMIALS:
            return Undecided("a polynomial has too many monomials", why=str(len(found.terms)))
        return found

    @contextmanager
    def collecting(self) -> Iterator[SideConditions]:
        """Context manager: yields the side conditions assumed inside the block."""
        self.pending.append({})
        try:
            yield self.pending[-1]
        finally:
            self.pending.pop()

    def cases(self, t: Term, ctx: Context, mine: Callable[[Term], bool]) -> list[tuple[tuple[Term, ...], Poly]]:
        """The normal form by cases: conditions that are `mine` are split on, others are raised."""
        todo: list[tuple[Term, ...]] = [()]
        out = []
        while todo:
            literals = todo.pop()
            here = self.given(ctx, *literals)
            if literals and self.impossible(here):
                continue
            try:
                out.append((literals, self.normal(t, here)))
            except Split as split:
                if not mine(split.literal):
                    raise
                if len(literals) >= 12:
                    raise Undecided("too many cases", why=repr(split.literal)) from None
                todo += [(*literals, opposite(split.literal)), (*literals, split.literal)]
        return out

    # ---- arithmetic

    def assume(self, kind: str, t: Term, ctx: Context) -> None:
        self.pending[-1][(kind, t, ctx.id)] = ctx

    def product(self, p: Poly, q: Poly, ctx: Context) -> Poly:
        """p * q. Factors that cancel, or roots that combine, become side conditions. Raises Undecided for 0 * inf, and
        if there are more than MONOMIALS monomials."""
        if p is ONE:
            return q
        if q is ONE:
            return p
        if is_infinite(p) or is_infinite(q):
            return self._infinite_product(p, q, ctx)
        if p is ZERO or q is ZERO:
            return ZERO
        if (number_ := len(p.terms) * len(q.terms)) > MONOMIALS:
            raise Undecided("a product has too many monomials")
        counted("product of monomials", number_)
        parts = [(P.times(c, d), self.times(m, n, ctx)) for m, c in p.terms.items() for n, d in q.terms.items()]
        return P.total(parts)

    def times(self, m: Monomial, n: Monomial, ctx: Context) -> Poly:
        """The product of two monomials."""
        if m == ONE_KEY:
            return P.monomial(n)
        if n == ONE_KEY:
            return P.monomial(m)
        powers = dict(m[0])
        for a, k in n[0]:
            old = powers.get(a, 0)
            powers[a] = self._power(a, old, k, ctx)
        if any(T.TERMS[a].op in INDICATORS for a in powers):
            return self._indicators(powers, self._exponent(m[1], n[1]), ctx)
        factors = tuple(sorted((a, k) for a, k in powers.items() if k))
        return P.product_with_exponential(factors, self._exponent(m[1], n[1]))

    def _power(self, a: int, old: Power, k: Power, ctx: Context) -> Power:
        new = old + k
        t = T.TERMS[a]
        if t.op in INDICATORS:
            if old < 0 or k < 0:
                self.assume("nonzero", t, ctx)
            return 1
        if old and (old < 0) != (k < 0):
            self.assume("nonzero", t, ctx)
        if isinstance(old, Fraction) and isinstance(k, Fraction):
            self.assume("nonneg", t, ctx)
        return int(new) if isinstance(new, Fraction) and new.denominator == 1 else new

    def _exponent(self, e: int, f: int) -> Poly:
        return POLYS[e] if not f else POLYS[f] if not e else POLYS[e] + POLYS[f]

    def _indicators(self, powers: dict[int, Power], e: Poly, ctx: Context) -> Poly:
        """[q > 0] [q = 0] = 0; [q = 0] f(q) = [q = 0] f(0) where q is linear in an atom; those of `thresholds`."""
        terms = {T.TERMS[a] for a in powers}
        for t in terms:
            if t.op == "zero?" and T.node("positive?", t.args, None, T.REAL) in terms:
                return ZERO
        if (merged := indicator.product(sorted(terms, key=lambda t: t.id))) is not None:
            x, y, value = merged
            rest = tuple(sorted((a, k) for a, k in powers.items() if k and a not in (x.id, y.id)))
            return self.product(P.product_with_exponential(rest, e), value, ctx)
        factors = tuple(sorted((a, k) for a, k in powers.items() if k))
        return self._pinned(P.product_with_exponential(factors, e), ctx)

    def _pinned(self, p: Poly, ctx: Context) -> Poly:
        (factors, e), c = next(iter(p.terms.items()))
        for a, _ in factors:
            t = T.TERMS[a]
            if t.op == "zero?":
                q = self.normal(t.args[0], ctx)
                pivot = linear_atom(q)
                if pivot is not None and any(b == pivot for b, k in factors if isinstance(k, int) and k > 0):
                    rest = tuple((b, k) for b, k in factors if b != pivot)
                    power = next(k for b, k in factors if b == pivot)
                    d = q.terms[(((pivot, 1),), 0)]
                    value = P.scaled(q - P.scaled(atom(T.TERMS[pivot]), d), Fraction(-1) / Fraction(d))
                    out = P.monomial((rest, e), c)
                    for _ in range(int(power)):
                        out = self.product(out, value, ctx)
                    return out
        return p

    def _infinite_product(self, p: Poly, q: Poly, ctx: Context) -> Poly:
        """0 * inf and NaN * x are NaN; else the sign of the other factor tells."""
        if is_infinite(q):
            p, q = q, p
        if ZERO in (p, q) or NAN in (p, q):
            return NAN
        if is_infinite(q):
            return PLUS_INF if p is q else MINUS_INF
        s = self.sign(q, ctx)
        if s is None:
            raise Undecided("infinity times a number of unknown sign")
        return p if s > 0 else negated_infinity(p)

    def add(self, ps: Iterable[Poly]) -> Poly:
        """The sum: one infinity absorbs, both or NaN are NaN."""
        ps = list(ps)
        infinite = {p for p in ps if is_infinite(p)}
        if len(infinite) > 1:
            return NAN
        return infinite.pop() if infinite else P.total((1, p) for p in ps)

    def finite(self, p: Poly, ctx: Context) -> None:
        """Split, or assume side conditions, until the maxima in p are known to be over something."""
        for i in p.atoms:
            if T.TERMS[i].op in ("amax", "max") and not self.nonempty(T.TERMS[i], ctx):
                self.assume("finite", T.TERMS[i], ctx)

    def sign(self, p: Poly, ctx: Context) -> int | None:
        """1 or -1 where p is known to be positive or negative."""
        found: int | None = ANSWERS["sign"](self, p, ctx)
        return found

    # ---- questions that one family of rules asks of another

    def condition(self, t: Term, ctx: Context) -> Term:
        """A boolean term in normal form."""
        found: Term = ANSWERS["condition"](self, t, ctx)
        return found

    def number(self, t: Term, ctx: Context) -> None:
        """Side conditions under which a term that is compared is not NaN. Raises Split, Undecided."""
        ANSWERS["number"](self, t, ctx)

    def number_of_each(self, t: Term, ctx: Context) -> None:
        """The same of the body of a fold, for all values of its variable."""
        ANSWERS["number of each"](self, t, ctx)

    def nonempty(self, t: Term, ctx: Context) -> bool:
        """Whether a maximum is over something. Raises Split on a condition that would tell."""
        found: bool = ANSWERS["nonempty"](self, t, ctx)
        return found

    def lattice(self, ps: list[Poly], ctx: Context) -> Poly:
        """The maximum of polynomials."""
        found: Poly = ANSWERS["lattice"](self, ps, ctx)
        return found

    def zero(self, p: Poly, ctx: Context, depth: int = 0) -> bool:
        """Whether p is 0 for all values that meet the facts. False: not shown."""
        found: bool = ANSWERS["zero"](self, p, ctx, depth)
        return found

    # ---- powers

    def power(self, p: Poly, k: Power, ctx: Context) -> Poly:
        """p^k for a negative or half k, or a positive integer: the common monomial moves out, the rest is an atom."""
        if p is ZERO:
            if k < 0:
                raise DivisionByZero("division by 0")
            return ZERO
        if is_infinite(p):
            return self._infinite_power(p, k)
        if isinstance(k, int) and k > 0:
            out = ONE
            for _ in range(k):
                out = self.product(out, p, ctx)
            return out
        if isinstance(k, Fraction) and k.denominator == 2 and (root := root_by_fact(self, p, ctx)) is not None:
            return self.power(root, int(2 * k), ctx)
        if isinstance(k, int) or len(p.terms) == 1:
            return self._monomial_power(p, k, ctx)
        c, outside, inside = primitive(p, even=True)
        shared = [(a, j) for a, j in common(inside) if is_power(j, k)]
        positive = {a: j for a, j in shared if self.sign(atom(T.TERMS[a]), ctx) == 1}
        out = self._monomial_power(P.monomial(outside, c), k, ctx)
        if not positive:
            return self.product(out, atom(inside.term, k), ctx)
        for a, j in positive.items():
            out = self.product(out, atom(T.TERMS[a], P.tidy(Fraction(j) * k)), ctx)  # type: ignore[arg-type]
        inside = P.poly({(_without(fs, positive), e): v for (fs, e), v in inside.terms.items()})
        return self.product(out, self.power(inside, k, ctx), ctx)  # another term may be the first of them now

    def _infinite_power(self, p: Poly, k: Power) -> Poly:
        if p is NAN or (p is MINUS_INF and isinstance(k, Fraction)):
            return NAN
        if k < 0:
            return ZERO
        return p if p is PLUS_INF or k % 2 else PLUS_INF

    def _monomial_power(self, p: Poly, k: Power, ctx: Context) -> Poly:
        """(c * m)^k."""
        if len(p.terms) > 1:
            c, outside, inside = primitive(p)
            return self.product(self._monomial_power(P.monomial(outside, c), k, ctx), atom(inside.term, k), ctx)
        ((factors, e), c) = next(iter(p.terms.items()))
        if k == int(k):
            new = tuple((a, int(n) if (n := j * int(k)) == int(n) else n) for a, j in factors)
            for (a, n), (_, j) in zip(new, factors, strict=True):
                if isinstance(j, Fraction) and isinstance(n, int):
                    self.assume("nonneg", T.TERMS[a], ctx)
            return P.product_with_exponential(new, P.scaled(POLYS[e], k), P.tidy(P.raised(c, k)))
        return self._root(factors, e, c, k, ctx)

    def _root(self, factors: Any, e: int, c: Number, k: Power, ctx: Context) -> Poly:
        """sqrt(c * a * b^2 * exp(e)): positive factors leave the root; of a negative c nothing is known."""
        if c < 0:
            return atom(P.monomial((factors, e), c).term, k)
        value = P.tidy(P.raised(c, k))
        out = P.product_with_exponential((), P.scaled(POLYS[e], Fraction(k)), value)
        stay: list[tuple[int, Power]] = []
        for a, j in factors:
            t = T.TERMS[a]
            if is_power(j, k) and self.sign(atom(t), ctx) == 1:
                out = self.product(out, atom(t, P.tidy(Fraction(j) * k)), ctx)  # type: ignore[arg-type]
            else:
                stay.append((a, j))
        if len(stay) == 1 and stay[0][1] == 1:
            return self.product(out, atom(T.TERMS[stay[0][0]], k), ctx)
        if stay:
            return self.product(out, atom(P.monomial((tuple(stay), 0)).term, k), ctx)
        return out


def root_by_fact(a: Algebra, p: Poly, ctx: Context) -> Poly | None:
    """q with q^2 = p where a fact says q >= 0; None if no fact does."""
    for f in sorted(ctx.facts, key=lambda f: f.id):
        if f.op not in ("lt", "le") or all(s.type != T.REAL for s in f.args):
            continue
        q = structural(f.args[1]) - structural(f.args[0])
        if has_infinity(q) or not 0 < len(q.terms) <= LONGEST_ROOT:
            continue
        with a.collecting() as side_conditions:
            square = a.product(q, q, ctx)
        m, d = next(iter(square.terms.items()))
        c = P.quotient(p.terms.get(m, 0), d)
        if c > 0 and P.scaled(square, c) is p:
            a.pending[-1].update(side_conditions)
            return P.scaled(q, P.tidy(P.raised(c, Fraction(1, 2))))
    return None


def is_power(j: Power, k: Power) -> bool:
    """Whether (a^j)^k is an integer power of a, or a half one: others are powers of the atom sqrt(a)."""
    return (2 * Fraction(j) * k).denominator == 1


def opened(facts: Iterable[Term]) -> Iterable[Term]:
    """Facts with conjunctions taken apart; true is left out."""
    for f in facts:
        if f.op == "and":
            yield from opened(f.args)
        elif f is not T.const(True):
            yield f


def is_infinite(p: Poly) -> bool:
    """Whether it is -inf, +inf or NaN: no polynomial, for which laws of real numbers do not hold."""
    return p is MINUS_INF or p is PLUS_INF or p is NAN


SPECIAL = frozenset().union(*(p.atoms for p in (MINUS_INF, PLUS_INF, NAN)))


def has_infinity(p: Poly) -> bool:
    """Whether -inf, +inf or NaN is somewhere in a polynomial: laws of real numbers do not hold of it."""
    return not SPECIAL.isdisjoint(p.atoms)


def negated_infinity(p: Poly) -> Poly:
    return NAN if p is NAN else PLUS_INF if p is MINUS_INF else MINUS_INF


def linear_atom(q: Poly) -> int | None:
    """An atom v with q = c * v + rest, v not in rest."""
    for factors, e in sorted(q.terms):
        if e == 0 and len(factors) == 1 and factors[0][1] == 1:
            v = factors[0][0]
            others = (m for m in q.terms if m != (factors, e))
            if not any(v == a for m in others for a, _ in m[0]) and not any(
                v in POLYS[m[1]].atoms for m in q.terms if m[1]
            ):
                return v
    return None


def primitive(p: Poly, even: bool = False) -> tuple[Number, Monomial, Poly]:
    """(c, m, q) with p = c * m * q: m holds the common powers and the exponent of one monomial, c makes the leading
    coefficient of q 1 (or -1 with `even`, which takes out positive numbers only). Of all exponents the one that the
    order of terms puts first is taken out, so that 1 + exp(-x) and exp(x) + 1 have the same q."""
    monomials = sorted(p.terms)
    shared = common(p)
    if even:
        shared = [(a, 2 * (k // 2)) for a, k in shared if k == int(k)]
    factors = tuple((a, k) for a, k in shared if k)
    e = _central([m[1] for m in monomials])
    lead_key = min(monomials, key=lambda m: _order(m, e))
    lead = p.terms[lead_key]
    c: Number = abs(lead) if even else lead
    out: dict[Monomial, Number] = {}
    for (fs, f), v in p.terms.items():
        key = (_without(fs, dict(factors)), (POLYS[f] - e).id)
        out[key] = P.tidy(v / c if isinstance(v, float) or isinstance(c, float) else Fraction(v) / Fraction(c))
    return c, (factors, e.id), P.poly(out)


def common(p: Poly) -> list[tuple[int, Power]]:
    """The powers of atoms that all terms of p share, by the order of atoms."""
    powers = [dict(m[0]) for m in p.terms]
    least = [(a, min(q.get(a, 0) for q in powers)) for a in sorted(set().union(*powers))]
    return [(a, k) for a, k in least if k]


def _without(factors: Iterable[tuple[int, Power]], gone: Mapping[int, Power]) -> tuple[tuple[int, Power], ...]:
    """A product of powers divided by another one."""
    left = dict(factors)
    for a, k in gone.items():
        left[a] = left.get(a, 0) - k
    return tuple(sorted((a, k) for a, k in left.items() if k))


def _central(exponents: list[int]) -> Poly:
    """The exponent to take out: whichever leaves the least differences, so that all multiples of a sum by exponentials
    agree on it."""
    distinct = list(dict.fromkeys(exponents))
    if len(distinct) == 1:
        return POLYS[distinct[0]]
    shared = _shared_exponent(distinct)
    if len(distinct) > 6:
        return shared
    bases = [POLYS[e] for e in distinct]
    return min(bases, key=lambda b: sorted(_text(POLYS[e] - b) for e in distinct))


def _shared_exponent(exponents: list[int]) -> Poly:
    """The addends that all exponents share."""
    first = POLYS[exponents[0]].terms
    return P.poly({m: c for m, c in first.items() if all(POLYS[e].terms.get(m) == c for e in exponents[1:])})


def _order(m: Monomial, shared: Poly) -> tuple[Any, ...]:
    rest = POLYS[m[1]] - shared
    return (
        bool(rest.terms),
        len(rest.terms),
        len(m[0]),
        _text(rest),
        sorted((outline(T.TERMS[a]), k) for a, k in m[0]),
        m,
    )


_OUTLINES: dict[int, str] = table("algebra.outlines", {})


def outline(t: Term) -> str:
    """The term without its axes and without the indices of what it reads: what shifting a variable does not change."""
    found = _OUTLINES.get(t.id)
    if found is None:
        args = () if t.op == "read" else t.args
        own = "" if t.op == "axis" or t.op in T.FOLDS else repr(t.attr)
        found = _OUTLINES[t.id] = f"{t.op}{own}({','.join(sorted(map(outline, args)))})"
    return found


def _text(p: Poly) -> str:
    return repr(p.term) if p.terms else ""


INDICATORS = {"positive?", "zero?", "holds?"}  # atoms that are 0 or 1

_CONDITIONAL: dict[int, bool] = table("algebra.conditional", {})
PLAIN = {"const", "size", "scalar", "axis", "undef", "read"}  # never ask the facts


def conditional(t: Term) -> bool:
    """Whether the normal form may depend on the facts."""
    found = _CONDITIONAL.get(t.id)
    if found is None:
        own = t.op not in PLAIN and not (t.op in ("add", "mul") and t.type == T.INT)
        found = _CONDITIONAL[t.id] = own or any(conditional(a) for a in t.args)
    return found


# ---- rules -----------------------------------------------------------------------------------------------------------

Rule = Callable[[Algebra, Term, Context], Poly]
NORMAL_FORM = Domain("normal form", missing="opaque", says="its polynomial, from those of its arguments")
RULES: dict[str, Rule] = NORMAL_FORM.rows
rule = partial(meaning, NORMAL_FORM)  # registers the normal form of operations


ANSWERS: dict[str, Callable[..., Any]] = {}  # to the questions that rules ask through the engine


def answer(question: str) -> Callable[[Answer], Answer]:
    """Register the function that answers a question of the engine."""

    def put(f: Answer) -> Answer:
        ANSWERS[question] = f
        return f

    return put


def finite(a: Algebra, t: Term, ctx: Context) -> Poly:
    """The normal form of an operand of arithmetic: a maximum in it must not be one of nothing."""
    p = a.normal(t, ctx)
    a.finite(p, ctx)
    return p


def opaque(a: Algebra, t: Term, ctx: Context) -> Poly:
    """An atom for an operation without a law of its own: it equals only the same operation of equal arguments. NAMED
    operations are unfolded instead."""
    if t.op in T.NAMED:
        return a.normal(unfold(t), ctx)
    args = tuple(argument(a, s, ctx) for s in t.args)
    beyond = [p for s in args if s.op in ("const", "scalar") and is_infinite(p := atom(s))]
    if beyond and (t.type == T.REAL or NAN in beyond or t.op == "to_int"):
        return _at_infinity(t, args, beyond)
    return atom(T.node(t.op, args, t.attr, t.type))


def _at_infinity(t: Term, args: tuple[Term, ...], beyond: list[Poly]) -> Poly:
    """The limit of a function of one argument; NaN of NaN."""
    row = EXTENDED.get(t.op)
    if len(args) == 1 and row is not None and t.type == T.REAL:
        if beyond[0] is NAN or row(classes_of(args[0].attr)) == IS_NAN:
            return NAN
        limit = T.OPERATIONS[t.op].on_numbers(float(args[0].attr))
        if limit is not None:
            return number(limit)
    raise Undecided(f"{t.op} of {words_of(beyond[0])}")


def words_of(p: Poly) -> str:
    """-inf, inf or NaN."""
    return "NaN" if p is NAN else "-inf" if p is MINUS_INF else "inf"


def argument(a: Algebra, s: Term, ctx: Context) -> Term:
    """An argument of an opaque function in normal form."""
    if s.type == T.BOOL:
        return a.condition(s, ctx)
    p = a.normal(s, ctx)
    a.finite(p, ctx)
    return p.term


@rule("const")
def _(a: Algebra, t: Term, ctx: Context) -> Poly:
    if isinstance(t.attr, bool):
        return number(int(t.attr))
    if isinstance(t.attr, float) and math.isnan(t.attr):
        return NAN
    return number(t.attr)


@rule("size", "scalar", "axis")
def _(a: Algebra, t: Term, ctx: Context) -> Poly:
    return atom(t)


@rule("undef")
def _(a: Algebra, t: Term, ctx: Context) -> Poly:
    raise Undefined(f"{t.attr} is undefined")


@rule("add")
def _(a: Algebra, t: Term, ctx: Context) -> Poly:
    return a.add(finite(a, s, ctx) for s in t.args)


@rule("mul")
def _(a: Algebra, t: Term, ctx: Context) -> Poly:
    out = ONE
    for p in sorted(_factors(a, t, ctx), key=lambda p: len(p.terms)):
        out = a.product(out, p, ctx)
    return out


def _factors(a: Algebra, t: Term, ctx: Context) -> list[Poly]:
    """The factors of a product; of 0 / 0, whatever the sign of the divisor, NaN alone."""
    out: list[Poly] = []
    inverse: DivisionByZero | None = None
    for s in t.args:
        try:
            out.append(finite(a, s, ctx))
        except DivisionByZero as stop:
            inverse = stop
    if inverse is None:
        return out
    if ZERO in out or NAN in out:
        return [NAN]
    raise inverse


@rule("recip")
def _(a: Algebra, t: Term, ctx: Context) -> Poly:
    return a.power(finite(a, t.args[0], ctx), -1, ctx)


@rule("sqrt")
def _(a: Algebra, t: Term, ctx: Context) -> Poly:
    return a.power(finite(a, t.args[0], ctx), Fraction(1, 2), ctx)


@rule("pow")
def _(a: Algebra, t: Term, ctx: Context) -> Poly:
    base, k = (finite(a, s, ctx) for s in t.args)
    c = k.constant
    if is_infinite(k) or (is_infinite(base) and not isinstance(c, int)):
        raise Undecided("a power of infinity")
    if c is not None and float(c).is_integer() and abs(c) <= 8:
        return ONE if c == 0 else a.power(base, int(c), ctx)
    if c is not None and 2 * c in (-3, -1, 1, 3):
        return a.power(base, Fraction(c), ctx)
    if is_infinite(base):
        raise Undecided("a power of infinity")
    if base.constant is not None and base.constant > 0:
        return exponential(P.scaled(k, math.log(base.constant)))
    return atom(T.node("pow", (base.term, k.term), None, T.REAL))


def exponential(e: Poly) -> Poly:
    """exp, with exp(-inf) = 0."""
    if e is MINUS_INF:
        return ZERO
    if is_infinite(e):
        return e
    return P.exponential(e)


@rule("exp")
def _(a: Algebra, t: Term, ctx: Context) -> Poly:
    return raised(a, finite(a, t.args[0], ctx), ctx)


@rule("exp2")
def _(a: Algebra, t: Term, ctx: Context) -> Poly:
    e = finite(a, t.args[0], ctx)
    return raised(a, e if is_infinite(e) else P.scaled(e, math.log(2)), ctx)


def raised(a: Algebra, e: Poly, ctx: Context) -> Poly:
    """exp(k log f + e) = f^k exp(e) for an integer k and f > 0."""
    if is_infinite(e):
        return exponential(e)
    out = ONE
    for (factors, inner), k in e.terms.items():
        f = T.TERMS[factors[0][0]] if len(factors) == 1 and factors[0][1] == 1 and not inner else None
        if f is None or f.op != "log" or not isinstance(k, int) or abs(k) > LARGEST_POWER:
            continue
        base = structural(f.args[0])
        if a.sign(base, ctx) == 1:
            out = a.product(out, a.power(base, k, ctx), ctx)
            e = e - P.monomial((factors, inner), k)
    return a.product(out, exponential(e), ctx)


@rule("tanh")
def _(a: Algebra, t: Term, ctx: Context) -> Poly:
    """tanh(u) = 1 - 2 / (exp(2u) + 1)."""
    u = finite(a, t.args[0], ctx)
    if is_infinite(u):
        return u if u is NAN else ONE if u is PLUS_INF else -ONE
    return P.total(((1, ONE), (-2, a.power(exponential(P.scaled(u, 2)) + ONE, -1, ctx))))


@rule("cosh", "sinh")
def _(a: Algebra, t: Term, ctx: Context) -> Poly:
    """(exp(u) + exp(-u)) / 2 and (exp(u) - exp(-u)) / 2."""
    u = finite(a, t.args[0], ctx)
    if is_infinite(u):
        return PLUS_INF if t.op == "cosh" and u is not NAN else u
    half = Fraction(1, 2)
    return P.total(((half, exponential(u)), (half if t.op == "cosh" else -half, exponential(-u))))


@rule("asinh")
def _(a: Algebra, t: Term, ctx: Context) -> Poly:
    """asinh(u) = log(u + sqrt(u^2 + 1))."""
    u = t.args[0]
    return a.normal(T.make("log", T.add(u, T.make("sqrt", T.add(T.mul(u, u), 1)))), ctx)


@rule("log", "log2", "log10")
def _(a: Algebra, t: Term, ctx: Context) -> Poly:
    """log(c * exp(e) * q) = log c + e + log q, for c > 0: defined exactly where the left side is."""
    base = {"log": 1.0, "log2": math.log(2), "log10": math.log(10)}[t.op]
    p = finite(a, t.args[0], ctx)
    if p is ZERO:
        return MINUS_INF
    if is_infinite(p):
        return p if p is PLUS_INF else NAN
    return P.scaled(logarithm(a, p, ctx), P.tidy(1 / base))


def logarithm(a: Algebra, p: Poly, ctx: Context) -> Poly:
    if (root := root_by_fact(a, p, ctx)) is not None:
        return P.scaled(logarithm(a, root, ctx), 2)
    c, (factors, e), q = primitive(p, even=True)
    out = [POLYS[e], number(math.log(c))]
    stay = q
    for b, k in factors:
        f = T.TERMS[b]
        if a.sign(atom(f), ctx) == 1:
            out.append(P.scaled(atom(T.node("log", (f,), None, T.REAL)), k))
        else:
            stay = a.product(stay, atom(f, k), ctx)
    if stay is not ONE:
        out.append(atom(T.node("log", (stay.term,), None, T.REAL)))
    return P.total((1, x) for x in out)


@rule("given")
def _given(a: Algebra, t: Term, ctx: Context) -> Poly:
    """An element that may be infinite or NaN: that where the facts say so, else a number like others."""
    z = T.make("given", a.normal(t.args[0], ctx).term)
    for flag, value in ((NAN_FLAG, NAN), (PLUS_FLAG, PLUS_INF), (MINUS_FLAG, MINUS_INF)):
        if T.make(flag, z) in ctx.facts:
            return value
    return atom(z)


@rule("read")
def _(a: Algebra, t: Term, ctx: Context) -> Poly:
    return atom(T.node("read", tuple(a.normal(i, ctx).term for i in t.args), t.attr, t.type))
