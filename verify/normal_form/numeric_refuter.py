"""Numbers at which a polynomial over elements is not 0: there is no proof to look for.

Elements are independent where every tensor is read at one place. Sizes and indices are not looked at, so that no fact
about them is needed; facts about elements are met by every point that counts."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping

from trilift.lift.terms import term as T
from trilift.lift.terms.term import Term

from .algebra import Context
from .poly import Number, Poly, structural

POINTS = 12
LARGEST = 3  # of a number that stands for an element; 0, and equal ones, are among few
Point = Mapping[Term, int]


class Unknown(Exception):
    """The value depends on more than elements."""


def refuted(p: Poly, ctx: Context) -> bool:
    """Whether p is certainly not 0 for all elements that meet the facts. False: nothing is known."""
    if any(e for _, e in p.terms):
        return False
    reads = {s for i in p.atoms for s in _elements(T.TERMS[i])}
    if not reads or len({s.attr for s in reads}) < len(reads) or any(s.type != T.REAL for s in reads):
        return False
    about = [f for f in ctx.facts if any(s.type == T.REAL for s in f.walk())]
    source = random.Random(len(reads))
    ordered = sorted(reads, key=lambda s: str(s.attr))
    try:
        for _ in range(POINTS):
            at = {s: source.randint(-LARGEST, LARGEST) for s in ordered}
            if value(p, at) != 0 and all(_holds(f, at) for f in about):
                return True
    except Unknown:
        pass
    return False


def _elements(t: Term) -> Iterable[Term]:
    """The elements that an atom reads, those of indices aside."""
    if t.op == "read":
        return (t,)
    return [s for a in t.args for s in _elements(a)]


def value(p: Poly, at: Point) -> Number:
    """The value of a polynomial at a point. Raises Unknown."""
    total: Number = 0
    for (factors, _), c in p.terms.items():
        for b, k in factors:
            if not isinstance(k, int) or k < 0:
                raise Unknown
            c = c * _atom(T.TERMS[b], at) ** k
        total = total + c
    return total


def _atom(t: Term, at: Point) -> Number:
    if t.op in ("positive?", "zero?"):
        inner = value(structural(t.args[0]), at)
        return int(inner > 0 if t.op == "positive?" else inner == 0)
    if t not in at:
        raise Unknown
    return at[t]


def _holds(c: Term, at: Point) -> bool:
    """Whether a fact about elements holds. Raises Unknown."""
    if c.op == "not":
        return not _holds(c.args[0], at)
    if c.op not in ("lt", "le", "eq"):
        raise Unknown
    x, y = (value(structural(s), at) for s in c.args)
    return bool(x < y if c.op == "lt" else x <= y if c.op == "le" else x == y)
