"""Where a number stands in an integer input without two equal elements: who stores at an address that the input gives.

    idx[p] = v                                                  p = max over j of (j where idx[j] = v, else -1)
    max over j of (j where idx[j] = idx[a], else -1) = a        for 0 <= a < n

The first is a guess of `address_inverse`, and means something where it is not -1. The second is what distinctness says.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import permutations, product

from trilift.lift.terms import construct as T
from trilift.lift.terms.term import Axis, Term

from ..integers.quotient import Ask, between, same
from ..integers.solver import DistinctElements, Facts

DistinctInputs = Mapping[str, DistinctElements]  # by the name of the input


def position(element: Term, v: Term, n: Term) -> Term:
    """The last of n elements of an input that is v, -1 without one. `element`: any element of it."""
    axis = Axis(f"element of {element.attr}", n)
    hit = T.make("eq", T.node("read", (T.axis(axis),), element.attr, element.type), v)
    return T.fold("amax", axis, T.where(hit, T.axis(axis), -1))


def known(p: Term, element: Term, v: Term, of: DistinctElements) -> Facts:
    """The facts about p, the position of v: where the elements are all numbers between their limits, v has one."""
    there = T.node("read", (p,), element.attr, element.type)
    found = [T.make("le", -1, p), T.make("lt", p, of.number), T.make("or", T.make("lt", p, 0), T.make("eq", there, v))]
    if of.low is not None and of.high is not None:
        outside = T.make("lt", v, of.low), T.make("le", of.high, v)
        found.append(T.make("or", *outside, T.make("le", 0, p)))
    return frozenset(found)


def settled(t: Term, distinct: DistinctInputs, ask: Ask) -> Term:
    """The term, in which positions of elements are their indices."""

    def one(s: Term) -> Term | None:
        return next(_indices(s, distinct, ask), None) if s.op == "amax" else None

    return T.rewrite(t, one) if distinct else t


def joined(t: Term, ask: Ask) -> Term:
    """The term, in which x // n = a and x % n = b is x = a * n + b, for 0 <= b < n: two digits of one number."""

    def one(s: Term) -> Term | None:
        if s.op != "and":
            return None
        for q, r in permutations((c for c in s.args if c.op == "eq"), 2):
            for (x, n, a), (y, m, b) in product(_sides(q, "floordiv"), _sides(r, "mod")):
                if x is y and n is m and ask(between(b, n)):
                    rest = (c for c in s.args if c is not q and c is not r)
                    return T.make("and", T.make("eq", x, T.add(T.mul(a, n), b)), *rest)
        return None

    return T.rewrite(t, one)


def _sides(c: Term, op: str) -> list[tuple[Term, Term, Term]]:
    """x, n, a of each side of an equation that is x op n = a."""
    return [(s.args[0], s.args[1], a) for s, a in (c.args, c.args[::-1]) if s.op == op]


def _indices(s: Term, distinct: DistinctInputs, ask: Ask) -> Iterator[Term]:
    j, body = T.axis(s.attr), s.args[0]
    if body.op != "where" or body.args[1:] != (j, T.const(-1)) or body.args[0].op != "eq":
        return
    for element, v in (body.args[0].args, body.args[0].args[::-1]):
        of = distinct.get(str(element.attr)) if element.op == "read" and element.args == (j,) else None
        if of is None or (n := of.number) is not s.attr.size:
            continue
        for x in v.walk():
            own = x.op == "read" and x.attr == element.attr and s.attr not in x.free
            if own and same(v, x, ask) and ask(between(x.args[0], n)):
                yield x.args[0]
