"""The field domain: reals as pairs in Z_p x Z_q, for identity tests of whole kernels (Mirage, section 5).

A value is (p, q, v). `p` and `q` are its residues; `v` is its number where it is a constant, else NaN. Inputs are
uniform pairs, exp(p, q) = (w^q, lost) with w of order q modulo p, and the rest is arithmetic:

    exp(a + b) = exp(a) exp(b)      exp2(a log2(e)) = exp(a)      log(exp(a)) = a      -inf + a = -inf, exp(-inf) = 0

A function outside these is a keyed hash of its argument: only equal arguments give equal values. max and min are the
free semilattice over their arguments (a set of arguments gets a fresh random value), or follow a random order.
Integers, booleans and addresses are machine numbers, as in the float64 domain.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from trilift.lift.runtime.session import memo
from trilift.lift.terms.domain import FLOAT64, Float64
from trilift.lift.terms.ops import OPS

from . import residues as Z
from .ir_rows import HANDLERS
from .op_rows import FIELD, FOLDS, SYMMETRY
from .pairs import KEPT, LOST, M_BITS, POISON, Q_BITS, STEPS, TABLE, VALUE, Modes, NotTestable, whole
from .rational_constants import Constants, has_root


@memo
def named(function: str) -> int:
    """A number for the name of a function, all of it."""
    return int.from_bytes(hashlib.blake2b(function.encode(), digest_size=7).digest(), "little")


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
        salt = named(name) ^ self.key
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

    # ---- rows of lift.terms.ops

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
        rule = FIELD.rows.get(op)
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
        if (symmetry := SYMMETRY.rows.get(op)) is not None:
            negative = xs[0]["p"] > self.p // 2
            positive = self.where(negative, self.apply("neg", xs[0]), xs[0])
            out = self.hashed(op, positive)
            out = out if symmetry == "even" else self.where(negative, self.apply("neg", out), out)
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
            rows: np.ndarray = self.apply("mul", a[..., :, None, :], np.swapaxes(b, -1, -2)[..., None, :, :])
            total: np.ndarray = FOLDS["sum"](self, rows)
            return total
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
