"""Bounds of integer tensors without their data: every element of an index input `i32[M] < V` lies in 0..V-1.

Host code such as `(target != -100).sum().item()` reads a tensor, yet its answer is the same for every input that
meets the case's bounds. Ranges are per buffer, (low, high) inclusive; a result of one value does not depend on data.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

Range = tuple[int, int]
KEEP = {
    "view", "_unsafe_view", "reshape", "t", "transpose", "permute", "expand", "slice", "select", "clone", "alias",
    "detach", "_to_copy", "squeeze", "unsqueeze", "index_select", "gather", "masked_select", "max", "min", "amax",
    "amin", "flip", "lift_fresh", "unfold", "diagonal", "split", "unbind", "index", "repeat", "sort",
}  # fmt: skip
CORNERS: dict[str, Callable[[Any, Any], Any]] = {"add": operator.add, "sub": operator.sub, "mul": operator.mul}
COMPARE: dict[str, tuple[Callable[[Any, Any], bool], bool]] = {  # whether the corners of the ranges decide
    "lt": (operator.lt, True), "le": (operator.le, True), "gt": (operator.gt, True), "ge": (operator.ge, True),
    "eq": (operator.eq, False), "ne": (operator.ne, False),
}  # fmt: skip


def result_range(name: str, args: Sequence[Range | int | None], kwargs: Sequence[Any]) -> Range | None:
    """The range of an operator's results for ranges of its tensor arguments and numbers, or None where nothing is
    known."""
    if not args or args[0] is None:
        return None
    if name in KEEP:
        return _pair(args[0])
    if len(args) < 2 or args[1] is None or kwargs:
        return None
    a, b = _pair(args[0]), _pair(args[1])
    if name in CORNERS:
        values = [CORNERS[name](x, y) for x, y in product(a, b)]
        return min(values), max(values)
    return _comparison(name, a, b) if name in COMPARE else None


def _comparison(name: str, a: Range, b: Range) -> Range:
    """(1, 1) if it holds for all values of the ranges, (0, 0) if for none, else (0, 1)."""
    compare, monotone = COMPARE[name]
    if monotone:
        at = {compare(x, y) for x, y in product(a, b)}
        return (0, 1) if len(at) > 1 else (int(at == {True}),) * 2  # type: ignore[return-value]
    apart = a[1] < b[0] or b[1] < a[0]
    same = a == b and a[0] == a[1]
    if not apart and not same:
        return 0, 1
    return (int(same),) * 2 if name == "eq" else (int(apart),) * 2  # type: ignore[return-value]


def _pair(x: Range | int) -> Range:
    return x if isinstance(x, tuple) else (x, x)
