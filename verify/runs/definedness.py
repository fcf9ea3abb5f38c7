"""Where a formula over the reals is defined: a boolean term for every operation that is not total, by the table in
`lift.terms.definedness`.

A condition holds for all values 0 <= a < size of its free axes; bound axes of the formula are free in it. Conditions
of a branch of `where` apply only where the branch is taken: `not c or d`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from trilift.lift.language.unfolding import expand
from trilift.lift.terms import construct as T
from trilift.lift.terms.definedness import DEFINED, OF_NON_EMPTY, total
from trilift.lift.terms.ops import OPS
from trilift.lift.terms.spec import Formula
from trilift.lift.terms.term import FOLDS, Axis, Term

__all__ = ["DEFINED", "domain", "free_axes", "total", "unfolded"]

Shapes = Mapping[str, Sequence[Term]]

_lt, _le = (lambda a, b, op=op: T.make(op, a, b) for op in ("lt", "le"))


def unfolded(t: Term) -> Term:
    """The term without known names: softmax, mean, ... are what they are defined as."""
    return expand(t)


def domain(formula: Formula, shapes: Shapes | None = None) -> list[Term]:
    """The conditions, each once. `shapes`: of the tensors, whose elements must be there; without it they are
    ignored."""
    taken = {a.name for a in formula.axes}
    found = _needs(unfolded(formula.term), (), taken, shapes or {}, set())
    return list(dict.fromkeys(c for c in found if c is not T.const(True)))


def _needs(
    t: Term, guards: tuple[Term, ...], taken: set[str], shapes: Shapes, seen: set[tuple[Term, ...]]
) -> Iterator[Term]:
    """The conditions of t under guards; `taken` are the names of axes in scope."""
    if (t, *guards) in seen or not t.args:
        return
    seen.add((t, *guards))
    if t.op == "where":
        condition, yes, no = t.args
        yield from _needs(condition, guards, taken, shapes, seen)
        yield from _needs(yes, (*guards, condition), taken, shapes, seen)
        yield from _needs(no, (*guards, T.make("not", condition)), taken, shapes, seen)
        return
    if t.op in FOLDS:
        if t.op in OF_NON_EMPTY:
            yield _under(guards, _lt(0, t.attr.size))
        over = T.fresh_axis(t.attr, taken)
        body = t.args[0] if over == t.attr else T.substitute(t.args[0], {t.attr: T.axis(over)})
        yield from _needs(body, guards, taken | {over.name}, shapes, seen)
        return
    if t.op in OPS and (needs := DEFINED[t.op]) is not total:
        yield _under(guards, needs(*t.args))
    if t.op == "read" and t.attr in shapes:
        for i, n in zip(t.args, shapes[t.attr], strict=True):
            yield _under(guards, _in_range(i, n))
    for a in t.args:
        if not (t.op == "recip" and a.op == "sqrt"):
            yield from _needs(a, guards, taken, shapes, seen)
        else:
            yield from _needs(a.args[0], guards, taken, shapes, seen)


def _in_range(index: Term, n: Term) -> Term:
    if index.op == "axis" and index.attr.size is n:
        return T.const(True)
    return T.make("and", _le(0, index), _lt(index, n))


def _under(guards: Sequence[Term], condition: Term) -> Term:
    return T.make("or", condition, *(T.make("not", g) for g in guards)) if guards else condition


def free_axes(condition: Term) -> list[Axis]:
    """The axes that a condition is for all values of."""
    return sorted(condition.free, key=lambda a: a.name)
