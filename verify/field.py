"""The field domain: reals as pairs in Z_p x Z_q, for identity tests of whole kernels (Mirage, section 5).

A value is (p, q, v). `p` and `q` are its residues; `v` is its number where it is a constant, else NaN. Inputs are
uniform pairs, exp(p, q) = (w^q, lost) with w of order q modulo p, and the rest is arithmetic:

    exp(a + b) = exp(a) exp(b)      exp2(a log2(e)) = exp(a)      log(exp(a)) = a      -inf + a = -inf, exp(-inf) = 0

A function outside these is a keyed hash of its argument: only equal arguments give equal values. max and min are the
free semilattice over their arguments (a set of arguments gets a fresh random value), or follow a random order.
Integers, booleans and addresses are machine numbers, as in the float64 domain.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lift.domain import FLOAT64, Float64
from lift.errors import Unsupported
from lift.handlers import HANDLERS as LIFTED
from lift.ops import OPS

from . import residues as Z
from .constants import Constants, has_root

VALUE = np.dtype([("p", np.int64), ("q", np.int64), ("v", np.float64)])
LOST, POISON = -1, -2  # no residue of this kind; undefined
Q_BITS, M_BITS = 30, 19  # q < 2^30 and p = q m + 1 with 2^19 <= m < 2^20
TABLE = 1 << 15
STEPS = 1 << 20
LARGEST = 1 << 13  # exponent of a power
NOWHERE = -(1 << 40) - 90


class NotTestable(Unsupported):
    """The field has no meaning for this."""


class Redraw(Exception):
    """Division by zero: an accident of this sample."""


@dataclass(frozen=True, slots=True)
class Modes:
    """Readings of what the field cannot have in full; each is sound by itself.

    order   max, min and comparisons follow one random order without ties; else max and min are free, a fresh value
            for each set, and comparisons come out by chance, ties included
    logs    log is the discrete logarithm, in q alone; else a hash
    """

    order: bool = False
    logs: bool = False


@dataclass
class Field(Float64):
    """One random field: primes, root of unity, hash key and constants drawn from `rng`."""

    rng: np.random.Generator
    modes: Modes = Modes()
    roots: frozenset[int] = frozenset()  # numbers that must have square roots
    name: str = "field"
    members: dict[int, tuple[frozenset[int], float]] = field(default_factory=dict)  # of values that are maxima
    known: dict[float, tuple[int, int]] = field(default_factory=dict)
    real = VALUE

    def __post_init__(self) -> None:
        self.q = self._prime(lambda: 2 * int(self.rng.integers(1 << Q_BITS - 2, 1 << Q_BITS - 1)) + 1)
        self.p = self._prime(lambda: self.q * 2 * int(self.rng.integers(1 << M_BITS - 1, 1 << M_BITS)) + 1)
        self.discrete: tuple[np.ndarray, np.ndarray] | None = None
        self.key = int(self.rng.integers(1, 1 << 62))
        self.omega = 1
        while self.omega == 1:
            self.omega = pow(int(self.rng.integers(2, self.p - 1)), (self.p - 1) // self.q, self.p)
        self.low = Z.powers(self.omega, TABLE, self.p)
        self.high = Z.powers(pow(self.omega, TABLE, self.p), TABLE, self.p)
        self.constants = Constants(self.p, self.q, self.rng)
        self.ln2 = self.reals(np.asarray(math.log(2)))
        self.handlers = HANDLERS

    def _prime(self, draw: Callable[[], int]) -> int:
        """A random prime that is 3 modulo 4, so that roots are powers, and has the wanted roots."""
        while True:
            n = draw()
            if n % 4 == 3 and Z.is_prime(n) and all(has_root(r, n) for r in self.roots):
                return n

    # ---- values

    def draw(self, shape: tuple[int, ...]) -> np.ndarray:
        """Uniform pairs."""
        return self.value(self.rng.integers(0, self.p, shape), self.rng.integers(0, self.q, shape))

    def value(self, p: Any, q: Any, v: Any = np.nan) -> np.ndarray:
        p, q, v = np.broadcast_arrays(p, q, v)
        out = np.empty(p.shape, VALUE)
        out["p"], out["q"], out["v"] = p, q, v
        return out

    def reals(self, x: Any) -> np.ndarray:
        """Numbers as pairs: rationals exactly, named irrational constants as random pairs, NaN as undefined."""
        a = np.asarray(x)
        if a.dtype.kind == "V":
            return a
        distinct, inverse = np.unique(a.astype(np.float64).ravel(), return_inverse=True)
        table = np.array([self.number(float(v)) for v in distinct], VALUE)
        return table[inverse].reshape(a.shape)

    def number(self, v: float) -> tuple[int, int, float]:
        if math.isnan(v):
            return POISON, POISON, np.nan
        if math.isinf(v):
            return LOST, LOST, v
        if v not in self.known:
            self.known[v] = self.constants.pair(v)
        return *self.known[v], v

    def hashed(self, name: str, *xs: np.ndarray) -> np.ndarray:
        """A fresh value for each combination of arguments."""
        salt = int.from_bytes(name.encode()[:7], "little") ^ self.key
        h: Any = np.uint64(len(xs))
        for x in xs:
            h = Z.mix(h ^ self.identity(x), salt)
        return self.absorbing(self.fresh(h), *xs)

    def fresh(self, h: Any) -> np.ndarray:
        """A value that looks random for each number."""
        p, q = (Z.mix(h, k) % np.uint64(m) for k, m in ((1, self.p), (2, self.q)))
        return self.value(p.astype(np.int64), q.astype(np.int64))

    def identity(self, x: np.ndarray) -> np.ndarray:
        """A number that tells values apart: p, or q where p is lost, or the infinity."""
        infinite = np.where(np.isinf(x["v"]), np.where(x["v"] > 0, -8, -9), x["p"])
        return (
            np.where(x["p"] == LOST, np.where(x["q"] >= 0, -16 - x["q"], infinite), x["p"])
            .astype(np.int64)
            .view(np.uint64)
        )

    def absorbing(self, out: np.ndarray, *xs: np.ndarray) -> np.ndarray:
        """Undefined where an argument is."""
        bad = np.zeros((), bool)
        for x in xs:
            bad = bad | (x["p"] == POISON)
        if bad.any():
            bad = np.broadcast_to(bad, out.shape)
            out["p"][bad], out["q"][bad], out["v"][bad] = POISON, POISON, np.nan
        return out

    # ---- rows of lift.ops

    def apply(self, op: str, *xs: Any) -> Any:
        if op == "where":
            return self.where(*xs)
        arrays = [np.asarray(x) for x in xs]
        kinds = {a.dtype.kind for a in arrays}
        row = OPS[op]
        real = "V" in kinds or ("f" in kinds and row.type != "bool") or (row.type == "real" and op not in KEPT)
        if not real:
            out = FLOAT64.apply(op, *xs)
            return self.reals(out) if np.asarray(out).dtype.kind == "f" else out
        if op == "pick":
            return self.pick(arrays)
        values = [self.reals(a) for a in arrays]
        rule = ROWS.get(op)
        if rule is None:
            return self.other(op, values)
        if row.arity >= 0 or op in ("max", "min", "argmax_of", "argmin_of"):
            return rule(self, *values)
        out = values[0]
        for x in values[1:]:
            out = rule(self, out, x)
        return out

    def where(self, c: Any, a: Any, b: Any) -> Any:
        """An integer or NaN is an integer: NaN is out of every range."""
        a, b = whole((a, b))
        if "V" in (a.dtype.kind, b.dtype.kind) or "f" in (a.dtype.kind, b.dtype.kind):
            a, b = self.reals(a), self.reals(b)
        return np.where(c, a, b)

    def pick(self, arrays: list[np.ndarray]) -> Any:
        index, *rest = np.broadcast_arrays(arrays[0], *map(self.reals, arrays[1:]))
        inside = (index >= 0) & (index < len(rest))
        got = np.take_along_axis(np.stack(rest), np.where(inside, index, 0).astype(np.int64)[None], 0)[0]
        return np.where(inside, got, self.reals(np.nan))

    def other(self, op: str, xs: list[np.ndarray]) -> Any:
        """A row without a rule: of constants its number, of data a hash, by symmetry of the sign where it has one."""
        row = OPS[op]
        if row.type in ("int", "bool"):
            if all((~np.isnan(x["v"])).all() for x in xs):
                return FLOAT64.apply(op, *(x["v"] for x in xs))
            raise NotTestable(op, why="an integer that depends on real data")
        constant = np.logical_and.reduce(np.broadcast_arrays(*(~np.isnan(x["v"]) for x in xs)))
        if constant.all():
            return self.reals(FLOAT64.apply(op, *(x["v"] for x in xs)))
        if op in EVEN | ODD:
            negative = xs[0]["p"] > self.p // 2
            positive = self.where(negative, self.apply("neg", xs[0]), xs[0])
            out = self.hashed(op, positive)
            out = out if op in EVEN else self.where(negative, self.apply("neg", out), out)
        else:
            out = self.hashed(op, *xs)
        return (
            self.where(constant, self.reals(FLOAT64.apply(op, *(x["v"] for x in xs))), out) if constant.any() else out
        )

    # ---- folds

    def fold(self, op: str, x: Any, axis: int) -> Any:
        x = np.asarray(x)
        if x.dtype.kind == "f":
            x = self.reals(x)
        if x.dtype.kind != "V":
            out = FLOAT64.fold(op, x, axis)
            return out if np.asarray(out).dtype.kind != "f" else self.reals(out)
        rows = np.moveaxis(x, axis, -1)
        if rows.shape[-1] == 0:
            return self.reals(FLOAT64.fold(op, np.zeros(rows.shape), -1))
        return FOLDS[op](self, rows)

    def matmul(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """a @ b. With infinities, undefined or lost residues somewhere it is a sum of products."""
        if any((x[k] < 0).any() for x in (a, b) for k in "pq"):
            return _total(self, _mul(self, a[..., :, None, :], np.swapaxes(b, -1, -2)[..., None, :, :]))
        with np.errstate(invalid="ignore"):
            known = np.matmul(a["v"], b["v"])
        return self.value(Z.matmul(a["p"], b["p"], self.p), Z.matmul(a["q"], b["q"], self.q), known)

    def logarithm(self, a: np.ndarray) -> np.ndarray:
        """k with w^k the part of a in the subgroup of order q: small steps from a table, large ones in a loop.

        a^c = b^k for c = (p-1)/q, b = w^c;   k = i + 2^20 j  if a^c b^(-2^20 j) = b^i"""
        c = (self.p - 1) // self.q
        base = pow(self.omega, c, self.p)
        if self.discrete is None:
            small = Z.powers(base, STEPS, self.p)
            order = np.argsort(small)
            self.discrete = small[order], order
        table, order = self.discrete
        distinct, inverse = np.unique(a, return_inverse=True)
        y, found = Z.power(distinct, c, self.p), np.full(len(distinct), -1, np.int64)
        back, left = np.int64(pow(base, -STEPS, self.p)), np.arange(len(distinct))
        for j in range(self.q // STEPS + 1):
            at = np.minimum(np.searchsorted(table, y), STEPS - 1)
            hit = table[at] == y
            if hit.any():
                found[left[hit]] = order[at[hit]] + STEPS * j
                left, y = left[~hit], y[~hit]
                if not len(left):
                    break
            y = Z.multiply(y, back, self.p)
        return found[inverse].reshape(a.shape)


def whole(xs: Sequence[Any]) -> list[np.ndarray]:
    """The arguments of a choice, with a number out of every range for NaN beside integers."""
    arrays = [np.asarray(x) for x in xs]
    if any(a.dtype.kind in "iu" for a in arrays):
        return [np.full(a.shape, NOWHERE) if a.dtype.kind == "f" and np.isnan(a).all() else a for a in arrays]
    return arrays


# ---- rules -----------------------------------------------------------------------------------------------------------


def _both(f: Callable[[Any, Any, int], Any], number: Callable[[Any, Any], Any]) -> Callable[..., np.ndarray]:
    """An operation of rings, on both residues; with an infinity it is the number's."""

    def rule(d: Field, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            v = number(a["v"], b["v"])
        out = d.value(
            np.where((a["p"] < 0) | (b["p"] < 0), LOST, f(a["p"], b["p"], d.p)),
            np.where((a["q"] < 0) | (b["q"] < 0), LOST, f(a["q"], b["q"], d.q)),
            v,
        )
        return d.absorbing(out, a, b)

    return rule


def _sum(a: Any, b: Any, m: int) -> Any:
    s = a + b
    return np.where(s >= m, s - m, s)


_plain_add = _both(_sum, np.add)
_plain_mul = _both(Z.multiply, np.multiply)


def _add(d: Field, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Data plus an infinity is the infinity."""
    out = _plain_add(d, a, b)
    for x in (a, b):
        infinite = np.broadcast_to(np.isinf(x["v"]), out.shape)
        if infinite.any():
            other = b if x is a else a
            clash = np.isinf(other["v"]) & (other["v"] != x["v"])
            out["v"] = np.where(infinite & (out["p"] != POISON), np.where(clash, np.nan, x["v"]), out["v"])
            out["p"] = np.where(infinite & clash, POISON, out["p"])
    return out


def _mul(d: Field, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Zero times data is zero; an infinity times data of unknown sign has no value."""
    out = _plain_mul(d, a, b)
    zero = ((a["v"] == 0) & ~np.isinf(b["v"])) | ((b["v"] == 0) & ~np.isinf(a["v"]))
    if zero.any():
        zero = zero & (out["p"] != POISON)
        out["p"], out["q"], out["v"] = (np.where(zero, 0, out[k]) for k in "pqv")
    if (np.isinf(a["v"]) | np.isinf(b["v"])).any():
        bad = (np.isinf(a["v"]) | np.isinf(b["v"])) & ~np.isinf(out["v"])
        out["p"], out["q"] = np.where(bad, POISON, out["p"]), np.where(bad, POISON, out["q"])
    return out


def _neg(d: Field, a: np.ndarray) -> np.ndarray:
    turned = [np.where(a[k] > 0, m - a[k], a[k]) for k, m in (("p", d.p), ("q", d.q))]
    return d.value(*turned, -a["v"])


def _sub(d: Field, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return _add(d, a, _neg(d, b))


def _recip(d: Field, a: np.ndarray) -> np.ndarray:
    """1/0 of data is an accident; of a constant zero it is undefined, and 1/inf is 0."""
    constant, infinite = ~np.isnan(a["v"]), np.isinf(a["v"])
    if ((a["p"] == 0) & ~constant).any():
        raise Redraw
    parts = []
    for k, m in (("p", d.p), ("q", d.q)):
        x = np.where(a[k] > 0, Z.inverse(np.where(a[k] > 0, a[k], 1), m), np.where(a[k] == 0, LOST, a[k]))
        parts.append(np.where(infinite, 0, np.where((a["v"] == 0), POISON, x)))
    with np.errstate(all="ignore"):
        return d.value(*parts, np.where(a["v"] == 0, np.nan, 1 / a["v"]))


def _div(d: Field, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return _mul(d, a, _recip(d, b))


def _exp(d: Field, a: np.ndarray) -> np.ndarray:
    """w^q; of a lost q a hash, so that equal arguments still give equal values. exp(-inf) = 0."""
    q = np.maximum(a["q"], 0)
    p = Z.multiply(d.low[q % TABLE], d.high[q // TABLE], d.p)
    zero, one = a["v"] == -np.inf, a["v"] == 0
    with np.errstate(all="ignore"):
        v = np.where(zero | one | (a["v"] == np.inf), np.exp(a["v"]), np.nan)
    out = d.value(np.where(zero, 0, p), np.where(zero, 0, np.where(one, 1, LOST)), v)
    lost = (a["q"] == LOST) & ~np.isinf(a["v"])
    if lost.any():
        out = np.where(lost, d.hashed("exp", a), out)
    return d.absorbing(out, a)


def _exp2(d: Field, a: np.ndarray) -> np.ndarray:
    return _exp(d, _mul(d, a, d.ln2))


def _log(d: Field, a: np.ndarray) -> np.ndarray:
    constant = ~np.isnan(a["v"])
    if d.modes.logs and (a["p"][~constant] > 0).all():
        out = d.absorbing(d.value(LOST, d.logarithm(np.where(constant, 1, a["p"]))), a)
    else:
        out = d.hashed("log", a)
    if constant.any():
        with np.errstate(all="ignore"):
            out = np.where(constant, d.reals(np.log(np.where(constant, a["v"], 1.0))), out)
    return out


def _log2(d: Field, a: np.ndarray) -> np.ndarray:
    return _div(d, _log(d, a), d.ln2)


def _sqrt(d: Field, a: np.ndarray) -> np.ndarray:
    constant = ~np.isnan(a["v"])
    out = d.hashed("sqrt", a)
    if constant.any():
        with np.errstate(all="ignore"):
            out = np.where(constant, d.reals(np.sqrt(np.where(constant, a["v"], 1.0))), out)
    return out


def _tanh(d: Field, a: np.ndarray) -> np.ndarray:
    """(e - 1) / (e + 1) with e = exp(2a)."""
    e, one = _exp(d, _add(d, a, a)), d.reals(1.0)
    return _div(d, _sub(d, e, one), _add(d, e, one))


def _pow(d: Field, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Whole and half exponents that are constants; exp(b log a) of a positive constant a; else a hash."""
    a, b = np.broadcast_arrays(a, b)
    twice = 2 * b["v"]
    if (np.abs(twice) <= LARGEST).all() and (twice == np.trunc(twice)).all():
        whole_part, half = np.abs(twice).astype(np.int64) // 2, twice % 2 == 1
        out, square = d.reals(np.ones(a.shape)), a
        for bit in range(int(whole_part.max(initial=0)).bit_length()):
            out = np.where((whole_part >> bit & 1) == 1, _mul(d, out, square), out)
            square = _mul(d, square, square)
        out = np.where(half, _mul(d, out, _sqrt(d, a)), out) if half.any() else out
        return np.where(twice < 0, _recip(d, np.where(twice < 0, out, d.reals(1.0))), out)
    if (~np.isnan(a["v"])).all() and (~np.isnan(b["v"])).all():
        return d.reals(np.power(a["v"], b["v"]))
    if (a["v"] > 0).all():
        return _exp(d, _mul(d, b, d.reals(np.log(a["v"]))))
    return d.hashed("pow", a, b)


def _order(d: Field, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(a < b, a = b): numbers for constants, infinities beyond all data, else the random order of identities, or each
    pair by chance: one in four is said to be equal."""
    a, b = np.broadcast_arrays(a, b)
    numbers = ~np.isnan(a["v"]) & ~np.isnan(b["v"])
    extreme = (np.isinf(a["v"]) | np.isinf(b["v"])) & ~numbers
    x, y = (Z.mix(d.identity(z), d.key) for z in (a, b))
    less, same = x < y, x == y
    if not d.modes.order:
        chance = Z.mix(x + y, d.key)
        same, less = same | (chance % np.uint64(4) == 0), less ^ (chance >> np.uint64(63) == 1)
    with np.errstate(invalid="ignore"):
        beyond = (a["v"] == -np.inf) | (b["v"] == np.inf)
        less = np.where(numbers, a["v"] < b["v"], np.where(extreme, beyond, less & ~same))
        same = np.where(numbers, a["v"] == b["v"], same & ~extreme)
    bad = (a["p"] == POISON) | (b["p"] == POISON)
    return less & ~bad, same & ~bad


COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "lt": lambda less, same: less, "le": lambda less, same: less | same, "gt": lambda less, same: ~(less | same),
    "ge": lambda less, same: ~less, "eq": lambda less, same: same, "ne": lambda less, same: ~same,
}  # fmt: skip


def _compare(name: str) -> Callable[..., Any]:
    return lambda d, a, b: COMPARISONS[name](*_order(d, a, b))


def _amax(d: Field, rows: np.ndarray) -> np.ndarray:
    """The maximum of each row."""
    return _ordered_max(d, rows) if d.modes.order else _free_max(d, rows)


def _free_max(d: Field, rows: np.ndarray) -> np.ndarray:
    """A fresh value for each set of arguments; the union of the sets behind arguments that are maxima themselves."""
    flat = rows.reshape(-1, rows.shape[-1])
    ids, numbers = d.identity(flat).astype(np.int64), flat["v"]
    out = np.empty(len(flat), VALUE)
    for r, (row, v) in enumerate(zip(ids.tolist(), numbers.tolist(), strict=True)):
        out[r] = _join(d, flat[r], row, v)
    return out.reshape(rows.shape[:-1])


def _join(d: Field, values: np.ndarray, ids: list[int], numbers: list[float]) -> Any:
    """max of one row. `members` of a maximum: the data below it, and the largest constant."""
    if POISON in ids:
        return d.reals(np.nan)[()]
    top, data = -math.inf, set()
    for i, v in zip(ids, numbers, strict=True):
        inner, constant = (frozenset(), v) if v == v else d.members.get(i) or (frozenset((i,)), -math.inf)
        data |= inner
        top = max(top, constant)
    if top == math.inf or not data:
        return d.reals(top)[()]
    if len(data) == 1 and top == -math.inf:
        return values[ids.index(*data)]
    h: Any = np.float64(top).view(np.uint64)
    for j in sorted(data):
        h = Z.mix(h ^ np.int64(j).astype(np.uint64), d.key)
    out = d.fresh(h)
    d.members[int(out["p"])] = frozenset(data), top
    return out[()]


def _ordered_max(d: Field, rows: np.ndarray) -> np.ndarray:
    return _best(d, rows)[0]


def _best(d: Field, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The largest of each row, and where it is first."""
    best, at = rows[..., 0], np.zeros(rows.shape[:-1], np.int64)
    bad = (rows["p"] == POISON).any(-1)
    for k in range(1, rows.shape[-1]):
        less, _ = _order(d, best, rows[..., k])
        best, at = np.where(less, rows[..., k], best), np.where(less, k, at)
    return np.where(bad, d.reals(np.nan), best), at


def _amin(d: Field, rows: np.ndarray) -> np.ndarray:
    return _neg(d, _amax(d, _neg(d, rows)))


def _total(d: Field, rows: np.ndarray) -> np.ndarray:
    """The sum of each row."""
    if np.isinf(rows["v"]).any():
        out = rows[..., 0]
        for k in range(1, rows.shape[-1]):
            out = _add(d, out, rows[..., k])
        return out
    lost = [(rows[k] < 0).any(-1) for k in "pq"]
    sums = [
        np.where(bad, LOST, Z.total(np.maximum(rows[k], 0), -1, m))
        for k, m, bad in zip("pq", (d.p, d.q), lost, strict=True)
    ]
    return d.absorbing(
        d.value(*sums, rows["v"].sum(-1)), np.where((rows["p"] == POISON).any(-1), d.reals(np.nan), d.reals(0))
    )


def _product(d: Field, rows: np.ndarray) -> np.ndarray:
    out = rows[..., 0]
    for k in range(1, rows.shape[-1]):
        out = _mul(d, out, rows[..., k])
    return out


def _stacked(fold: Callable[[Field, np.ndarray], Any]) -> Callable[..., Any]:
    return lambda d, *xs: fold(d, np.stack(np.broadcast_arrays(*xs), -1))


FOLDS: dict[str, Callable[[Field, np.ndarray], Any]] = {
    "sum": _total, "prod": _product, "amax": _amax, "amin": _amin,
    "argmax": lambda d, rows: _best(d, rows)[1], "argmin": lambda d, rows: _best(d, _neg(d, rows))[1],
}  # fmt: skip
ROWS: dict[str, Callable[..., Any]] = {
    "add": _add, "mul": _mul, "sub": _sub, "neg": _neg, "recip": _recip, "div": _div,
    "exp": _exp, "exp2": _exp2, "expm1": lambda d, a: _sub(d, _exp(d, a), d.reals(1.0)),
    "exp10": lambda d, a: _exp(d, _mul(d, a, d.reals(math.log(10)))),
    "log": _log, "log2": _log2, "log1p": lambda d, a: _log(d, _add(d, a, d.reals(1.0))),
    "log10": lambda d, a: _div(d, _log(d, a), d.reals(math.log(10))),
    "sqrt": _sqrt, "rsqrt": lambda d, a: _recip(d, _sqrt(d, a)), "pow": _pow, "tanh": _tanh,
    "tan": lambda d, a: _div(d, d.apply("sin", a), d.apply("cos", a)),
    "erfc": lambda d, a: _sub(d, d.reals(1.0), d.apply("erf", a)),
    "hypot": lambda d, a, b: _sqrt(d, _add(d, _mul(d, a, a), _mul(d, b, b))),
    "max": _stacked(_amax), "min": _stacked(_amin),
    "argmax_of": _stacked(FOLDS["argmax"]), "argmin_of": _stacked(FOLDS["argmin"]),
    "isnan": lambda d, a: a["p"] == POISON, "isinf": lambda d, a: np.isinf(a["v"]),
    "isfinite": lambda d, a: ~np.isinf(a["v"]) & (a["p"] != POISON),
    "signbit": lambda d, a: _compare("lt")(d, a, d.reals(0.0)),
    "to_int": lambda d, a: _integers(d, a),
    **{name: _compare(name) for name in COMPARISONS},
}  # fmt: skip
EVEN, ODD = (
    {"abs", "cos", "cosh"},
    {"sign", "sin", "erf", "asin", "atan", "sinh", "asinh", "atanh", "erfinv", "cbrt", "trunc"},
)
KEPT = {"random"}  # reals that machine integers alone determine


def _integers(d: Field, a: np.ndarray) -> np.ndarray:
    if np.isnan(a["v"]).any():
        raise NotTestable("an integer that depends on real data")
    return np.trunc(a["v"]).astype(np.int64)


# ---- operations of Triton IR -----------------------------------------------------------------------------------------


def _real(x: Any) -> bool:
    return np.asarray(x).dtype.kind in "Vf"


def _constant(run: Any, op: Any) -> Any:
    value = LIFTED["arith.constant"](run, op)
    if not op.results[0].type.is_float:
        return value
    return np.broadcast_to(run.domain.reals(np.asarray(op.attrs["value"])), op.results[0].type.shape)


def _from_integer(run: Any, op: Any, x: Any) -> Any:
    return run.domain.reals(LIFTED[op.name](run, op, x))


def _cmpf(run: Any, op: Any, a: Any, b: Any) -> Any:
    """Reals are never NaN."""
    predicate = op.attrs["predicate"]
    if predicate in ("true", "false", "ord", "uno"):
        return np.full(op.operands[0].type.shape, predicate in ("true", "ord"))
    return run.domain.apply(predicate[1:], a, b)


def _select(run: Any, op: Any, c: Any, a: Any, b: Any) -> Any:
    return run.domain.where(c, a, b)


def _extreme(run: Any, op: Any, a: Any, b: Any) -> Any:
    return run.domain.apply("max" if op.name == "arith.maximumf" else "min", a, b)


def _to_integer(run: Any, op: Any, x: Any) -> Any:
    numbers = x["v"]
    if np.isnan(numbers).any():
        raise NotTestable(op.name, op.place, "an integer that depends on real data")
    return LIFTED[op.name](run, op, numbers)


def _bitcast(run: Any, op: Any, x: Any) -> Any:
    if _real(x) or op.results[0].type.is_float:
        if op.operands[0].type.element != op.results[0].type.element:
            raise NotTestable(op.name, op.place, "the bits of a real number")
        return x
    return LIFTED[op.name](run, op, x)


def _dot(run: Any, op: Any, a: Any, b: Any, c: Any) -> Any:
    """a @ b + c."""
    d = run.domain
    if not op.results[0].type.is_float:
        return LIFTED[op.name](run, op, a, b, c)
    return d.apply("add", d.matmul(d.reals(a), d.reals(b)), c)


def _scan(run: Any, op: Any, *xs: Any) -> list[Any]:
    """The region from element to element."""
    if not any(_real(x) for x in xs):
        return LIFTED[op.name](run, op, *xs)
    axis, reverse = op.attrs["axis"], op.attrs.get("reverse", False)
    parts = [np.moveaxis(np.flip(x, axis) if reverse else x, axis, 0) for x in xs]
    steps = [[x[0] for x in parts]]
    for k in range(1, parts[0].shape[0]):
        steps.append(run.region(op.regions[0], [*steps[-1], *(x[k] for x in parts)]))
    out = [np.moveaxis(np.stack([s[i] for s in steps]), 0, axis) for i in range(len(xs))]
    return [np.flip(x, axis) if reverse else x for x in out]


def _assembly(run: Any, op: Any, *xs: Any) -> list[Any]:
    out = LIFTED[op.name](run, op, *xs)
    return [run.domain.reals(x) if v.type.is_float else x for x, v in zip(out, op.results, strict=True)]


def _random(run: Any, op: Any, *xs: Any) -> Any:
    return run.domain.reals(LIFTED[op.name](run, op, *xs))


HANDLERS: dict[str, Callable[..., Any]] = {
    "arith.constant": _constant, "arith.sitofp": _from_integer, "arith.uitofp": _from_integer, "arith.cmpf": _cmpf,
    "arith.select": _select, "arith.maximumf": _extreme, "arith.minimumf": _extreme, "arith.fptosi": _to_integer,
    "arith.fptoui": _to_integer, "tt.bitcast": _bitcast, "arith.bitcast": _bitcast, "tt.dot": _dot, "tt.scan": _scan,
    "tt.elementwise_inline_asm": _assembly, "trilift.random": _random,
}  # fmt: skip
