"""Whether two terms that are equal as reals are also equal where one of their operations leaves the reals.

Real laws fail beside infinities: x / a * (y - z) is infinite and x * y / a - x * z / a is NaN where a = 0 and y, z have
one sign. An operation gives one result of the same operands, a product and a sum whatever their order, so it is enough
that the operands agree:

    products   the factors that may be infinite agree one by one, and the others are equal as reals
    sums       the terms that may be infinite agree one by one; numbers beside an infinity do not count
    folds      the bodies agree at every index, and the indices are the same
    others     one operation, and all operands agree

False: not shown. Zeros have no sign here as everywhere (`docs/explanation/what-proved-means.md`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import chain

from trilift.lift.language.unfolding import unfold
from trilift.lift.terms import construct as T
from trilift.lift.terms.definedness import is_finite
from trilift.lift.terms.term import Axis, Term

from .algebra import ALL, Algebra, Context, Split, Undecided, is_infinite
from .literals import integer_literal, opposite
from .piecewise import truth
from .poly import ONE, atom

NESTED = 12  # operations deep
PAIRS = 64  # pairs of operands of one operation
UNIT_IS_INFINITE = {"amax", "amin"}


def together(a: Algebra, left: Term, right: Term, ctx: Context) -> bool:
    """Whether the terms, equal as reals wherever they are numbers, are equal as extended reals too."""
    try:
        return _together(a, left, right, ctx, 0)
    except Split:
        return False  # it hangs on a condition that the facts leave open


def _together(a: Algebra, left: Term, right: Term, ctx: Context, depth: int) -> bool:
    if left is right:
        return True
    if depth > NESTED:
        return False
    if always_finite(a, left, ctx) and always_finite(a, right, ctx):
        return _equal(a, left, right, ctx)
    left, right = (unfold(t) if t.op in T.NAMED else t for t in (left, right))
    left, right = (_only(a, t, ctx) for t in (left, right))
    if "where" in (left.op, right.op):
        return _chosen(a, left, right, ctx, depth)
    if "add" in (left.op, right.op):
        return _matched(a, _terms(left), _terms(right), ctx, depth)[0]
    if {"mul", "recip"} & {left.op, right.op}:
        return _product(a, left, right, ctx, depth)
    if left.op != right.op or len(left.args) != len(right.args):
        return False
    if left.op in T.FOLDS:
        return _folded(a, left, right, ctx, depth)
    same = left.attr == right.attr
    return same and all(_together(a, x, y, ctx, depth + 1) for x, y in zip(left.args, right.args, strict=True))


def _only(a: Algebra, t: Term, ctx: Context) -> Term:
    """The single element of a fold over one."""
    if t.op not in ("sum", "prod", "amax", "amin") or t.attr.size is ALL:
        return t
    n = a.normal(t.attr.size, ctx)
    single = n is ONE or a.implied(ctx, integer_literal("eq", n - ONE))
    return T.substitute(t.args[0], {t.attr: T.const(0)}) if single else t


def always_finite(a: Algebra, t: Term, ctx: Context) -> bool:
    """Whether the facts keep a term finite: each operation in it is defined, and it has no infinities by itself."""
    if t.type != T.REAL or is_finite(t):
        return True
    if any(s.op in UNIT_IS_INFINITE or (s.is_const and not math.isfinite(s.attr)) for s in t.walk()):
        return False
    try:
        with a.collecting() as owed:
            a.number(t, ctx)
    except Undecided:
        return False
    return not owed


def _equal(a: Algebra, left: Term, right: Term, ctx: Context) -> bool:
    try:
        with a.collecting() as owed:
            p, q = a.normal(left, ctx), a.normal(right, ctx)
            same = p is q or not (is_infinite(p) or is_infinite(q) or not a.zero(p - q, ctx))
            return same and not owed
    except Undecided:
        return False


def _terms(t: Term) -> tuple[Term, ...]:
    return t.args if t.op == "add" else (t,)


def _factors(t: Term) -> tuple[Term, ...]:
    """u * v, and 1 / (u * v) as 1 / u * 1 / v."""
    if t.op == "mul":
        return tuple(f for s in t.args for f in _factors(s))
    if t.op == "recip" and t.args[0].op == "mul":
        return tuple(T.make("recip", f) for f in _factors(t.args[0]))
    return (t,)


def _product(a: Algebra, left: Term, right: Term, ctx: Context, depth: int) -> bool:
    if left.op == right.op == "recip" and len(_factors(left)) == len(_factors(right)) == 1:
        return _together(a, left.args[0], right.args[0], ctx, depth + 1)
    shown, mine, others = _matched(a, _factors(left), _factors(right), ctx, depth)
    return shown and _equal(a, T.mul(1, *mine), T.mul(1, *others), ctx)


def _matched(
    a: Algebra, left: Sequence[Term], right: Sequence[Term], ctx: Context, depth: int
) -> tuple[bool, list[Term], list[Term]]:
    """Whether the operands that may leave the reals agree one by one, and the operands of either side that may not."""
    (mine, some), (others, open_) = (_divided(a, ts, ctx) for ts in (left, right))
    if len(some) != len(open_) or len(some) * len(open_) > PAIRS or len(left) == len(right) == 1:
        return False, mine, others
    for s in some:
        found = next((t for t in open_ if _together(a, s, t, ctx, depth + 1)), None)
        if found is None:
            return False, mine, others
        open_.remove(found)
    return True, mine, others


def _divided(a: Algebra, ts: Sequence[Term], ctx: Context) -> tuple[list[Term], list[Term]]:
    """The terms that are always finite, and the others."""
    finite = [t for t in ts if always_finite(a, t, ctx)]
    return finite, [t for t in ts if not any(t is n for n in finite)]


def _chosen(a: Algebra, left: Term, right: Term, ctx: Context, depth: int) -> bool:
    """The branches that may be taken, under their condition."""
    of_left = left.op == "where"
    t, other = (left, right) if of_left else (right, left)
    c = a.condition(t.args[0], ctx)
    known = truth(a, c, ctx)
    for branch, taken in zip(t.args[1:], (True, False), strict=True):
        if known is not (not taken):
            here = ctx if known is not None else a.given(ctx, c if taken else T.make("not", c))
            pair = (branch, other) if of_left else (other, branch)
            if not a.impossible(here) and not _together(a, *pair, here, depth + 1):
                return False
    return True


def _folded(a: Algebra, left: Term, right: Term, ctx: Context, depth: int) -> bool:
    """The bodies at every index that both folds have, the same ones: a sum of x[j] over j < N is one of
    where(j < N, x[j], 0) over j < B, where N <= B."""
    v = a.variable(ctx, left.free | right.free, left.args[0].free | right.args[0].free)
    unit = T.const(T.UNIT[T.FOLDS[left.op]]) if T.FOLDS[left.op] in T.UNIT else None
    (one, mine), (two, others) = (_opened(a, t, v, ctx, unit) for t in (left, right))
    outside = (a.given(ctx, *mine, opposite(g)) for g in others), (a.given(ctx, *others, opposite(g)) for g in mine)
    if not all(map(a.impossible, chain(*outside))):
        return False
    return _together(a, one, two, a.given(ctx, *mine, *others), depth + 1)


def _opened(a: Algebra, t: Term, v: Axis, ctx: Context, unit: Term | None) -> tuple[Term, list[Term]]:
    """The body of a fold at v, and the conditions under which it counts."""
    i, body = atom(T.axis(v)), T.substitute(t.args[0], {t.attr: T.axis(v)})
    guards = []
    if t.attr.size is not ALL:
        guards = [integer_literal("le", i), integer_literal("lt", a.normal(t.attr.size, ctx) - i)]
    while body.op == "where" and body.args[2] is unit:
        guards.append(a.condition(body.args[0], a.given(ctx, *guards)))
        body = body.args[1]
    return body, guards


__all__ = ["together"]
