"""Guesses of closed forms that are more than a sum or a maximum. A guess proves nothing.

a(n) X + b(n)                  init prod[t < n] a(t) + sum[t < n] b(t) prod[t < s < n] a(s)
where(f > amax, e, X)          the index of the maximum over what the amax is over
X + b(n), b a ratio            sum[t < n] leaf(t) - E(n) V(n) W(n): E a denominator before the step, V and W means
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from trilift.lift.terms import construct as T
from trilift.lift.terms.term import Axis, Term

from ..normal_form import poly as P
from ..normal_form.algebra import ALL, Algebra, Context, Split, Undecided
from ..normal_form.equality import matching, with_values
from ..normal_form.poly import ZERO, Poly, atom, structural
from ..normal_form.rules.fold import Fold, open_fold

Literals = tuple[Term, ...]
Step = tuple[Literals, Poly, Poly]  # under these literals a X + b
Parts = list[tuple[Literals, Term]]
Over = Callable[[str, Parts], Term]  # the fold over the iterations so far


def decayed(init: Term, steps: list[Step], n: Term, counter: Axis, over: Over) -> Term:
    """init prod[t < n] a(t) + sum[t < n] b(t) prod[t < s < n] a(s)."""
    last = Axis("~n", ALL)  # n, where the counter stands for t
    factors = _later(steps, last, counter)
    started = T.mul(init, over("prod", [(literals, a.term) for literals, a, _ in steps]))
    added = [(literals, T.mul(b.term, factors)) for literals, _, b in steps if b is not ZERO]
    return T.add(started, T.substitute(over("sum", added), {last: n})) if added else started


def _later(steps: list[Step], last: Axis, counter: Axis) -> Term:
    """prod[t < s < last] a(s), t the counter's axis."""
    s = Axis(f"{counter.name}''", ALL)
    factors = [T.where(T.make("and", T.const(True), *literals), a.term, 1) for literals, a, _ in steps]
    body = T.substitute(T.mul(*factors), {counter: T.axis(s)})
    between = T.make("and", T.make("lt", T.axis(counter), T.axis(s)), T.make("lt", T.axis(s), T.axis(last)))
    return T.fold("prod", s, T.where(between, body, 1))


def index_of_extreme(a: Algebra, p: Poly, x: Term, ctx: Context) -> Iterator[Term]:
    """Where p is x, and another index if something is larger than a maximum: the index of that maximum."""
    compared = {T.TERMS[i].args[0] for i in p.atoms if T.TERMS[i].op in ("positive?", "zero?")}
    if len(compared) != 1:
        return
    difference = compared.pop()
    more, less, same = (_where(a, p, difference, ctx, *signs) for signs in ((1, 0), (0, 0), (0, 1)))
    if more is None or less is None or atom(x) not in (more, less):
        return
    found = more if less is atom(x) else less
    if any(s is x for s in found.term.walk()):
        return
    q = structural(difference)
    for t in [T.TERMS[i] for i in sorted(q.atoms) if T.TERMS[i].op == "amax"]:
        f = open_fold(a, t, ctx, p.term.free)
        start = _start(f, found, q)
        if start is not None and len(f.variables) == 1:
            yield _index(f, start, first=same is not found)


def _where(a: Algebra, p: Poly, q: Term, ctx: Context, positive: int, zero: int) -> Poly | None:
    """p where the signs of q are these."""
    signs = {"positive?": positive, "zero?": zero}
    try:
        return with_values(a, p, {T.node(op, (q,), None, T.REAL): T.const(k) for op, k in signs.items()}, ctx)
    except (Split, Undecided):
        return None


def _start(f: Fold, found: Poly, q: Poly) -> Poly | None:
    """The offset between the tracked index `found` and the variable of the maximum f, whose elements have the form q.
    None if q does not have this form."""
    for i in found.atoms:
        if T.TERMS[i].op == "argmax":
            return found - P.scaled(atom(T.TERMS[i]), found.terms.get((((i, 1),), 0), 1))
    values = matching(f, q)
    return None if values is None else found - values[f.variables[0]]


def _index(f: Fold, start: Poly, first: bool) -> Term:
    """start + argmax f, or the last index of the maximum: start - argmax f(-v)."""
    v = f.variables[0]
    body = T.where(T.make("and", T.const(True), *f.guards), f.body.term, -float("inf"))
    if first:
        return T.add(start.term, T.fold("argmax", v, body))
    flipped = T.substitute(body, {v: T.mul(-1, T.axis(v))})
    return T.sub(start.term, T.fold("argmax", v, flipped))


def deviations(
    steps: list[Step], means: Iterable[Term], before: Callable[[Term], Term], init: Term, over: Over
) -> Iterator[Term]:
    """init + sum[t < n] leaf(t) - E V W for the denominators of the step and pairs of means."""
    leaves = [(literals, _whole(b).term) for literals, _, b in steps]
    denominators = {i for _, _, b in steps for fs, _ in b.terms for i, k in fs if k == -1}
    kept = list(means)
    for i in sorted(denominators):
        for j, v in enumerate(kept):
            for w in kept[j:]:
                ratio = T.mul(before(T.TERMS[i]), v, w)
                yield T.sub(T.add(init, over("sum", leaves)), ratio)


def _whole(p: Poly) -> Poly:
    """The monomials without denominators."""
    return P.poly({(fs, e): c for (fs, e), c in p.terms.items() if all(k > 0 for _, k in fs)})


__all__ = ["decayed", "deviations", "index_of_extreme"]
