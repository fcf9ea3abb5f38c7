"""Sums and maxima over variables that guards restrict.

    sum[j, k: g(j, k)] m          amax[j: g(j)] p          g is a set of literals, no range; any number of variables

As terms they are nested folds over axes of unlimited size, where(g, m, unit), with bound names %1, %2 ... by height.
In normal form a variable is shifted so that it is the index of what is read:

    sum[l: 0 <= l < B] x[t B + l]               =  sum[j: t B <= j < t B + B] x[j]
    sum[t: 0 <= t < T] sum[j: t B <= j < t B + B] f(j)  =  sum[j: 0 <= j < T B] f(j)
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import permutations

from trilift.lift.runtime.session import table
from trilift.lift.terms import construct as T
from trilift.lift.terms.term import Axis, Term

from ..algebra import ALL, Algebra, Context, Facts, Split, Undecided
from ..literals import integer_literal, is_integer
from ..piecewise import condition
from ..poly import ZERO, Poly, atom, structural

UNIT = {"sum": 0, "amax": -math.inf, "prod": 1, "argmax": -math.inf, "argmin": math.inf}


@dataclass(frozen=True, slots=True)
class Fold:
    """The body for all values of the variables that meet the guards."""

    variables: tuple[Axis, ...]
    guards: Facts
    body: Poly


def close(kind: str, f: Fold) -> Term:
    """The fold as a term: bound names by height, the order of variables by the text of what results."""
    if len(f.variables) == 1:
        return _nested(kind, f, f.variables)
    orders = permutations(f.variables) if len(f.variables) <= 3 else [f.variables]
    return min((_nested(kind, f, order) for order in orders), key=repr)


def _nested(kind: str, f: Fold, order: tuple[Axis, ...]) -> Term:
    inside = f.body.term
    if f.guards:  # else a factor that counts the indices holds them
        guard = T.make("and", *f.guards) if len(f.guards) > 1 else next(iter(f.guards))
        inside = T.node("where", (guard, inside, T.const(UNIT[kind])), None, inside.type)
    base = height(inside)
    names = [Axis(f"%{base + k + 1}", ALL) for k in range(len(order))]
    t = T.substitute(inside, {v: T.axis(n) for v, n in zip(reversed(order), names, strict=True)})
    for n in names:
        t = T.fold(kind, n, t)
    return t


_HEIGHT: dict[int, int] = table("fold.heights", {})


def height(t: Term) -> int:
    """The greatest k of a name %k bound in the term."""
    found = _HEIGHT.get(t.id)
    if found is None:
        own = int(t.attr.name[1:]) if t.op in T.FOLDS and t.attr.name[0] == "%" else 0
        found = _HEIGHT[t.id] = max([own, *(height(a) for a in t.args)])
    return found


def open_fold(a: Algebra, t: Term, ctx: Context, *avoid: Iterable[Axis]) -> Fold:
    """A fold in normal form with variables in place of its bound ones that nobody else has."""
    kind = t.op
    variables: list[Axis] = []
    while t.op == kind and t.attr.size is ALL:
        v = a.variable(ctx, t.free, variables, *avoid)
        t = T.substitute(t.args[0], {t.attr: T.axis(v)})
        variables.append(v)
    if t.op != "where":
        raise Undecided("a fold without guards")
    c, x, y = t.args
    if x.is_const and x.attr == UNIT[kind] and not y.is_const:
        c, x = T.make("not", c), y
    return Fold(tuple(variables), frozenset(c.args if c.op == "and" else (c,)), structural(x))


def pieces(a: Algebra, t: Term, ctx: Context) -> list[Fold]:
    """The body of a fold term by cases, each with its guards."""
    v = a.variable(ctx, t.free, t.args[0].free)
    guards: list[Term] = []
    body = T.substitute(t.args[0], {t.attr: T.axis(v)})
    if t.attr.size is not ALL:
        n = a.normal(t.attr.size, ctx)
        i = atom(T.axis(v))
        guards = [integer_literal("le", i), integer_literal("lt", n - i)]
    here = a.given(ctx, *guards)
    unit = T.const(UNIT.get(t.op, 0))
    while body.op == "where" and body.args[2] is unit and t.op in ("sum", "amax", "prod", "argmax"):
        try:
            c = condition(a, body.args[0], here)
        except Split as split:
            if v not in split.literal.free:
                raise
            break  # by cases, below
        literals = c.args if c.op == "and" else (c,)
        if not all(is_integer(x) or x.is_const for x in literals):
            break
        guards += [x for x in literals if x is not T.const(True)]
        here = a.given(ctx, *guards)
        body = body.args[1]
    if T.const(False) in guards or a.impossible(here):
        return []
    mine = lambda literal: v in literal.free  # noqa: E731
    return [
        Fold((v,), frozenset([*guards, *literals]), p)
        for literals, p in a.cases(body, here, mine)
        if not (t.op == "sum" and p is ZERO)
    ]
