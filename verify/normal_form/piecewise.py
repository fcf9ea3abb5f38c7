"""Conditions in normal form, choices, and what integer arithmetic becomes under facts.

where(c, x, y)   is x or y where the facts decide c; Split where c is about integers;
                 [c] x + (1 - [c]) y with the indicator [c], which is 0 or 1, where c is about real data
max(x, y)        of reals is y + [x - y > 0] (x - y); of folds it is an element of the lattice of `folds`
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from math import gcd

from trilift.lift.language.infix import spelling
from trilift.lift.terms import construct as T
from trilift.lift.terms.definedness import FLAGS, decided
from trilift.lift.terms.term import Term

from . import poly as P
from .algebra import (
    INDICATORS,
    MINUS_INF,
    NAN,
    PLUS_INF,
    Algebra,
    Context,
    Split,
    Undecided,
    answer,
    argument,
    has_infinity,
    is_infinite,
    negated_infinity,
    opaque,
    primitive,
    rule,
)
from .literals import COMPARISONS, integer_literal, is_integer, opposite
from .poly import ONE, ONE_KEY, POLYS, ZERO, Poly, atom, number, structural

TOLD_SHIFTS = 8  # values of a shift that are told apart
RUNS = 3  # of ones in a mask
NESTED = 4  # indicators within an indicator that are told apart


@answer("condition")
def condition(a: Algebra, t: Term, ctx: Context) -> Term:
    """A boolean term in normal form: and, or, not over literals  0 <= p,  p == 0  of integers,  0 < q,  q < 0,
    q == 0  of reals, and opaque ones."""
    if t.is_const:
        return T.const(bool(t.attr))
    if t.op == "not":
        return opposite(condition(a, t.args[0], ctx))
    if t.op == "and":
        return conjoined(a, t.args, ctx)
    if t.op == "or":
        return _joined(T.make("or", *(condition(a, s, ctx) for s in t.args)))
    if t.op in COMPARISONS and all(s.type == T.BOOL for s in t.args):
        return condition(a, _of_truths(t.op, *t.args), ctx)
    if (split := _bounds(t)) is not None:
        return condition(a, split, ctx)
    if t.op in COMPARISONS:
        return comparison(a, t, ctx)
    if t.op == "where":
        c, x, y = t.args
        either = T.make("or", T.make("and", c, x), T.make("and", T.make("not", c), y))
        return condition(a, either, ctx)
    if t.op == "undef":
        a.normal(t, ctx)
    if t.op == "read" and t.type == T.BOOL:  # an element of a boolean tensor is 0 or 1
        return condition(a, T.make("ne", T.node("read", t.args, t.attr, T.INT), 0), ctx)
    if t.op in T.NAMED or t.op in T.FOLDS or t.type != T.BOOL:
        return literal_of(a.normal(t, ctx))
    return _opaque_condition(a, t, ctx)


def _opaque_condition(a: Algebra, t: Term, ctx: Context) -> Term:
    """A condition that is equal only to itself, and owes that its arguments are numbers; of which kind a given number
    is, as facts say it of the element."""
    if t.op in FLAGS and t.args[0].op == "given":
        return T.make(t.op, T.make("given", a.normal(t.args[0].args[0], ctx).term))
    if t.op not in FLAGS:
        for s in t.args:
            a.number(s, ctx)
    return T.node(t.op, tuple(argument(a, s, ctx) for s in t.args), t.attr, t.type)


def is_index(p: Poly) -> bool:
    """Whether p is a polynomial over integers."""
    indices = all(not e and all(T.TERMS[b].type == T.INT and k > 0 and int(k) == k for b, k in fs) for fs, e in p.terms)
    return indices and all(isinstance(c, int) for c in p.terms.values())


def conjoined(a: Algebra, conditions: Iterable[Term], ctx: Context) -> Term:
    """c and d; a part that the facts leave open is looked at where the others hold."""
    done: list[Term] = []
    open_: list[tuple[Term, Split]] = []
    for s in conditions:
        try:
            done.append(condition(a, s, ctx))
        except Split as split:
            open_.append((s, split))
    if open_ and (not done or a.impossible(a.given(ctx, *done))):
        raise open_[0][1]
    done += [condition(a, s, a.given(ctx, *done)) for s, _ in open_]
    return T.make("and", *done)


def _joined(c: Term) -> Term:
    """0 < q or q == 0 is 0 <= q."""
    if c.op != "or":
        return c
    for s in c.args:
        if s.op == "lt" and not is_integer(s) and (same := T.make("eq", *s.args)) in c.args:
            return _joined(T.make("or", T.make("le", *s.args), *(x for x in c.args if x not in (s, same))))
    return c


def literal_of(p: Poly) -> Term:
    """The truth of a 0 or 1."""
    if is_infinite(p):
        return T.const(True)
    c = p.constant
    return T.const(bool(c)) if c is not None else T.make("ne", p.term, 0)


def _of_truths(op: str, x: Term, y: Term) -> Term:
    """A comparison of truths, false < true."""
    no_x, no_y = T.make("not", x), T.make("not", y)
    match op:
        case "lt":
            return T.make("and", no_x, y)
        case "le":
            return T.make("or", no_x, y)
    same = T.make("or", T.make("and", x, y), T.make("and", no_x, no_y))
    return same if op == "eq" else T.make("not", same)


def _bounds(t: Term) -> Term | None:
    """x < min(y, z) + r is x < y + r and x < z + r, of integers; likewise with max, and on the other side."""
    if t.op not in ("lt", "le") or any(s.type == T.REAL for s in t.args):
        return None
    for side, s in enumerate(t.args):
        parts = s.args if s.op == "add" else (s,)
        for k, part in enumerate(parts):
            negative = part.op == "mul" and len(part.args) == 2 and T.const(-1) in part.args
            e = next(x for x in part.args if x is not T.const(-1)) if negative else part
            if e.op not in ("min", "max"):
                continue
            rest = [p for j, p in enumerate(parts) if j != k]
            each = [T.add(T.mul(-1, x) if negative else x, *rest) for x in e.args]
            found = [T.make(t.op, *(x if j == side else t.args[j] for j in (0, 1))) for x in each]
            return T.make("and" if ((e.op == "min") != negative) == (side == 1) else "or", *found)
    return None


def comparison(a: Algebra, t: Term, ctx: Context) -> Term:
    """A comparison of numbers in normal form: that the sides are some is owed. A question about NaN or infinity is
    decided by the arguments."""
    if (known := decided(t)) is not None or (known := _decided_here(a, t, ctx)) is not None:
        return condition(a, known, ctx)
    x, y = (a.normal(s, ctx) for s in t.args)
    if NAN in (x, y):
        return T.const(t.op == "ne")
    for s in t.args:
        a.number(s, ctx)
    if is_infinite(x) or is_infinite(y):
        _certainly_finite(a, x, ctx)
        _certainly_finite(a, y, ctx)
        return T.const(_infinite(t.op, x, y))
    if x is y:
        return T.const(t.op in ("le", "eq"))
    if all(s.type != T.REAL for s in t.args) or is_index(y - x):
        return integer_literal(t.op, y - x)
    return real_literal(a, t.op, y - x, ctx)


def _decided_here(a: Algebra, t: Term, ctx: Context) -> Term | None:
    """The same of what is left of the sides under the facts: lanes that are not masked."""
    left, right = t.args
    if left is not right and not any(s.is_const and s.type == T.REAL and math.isinf(s.attr) for s in t.args):
        return None

    def taken(s: Term) -> Term | None:
        if s.op != "where":
            return None
        known = truth(a, condition(a, s.args[0], ctx), ctx)
        return None if known is None else s.args[1 if known else 2]

    new = [T.rewrite(s, taken) for s in t.args]
    return None if new == list(t.args) else decided(T.node(t.op, tuple(new), None, T.BOOL))


def _certainly_finite(a: Algebra, p: Poly, ctx: Context) -> None:
    """Raises Undecided where a maximum in p may be of nothing, which is minus infinity."""
    with a.collecting() as side_conditions:
        a.finite(p, ctx)
    if side_conditions:
        raise Undecided("a maximum over possibly no elements is compared with infinity")


def _infinite(op: str, x: Poly, y: Poly) -> bool:
    """-inf < x < inf for every real x."""
    rank = lambda p: -1 if p is MINUS_INF else 1 if p is PLUS_INF else 0  # noqa: E731
    a, b = rank(x), rank(y)
    return {"lt": a < b, "le": a <= b, "eq": a == b, "ne": a != b}[op]


def real_literal(a: Algebra, op: str, d: Poly, ctx: Context) -> Term:
    """x op y for d = y - x of reals: 0 < q or q < 0 or q == 0 and their negations, q without positive factors."""
    c = d.constant
    if has_infinity(d):
        raise Undecided("infinities are compared")
    if c is not None:
        return T.const({"lt": c > 0, "le": c >= 0, "eq": c == 0, "ne": c != 0}[op])
    factor, (factors, e), q = primitive(d)
    positive = factor > 0
    for b, k in factors:
        s = a.sign(atom(T.TERMS[b]), ctx)
        if s is None:
            q = a.product(q, atom(T.TERMS[b], k), ctx)
        elif s < 0 and k % 2:
            positive = not positive
    zero = T.const(0)
    if op in ("eq", "ne"):
        return T.make(op, q.term, zero)
    known = a.sign(q, ctx)
    if known is not None:
        return T.const((known > 0) == positive)
    less = T.make("lt", zero, q.term) if positive else T.make("lt", q.term, zero)
    if op == "lt":
        return less
    more = T.make("lt", q.term, zero) if positive else T.make("lt", zero, q.term)
    return T.make("not", more)


def truth(a: Algebra, c: Term, ctx: Context) -> bool | None:
    """Whether the facts imply the condition c, in normal form (True), or its negation (False); None if they decide
    neither."""
    if c.is_const:
        return bool(c.attr)
    if c.op in ("and", "or"):
        answers = [truth(a, s, ctx) for s in c.args]
        dominant = c.op == "or"
        if dominant in answers:
            return dominant
        return None if None in answers else not dominant
    if c.op == "not":
        inner = truth(a, c.args[0], ctx)
        return None if inner is None else not inner
    return a.decide(c, ctx)


def undecided(a: Algebra, c: Term, ctx: Context) -> list[Term]:
    """The literals of a condition that the facts leave open."""
    if c.op in ("and", "or", "not"):
        return [x for s in c.args for x in undecided(a, s, ctx)]
    return [] if c.is_const or a.decide(c, ctx) is not None else [c]


def indicator(c: Term) -> Poly:
    """[c]: 1 where the condition holds, else 0."""
    if c.is_const:
        return ONE if c.attr else ZERO
    if c.op == "not":
        return ONE - indicator(c.args[0])
    if c.op in ("lt", "le") and any(s is T.const(0) for s in c.args) and not is_integer(c):
        x, y = c.args
        if c.op == "le":
            return ONE - indicator(T.make("lt", y, x))
        if x is T.const(0):
            return atom(T.node("positive?", (y,), None, T.REAL))
        return ONE - atom(T.node("positive?", (x,), None, T.REAL)) - atom(T.node("zero?", (x,), None, T.REAL))
    if c.op in ("eq", "ne") and any(s.type == T.REAL for s in c.args):
        x = next(s for s in c.args if s is not T.const(0))
        zero = atom(T.node("zero?", (x,), None, T.REAL))
        return zero if c.op == "eq" else ONE - zero
    return atom(T.node("holds?", (c,), None, T.REAL))


def conjunction(a: Algebra, c: Term, ctx: Context) -> Poly:
    """[c and d] = [c] [d];  [c or d] = 1 - (1 - [c]) (1 - [d])."""
    if c.op == "and":
        out = ONE
        for s in c.args:
            out = a.product(out, conjunction(a, s, ctx), ctx)
        return out
    if c.op == "or":
        return ONE - conjunction(a, T.node("and", tuple(T.make("not", s) for s in c.args), None, T.BOOL), ctx)
    found = _unnested(a, c, ctx)
    return indicator(c) if found is None else found


def _unnested(a: Algebra, c: Term, ctx: Context) -> Poly | None:
    """[q(p) > 0] = [p] [q(1) > 0] + (1 - [p]) [q(0) > 0]  for an indicator p in q; None where there is none."""
    literal, negated = (c.args[0], True) if c.op == "not" else (c, False)
    sides = [s for s in literal.args if s is not T.const(0)]
    if literal.op not in ("lt", "le", "eq", "ne") or len(sides) != 1 or is_integer(literal):
        return None
    q = structural(sides[0])
    inner = sorted((T.TERMS[i] for i in q.atoms if T.TERMS[i].op in INDICATORS), key=spelling)
    if not inner or len(inner) > NESTED or any(e and POLYS[e].atoms & {t.id for t in inner} for _, e in q.terms):
        return None
    p = inner[0]
    out = []
    for weight, value in ((atom(p), 1), (ONE - atom(p), 0)):
        at = _pinned_to(q, p.id, value)
        x, y = (ZERO, at) if literal.args[0] is T.const(0) else (at, ZERO)
        fixed = real_literal(a, literal.op, y - x, ctx)
        out.append(a.product(weight, conjunction(a, T.make("not", fixed) if negated else fixed, ctx), ctx))
    return a.add(out)


def _pinned_to(q: Poly, p: int, value: int) -> Poly:
    """q where the indicator p is 0 or 1."""
    kept = [(fs, e, v) for (fs, e), v in q.terms.items() if value or all(b != p for b, _ in fs)]
    return P.total((1, P.monomial((tuple(f for f in fs if f[0] != p), e), v)) for fs, e, v in kept)


def choice(a: Algebra, c: Term, x: Term, y: Term, ctx: Context) -> Poly:
    """where(c, x, y) for a condition in normal form."""
    known = truth(a, c, ctx)
    if known is not None:
        return a.normal(x if known else y, ctx)
    open_ = undecided(a, c, ctx)
    for literal in open_:
        if is_integer(literal):
            raise Split(literal)
    yes, no = a.normal(x, a.given(ctx, c)), a.normal(y, a.given(ctx, T.make("not", c)))
    if yes is no:
        return yes
    if is_infinite(yes) or is_infinite(no):
        raise Split(open_[0])
    if (extreme := _extremum(a, c, yes, no, ctx)) is not None:
        return extreme
    weight = conjunction(a, c, ctx)
    return a.add([a.product(weight, yes, ctx), a.product(ONE - weight, no, ctx)])


def _extremum(a: Algebra, c: Term, yes: Poly, no: Poly, ctx: Context) -> Poly | None:
    """where(x < y, y, x) = max(x, y), and likewise the minimum."""
    d = yes - no
    if c in (real_literal(a, "lt", d, ctx), real_literal(a, "le", d, ctx)):
        return a.lattice([yes, no], ctx)
    if c in (real_literal(a, "lt", -d, ctx), real_literal(a, "le", -d, ctx)):
        least = a.lattice([-yes, -no], ctx)
        return -least
    return None


@rule("where")
def _(a: Algebra, t: Term, ctx: Context) -> Poly:
    c, x, y = t.args
    return choice(a, condition(a, c, ctx), x, y, ctx)


@rule("lt", "le", "eq", "ne", "and", "or", "not")
def _(a: Algebra, t: Term, ctx: Context) -> Poly:
    """A condition as a number."""
    return choice(a, condition(a, t, ctx), T.const(1), T.const(0), ctx)


def require(a: Algebra, literal: Term, ctx: Context) -> bool:
    """Whether an integer literal holds; Split where the facts leave it open."""
    known = truth(a, literal, ctx)
    if known is None:
        raise Split(undecided(a, literal, ctx)[0])
    return known


@rule("floordiv")
def _(a: Algebra, t: Term, ctx: Context) -> Poly:
    if not _of_integers(t):
        return opaque(a, t, ctx)
    x, d = (a.normal(s, ctx) for s in t.args)
    return floor_division(a, x, d, ctx)


@rule("mod")
def _(a: Algebra, t: Term, ctx: Context) -> Poly:
    """x mod d = x - d * (x // d)."""
    if not _of_integers(t):
        return opaque(a, t, ctx)
    x, d = (a.normal(s, ctx) for s in t.args)
    return x - a.product(d, floor_division(a, x, d, ctx), ctx)


@rule("truncdiv", "truncmod")
def _(a: Algebra, t: Term, ctx: Context) -> Poly:
    """C division of integers of known sign."""
    if not _of_integers(t):
        return opaque(a, t, ctx)
    x, d = (a.normal(s, ctx) for s in t.args)
    negative = lambda p: not require(a, integer_literal("le", p), ctx)  # noqa: E731
    flip_x, flip_d = negative(x), negative(d)
    q = floor_division(a, -x if flip_x else x, -d if flip_d else d, ctx)
    q = -q if flip_x != flip_d else q
    return q if t.op == "truncdiv" else x - a.product(d, q, ctx)


def _of_integers(t: Term) -> bool:
    return all(s.type != T.REAL for s in t.args)


def floor_division(a: Algebra, x: Poly, d: Poly, ctx: Context) -> Poly:
    """x // d for d > 0: (d A + R) // d = A + R // d, and R // d = 0 where 0 <= R < d."""
    if d is ONE:
        return x
    if not a.implied(ctx, integer_literal("lt", d)):
        if d.constant is None:
            return _opaque_division(x, d)
        if a.impossible(ctx):
            return ZERO  # of no numbers
        raise Undecided("division by a number that is not positive")
    whole, rest = divided(x, d)
    if rest is ZERO:
        return whole
    low, high = integer_literal("le", rest), integer_literal("lt", d - rest)
    if a.implied(ctx, low) and a.implied(ctx, high):
        return whole
    for k in (-1, 1):  # the neighbouring quotients, where the remainder is known to be there
        moved = rest - P.scaled(d, k)
        if a.implied(ctx, integer_literal("le", moved)) and a.implied(ctx, integer_literal("lt", d - moved)):
            return whole + number(k)
    for q, moved in _regrouped(rest, d):
        if a.implied(ctx, integer_literal("le", moved)) and a.implied(ctx, integer_literal("lt", d - moved)):
            return whole + q
    coarse = _coarse(a, rest, d, ctx)
    return whole + (_nested(a, rest, d, ctx) if coarse is None else coarse)


def _regrouped(x: Poly, d: Poly) -> Iterator[tuple[Poly, Poly]]:
    """(k q, r) with x = d k q + r, where x has y and q = y // m: y + v q = (y - m q) + (v + m) q."""
    for (factors, e), v in x.terms.items():
        t = T.TERMS[factors[0][0]] if len(factors) == 1 and factors[0][1] == 1 and not e else None
        if t is None or t.op != "floordiv" or not t.args[1].is_const or d.constant is None:
            continue
        y = structural(t.args[0])
        times = next((x.terms[m] // c for m, c in y.terms.items() if m in x.terms and x.terms[m] % c == 0), None)
        if times and (v + times * t.args[1].attr) % d.constant == 0:
            many = v + times * t.args[1].attr
            yield P.scaled(atom(t), many // d.constant), x - P.scaled(atom(t), many)


def _coarse(a: Algebra, x: Poly, d: Poly, ctx: Context) -> Poly | None:
    """(b A + r) // (b c) = A // c for 0 <= r < b and 0 < c."""
    if len(d.terms) != 1:
        return None
    ((factors, _), k) = next(iter(d.terms.items()))
    parts = [atom(T.TERMS[f], n) for f, n in factors] + ([number(k)] if k != 1 else [])
    pairs = [pair for p in parts if len(parts) > 1 for pair in ((p, divided(d, p)[0]), (divided(d, p)[0], p))]
    if d.constant is not None:
        shared = {gcd(v, k) for v in x.terms.values() if isinstance(v, int)} - {1, k}
        pairs += [(number(b), number(k // b)) for b in sorted(shared, reverse=True)]
    for b, c in pairs:
        whole, rest = divided(x, b)
        if whole is ZERO or not all(a.implied(ctx, integer_literal("lt", p)) for p in (b, c)):
            continue
        if a.implied(ctx, integer_literal("le", rest)) and a.implied(ctx, integer_literal("lt", b - rest)):
            return floor_division(a, whole, c, ctx)
    return None


def _opaque_division(x: Poly, d: Poly) -> Poly:
    return atom(T.node("floordiv", (x.term, d.term), None, T.INT))


def _nested(a: Algebra, x: Poly, d: Poly, ctx: Context) -> Poly:
    """(x // b) // d = x // (b d) for b, d > 0."""
    if len(x.terms) == 1:
        ((factors, e), c) = next(iter(x.terms.items()))
        if c == 1 and len(factors) == 1 and factors[0][1] == 1 and T.TERMS[factors[0][0]].op == "floordiv":
            inner = T.TERMS[factors[0][0]]
            y, b = (a.normal(s, ctx) for s in inner.args)
            if a.implied(ctx, integer_literal("lt", b)):
                return floor_division(a, y, a.product(b, d, ctx), ctx)
    return _opaque_division(x, d)


def divided(x: Poly, d: Poly) -> tuple[Poly, Poly]:
    """(A, R) with x = d A + R: monomials of x that are multiples of d go to A."""
    if len(d.terms) == 1:
        ((factors, _), c) = next(iter(d.terms.items()))
        whole: dict[P.Monomial, P.Number] = {}
        rest: dict[P.Monomial, P.Number] = {}
        for (fs, e), v in x.terms.items():
            left = dict(fs)
            for b, k in factors:
                left[b] = left.get(b, 0) - k
            if any(k < 0 for k in left.values()) or not isinstance(v, int) or not isinstance(c, int):
                rest[(fs, e)] = v
                continue
            key = (tuple(sorted((b, k) for b, k in left.items() if k)), e)
            q, r = divmod(v, c)
            if q:
                whole[key] = q
            if r:
                rest[(fs, e)] = r
        return P.poly(whole), P.poly(rest)
    for factors, e in x.terms:  # x = m * d + R for a sum d
        lead = min(d.terms)
        part = divided(P.poly({(factors, e): x.terms[(factors, e)]}), P.poly({lead: d.terms[lead]}))[0]
        less = x - _product(part, d)
        if part is not ZERO and len(less.terms) < len(x.terms):
            more, left_over = divided(less, d)
            return part + more, left_over
    return ZERO, x


def _product(p: Poly, q: Poly) -> Poly:
    """The product of integer polynomials: nothing cancels."""
    out: dict[P.Monomial, P.Number] = {}
    for (f, _), c in p.terms.items():
        for (g, _), d in q.terms.items():
            powers = dict(f)
            for b, k in g:
                powers[b] = powers.get(b, 0) + k
            key = (tuple(sorted(powers.items())), 0)
            out[key] = out.get(key, 0) + P.times(c, d)
    return P.poly({m: c for m, c in out.items() if c})


@rule("max", "min")
def _(a: Algebra, t: Term, ctx: Context) -> Poly:
    if t.type != T.REAL and not any(x.op in ("amax", "amin") for s in t.args for x in s.walk()):
        return _integer_extremum(a, t, ctx)
    for s in t.args:
        a.number(s, ctx)
    ps = [a.normal(s, ctx) for s in t.args]
    if t.op == "max":
        return a.lattice(ps, ctx)
    negated = a.lattice([negated_infinity(p) if is_infinite(p) else -p for p in ps], ctx)
    return negated_infinity(negated) if is_infinite(negated) else -negated


def _integer_extremum(a: Algebra, t: Term, ctx: Context) -> Poly:
    best = a.normal(t.args[0], ctx)
    for s in t.args[1:]:
        x = a.normal(s, ctx)
        first_is_less = require(a, integer_literal("le", x - best), ctx)
        if first_is_less == (t.op == "max"):
            best = x
    return best


@rule("abs")
def absolute(a: Algebra, t: Term, ctx: Context) -> Poly:
    """abs(x) = max(x, -x)."""
    x = a.normal(t.args[0], ctx)
    if is_infinite(x):
        return x if x is NAN else PLUS_INF
    if t.type != T.REAL:
        return x if require(a, integer_literal("le", x), ctx) else -x
    s = a.sign(x, ctx)
    if s is not None:
        return x if s > 0 else -x
    weight = conjunction(a, real_literal(a, "lt", x, ctx), ctx)
    return a.add([P.scaled(a.product(weight, x, ctx), 2), -x])


@rule("sign")
def _(a: Algebra, t: Term, ctx: Context) -> Poly:
    """sign(x) = [x > 0] - [x < 0], of reals."""
    a.number(t.args[0], ctx)
    x = a.normal(t.args[0], ctx)
    if is_infinite(x):
        return ONE if x is PLUS_INF else -ONE
    if t.type != T.REAL:
        return opaque(a, t, ctx)
    above, below = (conjunction(a, real_literal(a, "lt", p, ctx), ctx) for p in (x, -x))
    return above - below


@rule("shl", "shr")
def _(a: Algebra, t: Term, ctx: Context) -> Poly:
    """x << k = 2^k x and x >> k = x // 2^k; by an amount of few values, a choice among them."""
    amount = a.normal(t.args[1], ctx)
    k = amount.constant
    if k is None and (chosen := _shift_choice(t, amount)) is not None:
        return a.normal(chosen, ctx)
    if not isinstance(k, int) or not 0 <= k < 64:
        return opaque(a, t, ctx)
    x = a.normal(t.args[0], ctx)
    return P.scaled(x, 1 << k) if t.op == "shl" else floor_division(a, x, number(1 << k), ctx)


def _shift_choice(t: Term, amount: Poly) -> Term | None:
    """x >> (c (i mod m) + d) as where(i mod m < 1, x >> d, where(i mod m < 2, x >> (c + d), ..)); None otherwise."""
    found = _remainder(amount)
    if found is None:
        return None
    i, m, c, d = found
    shifts = [c * v + d for v in range(m)]
    if not 1 < m <= TOLD_SHIFTS or not all(0 <= k < 64 for k in shifts):
        return None
    out = T.make(t.op, t.args[0], shifts[-1])
    for v in range(m - 2, -1, -1):
        out = T.where(T.make("lt", T.make("mod", i, m), v + 1), T.make(t.op, t.args[0], shifts[v]), out)
    return out


def _remainder(p: Poly) -> tuple[Term, int, int, int] | None:
    """(i, m, c, d) with p = c (i - m (i // m)) + d."""
    d = p.terms.get(ONE_KEY, 0)
    for (factors, e), v in p.terms.items():
        q = T.TERMS[factors[0][0]] if len(factors) == 1 and factors[0][1] == 1 and not e else None
        if q is None or q.op != "floordiv" or not q.args[1].is_const or not isinstance(v, int):
            continue
        i, m = q.args[0], q.args[1].attr
        if v % m or not isinstance(d, int):
            continue
        c = -v // m
        if p is P.scaled(structural(i) - P.scaled(atom(q), m), c) + number(d):
            return i, m, c, d
    return None


@rule("bitand", "bitor", "bitxor")
def _(a: Algebra, t: Term, ctx: Context) -> Poly:
    """a | b = a + b - (a & b),  a ^ b = a + b - 2 (a & b), with a constant or where no bit is in both."""
    x, y = (a.normal(s, ctx) for s in t.args)
    if isinstance(x.constant, int):
        x, y = y, x
    c = y.constant
    both = _masked(a, x, c, ctx) if isinstance(c, int) else ZERO if _disjoint(a, x, y, ctx) else None
    if both is None:
        return atom(T.node(t.op, tuple(sorted((x.term, y.term), key=lambda s: s.id)), None, T.INT))
    return both if t.op == "bitand" else x + y - P.scaled(both, 1 if t.op == "bitor" else 2)


def _masked(a: Algebra, x: Poly, c: int, ctx: Context) -> Poly | None:
    """x & c: a run of ones from bit i up to bit j is x mod 2^j - x mod 2^i; x & ~c = x - x & c. None: many runs."""
    if c < 0:
        rest = _masked(a, x, ~c, ctx)
        return None if rest is None else x - rest
    edges = [k for k in range(c.bit_length() + 1) if (c >> k & 1) != (c >> k - 1 & 1 if k else 0)]
    if len(edges) > 2 * RUNS:
        return None
    low = [x - P.scaled(floor_division(a, x, number(1 << k), ctx), 1 << k) for k in edges]
    return P.total((1 if n % 2 else -1, p) for n, p in enumerate(low))


def _disjoint(a: Algebra, x: Poly, y: Poly, ctx: Context) -> bool:
    """Whether one is a multiple of 2^k, and the other in 0 .. 2^k - 1."""
    for high, low in ((x, y), (y, x)):
        if not is_index(high) or not is_index(low):
            return False
        common = gcd(*high.terms.values())  # type: ignore[arg-type]
        size = number(common & -common)
        if a.implied(ctx, integer_literal("le", low)) and a.implied(ctx, integer_literal("lt", size - low)):
            return True
    return False


@rule("positive?", "zero?", "holds?")
def _(a: Algebra, t: Term, ctx: Context) -> Poly:
    """An indicator in normal form, perhaps with other arguments than it was made with."""
    x = t.args[0]
    literal = x if t.op == "holds?" else T.node("lt" if t.op == "positive?" else "eq",
                                                (T.const(0), x), None, T.BOOL)  # fmt: skip
    if t.op != "holds?":
        d = a.normal(x, ctx)
        literal = real_literal(a, "lt" if t.op == "positive?" else "eq", d, ctx)
    else:
        literal = condition(a, literal, ctx)
    return choice(a, literal, T.const(1), T.const(0), ctx) if literal.is_const else conjunction(a, literal, ctx)
