"""Whether two terms are equal under facts, by cases where the facts leave a condition open.

The sides are compared as normal forms; where that does not show it, as other normal forms, by the rows below. A row is
called with (algebra, the two sides, context, depth).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

from trilift.lift.runtime.strategy import Strategy, decide
from trilift.lift.terms import construct as T
from trilift.lift.terms.definedness import is_number
from trilift.lift.terms.term import Term

from ..normal_form.algebra import NAN, Algebra, Context, SideConditions, Split, Undecided
from ..normal_form.equality import equal
from ..normal_form.literals import integer_literal, is_integer, opposite
from ..normal_form.numbers import TESTS, alike, met
from ..normal_form.poly import Poly, structural
from ..normal_form.rules.unrolling import multiplied_out, unrolled

Sides = tuple[Poly, Poly]
TELLING = {"max", "min", "amax", "amin", "argmax", "argmin", "eq", "ne", "lt", "le", "sign"}
CASES = 10  # answers to questions that the facts leave open, of one comparison
GUARDS = 2  # divisors whose zeros are looked at alone
Form = Callable[[Algebra, Term, Context], Term]


def agree(a: Algebra, left: Term, right: Term, ctx: Context, depth: int = 0, guards: bool = True) -> bool:
    """Whether two terms are equal under the facts, by cases where needed; with `guards` also where that owes less."""
    if left is right and not any(s.op == "undef" or tells_nan(s) for s in left.walk()):
        a.closed.names.append("identical")
        return True
    if a.impossible(ctx):
        a.closed.names.append("impossible")
        return True
    try:
        with a.collecting() as owed:
            p, q = a.normal(left, ctx), a.normal(right, ctx)
            if not _same(a, p, q, ctx, depth):
                return False
            if p is not NAN:
                alike(a, left, right, ctx)
    except Split as split:
        if depth >= CASES:
            raise Undecided("too many cases", why=repr(split.literal)) from None
        return _by_answers(a, left, right, split.literal, ctx, depth, guards)
    if guards and any(kind == "nonzero" for kind, _, _ in owed):
        owed = _with_guards(a, left, right, owed, ctx, depth)
    a.pending[-1].update(owed)
    return True


def _by_answers(a: Algebra, left: Term, right: Term, literal: Term, ctx: Context, depth: int, guards: bool) -> bool:
    """Whether they are equal where the literal holds, and where it does not."""
    return all(agree(a, left, right, a.given(ctx, x), depth + 1, guards) for x in (literal, opposite(literal)))


def _with_guards(a: Algebra, left: Term, right: Term, owed: SideConditions, ctx: Context, depth: int) -> SideConditions:
    """The side conditions by cases of d == 0 for a divisor d that the terms compare with 0: x / d of
    where(d == 0, 0, x / d) is executed in one case only. Those without cases, where cases owe no less."""
    unmet = _unmet(a, owed)
    with a.collecting():
        asked = a.normal(left, ctx).atoms | a.normal(right, ctx).atoms
    guarded = [d for kind, d in unmet if kind == "nonzero" and T.node("zero?", (d,), None, T.REAL).id in asked]
    for d in sorted(guarded, key=lambda d: d.id)[:GUARDS]:
        with a.collecting() as instead:
            try:
                shown = _by_answers(a, left, right, T.make("eq", d, 0), ctx, depth, guards=False)
            except (Split, Undecided):
                shown = False
        if shown and len(_unmet(a, instead)) < len(unmet):
            return instead
    return owed


def _unmet(a: Algebra, owed: SideConditions) -> set[tuple[str, Term]]:
    """The side conditions on values that no fact implies."""
    return {(kind, t) for (kind, t, _), here in owed.items() if kind in TESTS and not met(a, kind, t, here)}


def tells_nan(t: Term) -> bool:
    """Whether an operation may give something else for NaN in one program than in another: the term has one maximum for
    those that pass NaN by and those that return it."""
    return t.op in TELLING and not all(map(is_number, t.args))


def _same(a: Algebra, p: Poly, q: Poly, ctx: Context, depth: int) -> bool:
    """Whether two normal forms are equal."""
    return decide(a.closed, AGREEMENT, a, (p, q), ctx, depth)


def _as_they_are(a: Algebra, sides: Sides, ctx: Context, depth: int) -> bool | None:
    """The difference of the normal forms is 0."""
    return equal(a, *sides, ctx) or None


def _one_name(a: Algebra, sides: Sides, ctx: Context, depth: int) -> bool | Sides | None:
    """With one name for sizes that the facts make equal."""
    same = equal_sizes(a, ctx)
    if not same:
        return None
    p, q = (a.normal(T.rewrite(t.term, same.get), ctx) for t in sides)
    return True if equal(a, p, q, ctx) else (p, q)


def _in_form(form: Form) -> Callable[..., bool | None]:
    """With both sides in another form, where that is another one."""

    @wraps(form)
    def attempt(a: Algebra, sides: Sides, ctx: Context, depth: int) -> bool | None:
        left, right = (form(a, t.term, ctx) for t in sides)
        return None if (left, right) == tuple(p.term for p in sides) else agree(a, left, right, ctx, depth)

    return attempt


def _row(name: str, attempt: Callable[..., bool | Sides | None], source: str, example: str) -> Strategy:
    return Strategy(name, "agreement", attempt, source, example)


AGREEMENT = (
    _row("normal-forms", _as_they_are, "ours", "softmax with its maximum, and without"),
    _row("equal-sizes", _one_name, "substitution of equals", "M <= N and N <= M: a sum over M, and one over N"),
    _row("few-values", _in_form(unrolled), "loop unrolling", "exp of a sum over k < 4, and a product of 4"),
    _row("multiply-out", _in_form(multiplied_out), "distributive law", "a sum of products of sums, within exp"),
)


def equal_sizes(a: Algebra, ctx: Context) -> dict[Term, Term]:
    """{m: n} of two sizes where one fact says m <= n, and n <= m is known."""
    out: dict[Term, Term] = {}
    for f in sorted(ctx.facts, key=lambda f: f.id):
        if f.op != "le" or f.args[0] is not T.const(0) or not is_integer(f):
            continue
        p = structural(f.args[1])
        pair = sorted((c, fs) for (fs, e), c in p.terms.items() if not e)
        if len(p.terms) != 2 or [c for c, _ in pair] != [-1, 1] or any(len(fs) != 1 or fs[0][1] != 1 for _, fs in pair):
            continue
        m, n = sorted((T.TERMS[fs[0][0]] for _, fs in pair), key=lambda t: t.id)
        if m.op == n.op == "size" and not {m, n} & out.keys() and a.implied(ctx, integer_literal("le", -p)):
            out[n] = m
    return out
