"""Limits of integer tensors as terms: every element of an index input `i32[M] < V` lies in 0 .. V - 1.

    target in [0, V - 1]  ->  target != -100 is true everywhere  ->  (target != -100).sum().item() is M

The rules are those of `lift.capture.bounded`, on terms: a number that the host function takes out of a tensor is a term
over the sizes where all elements are one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...capture.bounded import KEEP
from ...terms import construct as T
from ...terms import index as I
from ...terms.term import Term

Limits = tuple[Term, Term]  # the least and the greatest
TRUE: Limits = (T.const(1), T.const(1))
FALSE: Limits = (T.const(0), T.const(0))
EITHER: Limits = (T.const(0), T.const(1))


def of_result(name: str, args: Sequence[Limits | None], count: Term) -> Limits | None:
    """The limits of an operator's results, for those of its tensors and numbers; `count`: the elements of its first
    tensor."""
    if not args or args[0] is None:
        return None
    if name in KEEP:
        return args[0]
    if name == "sum" and len(args) == 1 and (one := value(args[0])) is not None:
        total = I.normal(T.mul(one, count))
        return total, total
    if len(args) != 2 or args[1] is None:
        return None
    rule = RULES.get(name)
    return None if rule is None else rule(args[0], args[1])


def value(x: Limits) -> Term | None:
    """The number that all elements are, if they are one."""
    return x[0] if I.normal(T.sub(x[1], x[0])) is T.const(0) else None


def _below(a: Limits, b: Limits) -> bool:
    """Whether a < b for sure."""
    return I.nonnegative(I.normal(T.add(b[0], T.mul(-1, a[1]), -1)))


def _at_most(a: Limits, b: Limits) -> bool:
    return I.nonnegative(I.normal(T.sub(b[0], a[1])))


def _decided(yes: bool, no: bool) -> Limits:
    return TRUE if yes else FALSE if no else EITHER


def _product(a: Limits, b: Limits) -> Limits | None:
    """Of numbers from 0 on, one of which is 0 or 1, so that no product wraps."""
    if not (I.nonnegative(a[0]) and I.nonnegative(b[0]) and any(x[1] in (T.const(0), T.const(1)) for x in (a, b))):
        return None
    return I.normal(T.mul(a[0], b[0])), I.normal(T.mul(a[1], b[1]))


def _same(a: Limits, b: Limits) -> bool:
    one, other = value(a), value(b)
    return one is not None and other is not None and I.normal(T.sub(one, other)) is T.const(0)


RULES: dict[str, Callable[[Limits, Limits], Limits | None]] = {
    "add": lambda a, b: (I.normal(T.add(a[0], b[0])), I.normal(T.add(a[1], b[1]))),
    "sub": lambda a, b: (I.normal(T.sub(a[0], b[1])), I.normal(T.sub(a[1], b[0]))),
    "mul": _product,
    "lt": lambda a, b: _decided(_below(a, b), _at_most(b, a)),
    "le": lambda a, b: _decided(_at_most(a, b), _below(b, a)),
    "gt": lambda a, b: _decided(_below(b, a), _at_most(a, b)),
    "ge": lambda a, b: _decided(_at_most(b, a), _below(a, b)),
    "eq": lambda a, b: _decided(_same(a, b), _below(a, b) or _below(b, a)),
    "ne": lambda a, b: _decided(_below(a, b) or _below(b, a), _same(a, b)),
}
