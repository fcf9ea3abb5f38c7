"""The logical index of an element: an offset split by the strides of a view.

    offset = view.offset + i * strides[0] + j * strides[1] + ...,  0 <= i < shape[0], 0 <= j < shape[1], ...

The offset is divided by the strides, largest first. Dimensions that lie behind one another without gaps (strides[0] =
shape[1] * strides[1]) may also be taken together, as one flat index, whose quotients and remainders are their indices:

    0 <= q < shape[0] * shape[1]
    ----------------------------------------------------
    q = i * shape[1] + j,  i = q // shape[1],  j = q % shape[1]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise

from trilift.lift.runtime.session import memo_up_to
from trilift.lift.terms import construct as T
from trilift.lift.terms.term import Term

from ..model.configuration import View
from ..model.verdict import Condition
from .bounds import bounded
from .quotient import (
    Ask,
    Entailed,
    Poly,
    between,
    canonical,
    divide,
    equalities,
    expand,
    leading,
    minus,
    order,
    plus,
    reduce,
    replace,
    times,
    to_term,
)  # fmt: skip
from .solver import Facts, Solver


@dataclass(frozen=True, slots=True)
class Group:
    """Dimensions that share one number: sum of index[d] * weights[d] = value, largest weight first, the last is 1."""

    dims: tuple[int, ...]
    weights: tuple[Term, ...]
    value: Term


@dataclass(frozen=True, slots=True)
class Decoded:
    """offset == view.element(index), and every index is in range. `groups` say the same without quotients."""

    index: tuple[Term, ...]
    groups: tuple[Group, ...]


def decode(offset: Term, view: View, facts: Facts, solver: Solver) -> tuple[Term, ...] | None:
    """The logical index in `view` of element `offset` of its buffer, in range by the facts; None if there is none."""
    found = split(offset, view, asking(facts, solver), equalities(facts))
    return found.index if found else None


def asking(facts: Facts, solver: Solver, what: str = "") -> Ask:
    """The question whether a goal follows from the facts; asked once. A consequence is recorded, for `what`."""
    known: dict[Term, bool] = dict.fromkeys(facts, True) | {T.const(True): True, T.const(False): False}
    entailed = _entailed(facts)

    def plain(goal: Term) -> bool:
        if goal not in known and entailed(goal):
            known[goal] = True
            if what:
                solver.records.append(Condition(what, facts, goal, True, "linear", 0.0))
        if goal not in known:
            known[goal] = solver.implies(facts, goal)
            if known[goal] and what:
                solver.implies(facts, goal, what)
        return known[goal]

    def ask(goal: Term) -> bool:
        if goal not in known and bounded(goal, plain):
            known[goal] = True
            solver.records.append(Condition(what, facts, goal, True, "bounds", 0.0))
        return plain(goal)

    return ask


@memo_up_to(256)
def _entailed(facts: Facts) -> Entailed:
    return Entailed(facts)


def split(offset: Term, view: View, ask: Ask, equal: dict[Term, Term] | None = None) -> Decoded | None:
    """`decode` with its groups. `equal`: see `equalities`."""
    equal = equal or {}
    index = quotients(offset, view, ask, equal)
    if index is None:
        return None
    view = rewritten(view, equal)
    dims = layout(view)
    groups = _group(dims, view, [to_term(q) for q in index], ask)
    if groups is None or not all(ask(between(T.const(0), view.shape[d])) for d in set(range(len(index))) - set(dims)):
        return None
    return Decoded(_index(groups, view, ask), groups)


def quotients(offset: Term, view: View, ask: Ask, equal: dict[Term, Term]) -> list[Poly] | None:
    """The offset divided by the strides, which may be out of range; None where a part is not a multiple of any
    stride."""
    view = rewritten(view, equal)
    rest = minus(expand(reduce(replace(offset, equal), ask)), expand(view.offset))
    index: list[Poly] = [{} for _ in view.shape]
    for d in layout(view):
        index[d], rest = divide(rest, expand(view.strides[d]))
    alone = not layout(view)  # one element: whatever is added to its offset is 0
    return None if rest and not (alone and ask(T.make("eq", to_term(rest), 0))) else index


def rewritten(view: View, equal: dict[Term, Term]) -> View:
    """The view in canonical terms, with sizes replaced."""
    one: Callable[[Term], Term] = lambda t: canonical(replace(t, equal))  # noqa: E731
    return View(view.buffer, one(view.offset), tuple(map(one, view.shape)), tuple(map(one, view.strides)), view.dtype)


def layout(view: View) -> list[int]:
    """The dimensions that have more than one element, largest stride first. Others have index 0."""
    dims = [d for d, (n, s) in enumerate(zip(view.shape, view.strides, strict=True)) if _counts(n, s)]

    def size(d: int) -> tuple[int, int]:
        m, c = leading(expand(view.strides[d]))
        return order(m)[0], abs(c)

    return sorted(dims, key=size, reverse=True)


def _counts(n: Term, stride: Term) -> bool:
    return not (n.is_const and n.attr == 1) and bool(expand(stride))


def weights(dims: tuple[int, ...], view: View) -> tuple[Term, ...] | None:
    """shape[e] * shape[f] ..., shape[f] ..., 1 for dimensions d, e, f ... without gaps between them; else None."""
    out: list[Term] = [T.const(1)]
    for d, e in reversed(list(pairwise(dims))):
        if minus(expand(view.strides[d]), times(expand(view.strides[e]), expand(view.shape[e]))):
            return None
        out.insert(0, canonical(T.mul(out[0], view.shape[e])))
    return tuple(out)


def _group(dims: list[int], view: View, index: list[Term], ask: Ask) -> tuple[Group, ...] | None:
    """Every dimension by itself where its index is in range; else together with those before it, as few as possible."""
    groups: list[Group] = []
    end = len(dims)
    while end:
        tries = (tuple(dims[start:end]) for start in range(end - 1, -1, -1))
        found = next((g for ds in tries if (g := _together(ds, view, index, ask))), None)
        if found is None:
            return None
        groups.insert(0, found)
        end -= len(found.dims)
    return tuple(groups)


def _together(dims: tuple[int, ...], view: View, index: list[Term], ask: Ask) -> Group | None:
    w = weights(dims, view)
    if w is None:
        return None
    value = to_term(plus(*(times(expand(index[d]), expand(x)) for d, x in zip(dims, w, strict=True))))
    total = canonical(T.mul(w[0], view.shape[dims[0]]))
    inside = ask(T.make("le", 0, value)) and ask(T.make("lt", value, total))
    return Group(dims, w, value) if inside else None


def _index(groups: Iterable[Group], view: View, ask: Ask) -> tuple[Term, ...]:
    index = [T.const(0)] * len(view.shape)
    for g in groups:
        rest = g.value
        for d, w in zip(g.dims, g.weights, strict=True):
            index[d] = reduce(T.make("floordiv", rest, w), ask) if w is not T.const(1) else rest
            rest = reduce(T.make("mod", rest, w), ask)
    return tuple(index)
