"""Between which numbers a term lies, whatever its inputs are: interval arithmetic over all of the extended reals.

0 <= e(i)               e >= 0, e(j) one of the addends
---------------         ------------------------------- share
0 <= sum_i e(i)         0 <= e(j) / sum_i e(i) <= 1
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from trilift.lift.cases.declaration import Spec
from trilift.lift.terms import construct as T
from trilift.lift.terms.meanings import Domain, meaning
from trilift.lift.terms.term import Term

from .algebra import ALL

Interval = tuple[float, float]
INF = math.inf
EVERYTHING: Interval = (-INF, INF)
INTERVAL = Domain(
    "interval", missing="unbounded", says="between which real numbers a term lies", types=(T.REAL, T.INT, "same")
)


@dataclass
class Enclosure:
    """Intervals of terms without known names, under what the specs say of inputs and scalars."""

    tensors: Mapping[str, Spec]
    scalars: Mapping[str, Spec]
    known: dict[int, Interval] = field(default_factory=dict)

    def of(self, t: Term) -> Interval:
        """The interval of t."""
        for s in t.walk():
            if s.id not in self.known:
                self.known[s.id] = self._of(s)
        return self.known[t.id]

    def _of(self, t: Term) -> Interval:
        if t.op in ("read", "scalar", "size"):
            spec = (self.tensors if t.op == "read" else self.scalars).get(t.attr)
            return (1, INF) if spec is None and t.op == "size" else EVERYTHING if spec is None else _within(spec)
        if t.op == "const":
            return (float(t.attr), float(t.attr)) if not math.isnan(t.attr) else EVERYTHING
        if t.op == "axis":
            return EVERYTHING if t.attr.size is ALL else (0, INF)
        if t.type == T.BOOL:
            return (0, 1)
        rule: Rule | None = INTERVAL.rows.get(t.op)
        return EVERYTHING if rule is None else rule(self, t, [self.known[a.id] for a in t.args])

    def inhabited(self, size: Term) -> bool:
        """Whether a size is at least 1: a positive number, a dim, their sums and products."""
        if size.op in ("add", "mul"):
            return all(map(self.inhabited, size.args))
        return (size.op == "size" and size.attr not in self.scalars) or (size.is_const and size.attr >= 1)

    def product(self, t: Term) -> Interval:
        """x * x >= 0; a share of a sum is at most 1."""
        groups: dict[int, int] = {}
        for a in t.args:
            groups[a.id] = groups.get(a.id, 0) + 1
        out: Interval = (1.0, 1.0)
        for i, k in groups.items():
            out = _times(out, _power(self.known[i], k))
        if out[0] >= 0 and self._is_share(t):
            return (0.0, min(out[1], 1.0))
        return out

    def _is_share(self, t: Term) -> bool:
        sums = [a.args[0] for a in t.args if a.op == "recip" and a.args[0].op == "sum"]
        for s in sums:
            rest = T.mul(*(a for a in t.args if not (a.op == "recip" and a.args[0] is s)))
            if self.of(s.args[0])[0] >= 0 and any(
                a.size is s.attr.size and T.substitute(s.args[0], {s.attr: T.axis(a)}) is rest for a in rest.free
            ):
                return True
        return False


def _within(s: Spec) -> Interval:
    low = float(s.low.attr) if s.low is not None and s.low.is_const else -INF
    high = float(s.high.attr) if s.high is not None and s.high.is_const else INF
    unsigned = s.dtype[0] == "u" or s.dtype == "bool"
    return max(low, 0.0) if s.positive or unsigned else low, 1.0 if s.dtype == "bool" else high


def _at(f: Callable[[float], float], x: float, otherwise: float) -> float:
    """The function at the end of an interval."""
    if math.isinf(x):
        return otherwise
    try:
        return float(f(x))
    except (ValueError, OverflowError):
        return otherwise


def _sum(xs: Sequence[Interval]) -> Interval:
    low, high = sum(x[0] for x in xs), sum(x[1] for x in xs)
    return -INF if math.isnan(low) else low, INF if math.isnan(high) else high


def _times(x: Interval, y: Interval) -> Interval:
    ends = [0.0 if 0 in (a, b) else a * b for a in x for b in y]
    return min(ends), max(ends)


def _power(x: Interval, k: int) -> Interval:
    out = x
    for _ in range(k - 1):
        out = _times(out, x)
    return (max(out[0], 0.0), out[1]) if k % 2 == 0 else out


def _reciprocal(low: float, high: float) -> Interval:
    if low >= 0:
        return 0.0 if math.isinf(high) else 1 / high if high else INF, 1 / low if low else INF
    if high <= 0:
        x, y = _reciprocal(-high, -low)
        return -y, -x
    return EVERYTHING


# ---- the meanings ----------------------------------------------------------------------------------------------------

Rule = Callable[[Enclosure, Term, Sequence[Interval]], Interval]


def _always(low: float, high: float) -> Rule:
    """The same for all arguments."""
    return lambda e, t, xs: (low, high)


def _growing(f: Callable[[float], float], low: float = -INF, high: float = INF) -> Rule:
    """f([a, b]) = [f(a), f(b)], within [low, high], the range of f."""
    return lambda e, t, xs: (max(low, _at(f, xs[0][0], -INF)), min(high, _at(f, xs[0][1], INF)))


@meaning(INTERVAL, "abs")
def _absolute(e: Enclosure, t: Term, xs: Sequence[Interval]) -> Interval:
    low, high = xs[0]
    return (max(low, -high, 0.0), max(abs(low), abs(high)))


@meaning(INTERVAL, "max", "min")
def _extremum(e: Enclosure, t: Term, xs: Sequence[Interval]) -> Interval:
    pick = max if t.op == "max" else min
    return pick(x[0] for x in xs), pick(x[1] for x in xs)


@meaning(INTERVAL, "pow")
def _raised(e: Enclosure, t: Term, xs: Sequence[Interval]) -> Interval:
    even = t.args[1].is_const and float(t.args[1].attr).is_integer() and t.args[1].attr % 2 == 0
    return (0, INF) if even or xs[0][0] >= 0 else EVERYTHING


@meaning(INTERVAL, "sum")
def _total(e: Enclosure, t: Term, xs: Sequence[Interval]) -> Interval:
    low, high = xs[0]
    return 0.0 if low >= 0 else -INF, 0.0 if high <= 0 else INF


INTERVAL.fill({
    "add": lambda e, t, xs: _sum(xs),
    "mul": lambda e, t, xs: e.product(t),
    "recip": lambda e, t, xs: _reciprocal(*xs[0]),
    "where": lambda e, t, xs: (min(x[0] for x in xs[1:]), max(x[1] for x in xs[1:])),
    **dict.fromkeys(("amax", "amin"), lambda e, t, xs: xs[0] if e.inhabited(t.attr.size) else EVERYTHING),
    **dict.fromkeys(("argmax", "argmin", "argmax_of", "argmin_of"), _always(0, INF)),
    "tanh": _growing(math.tanh, -1, 1), "erf": _growing(math.erf, -1, 1), "sinh": _growing(math.sinh),
    "atan": _growing(math.atan, -math.pi / 2, math.pi / 2), "asinh": _growing(math.asinh),
    "floor": _growing(math.floor), "ceil": _growing(math.ceil), "round": _growing(round),
    "trunc": _growing(math.trunc), "to_int": _growing(math.trunc),
    "exp": _growing(math.exp, 0), "exp2": _growing(lambda x: 2.0**x, 0), "sqrt": _growing(math.sqrt, 0),
    "log": _growing(math.log), "log2": _growing(math.log2), "log10": _growing(math.log10),
    "sin": _always(-1, 1), "cos": _always(-1, 1), "cosh": _always(1, INF), "random": _always(0, 1),
    "sign": _always(-1, 1), "acos": _always(0, math.pi), "asin": _always(-math.pi / 2, math.pi / 2),
})  # fmt: skip
