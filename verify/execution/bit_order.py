"""Atomic maxima and minima of floats, which are made of two of their bits: integers with and without sign.

v >= 0: max_signed(bits a, bits v) = bits max(a, v)        v < 0: min_unsigned(bits a, bits v) = bits max(a, v)

and the mirror image for the minimum. Two accesses to one element, one for each sign of v, are one maximum of reals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from trilift.lift.interpreter.machine import cell
from trilift.lift.terms import construct as T
from trilift.lift.terms.ranges import Ranges
from trilift.lift.terms.term import Term
from trilift.lift.ttir.ir import Op, Type

from ..model.program import Access

OTHER = {"max": "umin", "min": "umax"}  # where v < 0
COMPARED = {
    "lt": lambda a, b: True if a[1] < b[0] else False if a[0] >= b[1] else None,
    "le": lambda a, b: True if a[1] <= b[0] else False if a[0] > b[1] else None,
    "eq": lambda a, b: True if a[0] == a[1] == b[0] == b[1] else False if a[1] < b[0] or b[1] < a[0] else None,
}


def joined(accesses: Sequence[Access], elements: Mapping[str, Type]) -> tuple[list[Access], set[Op]]:
    """The accesses with such pairs made one, and the operations of these. `elements`: the element type of the memory of
    each parameter."""
    out: list[Access] = []
    pairs: list[Access] = []
    for a in accesses:
        if out and (one := _together(out[-1], a, elements)) is not None:
            pairs += [out.pop(), a]
            out.append(one)
        else:
            out.append(a)
    left = {a.op for a in accesses if a not in pairs}
    return out, {a.op for a in pairs} - left


def _together(a: Access, b: Access, elements: Mapping[str, Type]) -> Access | None:
    """The maximum or minimum of reals that both are; None if they are something else."""
    if OTHER.get(a.kind) != b.kind or a.loops != b.loops or [x.size for x in a.lanes] != [x.size for x in b.lanes]:
        return None
    lanes = dict(zip(b.lanes, map(T.axis, a.lanes), strict=True))
    guard, pointer, bits = (T.substitute(t, lanes) for t in (b.guard, b.pointer, b.value or T.const(0)))
    of = elements.get(a.pointer.attr) if a.pointer.op == "pointer" else None
    if of is None or not of.is_float or pointer is not a.pointer or bits is not a.value:
        return None
    if not a.type.is_int or a.type.bits != of.bits or bits.op != f"bits_{cell(of)}":
        return None
    mine, others = _conjuncts(a.guard), _conjuncts(guard)
    common = [c for c in mine if c in others]
    one, two = (T.make("and", True, *(c for c in cs if c not in common)) for cs in (mine, others))
    half = 1 << of.bits - 1
    for interval, first in (((0, half - 1), True), ((-half, -1), False)):
        if _at(one, bits, interval) is not T.const(first) or _at(two, bits, interval) is not T.const(not first):
            return None
    return replace(a, guard=T.make("and", True, *common), value=bits.args[0], type=of)


def _conjuncts(t: Term) -> tuple[Term, ...]:
    return t.args if t.op == "and" else (t,)


def _at(t: Term, x: Term, interval: tuple[int, int]) -> Term:
    """A condition where x is in an interval."""
    ranges = Ranges()
    ranges.memo[x.id] = interval

    def rule(s: Term) -> Term | None:
        if s.op in ("lt", "le", "eq", "ne") and s.args[0].type == s.args[1].type == T.INT:
            known = COMPARED["eq" if s.op == "ne" else s.op](*map(ranges.of, s.args))
            return None if known is None else T.const(known == (s.op != "ne"))
        low, high = ranges.of(s) if s.type == T.INT else (0, 1)
        return T.const(int(low)) if low == high else None

    return T.rewrite(t, rule)
