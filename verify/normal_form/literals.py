"""Literals: comparisons of integers with 0, in normal form. They depend on no facts."""

from __future__ import annotations

from fractions import Fraction
from math import gcd

from trilift.lift.terms import construct as T
from trilift.lift.terms.term import Term

from . import poly as P
from .poly import ONE, ONE_KEY, Poly, structural

COMPARISONS = {"lt", "le", "eq", "ne"}


def is_integer(literal: Term) -> bool:
    """Whether a literal is a comparison of integers."""
    return literal.op in COMPARISONS and all(s.type != T.REAL for s in literal.args)


def opposite(c: Term) -> Term:
    """The negation of a condition in normal form, in normal form: not 0 <= p is 0 <= -p - 1."""
    if c.op in ("and", "or"):
        return T.make("or" if c.op == "and" else "and", *(opposite(s) for s in c.args))
    if c.op == "le" and c.args[0] is T.const(0) and is_integer(c):
        return integer_literal("lt", -structural(c.args[1]))
    return T.make("not", c)


def integer_literal(op: str, d: Poly) -> Term:
    """x op y for d = y - x of integers: 0 <= d - 1, 0 <= d, d == 0, divided by the common divisor."""
    if op == "lt":
        d, op = d - ONE, "le"
    c = d.constant
    if c is not None:
        return T.const({"le": c >= 0, "eq": c == 0, "ne": c != 0}[op])
    variable = [v for m, v in d.terms.items() if m != ONE_KEY]
    if any(not isinstance(v, int) for v in d.terms.values()):
        scale = 1
        for v in d.terms.values():
            scale = scale * v.denominator // gcd(scale, v.denominator) if isinstance(v, Fraction) else scale
        if any(isinstance(v, float) for v in d.terms.values()):
            return T.make(op, *((0, d.term) if op == "le" else (d.term, 0)))
        return integer_literal(op, P.scaled(d, scale))
    g = gcd(*variable)  # type: ignore[arg-type]
    k = d.terms.get(ONE_KEY, 0)
    if op != "le" and k % g:
        return T.const(op == "ne")
    if g > 1:
        d = P.poly({m: (v // g) for m, v in d.terms.items() if v // g})
    if op == "le":
        return T.make("le", 0, d.term)
    if next(iter(sorted(d.terms.items())))[1] < 0:
        d = -d
    return T.make(op, d.term, 0)
