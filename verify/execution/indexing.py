"""Row-major indices of one shape in another, at extents that are numbers or terms.

0 <= r < d
-------------------------------------------
(d * q + r) // d = q,  (d * q + r) % d = r
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from trilift.lift.terms import construct as T
from trilift.lift.terms.ranges import Ranges, affine, from_affine, sum_interval
from trilift.lift.terms.term import Term

from ..integers.quotient import Monomial, Poly, divide, expand, minus, plus, times, to_term

Extent = int | Term


def reindexed(
    lanes: Sequence[Term], shape: Sequence[Extent], source: Sequence[Extent], ranges: Ranges
) -> tuple[Term, ...]:
    """The index into `source` of the element that has index `lanes` in `shape`, both row-major."""
    linear = T.const(0)
    for lane, n in zip(lanes, shape, strict=True):
        linear = T.add(T.mul(linear, n), lane)
    out: list[Term] = []
    for d, n in enumerate(source):
        quotient = divided(linear, math.prod(source[d + 1 :]), ranges)[0]
        out.append(quotient if d == 0 else divided(quotient, n, ranges)[1])
    return tuple(out)


def divided(t: Term, divisor: Extent, ranges: Ranges) -> tuple[Term, Term]:
    """(t // divisor, t % divisor) for a divisor above 0. Multiples of the divisor leave the division."""
    quotient, rest = _parted(t, divisor)
    if within(rest, divisor, ranges):
        return quotient, rest
    return T.add(quotient, T.make("floordiv", rest, divisor)), T.make("mod", rest, divisor)


def _parted(t: Term, divisor: Extent) -> tuple[Term, Term]:
    """(q, r) with t = divisor * q + r."""
    if isinstance(divisor, Term) and not divisor.is_const:
        q, r = divide(expand(t), expand(divisor))
        return to_term(q), to_term(r)
    n = divisor.attr if isinstance(divisor, Term) else divisor
    constant, parts = affine(t)
    whole = {s: c // n for s, c in parts.items() if c % n == 0}
    rest = {s: c for s, c in parts.items() if c % n != 0}
    return from_affine(constant // n, whole), from_affine(constant % n, rest)


def within(t: Term, n: Extent, ranges: Ranges) -> bool:
    """Whether 0 <= t < n is certain."""
    constant, parts = affine(t)
    low, high = sum_interval(constant, parts, ranges, {})
    if low < 0:
        return False
    least = n if isinstance(n, int) else ranges.of(n)[0]
    if high < least:
        return True
    gap = minus(minus(expand(T.const(n)), {(): 1}), _most(expand(t), ranges))
    return sum_interval(*affine(to_term(_without_quotients(gap, ranges))), ranges, {})[0] >= 0


def _most(p: Poly, ranges: Ranges) -> Poly:
    """A polynomial that is at least p at all lanes: c * i <= c * (n - 1) for i < n, -c * i <= 0."""
    out: Poly = {}
    for m, c in p.items():
        if not any(a.op == "axis" for a in m) or not _nonnegative(m, ranges):
            out = plus(out, {m: c})
        elif c > 0:
            bound: Poly = {(): c}
            for a in m:
                bound = times(bound, minus(expand(a.attr.size), {(): 1}) if a.op == "axis" else {(a,): 1})
            out = plus(out, bound)
    return out


def _without_quotients(p: Poly, ranges: Ranges) -> Poly:
    """A polynomial that is at most p: -c * k * (x // k) >= -c * x."""
    out: Poly = {}
    for m, c in p.items():
        x = next((a for a in m if a.op == "floordiv" and a.args[1].is_const and a.args[1].attr > 0), None)
        if x is None or c >= 0 or c % x.args[1].attr or not _nonnegative(m, ranges):
            out = plus(out, {m: c})
            continue
        others = list(m)
        others.remove(x)
        out = plus(out, times({tuple(others): c // x.args[1].attr}, expand(x.args[0])))
    return out


def _nonnegative(m: Monomial, ranges: Ranges) -> bool:
    return all(ranges.of(a)[0] >= 0 for a in m)
