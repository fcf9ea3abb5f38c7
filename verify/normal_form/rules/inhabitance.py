"""Whether a set of indices has an element, where that depends on data: a row of a mask with nothing in it.

some[j: g(j)]  is the integer literal  0 < sum[j: g(j)] 1;  a proof splits on it as on any other

some[j: g(j)], g(j) => h(j)                          some[j: h(j)]
no  [j: h(j)], no[j: k(j)], g(j) => h(j) or k(j)     no  [j: g(j)]
no  [j: g(j)], g(e)                                  false
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

from trilift.lift.terms import construct as T
from trilift.lift.terms.term import Axis, Term

from ..algebra import ALL, Algebra, Context, Facts, Split, Undecided, answer
from ..literals import integer_literal, is_integer, opposite
from ..piecewise import condition, divided, truth
from ..poly import ONE, ONE_KEY, ZERO, atom, structural
from ..variables import linear
from .fold import Fold, close, open_fold

COUNTED = 6  # sets of which facts say that they are empty, at most


def some(f: Fold) -> Term:
    """The literal that something meets the guards of a fold."""
    return integer_literal("lt", atom(close("sum", Fold(f.variables, f.guards, ONE))))


def of_data(f: Fold) -> bool:
    """Whether an element of a tensor says which values of the variables count."""
    bound = set(f.variables)
    return any(s.op == "read" and s.free & bound for g in f.guards for s in g.walk())


def known(a: Algebra, f: Fold, ctx: Context) -> bool | None:
    """True where facts say that something meets the guards, False where nothing does, None where they do not tell."""
    told = _told(a, ctx)
    if not told:
        return None
    if any(_implied(a, g, f, ctx) for positive, g in told if positive):
        return True
    return False if vacant(a, f, ctx) else None


def vacant(a: Algebra, f: Fold, ctx: Context) -> bool:
    """Whether facts say that nothing meets the guards: every value that does is in a set without elements."""
    empty = [g for positive, g in _told(a, ctx) if not positive][:COUNTED]
    if not empty or not f.variables:
        return False
    inside = a.given(ctx, *f.guards)
    outside = [h.guards for g in empty for h in _named_as(g, f)]
    return bool(outside) and (
        any(all(a.implied(inside, x) for x in h) for h in outside)
        or a.impossible(a.given(inside, *(T.make("or", *(T.make("not", x) for x in h)) for h in outside)))
    )


def certain(a: Algebra, f: Fold, ctx: Context) -> Fold:
    """The fold without the guards that hold for all values that meet the others: no [j: g(j), not c(j)]."""
    if all(positive for positive, _ in _told(a, ctx)):
        return f
    guards = f.guards
    for c in sorted(guards, key=lambda c: c.id):
        rest = guards - {c}
        if rest and of_data(Fold(f.variables, frozenset([c]), ONE)) and vacant(a, _but(f, rest, c), ctx):
            guards = rest
    return Fold(f.variables, guards, f.body)


@answer("contradiction of sets")
def contradiction(a: Algebra, ctx: Context) -> bool:
    """Whether a set is said to have no element and facts give one, or its parts are said to have none."""
    told = _told(a, ctx)
    empty = [g for positive, g in told if not positive]
    if not empty or a.asking:
        return False
    a.asking = True  # what is asked here is about larger contexts, which would ask the same
    try:
        return any(vacant(a, g, ctx) for positive, g in told if positive) or any(_has_one(a, g, ctx) for g in empty)
    finally:
        a.asking = False


def _has_one(a: Algebra, g: Fold, ctx: Context) -> bool:
    """Whether the guards hold at an element that facts speak of."""
    for value in _spoken_of(g, ctx):
        try:
            guards = [condition(a, T.substitute(x, value), ctx) for x in g.guards]
        except (Split, Undecided):
            continue
        if all(truth(a, x, ctx) for x in guards):
            return True
    return False


def _spoken_of(g: Fold, ctx: Context) -> Iterator[dict[Axis, Term]]:
    """Values of the one variable at which the guards read what a fact reads."""
    if len(g.variables) != 1:
        return
    v = g.variables[0]
    mine = sorted({s for x in g.guards for s in x.walk() if s.op == "read" and v in s.free}, key=lambda s: s.id)
    spoken = {s for f in ctx.facts if _counted(f) is None for s in f.walk() if s.op == "read" and s.free <= f.free}
    for r in mine:
        for s in sorted(spoken, key=lambda s: s.id):
            kr = linear(structural(r.args[0]), v) if r.attr == s.attr and len(r.args) == 1 else None
            if kr is not None and kr[0] is not ZERO:
                value, left = divided(structural(s.args[0]) - kr[1], kr[0])
                if left is ZERO:
                    yield {v: value.term}


def _but(f: Fold, rest: Facts, c: Term) -> Fold:
    """The values that meet the others and not c."""
    negation = opposite(c)
    return Fold(f.variables, rest | frozenset(negation.args if negation.op == "and" else [negation]), ONE)


def _implied(a: Algebra, g: Fold, f: Fold, ctx: Context) -> bool:
    """Whether whatever meets the guards of g meets those of f."""
    return any(all(a.implied(a.given(ctx, *h.guards), x) for x in f.guards) for h in _named_as(g, f))


def _named_as(g: Fold, f: Fold) -> Iterator[Fold]:
    """g with the variables of f, in each order."""
    for order in permutations(f.variables) if len(g.variables) == len(f.variables) <= 2 else ():
        images = {v: T.axis(w) for v, w in zip(g.variables, order, strict=True)}
        yield Fold(f.variables, frozenset(T.substitute(x, images) for x in g.guards), ONE)


def _told(a: Algebra, ctx: Context) -> list[tuple[bool, Fold]]:
    """The sets of which a fact says that they have an element (True) or none."""
    if ctx.id not in a.told:
        found = ((fact, _counted(fact)) for fact in sorted(ctx.facts, key=lambda x: x.id))
        a.told[ctx.id] = [
            (fact_is, open_fold(a, t, ctx, *_axes(ctx.facts))) for _, x in found if x for fact_is, t in [x]
        ]
    return a.told[ctx.id]


def _axes(facts: Facts) -> Iterator[frozenset[Axis]]:
    return (x.free for x in facts)


def _counted(fact: Term) -> tuple[bool, Term] | None:
    """(True, t) of 0 <= t - 1 and (False, t) of 0 <= -t, or t - 1 < 0, for a sum t of ones."""
    if fact.op == "lt" and is_integer(fact) and fact.args[1] is T.const(0):
        fact = integer_literal("lt", -structural(fact.args[0]))
    if fact.op != "le" or not is_integer(fact) or fact.args[0] is not T.const(0):
        return None
    p = structural(fact.args[1])
    rest = {m: c for m, c in p.terms.items() if m != ONE_KEY}
    if len(rest) != 1:
        return None
    (((factors, e), c),) = rest.items()
    t = T.TERMS[factors[0][0]] if len(factors) == 1 and factors[0][1] == 1 and not e else None
    if t is None or t.op != "sum" or t.attr.size is not ALL or (c, p.terms.get(ONE_KEY, 0)) not in ((1, -1), (-1, 0)):
        return None
    inner = t
    while inner.op == "sum":
        inner = inner.args[0]
    return (c > 0, t) if inner.op == "where" and inner.args[1] is T.const(1) and inner.args[2] is T.const(0) else None


__all__ = ["certain", "known", "of_data", "some", "vacant"]
