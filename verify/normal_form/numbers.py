"""That an operand is a number, where an operation tells numbers from NaN.

A comparison with NaN is false (!= is true), a maximum passes NaN by in one program and returns it in another.
Polynomials are of numbers, so whoever compares owes that the operands are some: the condition of every operation in
them that is not total (`lift.terms.definedness`), where `where` and the guards of folds have it executed.

    x / y > 0           owes y /= 0
    max(sqrt(x), 0)     owes 0 <= x
    amax[j] log(x[j])   owes 0 < x[j] for every j

Arithmetic owes nothing by itself: x / y and x / y are NaN together. Two terms that are equal owe what only one of them
needs (`alike`), and what both need if they may be other infinities there (`poles.together`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from trilift.lift.language.unfolding import unfold
from trilift.lift.terms import construct as T
from trilift.lift.terms.definedness import DEFINED, FLAGS, classes, is_finite, is_number, total
from trilift.lift.terms.extended import EXTENDED, NUMBER
from trilift.lift.terms.extended import NAN as IS_NAN
from trilift.lift.terms.term import Axis, Term

from . import poly as P
from .algebra import (
    ALL,
    INDICATORS,
    MINUS_INF,
    NAN,
    Algebra,
    Context,
    SideConditions,
    Split,
    Undecided,
    answer,
    is_infinite,
)
from .algebra import finite as finite_operand
from .equality import with_values
from .literals import integer_literal, is_integer, opposite
from .piecewise import truth, undecided
from .poles import together
from .poly import ZERO, Poly, atom, structural
from .signs import nonnegative, positive, sign

CASES = 12  # conditions on one variable of a fold that are told apart
INDICATED = 2  # indicators in a divisor whose values are tried


@answer("number")
def number(a: Algebra, t: Term, ctx: Context) -> None:
    """Side conditions under which a term is not NaN. Raises Split, Undecided as its normal form does."""
    if is_number(t):
        return
    key = (t.id, ctx.id)
    if key not in a.numbers:
        with a.collecting() as found:
            _number(a, t, ctx)
        a.numbers[key] = found
    a.pending[-1].update(a.numbers[key])


@answer("number of each")
def number_of_each(a: Algebra, t: Term, ctx: Context) -> None:
    """Side conditions under which the body of a fold is not NaN for any value of its variable."""
    if is_number(t.args[0]):
        return
    v = a.variable(ctx, t.free, t.args[0].free)
    body = T.substitute(t.args[0], {t.attr: T.axis(v)})
    guards: list[Term] = []
    if t.attr.size is not ALL:
        i, n = atom(T.axis(v)), a.normal(t.attr.size, ctx)
        guards = [integer_literal("le", i), integer_literal("lt", n - i)]
    _number_by_cases(a, body, v, a.given(ctx, *guards))


def _number_by_cases(a: Algebra, t: Term, v: Axis, ctx: Context, depth: int = 0) -> None:
    """The same under each answer to a question about the variable v; others are raised."""
    if a.impossible(ctx):
        return
    try:
        number(a, t, ctx)
    except Split as split:
        if v not in split.literal.free:
            raise
        if depth >= CASES:
            raise Undecided("too many cases", why=repr(split.literal)) from None
        for x in (split.literal, opposite(split.literal)):
            _number_by_cases(a, t, v, a.given(ctx, x), depth + 1)


def _number(a: Algebra, t: Term, ctx: Context) -> None:
    if t.op in T.NAMED:
        number(a, unfold(t), ctx)
    elif t.op == "where":
        _chosen(a, t, ctx)
    elif t.op in T.FOLDS:
        number_of_each(a, t, ctx)
    elif t.op == "given":
        _given(a, t, ctx)
    elif t.op == "undef":
        a.normal(t, ctx)
    elif t.op.startswith("from_bits"):
        raise Undecided("bits that are read as a number may be none where it is compared")
    elif t.op in DEFINED.rows:
        _operation(a, t, ctx)
    elif t.type == T.REAL and t.op not in INDICATORS:
        raise Undecided(f"{t.op} is not known to be a number where it is compared")


def _given(a: Algebra, t: Term, ctx: Context) -> None:
    """An element that may be infinite or NaN is finite where the facts say so."""
    p = a.normal(t, ctx)
    if p is NAN:
        raise Undecided("NaN where numbers are compared")
    if not is_infinite(p) and not met(a, "bounded", p.term, ctx):
        a.assume("bounded", p.term, ctx)


def _chosen(a: Algebra, t: Term, ctx: Context) -> None:
    """Of a choice the branches that may be taken."""
    c = a.condition(t.args[0], ctx)
    known = truth(a, c, ctx)
    if known is not None:
        return number(a, t.args[1 if known else 2], ctx)
    if (literal := next((x for x in undecided(a, c, ctx) if is_integer(x)), None)) is not None:
        raise Split(literal)
    for branch, taken in zip(t.args[1:], (c, T.make("not", c)), strict=True):
        if not a.impossible(here := a.given(ctx, taken)):
            number(a, branch, here)
    return None


def _operation(a: Algebra, t: Term, ctx: Context) -> None:
    """The operands are numbers, and the operation is defined of them."""
    root = t.op == "recip" and t.args[0].op == "sqrt"
    operands = t.args[0].args if root else t.args
    for s in operands:
        if s.type == T.REAL:
            number(a, s, ctx)
    if DEFINED[t.op] is total:
        _total(a, t, ctx)
        return
    kind = "positive" if root else KINDS.get(t.op)
    if kind is None:
        c = a.condition(DEFINED[t.op](*t.args), ctx)
        if truth(a, c, ctx) is not True:
            a.assume("holds", c, ctx)
        return
    strictly = kind != "nonneg"
    if is_above(a, operands[0], ctx, strictly):
        a.above.add((a.normal(operands[0], ctx), ctx, strictly))
    else:
        _owe(a, kind, operands[0], ctx)


def _owe(a: Algebra, kind: str, operand: Term, ctx: Context) -> None:
    """The side condition on the operand in normal form, unless the facts imply it."""
    p = finite_operand(a, operand, ctx)
    if p is NAN or (p is MINUS_INF and kind != "nonzero"):
        raise Undecided("NaN where numbers are compared")
    if p is ZERO and kind != "nonneg":
        raise Undecided("division by 0" if kind == "nonzero" else "the logarithm of 0")
    if not is_infinite(p) and not met(a, kind, p.term, ctx):
        a.assume(kind, p.term, ctx)


def is_above(a: Algebra, t: Term, ctx: Context, strictly: bool) -> bool:
    """Whether a term of numbers is plainly positive, or not negative, as it is written: in a normal form a sum of
    squares is no longer one."""
    if t.op == "add":
        signs = [s for s in t.args if not is_above(a, s, ctx, strictly=False)]
        return not signs and (not strictly or any(is_above(a, s, ctx, strictly=True) for s in t.args))
    if t.op == "mul":
        odd = [s for s, k in Counter(t.args).items() if k % 2 or strictly]
        return all(is_above(a, s, ctx, strictly) for s in odd)
    if t.op == "where":
        return all(is_above(a, s, ctx, strictly) for s in t.args[1:])
    if t.op in ("sum", "recip") and (t.op != "sum" or not strictly):
        return is_above(a, t.args[0], ctx, strictly)
    if t.op in ("abs", "exp", "exp2", "sqrt") and (not strictly or (t.op[:3] == "exp" and is_finite(t.args[0]))):
        return True
    if t.type == T.REAL and t.args:
        return False
    p = structural(t) if not t.args else a.normal(t, ctx)
    return positive(a, p, ctx) if strictly else nonnegative(a, p, ctx)


def _total(a: Algebra, t: Term, ctx: Context) -> None:
    """An operation on numbers gives one, unless infinite ones may meet: inf - inf, 0 * inf, sin(inf)."""
    row = EXTENDED.get(t.op)
    finite = all(map(is_finite, t.args))
    if finite or (row is not None and not row(*(classes(s) & NUMBER for s in t.args)) & IS_NAN):
        return
    if a.normal(t, ctx) is NAN:
        raise Undecided("NaN where numbers are compared")


INFINITE_OUTSIDE = {"nonzero", "positive", "holds", "bounded"}  # 1 / 0, log(0); the root of a negative number is NaN
KINDS = {"recip": "nonzero", "sqrt": "nonneg", **dict.fromkeys(("log", "log2", "log10"), "positive")}


def alike(a: Algebra, left: Term, right: Term, ctx: Context) -> None:
    """Owes of two terms with one normal form what one of them needs to be a number and the other does not:
    x / y - x / y is 0 where y is not 0. Conditions of both are owed where laws of reals made the forms one:
    (x - y) / z is infinite and x / z - y / z is NaN where z is 0."""
    if is_number(left) and is_number(right):
        return
    if together(a, left, right, ctx):
        return
    needs = [_needs(a, t, ctx) for t in (left, right)]
    needs = [{key: here for key, here in side.items() if not _told_above(a, *key[:2], here)} for side in needs]
    for mine, others in (needs, needs[::-1]):
        for (kind, t, _), here in mine.items():
            if not _among(a, kind, t, others, here):
                a.assume(kind, t, here)
    for side in needs:
        a.pending[-1].update({key: here for key, here in side.items() if key[0] in INFINITE_OUTSIDE})


def _told_above(a: Algebra, kind: str, t: Term, ctx: Context) -> bool:
    """Whether the other side writes the same number as one that is plainly positive: E x^2 - (E x)^2 as a variance."""
    p = structural(t)
    return kind in TESTS and ((p, ctx, True) in a.above or (kind == "nonneg" and (p, ctx, False) in a.above))


def _needs(a: Algebra, t: Term, ctx: Context) -> SideConditions:
    """The side conditions under which a term is a number, where its operations say so."""
    with a.collecting() as found:
        try:
            number(a, t, ctx)
        except Undecided:
            if any(s.op == "given" for s in t.walk()):
                raise
            return {}  # of operations that nothing is known of both sides have the same
    return {key: here for key, here in found.items() if key[0] in TESTS or key[0] in ("holds", "bounded")}


def _among(a: Algebra, kind: str, t: Term, others: SideConditions, ctx: Context) -> bool:
    """Whether the other side owes it too, wherever this one does: under no more conditions on data."""
    same = [s for (k, s, _), there in others.items() if k == kind and _on_data(there) <= _on_data(ctx)]
    if t in same or kind not in TESTS:
        return t in same
    return any(a.zero(structural(t) - structural(s), ctx) for s in same)


def _on_data(ctx: Context) -> frozenset[Term]:
    """The facts that are not about integers."""
    return frozenset(f for f in ctx.facts if not is_integer(f))


# ---- what is owed ----------------------------------------------------------------------------------------------------


def met(a: Algebra, kind: str, t: Term, ctx: Context) -> bool:
    """Whether a side condition "nonzero", "nonneg", "positive", "bounded" of a term, or a condition that "holds", is
    implied."""
    if kind == "holds":
        return truth(a, t, ctx) is True
    if kind == "bounded":
        return a.impossible(ctx) or all(a.implied(ctx, T.make("not", T.make(flag, t))) for flag in FLAGS)
    return a.impossible(ctx) or TESTS[kind](a, structural(t), ctx)


def _nonzero(a: Algebra, p: Poly, ctx: Context) -> bool:
    """By its sign, by a fact, factor by factor, or for each value of an indicator in it."""
    if sign(a, p, ctx) is not None or a.implied(ctx, T.make("ne", p.term, 0)):
        return True
    if len(p.terms) == 1:
        (((factors, _), _),) = p.terms.items()
        atoms = [atom(T.TERMS[b]) for b, _ in factors]
        if atoms != [p]:
            return all(_nonzero(a, q, ctx) for q in atoms)
    return _positive(a, p, ctx) or _positive(a, -p, ctx) or _by_indicator(a, p, ctx, _nonzero)


def _positive(a: Algebra, p: Poly, ctx: Context) -> bool:
    """By its sign; or p = k q + r with a fact 0 < q, k > 0 and r >= 0; or for each value of an indicator in it."""
    if positive(a, p, ctx):
        return True
    for f in ctx.facts:
        q = _above_zero(f)
        for m, c in q.terms.items() if q is not None else ():
            k = P.quotient(p.terms[m], c) if m[0] and m in p.terms else 0
            if k > 0 and q is not None and nonnegative(a, p - P.scaled(q, k), ctx):
                return True
    return _by_indicator(a, p, ctx, _positive)


def _above_zero(f: Term) -> Poly | None:
    """q of a fact 0 < q or q < 0, of reals."""
    if f.op != "lt" or is_integer(f) or T.const(0) not in f.args:
        return None
    return structural(f.args[1]) if f.args[0] is T.const(0) else -structural(f.args[0])


def _nonnegative(a: Algebra, p: Poly, ctx: Context) -> bool:
    if nonnegative(a, p, ctx) or T.make("not", T.make("lt", p.term, 0)) in ctx.facts:
        return True
    return _positive(a, p, ctx) or _by_indicator(a, p, ctx, _nonnegative)


def _by_indicator(a: Algebra, p: Poly, ctx: Context, test: Test) -> bool:
    """Whether p passes for both values of an indicator: where(c == 0, 1, c) is [c == 0] + c."""
    found = sorted((T.TERMS[i] for i in p.atoms if T.TERMS[i].op in ("positive?", "zero?")), key=lambda t: t.id)
    if not 0 < len(found) <= INDICATED:
        return False
    t = found[0]
    literal = T.make("lt", 0, t.args[0]) if t.op == "positive?" else T.make("eq", t.args[0], 0)
    for value, fact in ((1, literal), (0, T.make("not", literal))):
        here = a.given(ctx, fact)
        try:
            q = with_values(a, p, {t: T.const(value)}, here)
        except (Split, Undecided):
            return False
        if not a.impossible(here) and not test(a, q, here):
            return False
    return True


Test = Callable[[Algebra, Poly, Context], bool]
TESTS: dict[str, Test] = {"nonzero": _nonzero, "nonneg": _nonnegative, "positive": _positive}
