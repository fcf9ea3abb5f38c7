"""How far a loop of a block goes: tiles that a mask closes for the whole block are not visited.

A mask makes elements minus infinity before an exponential, or 0 in a product. Where it does so in all of a tile, a
maximum, a sum or a product over the tile leaves what the loop keeps as it is. Conditions of a mask that compare the
loop's index with the index of a grid axis bound the loop: causal attention ends at the diagonal, a window of W keys
visits W + tile of them. The emitted file is proved: nothing rests on the bounds found here."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from trilift.lift.terms import construct as T
from trilift.lift.terms.ranges import affine
from trilift.lift.terms.term import Term

from ..program.abstract import templates
from ..program.program import Program
from .graph import Kernel, MuGraph, Operator, loops

TRUE = T.const(True)
ALWAYS = frozenset({TRUE})
NEVER: frozenset[Term] = frozenset()


@dataclass(frozen=True, slots=True)
class Closed:
    """Conditions under each of which, if it holds in a whole tile, the tile of a value is minus infinity, and 0."""

    lowest: frozenset[Term] = NEVER
    zero: frozenset[Term] = NEVER


OPEN = Closed()


@dataclass(frozen=True, slots=True)
class Bound:
    """The index of `axis` (0 where it is None) plus a constant plus terms without axes, each with its factor."""

    axis: str | None
    constant: int
    terms: tuple[tuple[int, Term], ...] = ()


@dataclass(frozen=True, slots=True)
class Reach:
    """Indices of a loop that matter: no less than each of `least`, no more than each of `most`."""

    least: tuple[Bound, ...] = ()
    most: tuple[Bound, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.least or self.most)


def reaches(g: MuGraph, k: Kernel) -> dict[str, Reach]:
    """The reach of each loop of a kernel that has one."""
    elements = {x.name: x.element for x in g.program.inputs}
    loads = {o.out: elements.get(o.args[0]) for o in k.loads}
    of = loops(k)
    out = {}
    for a in (a for a in k.loops if k.modes[a] == "loop"):
        inside = [o for o in k.operators if of.get(o) == a]
        stored = any(o.op == "store" for o in inside)
        tiled = frozenset(b for b, m in k.modes.items() if m == "grid")
        if not stored and (found := reach(inside, loads, g.program, a, tiled)):
            out[a] = found
    return out


def reach(
    inside: Sequence[Operator], loads: Mapping[str, Term | None], program: Program, loop: str, grid: frozenset[str]
) -> Reach:
    """The reach of a loop with these operators. `loads`: what each tile holds that is computed and not read."""
    named = templates(program)
    values = {x: element(t, {}) for x, t in loads.items() if t is not None}
    kept: list[frozenset[Term]] = []
    for o in inside:
        args = [values.get(a, OPEN) for a in o.args]
        if o.op == "accumulate":
            kept.append(args[0].zero)
        elif o.op == "accumulate_max":
            kept.append(args[0].lowest)
        elif o.op != "load":
            values[o.out] = _applied(o.op, named, args)
    if not kept:
        return Reach()
    return _bounds(reduce(_both, kept), loop, grid)


# ---- what a mask closes ----------------------------------------------------------------------------------------------


def element(t: Term, given: Mapping[Term, Closed]) -> Closed:
    """When an element is minus infinity, and 0; `given`: of parts of it. Real numbers without a mask are finite."""
    if t in given:
        return given[t]
    if t.is_const:
        return Closed(ALWAYS if t.attr == -math.inf else NEVER, ALWAYS if t.attr == 0 else NEVER)
    if t.op == "where":
        condition, *branches = t.args
        a, b = (element(x, given) for x in branches)
        return Closed(_chosen(condition, a.lowest, b.lowest), _chosen(condition, a.zero, b.zero))
    if any(s.attr == math.inf if s.is_const else _turns(s) for s in t.walk()):
        return OPEN
    args = [element(x, given) for x in t.args]
    if t.op == "mul":
        bottom = [a for x, a in zip(t.args, args, strict=True) if _infinite(x)]
        return Closed(bottom[0].lowest) if bottom else _product(args)
    return APPLIED[t.op](args) if t.op in APPLIED else OPEN


def _infinite(t: Term) -> bool:
    return any(s.is_const and s.attr == -math.inf for s in t.walk())


def _turns(t: Term) -> bool:
    """Whether a product may make infinity or no number of minus infinity."""
    others = [a for a in t.args if not _infinite(a)]
    return (
        t.op == "mul"
        and len(others) < len(t.args)
        and not (len(others) == len(t.args) - 1 and all(a.is_const and a.attr > 0 for a in others))
    )


def _applied(op: str, named: Mapping[str, Term], args: Sequence[Closed]) -> Closed:
    if op.startswith("scale"):
        return Closed(zero=args[0].zero)
    if op in named:
        return element(named[op], {T.scalar(f"a{k}"): a for k, a in enumerate(args)})
    return APPLIED[op](args) if op in APPLIED else OPEN


def _sum(args: Sequence[Closed]) -> Closed:
    return Closed(frozenset[Term]().union(*(a.lowest for a in args)), reduce(_both, (a.zero for a in args)))


def _all(args: Sequence[Closed]) -> Closed:
    return Closed(reduce(_both, (a.lowest for a in args)), reduce(_both, (a.zero for a in args)))


def _product(args: Sequence[Closed]) -> Closed:
    return Closed(zero=frozenset[Term]().union(*(a.zero for a in args)))


APPLIED = {
    "add": _sum,
    "sub": lambda args: Closed(args[0].lowest, _both(args[0].zero, args[1].zero)),
    "mul": _product,
    "dot": _product,
    "div": lambda args: Closed(zero=args[0].zero),
    "exp": lambda args: Closed(zero=args[0].lowest),
    "sqr": _product,
    "sqrt": lambda args: Closed(zero=args[0].zero),
    "sum": lambda args: Closed(zero=args[0].zero),
    "max": _all,
    "maximum": _all,
    "or_zero": lambda args: Closed(zero=_both(args[0].zero, args[0].lowest)),
}


def _both(a: frozenset[Term], b: frozenset[Term]) -> frozenset[Term]:
    if TRUE in a or TRUE in b:
        return b if TRUE in a else a
    return a & b


def _chosen(condition: Term, yes: frozenset[Term], no: frozenset[Term]) -> frozenset[Term]:
    """Conditions that close where(condition, one, other), from those that close one and the other."""
    out = _both(yes, no)
    out |= _any(condition) if TRUE in yes else NEVER
    return out | (_any(T.make("not", condition)) if TRUE in no else NEVER)


def _any(condition: Term) -> frozenset[Term]:
    """Conditions of which each implies this one."""
    if condition.op == "or":
        return frozenset[Term]().union(*map(_any, condition.args))
    if condition.op == "not" and condition.args[0].op == "and":
        return frozenset[Term]().union(*(_any(T.make("not", a)) for a in condition.args[0].args))
    return frozenset({condition})


# ---- bounds ----------------------------------------------------------------------------------------------------------


def _bounds(closing: frozenset[Term], loop: str, grid: frozenset[str]) -> Reach:
    least: list[Bound] = []
    most: list[Bound] = []
    for c in sorted(closing, key=repr):
        for sign, bound in _open(c, loop, grid):
            (least if sign > 0 else most).append(bound)
    return Reach(tuple(least), tuple(most))


def _open(c: Term, loop: str, grid: frozenset[str]) -> Iterator[tuple[int, Bound]]:
    """Where c, a comparison of indices, does not hold: 1 and the least index of the loop, -1 and the largest."""
    if c.op not in ("lt", "le") or any(a.type != T.INT for a in c.args):
        return
    (low, left), (high, right) = map(affine, c.args)
    constant = low - high - (c.op == "le")  # not left < right: 0 <= left - right
    parts = {t: left.get(t, 0) - right.get(t, 0) for t in dict.fromkeys((*left, *right))}
    axes = {t.attr.name: n for t, n in parts.items() if n and t.op == "axis"}
    terms = {t: n for t, n in parts.items() if n and t.op != "axis"}
    sign = axes.pop(loop, 0)
    if abs(sign) != 1 or any(t.free for t in terms) or len(axes) > 1:
        return
    if all(n == -sign and a in grid for a, n in axes.items()):
        yield sign, Bound(next(iter(axes), None), -sign * constant, tuple((-sign * n, t) for t, n in terms.items()))
