"""The meaning of the combiner of a tt.reduce or tt.scan, proved from its terms (samples would not do for a proof).

(a, b) -> a o b                     o is add, mul, max, min, and, or, xor: one fold per operand
((v, i), (w, j)) -> one of them     decided by the orders of v, w and of i, j alone: every order is tried
(n, mean, M2), (m, s), (a, b)       joins of samples, of softmax weights, of affine maps: `verify.execution.merge_laws`
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Union

from trilift.lift.interpreter.registry import signed_term
from trilift.lift.terms import term as T
from trilift.lift.terms.meanings import Domain
from trilift.lift.terms.ops import OPS
from trilift.lift.terms.ranges import Ranges
from trilift.lift.terms.term import Term
from trilift.lift.ttir.ir import Type

from ..model.program import term_type

if TYPE_CHECKING:
    from .merge_laws import Join

ORDERED = {"max": "amax", "min": "amin"}
RINGS = {"add": "sum", "mul": "prod"}
BITS = {"bitxor": "bitxor", "bitor": "bitor", "bitand": "bitand"}
LOGIC = {"or": "any", "and": "all", "ne": "parity"}
ARGUMENT = {"amax": "argmax", "amin": "argmin"}


@dataclass(frozen=True, slots=True)
class Extreme:
    """The operand pair with the largest or smallest value; ties go to the smaller ("first") or larger ("last") index,
    or to some operand ("any")."""

    fold: str  # "amax" or "amin"
    ties: str


Meaning = Union[list[str], Extreme, "Join"]  # a fold per operand, one of the pairs, or a join
Combine = Callable[[list[Term], list[Term]], list[Term]]


def meaning(types: Sequence[Type], combine: Combine, ranges: Ranges) -> Meaning | None:
    """The meaning of the combiner for operands of these element types; None if it has none here."""
    pairs = [tuple(T.scalar(f"{side}{k}~", term_type(t)) for side in "ab") for k, t in enumerate(types)]
    got = combine([a for a, _ in pairs], [b for _, b in pairs])
    orders = _Orders(pairs, types, ranges)
    folds = [_fold(t, p, g, orders, k) for k, (t, p, g) in enumerate(zip(types, pairs, got, strict=True))]
    if all(folds):
        return [f for f in folds if f]
    extreme = _extreme(got, orders) if len(types) == 2 else None
    return extreme or _join(types, pairs, got)


def _join(types: Sequence[Type], pairs: Sequence[tuple[Term, ...]], got: Sequence[Term]) -> Join | None:
    """Of floats, and of integers that are wide enough to count."""
    if not all(t.is_float or (t.is_int and t.bits >= 32) for t in types):
        return None
    from .merge_laws import join

    return join([(a, b) for a, b in pairs], got)


def _fold(t: Type, pair: tuple[Term, ...], got: Term, orders: _Orders, k: int) -> str | None:
    """The fold of one operand alone."""
    rows = LOGIC if t.element == "i1" else RINGS | BITS if t.is_int else RINGS
    for row, name in rows.items():
        if got is OPS[row].on_terms(*pair):
            return name
    if t.element == "i1" or orders.kind(got) != k or not _leaves(got) <= {*pair}:
        return None
    found = [(orders.value(got, case), (x, y)) for case in orders.cases() for x, y in [case[k]]]
    return next((ORDERED[f.__name__] for f in (max, min) if all(v == f(xy) for v, xy in found)), None)


def _leaves(t: Term) -> set[Term]:
    return {s for s in t.walk() if s.op == "scalar"}


def _extreme(got: list[Term], orders: _Orders) -> Extreme | None:
    if [orders.kind(g) for g in got] != [0, 1]:
        return None
    for name, best in (("amax", max), ("amin", min)):
        ties = {"first", "last", "any"}
        for case in orders.cases():
            (v, w), (i, j) = case
            value, index = (orders.value(g, case) for g in got)
            if value != best(v, w) or (v != w and index != (i if best(v, w) == v else j)):
                break
            if v == w:
                ties -= {tie for tie, want in (("first", min(i, j)), ("last", max(i, j))) if index != want}
        else:
            return Extreme(name, next(tie for tie in ("first", "last", "any") if tie in ties))
    return None


Case = tuple[tuple[int, int], ...]  # numbers for (a, b) of every operand


class _Orders:
    """Terms whose value depends on nothing but the order of a0, b0, that of a1, b1 and so on."""

    def __init__(self, pairs: Sequence[tuple[Term, ...]], types: Sequence[Type], ranges: Ranges) -> None:
        self.leaf: dict[Term, tuple[int, int]] = {}
        for k, (pair, t) in enumerate(zip(pairs, types, strict=True)):
            for side, x in enumerate(pair):
                self.leaf[x] = (k, side)
                if t.is_int and 1 < t.bits <= 16:
                    self.leaf[signed_term(ranges, x, t.bits)] = (k, side)
        self.count = len(pairs)

    def cases(self) -> list[Case]:
        """Less, equal, greater for every operand."""
        return list(product(((0, 1), (0, 0), (1, 0)), repeat=self.count))

    def kind(self, t: Term) -> int | str | None:
        """k for a choice among the k-th operands, "bool", or None for anything else."""
        if t in self.leaf:
            return self.leaf[t][0]
        kinds = [self.kind(a) for a in t.args]
        same = len(set(kinds)) == 1
        match t.op:
            case "const":
                return "bool" if isinstance(t.attr, bool) else None
            case "where":
                return kinds[1] if kinds[0] == "bool" and kinds[1] == kinds[2] else None
            case "max" | "min":
                return kinds[0] if same and kinds[0] != "bool" else None
            case "lt" | "le" | "eq" | "ne":
                return "bool" if same and kinds[0] is not None else None
            case "and" | "or" | "not":
                return "bool" if same and kinds[0] == "bool" else None
        return None

    def value(self, t: Term, case: Case) -> int:
        """The number of a term that has a kind."""
        if t in self.leaf:
            k, side = self.leaf[t]
            return case[k][side]
        if t.is_const:
            return int(t.attr)
        xs = [self.value(a, case) for a in t.args]
        return int(ORDER_VALUE.rows[t.op](*xs))


ORDER_VALUE = Domain("order value", missing="opaque", says="its number where it depends on the order of a and b only")
ORDER_VALUE.fill({
    "where": lambda c, a, b: a if c else b,
    "max": max,
    "min": min,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "and": lambda *xs: all(xs),
    "or": lambda *xs: any(xs),
    "not": lambda a: not a,
})  # fmt: skip
