"""Intervals of integer terms, from the bounds of the case's index tensors and from what a mask says.

v read from x, 0 <= x < b       a in [l, h], b in [m, n]                mask = (i < 7) & ...
-------------------------       ----------------------------------      --------------------
v in [0, b - 1]                 a + b in [l + m, h + n]                 i in [-inf, 6]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from . import construct as T
from .meanings import Domain
from .ops import power_of_2

Interval = tuple[float, float]  # Python ints, or -inf and inf
Facts = Mapping[int, Interval]  # by term id
ALL: Interval = (-math.inf, math.inf)
RANGE = Domain("range", missing="unbounded", says="between which integers a term lies", types=(T.INT, "same"))


def dtype_interval(dtype: str) -> Interval:
    """The numbers of an integer dtype: "u8" is 0..255, "i16" -32768..32767. Wide ones count as unbounded integers."""
    bits = int(dtype[1:]) if dtype[1:].isdigit() else 64
    if dtype == "bool":
        return 0, 1
    if dtype[0] not in "iu":
        return ALL
    if bits > 16:
        return (0, math.inf) if dtype[0] == "u" else ALL
    return (0, 2**bits - 1) if dtype[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


class Ranges:
    """`inputs`: the interval of the elements of each integer input. `exact`: integers of 32 and 64 bits are the signed
    numbers of their bits, because it is proved elsewhere that none of them wraps."""

    exact = False

    def __init__(self, inputs: Mapping[str, Interval] | None = None) -> None:
        self.inputs = dict(inputs or {})
        self.memo: dict[int, Interval] = {}

    def of(self, t: T.Term, facts: Facts | None = None) -> Interval:
        """Numbers that `t` cannot leave, given the facts."""
        if facts:
            return self._of(t, facts)
        if t.id not in self.memo:
            self.memo[t.id] = self._of(t, {})
        return self.memo[t.id]

    def _of(self, t: T.Term, facts: Facts) -> Interval:
        known = facts.get(t.id, ALL)
        if t.op == "const":
            return (t.attr, t.attr)
        if t.op == "read":
            found = self.inputs.get(t.attr, ALL)
        elif t.type == T.BOOL:
            found = (0, 1)
        elif (rule := RANGE.rows.get(t.op)) is not None and t.type == T.INT:
            found = rule(*(self.of(a, facts) for a in (t.args[1:] if t.op in ("where", "pick") else t.args)))
        else:
            found = ALL
        return max(known[0], found[0]), min(known[1], found[1])

    def facts(self, *conditions: T.Term) -> Facts:
        """The intervals that the conditions, which are assumed to hold, give to single integer terms, by the term's id.
        Only comparisons with one unknown term count."""
        out: dict[int, Interval] = {}
        for c in conditions:
            for part in c.args if c.op == "and" else (c,):
                if part.op in ("lt", "le", "eq") and part.args[0].type == part.args[1].type == T.INT:
                    _note(out, part.args[1], part.args[0], part.op == "lt")
                    if part.op == "eq":
                        _note(out, part.args[0], part.args[1], False)
        return out


def _note(out: dict[int, Interval], big: T.Term, small: T.Term, strict: bool) -> None:
    """big - small >= (1 if strict else 0), if that is c * t + d with one term t."""
    d, parts = affine(T.sub(big, small))
    if len(parts) != 1:
        return
    (t, c), d = next(iter(parts.items())), d - strict
    low, high = out.get(t.id, ALL)
    if c > 0:
        low = max(low, -(d // c))  # t >= -d / c, rounded up
    else:
        high = min(high, d // -c)
    out[t.id] = (low, high)


def affine(t: T.Term) -> tuple[int, dict[T.Term, int]]:
    """(d, {t1: c1, ...}) with t = d + c1 * t1 + ..., products with constants multiplied out."""
    constant = 0
    parts: dict[T.Term, int] = {}
    todo = [(t, 1)]
    while todo:
        s, c = todo.pop()
        if s.op == "const":
            constant += c * int(s.attr)
        elif s.op == "add":
            todo.extend((a, c) for a in s.args)
        elif (
            s.op == "mul" and len(s.args) >= 2 and (k := next((a for a in s.args if a.op == "const"), None)) is not None
        ):
            todo.append((T.mul(*(a for a in s.args if a is not k)), c * int(k.attr)))
        else:
            parts[s] = parts.get(s, 0) + c
    return constant, {s: c for s, c in parts.items() if c}


def from_affine(constant: int, parts: Mapping[T.Term, int]) -> T.Term:
    return T.add(constant, *(T.mul(c, s) for s, c in parts.items()))


def sum_interval(constant: int, parts: Mapping[T.Term, int], ranges: Ranges, facts: Facts) -> Interval:
    """The interval of an affine form."""
    low: float = constant
    high: float = constant
    for s, c in parts.items():
        a, b = ranges.of(s, facts)
        low, high = low + min(c * a, c * b), high + max(c * a, c * b)
    return low, high


def _product(a: Interval, b: Interval) -> Interval:
    corners = [0 if 0 in (x, y) else x * y for x in a for y in b]
    return min(corners), max(corners)


def nary(f: Callable[[Interval, Interval], Interval]) -> Callable[..., Interval]:
    def rule(*xs: Interval) -> Interval:
        out = xs[0]
        for x in xs[1:]:
            out = f(out, x)
        return out

    return rule


def _floordiv(a: Interval, b: Interval) -> Interval:
    if b[0] <= 0 or math.inf in b:
        return (0, a[1]) if a[0] >= 0 and b[0] >= 0 else ALL
    corners = [x // y if abs(x) != math.inf else x for x in a for y in b]
    return min(corners), max(corners)


def _mod(a: Interval, b: Interval) -> Interval:
    if a[0] >= 0 and a[1] < b[0]:
        return a
    return (0, b[1] - 1) if b[0] > 0 else ALL


def _bitand(a: Interval, b: Interval) -> Interval:
    positive = [x[1] for x in (a, b) if x[0] >= 0]
    return (0, min(positive)) if positive else ALL


def _join(*xs: Interval) -> Interval:
    return min(x[0] for x in xs), max(x[1] for x in xs)


def _shr(a: Interval, b: Interval) -> Interval:
    if b[0] == b[1] and 0 <= b[0] < 64:
        return tuple(x >> b[0] if abs(x) != math.inf else x for x in a)  # type: ignore[operator,return-value]
    return (0, a[1]) if a[0] >= 0 else ALL


def _shl(a: Interval, b: Interval) -> Interval:
    return _product(a, (1 << int(b[0]), 1 << int(b[1]))) if b[0] >= 0 and b[1] < 64 else ALL


def _bits_of_both(a: Interval, b: Interval) -> Interval:
    """Of numbers that are not negative: no bit above the highest of either."""
    top = max(a[1], b[1])
    return (0, (1 << int(top).bit_length()) - 1) if min(a[0], b[0]) >= 0 and top < math.inf else ALL


def _truncdiv(a: Interval, b: Interval) -> Interval:
    return _floordiv(a, b) if a[0] >= 0 else ALL


def _padded(a: Interval) -> Interval:
    if a[0] < 1:
        return ALL
    return power_of_2(int(a[0])), power_of_2(int(a[1])) if a[1] < math.inf else math.inf


RANGE.fill({
    "next_power_of_2": _padded,
    "add": nary(lambda a, b: (a[0] + b[0], a[1] + b[1])),
    "mul": nary(_product),
    "max": nary(lambda a, b: (max(a[0], b[0]), max(a[1], b[1]))),
    "min": nary(lambda a, b: (min(a[0], b[0]), min(a[1], b[1]))),
    "where": _join,
    "pick": _join,
    "floordiv": _floordiv,
    "mod": _mod,
    "truncdiv": _truncdiv,
    "truncmod": lambda a, b: _mod(a, b) if a[0] >= 0 else ALL,
    "bitand": _bitand,
    "bitor": nary(_bits_of_both),
    "bitxor": nary(_bits_of_both),
    "shl": _shl,
    "shr": _shr,
    "wrap8": lambda a: (-128, 127),
    "wrap16": lambda a: (-(2**15), 2**15 - 1),
    "random_bits": lambda *_: (-(2**31), 2**31 - 1),
    "wrap32": lambda a: (-(2**31), 2**31 - 1),
    **dict.fromkeys(("argmax_of", "argmin_of"), lambda *xs: (0, len(xs) - 1)),
})  # fmt: skip
