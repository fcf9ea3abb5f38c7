"""Products of indicators of one quantity q and constants.

[q > s] [q > t] = [q > max(s, t)]      [q > s] [q < t] = [q > s] + [q < t] - 1 for s < t, else 0
[q > s] [q = t] = [q = t] for s < t, else 0      [q = s] [q = t] = 0 for s /= t
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

from trilift.lift.runtime.session import table
from trilift.lift.terms.term import Term

from .. import poly as P
from ..poly import ONE, ONE_KEY, ZERO, Number, Poly, atom, structural

KINDS = ("positive?", "zero?")


@dataclass(frozen=True, slots=True)
class Threshold:
    """q > at (side 1), q < at (side -1) or q = at (side 0); `quantity`: the id of q, without a constant and monic."""

    quantity: int
    side: int
    at: Number


_KNOWN: dict[int, Threshold | None] = P.by_precision(table("indicator.thresholds", {}))


def threshold(t: Term) -> Threshold | None:
    """The comparison with a number that the indicator t stands for. None if t is an indicator of a condition, or its
    argument is constant."""
    if t.id not in _KNOWN:
        _KNOWN[t.id] = _threshold(t) if t.op in KINDS else None
    return _KNOWN[t.id]


def _threshold(t: Term) -> Threshold | None:
    p = structural(t.args[0])
    rest = {m: c for m, c in p.terms.items() if m != ONE_KEY}
    if not rest:
        return None
    lead = rest[min(rest)]
    q = P.poly({m: _ratio(c, lead) for m, c in rest.items()})
    side = 0 if t.op == "zero?" else 1 if lead > 0 else -1
    return Threshold(q.id, side, _ratio(-p.terms.get(ONE_KEY, 0), lead))


def _ratio(c: Number, d: Number) -> Number:
    return P.tidy(c / d if isinstance(c, float) or isinstance(d, float) else Fraction(c) / Fraction(d))


def product(indicators: Iterable[Term]) -> tuple[Term, Term, Poly] | None:
    """Two of these, and what their product is without a product; None where all are of different quantities."""
    known = [(t, s) for t in indicators if (s := threshold(t)) is not None]
    for (x, s), (y, t) in combinations(known, 2):
        if s.quantity == t.quantity:
            return x, y, _product(((x, s), (y, t)))
    return None


def _product(pair: Sequence[tuple[Term, Threshold]]) -> Poly:
    (x, s), (y, t) = sorted(pair, key=lambda p: -p[1].side)
    match s.side, t.side:
        case (1, 1):
            return atom(x if s.at >= t.at else y)
        case (-1, -1):
            return atom(x if s.at <= t.at else y)
        case (1, -1):
            return atom(x) + atom(y) - ONE if s.at < t.at else ZERO
        case (1, 0):
            return atom(y) if s.at < t.at else ZERO
        case (0, -1):
            return atom(x) if s.at < t.at else ZERO
        case _:
            return atom(x) if s.at == t.at else ZERO
