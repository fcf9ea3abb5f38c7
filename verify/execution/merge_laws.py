"""Combiners of several operands that join what is known of two disjoint samples, recognised by algebra.

Chan, Golub, LeVeque (1979)     n = na + nb,  mean = (na ma + nb mb) / n,  M2 = M2a + M2b + (ma - mb)^2 na nb / n
softmax (Milakov, 2018)         m = max(ma, mb),  s = sa e^(ma - m) + sb e^(mb - m)
affine maps, in order           (a, b) o (c, d) = (a c, c b + d),  which is x -> c (a x + b) + d

However a combiner is written, its results are compared with these in normal form, case by case of the signs that its
conditions depend on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

from trilift.lift.errors import TriliftError
from trilift.lift.terms import construct as T
from trilift.lift.terms.term import Term

from ..integers.bounded_solver import BoundedSolver
from ..normal_form.algebra import Algebra, Split
from ..normal_form.equality import equal

Lane = Callable[[Term], Term]  # the element of an operand at a place along the axis
Fold = Callable[[str, Lane], Term]
Pair = tuple[Term, Term]
ZERO = T.const(0)


@dataclass(frozen=True, slots=True)
class Chan:
    """Operands `count`, `mean` and `squares` (M2). `strict`: two empty samples have no join."""

    count: int
    mean: int
    squares: int
    strict: bool

    def totals(self, fold: Fold, xs: Sequence[Lane], unknown: Sequence[Term]) -> list[Term]:
        """n = sum n_i;  mean = sum n_i m_i / n;  M2 = sum (M2_i + n_i m_i^2) - (sum n_i m_i)^2 / n.  No n_i may be
        negative (or 0, if strict), and n must not be 0."""
        n, m, s = xs[self.count], xs[self.mean], xs[self.squares]
        total = fold("sum", n)
        first = fold("sum", lambda k: T.mul(n(k), m(k)))
        second = fold("sum", lambda k: T.add(s(k), T.mul(n(k), m(k), m(k))))
        good = nowhere(fold, n, lambda x: T.make("le" if self.strict else "lt", x, 0))
        fine = T.make("and", good, T.make("lt", 0, total))
        out = dict.fromkeys(range(3), total)
        out[self.mean] = T.where(fine, T.div(first, total), unknown[self.mean])
        spread = T.sub(second, T.div(T.mul(first, first), total))
        out[self.squares] = T.where(fine, spread, unknown[self.squares])
        return [out[k] for k in range(3)]


@dataclass(frozen=True, slots=True)
class Softmax:
    """Operands `largest` and `total`; `row` is exp or exp2. `strict`: two maxima of -inf have no join."""

    largest: int
    total: int
    row: str
    strict: bool

    def totals(self, fold: Fold, xs: Sequence[Lane], unknown: Sequence[Term]) -> list[Term]:
        """m = max m_i;  s = sum s_i e^(m_i - m).  m must be finite, if strict all m_i."""
        m, s = xs[self.largest], xs[self.total]
        best = fold("amax", m)
        weights = fold("sum", lambda k: T.mul(s(k), T.make(self.row, T.sub(m(k), best))))
        finite = nowhere(fold, m, lambda x: T.make("eq", x, -math.inf))
        fine = finite if self.strict else T.make("lt", -math.inf, best)
        out = [best, best]
        out[self.total] = T.where(fine, weights, unknown[self.total])
        return out


@dataclass(frozen=True, slots=True)
class Affine:
    """Operands `factor` and `shift` of maps x -> factor x + shift; the operand on the left is applied first."""

    factor: int
    shift: int


Join = Chan | Softmax | Affine


def nowhere(fold: Fold, x: Lane, condition: Callable[[Term], Term]) -> Term:
    """That the condition holds of no element."""
    return T.make("eq", fold("sum", lambda k: _counted(x(k), condition)), 0)


def _counted(x: Term, condition: Callable[[Term], Term]) -> Term:
    """1 where the condition holds, inside of choices."""
    if x.op == "where":
        return T.where(x.args[0], _counted(x.args[1], condition), _counted(x.args[2], condition))
    return T.where(condition(x), 1, 0)


# ---- recognition -----------------------------------------------------------------------------------------------------


def join(pairs: Sequence[Pair], got: Sequence[Term]) -> Join | None:
    """The combiner whose results `got` are terms over the operands, pairs[k] = (a_k, b_k)."""
    find = {2: (_softmax, _affine), 3: (_chan,)}.get(len(pairs), ())
    for order in permutations(range(len(pairs))):
        mine = [pairs[k] for k in order]
        results = [got[k] for k in order]
        for known in find:
            if (found := known(order, mine, results)) is not None:
                return found
    return None


def _chan(order: Sequence[int], pairs: Sequence[Pair], got: Sequence[Term]) -> Join | None:
    (na, nb), (ma, mb), (sa, sb) = pairs
    n, mean, squares = got
    if n is not T.add(na, nb):
        return None
    apart = T.mul(T.sub(ma, mb), T.sub(ma, mb))
    goals = [
        (T.mul(n, mean), T.add(T.mul(na, ma), T.mul(nb, mb))),
        (squares, T.add(sa, sb, T.div(T.mul(apart, na, nb), n))),
    ]
    for empty in ((), (na,), (nb,)):
        if not all(_same(x, y, dict.fromkeys(empty, ZERO), {na, nb} - {*empty}) for x, y in goals):
            return None
    nothing = dict.fromkeys((na, nb), ZERO)
    strict = not (_same(squares, T.add(sa, sb), nothing, set()) and _same(mean, mean, nothing, set()))
    return Chan(order[0], order[1], order[2], strict)


def _softmax(order: Sequence[int], pairs: Sequence[Pair], got: Sequence[Term]) -> Join | None:
    (ma, mb), (sa, sb) = pairs
    gap = T.scalar("gap", T.REAL)
    cases: list[tuple[Mapping[Term, Term], Term]] = [
        ({ma: T.add(mb, gap)}, ma),
        ({mb: T.add(ma, gap)}, mb),
        ({ma: mb}, mb),
    ]
    for row in ("exp", "exp2"):
        share = lambda s, m, best, row=row: T.mul(s, T.make(row, T.sub(m, best)))  # noqa: E731
        for values, best in cases:
            total = T.add(share(sa, ma, best), share(sb, mb, best))
            if not (_same(got[0], best, values, {gap}) and _same(got[1], total, values, {gap})):
                break
        else:
            nothing = dict.fromkeys((ma, mb), T.const(-math.inf))
            one = [({x: T.const(-math.inf)}, y, s) for x, y, s in ((ma, mb, sb), (mb, ma, sa))]
            if not all(_same(got[0], y, values, set()) and _same(got[1], s, values, set()) for values, y, s in one):
                return None
            if not _same(got[0], T.const(-math.inf), nothing, set()):
                return None
            return Softmax(order[0], order[1], row, not _same(got[1], got[1], nothing, set()))
    return None


def _affine(order: Sequence[int], pairs: Sequence[Pair], got: Sequence[Term]) -> Join | None:
    (a, c), (b, d) = pairs
    known = _same(got[0], T.mul(a, c), {}, set()) and _same(got[1], T.add(T.mul(c, b), d), {}, set())
    return Affine(order[0], order[1]) if known else None


def _same(x: Term, y: Term, values: Mapping[Term, Term], positive: set[Term]) -> bool:
    """Whether x = y, both defined, with these values for variables, where others are positive."""
    case = _Case(values, positive)
    try:
        if not (case.defined(x) and case.defined(y)):
            return False
        p, q = (case.algebra.normal(case.settled(t), case.ctx) for t in (x, y))
        if not equal(case.algebra, p, q, case.ctx):
            return False
    except (Split, TriliftError):
        return False
    side_conditions = [o for level in case.algebra.pending for o in level]
    return all(kind == "nonzero" and case.sign(t) not in (None, 0) for kind, t, _ in side_conditions)


class _Case:
    """Values for some variables of a combiner; `positive`: others that are above 0."""

    def __init__(self, values: Mapping[Term, Term], positive: set[Term]) -> None:
        self.values, self.algebra = values, Algebra(BoundedSolver())
        self.ctx = self.algebra.context(T.make("lt", 0, p) for p in positive)

    def settled(self, t: Term) -> Term:
        """The term with the values, and comparisons, maxima and minima decided where the sign of a difference is."""
        return T.rewrite(t, lambda s: self.values.get(s) or self.decided(s))

    def decided(self, s: Term) -> Term | None:
        if s.op not in (*DECIDED, "max", "min") or len(s.args) != 2 or s.args[0].type == T.BOOL:
            return None
        x, y = s.args
        endless = [z for z in s.args if z.is_const and math.isinf(z.attr)]
        if len(endless) == 1 and _is_bounded(x if endless[0] is y else y):
            sign: int | None = 1 if (endless[0] is y) == (endless[0].attr > 0) else -1
        else:
            sign = None if endless else self.sign(T.sub(y, x))
        if sign is None:
            return None
        if s.op in ("max", "min"):
            return y if (sign > 0) == (s.op == "max") else x
        return T.const(DECIDED[s.op](sign))

    def sign(self, t: Term) -> int | None:
        p = self.algebra.normal(t, self.ctx)
        c = p.constant
        return self.algebra.sign(p, self.ctx) if c is None else (c > 0) - (c < 0)

    def defined(self, t: Term) -> bool:
        """Whether no branch that is taken divides by 0 or subtracts infinities."""
        value = self.settled(t)
        if value.op == "undef" or (value.is_const and value.attr != value.attr):
            return False
        if t.op == "where" and (c := self.settled(t.args[0])).is_const:
            return self.defined(t.args[0]) and self.defined(t.args[1 if c.attr else 2])
        if t.op == "recip" and self.sign(self.settled(t.args[0])) in (None, 0):
            return False
        return t.op in TOTAL and all(map(self.defined, t.args))


def _is_bounded(t: Term) -> bool:
    """Whether a term over the variables, which are numbers where no value is given, is finite."""
    return all(s.op in BOUNDED and not (s.is_const and math.isinf(s.attr)) for s in t.walk())


BOUNDED = {"add", "mul", "max", "min", "const", "scalar"}
DECIDED: dict[str, Callable[[int], bool]] = {
    "lt": lambda s: s > 0, "le": lambda s: s >= 0, "eq": lambda s: s == 0, "ne": lambda s: s != 0,
}  # fmt: skip
TOTAL = {"add", "mul", "max", "min", "exp", "exp2", "where", "recip", "and", "or", "not", "const", "scalar", *DECIDED}
