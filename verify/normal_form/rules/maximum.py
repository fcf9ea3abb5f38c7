"""Maxima and where they are: sets of elements, each under its guards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction

from trilift.lift.terms import construct as T
from trilift.lift.terms.term import Axis, Term

from .. import poly as P
from ..algebra import (
    ALL,
    MINUS_INF,
    NAN,
    PLUS_INF,
    Algebra,
    Context,
    Split,
    Undecided,
    answer,
    is_infinite,
    negated_infinity,
    rule,
)
from ..literals import integer_literal, is_integer
from ..piecewise import conjunction, real_literal, require, truth, undecided
from ..poly import POLYS, ZERO, Poly, atom, structural
from ..signs import nonnegative, positive
from ..variables import at_lowest, bounds, flat, merged, pinned, replaced, shift, shifted, trimmed
from .fold import Fold, close, open_fold, pieces
from .inhabitance import certain, known, of_data, some, vacant


@rule("amax")
def _(a: Algebra, t: Term, ctx: Context) -> Poly:
    a.number_of_each(t, ctx)
    return extremum(a, [f for f in pieces(a, t, ctx) if f.body is not MINUS_INF], ctx)


@rule("amin")
def _(a: Algebra, t: Term, ctx: Context) -> Poly:
    """amin f = -amax -f."""
    p = a.normal(T.fold("amax", t.attr, T.mul(-1, t.args[0])), ctx)
    return negated_infinity(p) if is_infinite(p) else -p


@answer("lattice")
def lattice(a: Algebra, ps: list[Poly], ctx: Context) -> Poly:
    """max of polynomials: with folds one set of elements; without, indicators."""
    ps = [p for p in dict.fromkeys(ps) if p is not MINUS_INF]
    if NAN in ps:
        raise Undecided("a maximum of NaN")
    if not ps:
        return MINUS_INF
    if PLUS_INF in ps:
        return PLUS_INF
    if len(ps) == 1:
        return ps[0]
    if any(maximum_in(p) is not None for p in ps):
        return extremum(a, [Fold((), frozenset(), p) for p in ps], ctx)
    out = ps[0]
    for p in ps[1:]:
        out = _larger(a, out, p, ctx)
    return out


def _larger(a: Algebra, p: Poly, q: Poly, ctx: Context) -> Poly:
    """max(p, q) = q + [0 < p - q] (p - q)."""
    d = p - q
    literal = real_literal(a, "lt", d, ctx)
    known = truth(a, literal, ctx)
    if known is not None:
        return p if known else q
    if literal.op == "lt" and literal.args[0] is not T.const(0):
        d, q = -d, p
        literal = real_literal(a, "lt", d, ctx)
    return a.add([q, a.product(conjunction(a, literal, ctx), d, ctx)])


def maximum_in(p: Poly) -> tuple[int, P.Number] | None:
    """(atom, c) where p is c > 0 times the atom of a maximum, up to addends."""
    found = [(b, c) for (factors, e), c in p.terms.items() if c > 0 and not e and len(factors) == 1
             for b, k in factors if k == 1 and T.TERMS[b].op in ("amax", "max")]  # fmt: skip
    return found[0] if len(found) == 1 else None


def elements(a: Algebra, t: Term, ctx: Context, *avoid: Iterable[Axis]) -> list[Fold]:
    """The elements of a maximum in normal form."""
    if t.op == "max":
        return [f for s in t.args for f in elements(a, s, ctx, *avoid)]
    return (
        [open_fold(a, t, ctx, *avoid)]
        if t.op == "amax" and t.attr.size is ALL
        else [Fold((), frozenset(), structural(t))]
    )


def extremum(a: Algebra, folds: list[Fold], ctx: Context) -> Poly:
    """The maximum of everything in the folds: inner maxima opened, variables shifted."""
    out: dict[Term, Fold] = {}
    todo = list(folds)
    while todo:
        f = todo.pop()
        if f.body is MINUS_INF or a.impossible(a.given(ctx, *f.guards)) or vacant(a, f, ctx):
            continue
        if f.body is NAN:
            raise Undecided("a maximum of NaN")
        if is_infinite(f.body):
            if not inhabited(a, f, ctx):
                raise Undecided("infinity for some values of a variable, perhaps for none")
            return PLUS_INF
        inner = maximum_in(f.body)
        if inner is not None:
            todo += _opened(a, f, *inner, ctx)
            continue
        f = _normal_element(a, f, ctx)
        if f.variables and not f.body.term.free & set(f.variables) and inhabited(a, f, ctx):
            f = Fold((), frozenset(), f.body)  # the maximum of a constant over something
        if f.variables and not f.guards:
            raise Undecided("a maximum without guards")
        out[close("amax", f) if f.variables else f.body.term] = f
    _drop_reached(a, out, ctx)
    if not out:
        return MINUS_INF
    if len(out) == 1:
        return _single(a, next(iter(out.values())), ctx)
    common = _common(out.values())
    if common is not ZERO:  # max(f + c, g + c) = max(f, g) + c
        return extremum(a, [replace(f, body=f.body - common) for f in out.values()], ctx) + common
    return _scaled_set(list(out.values()))


def _opened(a: Algebra, f: Fold, inner: int, c: P.Number, ctx: Context) -> Iterator[Fold]:
    """max(rest + c max(g)) = max(rest + c g): the elements of an inner maximum in place of it."""
    rest = f.body - P.scaled(atom(T.TERMS[inner]), c)
    taken = (f.variables, f.body.term.free, *(x.free for x in f.guards))
    for g in elements(a, T.TERMS[inner], ctx, *taken):
        yield Fold((*f.variables, *g.variables), f.guards | g.guards, rest + P.scaled(g.body, c))


def _drop_reached(a: Algebra, out: dict[Term, Fold], ctx: Context) -> None:
    """Take out the numbers that other elements reach."""
    numbers = {t: f.body.constant for t, f in out.items() if f.body.constant is not None}
    largest = max((t for t in numbers if not out[t].variables), key=lambda t: (numbers[t], t.id), default=None)
    for t, number in numbers.items():  # of several numbers the largest, whether the others are there or not
        if largest is not None and t is not largest and number <= numbers[largest]:
            del out[t]
    if largest is not None and any(_reaches(a, f, numbers[largest], ctx) for t, f in out.items() if t is not largest):
        del out[largest]


def _common(folds: Iterable[Fold]) -> Poly:
    """The sum of the monomials that all bodies share and that mention no variable of the folds: max(f + c, g + c) =
    max(f, g) + c."""
    first, *others = folds
    bound = {v for f in (first, *others) for v in f.variables}
    return P.poly(
        {
            m: c
            for m, c in first.body.terms.items()
            if all(f.body.terms.get(m) == c for f in others) and not P.as_term(m).free & bound
        }
    )


def _scaled_set(folds: Sequence[Fold]) -> Poly:
    """max(k f, k g) = k max(f, g) for k > 0."""
    k, *more = {_scale(f.body) for f in folds}
    if not more and k != 1:
        return P.scaled(_scaled_set([replace(f, body=P.scaled(f.body, _inverse(k))) for f in folds]), k)
    return _set(close("amax", f) if f.variables else f.body.term for f in folds)


def _reaches(a: Algebra, f: Fold, number: P.Number, ctx: Context) -> bool:
    """Whether there are elements, and all are the number or more."""
    more = f.body - P.number(number)
    return nonnegative(a, more, a.given(ctx, *f.guards)) and _emptiness(a, f, ctx) is True


def _set(out: Iterable[Term]) -> Poly:
    return atom(T.node("max", tuple(sorted(out, key=lambda t: t.id)), None, T.REAL))


def _scale(p: Poly) -> P.Number:
    """The size of the first coefficient."""
    return abs(p.terms[min(p.terms, key=lambda m: repr(P.as_term(m)))]) if p.terms else 1


def _inverse(k: P.Number) -> P.Number:
    return P.tidy(1 / k if isinstance(k, float) else Fraction(1) / Fraction(k))


def _normal_element(a: Algebra, f: Fold, ctx: Context) -> Fold:
    if not f.variables:
        return f
    if (new := _pin_element(a, f, ctx)) is not None:
        return new
    for v in f.variables:
        moved = shifted(a, f, v, ctx)
        if moved is not f:
            return _normal_element(a, moved, ctx)
    m = merged(a, f, ctx) or (flat(a, f, ctx) if len(f.variables) > 1 else None)
    if m is not None:
        return _normal_element(a, m, ctx)
    dropped = trimmed(a, f, ctx)
    if dropped.guards != f.guards:
        return _normal_element(a, dropped, ctx)
    fewer = _without_idle_variable(a, dropped, ctx)
    return dropped if fewer is None else _normal_element(a, fewer, ctx)


def _pin_element(a: Algebra, f: Fold, ctx: Context) -> Fold | None:
    """The element with a variable at its only value, in normal form; None where no variable is pinned."""
    if (pin := pinned(a, f, ctx)) is None:
        return None
    new = replaced(a, f, pin[0], pin[1].term, ctx, tuple(x for x in f.variables if x != pin[0]))
    if new is None or new.variables:
        return None if new is None else _normal_element(a, new, ctx)
    for guard in sorted(new.guards, key=lambda g: g.id):
        require(a, guard, ctx)
    return Fold((), frozenset(), new.body if all(truth(a, g, ctx) for g in new.guards) else MINUS_INF)


def _without_idle_variable(a: Algebra, f: Fold, ctx: Context) -> Fold | None:
    """amax[i, j] f(j) = amax[j] f(j) where the other guards imply that i has a value."""
    for v in f.variables:
        if v not in f.body.term.free and len(f.variables) > 1:
            low, high, other = bounds(f, v)
            if not other and low and high:
                guards = f.guards - {g for g, _ in (*low, *high)}
                inside = a.given(ctx, *guards)
                if all(a.implied(inside, integer_literal("le", hi - lo)) for _, lo in low for _, hi in high):
                    return Fold(tuple(x for x in f.variables if x != v), guards, f.body)
    return None


def _single(a: Algebra, f: Fold, ctx: Context) -> Poly:
    """amax(k f + c) = k amax(f) + c for a number k > 0 and c without variables."""
    if not f.variables:
        return f.body
    bound = set(f.variables)
    outside = P.poly({m: c for m, c in f.body.terms.items() if not (P.as_term(m).free & bound)})
    inside = f.body - outside
    if inside is ZERO:
        return atom(close("amax", Fold(f.variables, f.guards, ZERO))) + outside
    k = _scale(inside)
    scaled = P.scaled(inside, _inverse(k))
    found = _of_exponent(a, replace(f, body=scaled), ctx) or atom(close("amax", replace(f, body=scaled)))
    return P.scaled(found, k) + outside


def _of_exponent(a: Algebra, f: Fold, ctx: Context) -> Poly | None:
    """amax(k exp(e)) = k exp(amax(e)) over something, for k > 0 without variables."""
    if len(f.body.terms) != 1:
        return None
    (((factors, e), c),) = f.body.terms.items()
    k = P.monomial((factors, 0), c)
    if not e or k.term.free & set(f.variables) or not positive(a, k, ctx) or _emptiness(a, f, ctx) is not True:
        return None
    return a.product(k, P.exponential(extremum(a, [replace(f, body=POLYS[e])], ctx)), ctx)


@answer("nonempty")
def nonempty(a: Algebra, t: Term, ctx: Context) -> bool:
    """Whether a maximum is over something. Split on a condition that would tell."""
    open_: list[Term] = []
    for f in elements(a, t, ctx):
        found = _emptiness(a, f, ctx)
        if found is True:
            return True
        open_ += found or []
    if open_:
        raise Split(min(open_, key=lambda g: g.id))
    return False


def _emptiness(a: Algebra, f: Fold, ctx: Context) -> bool | list[Term]:
    """True where something meets the guards; else the open conditions for the lowest values to meet them."""
    f = certain(a, f, ctx)
    literals = at_lowest(a, f, ctx) if f.variables else []
    answers = [] if literals is None else [truth(a, g, ctx) for g in literals]
    if literals is not None and all(answers):
        return True
    if of_data(f) and not (told := known(a, f, ctx)):
        return [some(f)] if told is None and not a.impossible(a.given(ctx, *f.guards)) else False
    if literals is None or False in answers or of_data(f):
        return of_data(f)
    open_ = [g for g, answer in zip(literals, answers, strict=True) if answer is None]
    return [x for g in open_ for x in undecided(a, g, ctx) if is_integer(x)]


def inhabited(a: Algebra, f: Fold, ctx: Context) -> bool:
    """Whether something meets the guards of a fold. Split on a condition that would tell."""
    found = _emptiness(a, f, ctx)
    if found and found is not True:
        raise Split(min(found, key=lambda g: g.id))
    return found is True


@rule("argmax")
def _(a: Algebra, t: Term, ctx: Context) -> Poly:
    """The first index of the maximum. It moves with the variable: argmax[v] f(v + d) = argmax[w] f(w) - d."""
    a.number_of_each(t, ctx)
    parts = [f for f in pieces(a, t, ctx) if f.body is not MINUS_INF]
    if len(parts) > 1:
        raise Undecided("argmax of a choice")
    if not parts or not inhabited(a, parts[0], ctx):
        if t.attr.size is ALL or (parts and not a.impossible(a.given(ctx, *parts[0].guards))):
            raise Undecided("argmax may be over no elements")
        return ZERO
    return index_of_maximum(a, parts[0], ctx)


def index_of_maximum(a: Algebra, f: Fold, ctx: Context) -> Poly:
    """argmax over something: the variable shifted so that what is read first is read at it, or at its negative."""
    (v,) = f.variables
    if (pin := pinned(a, f, ctx)) is not None:
        return pin[1]
    found = shift(a, f, v)
    offset = ZERO if found is None else -found[1] if found[0] == 1 else found[1]
    if offset is not ZERO:
        w = a.variable(ctx, f.variables, f.body.term.free, *(g.free for g in f.guards))
        new = replaced(a, f, v, (atom(T.axis(w)) + offset).term, ctx, (w,))
        if new is None:
            raise Undecided("argmax may be over no elements")
        return index_of_maximum(a, new, ctx) + offset
    f = trimmed(a, f, ctx)
    bound = set(f.variables)
    inside = P.poly({m: c for m, c in f.body.terms.items() if P.as_term(m).free & bound})
    inside = P.scaled(inside, _inverse(_scale(inside))) if inside is not ZERO else ZERO
    return atom(close("argmax", Fold(f.variables, f.guards, inside)))


@rule("argmin")
def _(a: Algebra, t: Term, ctx: Context) -> Poly:
    """argmin f = argmax -f."""
    return a.normal(T.fold("argmax", t.attr, T.mul(-1, t.args[0])), ctx)
