"""Intervals of integer terms whose leaves are machine integers: also of wide ones, of axes, sizes and folds.

    v read from x of i32            0 <= k < N, b in [l, h]
    --------------------            -----------------------------------------
    v in [-2^31, 2^31 - 1]          sum over k of b in [min(0, l N), max(0, h N)]

`lift.terms.ranges` leaves wide integers unbounded on purpose: there they are the numbers that are proved to fit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from . import term as T
from .bits import FORMATS, cell_size
from .ranges import ALL, RANGE, Facts, Interval, Ranges, nary
from .term import Term

SIZE: Interval = (0, 2**63 - 1)  # of PyTorch's sizes


def limits(dtype: str) -> tuple[int, int]:
    """(low, high) of an integer dtype: its numbers are low <= v < high."""
    if dtype == "bool":
        return 0, 2
    bits = int(dtype[1:])
    return (0, 1 << bits) if dtype[0] == "u" else (-(1 << bits - 1), 1 << bits - 1)


def dtype_limits(dtype: str) -> Interval:
    """The interval of an integer dtype, of wide ones too."""
    low, high = limits(dtype)
    return low, high - 1


class MachineRanges(Ranges):
    """`inputs`: the interval of each integer tensor; `scalars`: of the sizes that are integer scalars."""

    def __init__(self, inputs: Mapping[str, Interval] | None = None, scalars: Mapping[str, Interval] | None = None):
        super().__init__(inputs)
        self.scalars = dict(scalars or {})

    def _of(self, t: Term, facts: Facts) -> Interval:
        if t.type == T.INT and not facts:
            if t.op == "axis":
                return 0, max(self.of(t.attr.size)[1] - 1, 0)
            if t.op == "size":
                return self.scalars.get(str(t.attr), SIZE)
            if t.op in T.FOLDS:
                return self._fold(t.op, self.of(t.attr.size), self.of(t.args[0]) if t.args[0].type != T.REAL else ALL)
            if (rule := MORE.get(t.op)) is not None:
                return rule(*(self.of(a) if a.type != T.REAL else ALL for a in t.args))
        return super()._of(t, facts)

    def _fold(self, op: str, size: Interval, body: Interval) -> Interval:
        low, high = body
        if op == "sum":
            return min(0, _times(size[1], low)), max(0, _times(size[1], high))
        if op in ("amax", "amin"):
            return body
        if op in ("argmax", "argmin"):
            return 0, max(size[1] - 1, 0)
        return (min(low, 0), 1) if op == "prod" and low >= -1 and high <= 1 else ALL


def _times(n: float, x: float) -> float:
    return 0 if 0 in (n, x) else n * x


def _width(*xs: Interval) -> int | None:
    """The bits of two's complement numbers beside the sign that hold all of these."""
    ends = [e for x in xs for e in x]
    if any(math.isinf(e) for e in ends):
        return None
    return max(int(e).bit_length() if e >= 0 else (~int(e)).bit_length() for e in ends)


def _bits(a: Interval, b: Interval) -> Interval:
    n = _width(a, b)
    if n is None:
        return ALL
    return (0 if min(a[0], b[0]) >= 0 else -(1 << n)), (1 << n) - 1


def _bitand(a: Interval, b: Interval) -> Interval:
    positive = [x[1] for x in (a, b) if x[0] >= 0]
    return (0, min(positive)) if positive else _bits(a, b)


def _largest(a: Interval) -> float:
    return max(abs(a[0]), abs(a[1]))


def _quotient(a: Interval, b: Interval) -> Interval:
    """Of a divisor that is not 0, or gives 0: |a / b| <= |a|, rounded either way."""
    if b[0] > 0:
        return min(a[0], 0), max(a[1], 0)
    if a[0] >= 0 and b[0] >= 0:
        return 0, a[1]
    return -_largest(a), _largest(a)


def _mod(a: Interval, b: Interval) -> Interval:
    if a[0] >= 0 and a[1] < b[0]:
        return a
    return (0 if b[0] >= 0 else b[0] + 1), (0 if b[1] <= 0 else b[1] - 1)


def _truncmod(a: Interval, b: Interval) -> Interval:
    most = min(_largest(a), max(_largest(b) - 1, 0))
    return (0 if a[0] >= 0 else -most), (0 if a[1] <= 0 else most)


def _shr(a: Interval, b: Interval) -> Interval:
    return (min(a[0], 0), max(a[1], 0)) if b[0] < 0 or b[0] != b[1] else RANGE.rows["shr"](a, b)


def _bit_pattern(bits: int) -> Callable[..., Interval]:
    return lambda *_: (-(1 << bits - 1), (1 << bits - 1) - 1)


MORE: dict[str, Callable[..., Interval]] = {
    "abs": lambda a: (0 if a[0] <= 0 <= a[1] else min(abs(a[0]), abs(a[1])), _largest(a)),
    "sign": lambda a: (-1 if a[0] < 0 else 0, 1 if a[1] > 0 else 0),
    "bitand": _bitand,
    "bitor": nary(_bits),
    "bitxor": nary(_bits),
    "floordiv": _quotient,
    "truncdiv": _quotient,
    "mod": _mod,
    "truncmod": _truncmod,
    "shr": _shr,
    "next_power_of_2": lambda a: (0 if a[0] <= 0 else 1, max(1, 2 * a[1] - 1)),
    **{f"bits_{f}": _bit_pattern(8 * cell_size(f)) for f in FORMATS},
}
