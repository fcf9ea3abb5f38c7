"""How likely one field sample misses a difference: degrees, exponentials and heights of what a kernel computes.

A value is N / D, each a sum of c * monomial * exp(polynomial). The domain below runs the kernel on upper bounds:

    n, m    degree of N, D                              h, g    log2 of the sum of |c| in N, D
    a, b    log2 of the number of exponentials in N, D  e       degree and height of their arguments
    c       comparisons of data that chose the value (in an order: values compared)
    t, s    number of hashes inside, the largest chance that two of different arguments are taken to be one
    w, i, o which value it is, over which denominator, on which hashes: equal numbers only for equal things

Let f = N/D be a difference that is not 0. On random inputs, primes and root of unity it vanishes with probability
at most the sum of

    2^a e / 2^28    two exponents agree modulo q
    h / (48 |S|)    the coefficients vanish modulo a prime ideal over p, one of |S| primes: a sum of c w^k that is 0
                    means that p divides the norm of the sum of c z^k in Q(z), which is at most (sum |c|)^(q-1)
    n / 2^48        Schwartz and Zippel
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from trilift.lift.terms.domain import FLOAT64, Float64
from trilift.lift.terms.meanings import Domain
from trilift.lift.terms.ops import OPS
from trilift.lift.terms.term import FOLDS

from .ir_rows import HANDLERS
from .pairs import KEPT, Modes, NotTestable, whole
from .rational_constants import rational
from .residues import mix

ERROR_BOUND = Domain("field error", missing="opaque", says="bounds of how likely a field sample misses a difference",
                     of_terms=False)  # fmt: skip
FIELDS = "nmabhgectsv"
WEIGHT = np.dtype([(k, np.float64) for k in FIELDS] + [("i", np.uint64), ("o", np.uint64), ("w", np.uint64)])
PRIMES = 1 << 12  # |S|, at least: primes 2qk + 1 = 3 mod 4 with 2^18 <= k < 2^19
UNSEEN = 1e3  # a comparison one outcome of which is never sampled
ALL_PRIMES = 1 << 32  # |S| where there are no exponentials: q may be any prime too


class Weights(Float64):
    """Upper bounds in place of values; a comparison of data is a weight too, and decides no control flow."""

    name = "weights"
    real = WEIGHT

    def __init__(self, modes: Modes) -> None:
        self.handlers, self.modes = HANDLERS, modes
        self.count = 0

    def make(self, shape: tuple[int, ...] = (), **fields: Any) -> np.ndarray:
        out = np.zeros(shape, WEIGHT)
        out["v"] = np.nan
        if "w" not in fields:
            out["w"] = _fresh(self, shape)
        for k, x in fields.items():
            out[k] = x
        return out

    def draw(self, shape: tuple[int, ...]) -> np.ndarray:
        """Inputs: degree 1."""
        return self.make(shape, n=1.0)

    def reals(self, x: Any) -> np.ndarray:
        """Constants: degree 0 where they are rational, 1 as a random element."""
        a = np.asarray(x)
        if a.dtype.kind == "V":
            return a
        v = a.astype(np.float64)
        distinct, inverse = np.unique(v.ravel(), return_inverse=True)
        table = np.array([_height(float(x)) for x in distinct], np.float64).reshape(-1, 3)[inverse]
        n, h, g = (column.reshape(a.shape) for column in table.T)
        return self.make(a.shape, v=v, n=n, h=h, g=g, w=mix(v.view(np.uint64), 1))

    # ---- rows

    def apply(self, op: str, *xs: Any) -> Any:
        arrays = [np.asarray(x) for x in xs]
        kinds = {a.dtype.kind for a in arrays}
        row = OPS[op]
        if "V" not in kinds and not ((row.type == "real" and op not in KEPT) or "f" in kinds):
            return FLOAT64.apply(op, *xs)
        if "V" not in kinds and row.type in ("bool", "int"):
            return FLOAT64.apply(op, *xs)
        if op == "where":
            return self.where(*arrays)
        if op == "pick":
            return self.join([self.reals(a) for a in arrays[1:]])
        values = [self.reals(a) for a in arrays]
        rule = ERROR_BOUND.rows.get(op)
        if rule is not None and (row.arity >= 0 or op in ("max", "min")):
            return rule(self, *values)
        if rule is not None:
            out = values[0]
            for x in values[1:]:
                out = rule(self, out, x)
            return out
        if row.type in ("int", "bool"):
            return self.choice(op, values)
        return self.opaque(*values)

    def where(self, c: Any, a: Any, b: Any) -> Any:
        if c.dtype.kind == "V":
            if a.dtype.kind not in "Vf" and b.dtype.kind not in "Vf" and "b" in (a.dtype.kind, b.dtype.kind):
                return self.join([c, self.reals(a), self.reals(b)])
            out = self.join([self.reals(a), self.reals(b)])
            return _noted(out, c)
        a, b = whole((a, b))
        if "V" in (a.dtype.kind, b.dtype.kind) or "f" in (a.dtype.kind, b.dtype.kind):
            a, b = self.reals(a), self.reals(b)
        return np.where(c, a, b)

    def join(self, xs: list[np.ndarray]) -> np.ndarray:
        """One of several values."""
        xs = list(np.broadcast_arrays(*xs))
        out = self.make(xs[0].shape, **{k: np.maximum.reduce([x[k] for x in xs]) for k in FIELDS if k != "v"})
        same = np.logical_and.reduce([x["i"] == xs[0]["i"] for x in xs])
        out["i"] = np.where(same, xs[0]["i"], _fresh(self, out.shape))
        out["w"] = _fresh(self, out.shape)
        alike = np.logical_and.reduce([x["o"] == xs[0]["o"] for x in xs])
        out["o"] = np.where(alike, xs[0]["o"], _fresh(self, out.shape))
        return out

    def choice(self, op: str, xs: list[np.ndarray]) -> Any:
        """A comparison: of constants it is known."""
        constant = np.logical_and.reduce(np.broadcast_arrays(*(~np.isnan(x["v"]) for x in xs)))
        if constant.all() or op in ("isnan", "isinf", "isfinite"):
            return FLOAT64.apply(op, *(x["v"] for x in xs))
        if len(xs) == 2 and op in ("lt", "le", "gt", "ge", "eq", "ne"):
            a, b = np.broadcast_arrays(*xs)
            if (constant | np.isinf(a["v"]) | np.isinf(b["v"])).all():
                x, y = (np.where(np.isnan(z["v"]), 0.0, z["v"]) for z in (a, b))
                return FLOAT64.apply(op, x, y)
        out = self.opaque(*xs)
        out["c"] += 1.0 if not self.modes.order else 2.0 if op not in ("eq", "ne") else UNSEEN
        return out

    def opaque(self, *xs: np.ndarray) -> np.ndarray:
        """A new random value, if arguments that differ are told apart."""
        xs = tuple(np.broadcast_arrays(*xs))
        weight = np.maximum.reduce([np.maximum(misses(x, x, inner=False), x["s"]) for x in xs])
        c = np.maximum.reduce([x["c"] for x in xs])
        return self.make(xs[0].shape, n=1.0, t=1 + sum(x["t"] for x in xs), s=weight, c=c, o=_fresh(self, xs[0].shape))

    # ---- folds

    def fold(self, op: str, x: Any, axis: int) -> Any:
        x = np.asarray(x)
        x = self.reals(x) if x.dtype.kind == "f" else x
        if x.dtype.kind != "V":
            return FLOAT64.fold(op, x, axis)
        rows = np.moveaxis(x, axis, -1)
        columns = [rows[..., k] for k in range(rows.shape[-1])]
        if not columns:
            return self.reals(FLOAT64.fold(op, np.zeros(rows.shape), -1))
        if op in ("amax", "amin"):
            return _greatest(self, rows) if op == "amax" else _neg(self, _greatest(self, _neg(self, rows)))
        if op == "sum":
            return _total(self, rows)
        if op == "prod":
            return self.make(
                rows.shape[:-1], **{k: rows[k].max(-1) if k == "s" else rows[k].sum(-1) for k in "nmabhgects"}
            )
        raise NotTestable(op, why="an integer that depends on real data")

    def matmul(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.stack(
            [_total(self, _mul(self, row[..., None, :], np.swapaxes(b, -1, -2))) for row in np.moveaxis(a, -2, 0)], -2
        )


def _height(v: float) -> tuple[float, float, float]:
    """(degree, log2 of numerator and denominator) of a constant."""
    exact = rational(v) if math.isfinite(v) else None
    if exact is None:
        return float(math.isfinite(v)), 0.0, 0.0
    return 0.0, math.log2(max(1, abs(exact.numerator))), math.log2(exact.denominator)


def misses(x: np.ndarray, y: np.ndarray, inner: bool = True) -> Any:
    """The probability that a sample does not see that two values differ, apart from comparisons; `inner`: also that
    two of their hashes are taken to be one."""
    a = np.logaddexp2(x["a"] + y["b"], y["a"] + x["b"])
    h = np.logaddexp2(x["h"] + y["g"], y["h"] + x["g"])
    n = np.maximum(x["n"] + y["m"], y["n"] + x["m"])
    e = np.maximum(x["e"], y["e"])
    merged = (x["t"] + y["t"]) ** 2 * np.maximum(x["s"], y["s"]) if inner else 0.0
    with np.errstate(over="ignore"):
        mixed = np.exp2(a) * e / 2.0**28 + h / (48 * PRIMES)
        return np.minimum(1.0, np.where(e > 0, mixed, h / (48 * ALL_PRIMES)) + n / 2.0**48 + merged)


def _fresh(d: Weights, shape: tuple[int, ...]) -> Any:
    d.count += int(np.prod(shape))
    return (np.arange(d.count - int(np.prod(shape)), d.count) + 1).reshape(shape).astype(np.uint64) << np.uint64(8)


def _noted(out: np.ndarray, *xs: np.ndarray) -> np.ndarray:
    """With the comparisons and hashes that xs rest on."""
    shape = np.broadcast_shapes(out.shape, *(x.shape for x in xs))
    out = np.array(np.broadcast_to(out, shape))
    for x in xs:
        out["c"] += x["c"]
        out["t"] += x["t"]
        out["o"] = out["o"] * np.uint64(3) + x["o"]
        out["s"] = np.maximum(out["s"], x["s"])
    return out


def _numbers(op: str, a: Any, b: Any) -> Any:
    with np.errstate(all="ignore"):
        return FLOAT64.apply(op, a["v"], b["v"])


def _both(a: np.ndarray, b: np.ndarray) -> dict[str, Any]:
    same = (a["o"] == b["o"]) | (a["o"] == 0) | (b["o"] == 0)
    t = np.where(same, np.maximum(a["t"], b["t"]), a["t"] + b["t"])
    o = np.where(same, np.maximum(a["o"], b["o"]), a["o"] * np.uint64(3) + b["o"])
    return {"e": np.maximum(a["e"], b["e"]), "c": a["c"] + b["c"], "t": t, "s": np.maximum(a["s"], b["s"]), "o": o}


def _add(d: Weights, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    a, b = np.broadcast_arrays(a, b)
    same = (a["i"] == b["i"]) | (a["v"] == 0) | (b["v"] == 0)
    plain = np.maximum(a["e"], b["e"]) == 0
    more = {
        "m": np.where(same, np.maximum(a["m"], b["m"]), a["m"] + b["m"]),
        "b": np.where(same, np.maximum(a["b"], b["b"]), a["b"] + b["b"]),
        "g": np.where(a["g"] == b["g"], a["g"], a["g"] + b["g"]),
        "n": np.where(same, np.maximum(a["n"], b["n"]), np.maximum(a["n"] + b["m"], b["n"] + a["m"])),
        "a": np.where(
            plain, 0, np.where(same, np.logaddexp2(a["a"], b["a"]), np.logaddexp2(a["a"] + b["b"], b["a"] + a["b"]))
        ),
        "h": np.logaddexp2(a["h"] + b["g"], b["h"] + a["g"]),
        "v": _numbers("add", a, b),
        "w": mix(a["w"], 2) + mix(b["w"], 2),
        "i": np.where(a["i"] == 0, b["i"], np.where(same, a["i"], a["i"] * np.uint64(3) + b["i"])),
    }
    out = d.make(a.shape, **more, **_both(a, b))
    for x, y in ((a, b), (b, a)):
        out = np.where(np.isinf(x["v"]), x, np.where(x["v"] == 0, y, out))
    return out


def _mul(d: Weights, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    a, b = np.broadcast_arrays(a, b)
    i = np.where(a["i"] == 0, b["i"], np.where(b["i"] == 0, a["i"], mix(a["i"], 8) + mix(b["i"], 8)))
    fields = {k: a[k] + b[k] for k in "nmabhg"} | _both(a, b) | {"e": a["e"] + b["e"]}
    out = d.make(a.shape, **fields, v=_numbers("mul", a, b), i=i, w=mix(mix(a["w"], 3) + mix(b["w"], 3), 3))
    zero = (a["v"] == 0) | (b["v"] == 0)
    return np.where(zero, d.reals(np.zeros(a.shape)), out) if zero.any() else out


def _neg(d: Weights, a: np.ndarray) -> np.ndarray:
    out = np.array(a)
    out["v"], out["w"] = -a["v"], mix(a["w"], 7)
    return out


def _sub(d: Weights, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return _add(d, a, _neg(d, b))


def _recip(d: Weights, a: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        v = 1 / a["v"]
    keep = {k: a[k] for k in ("e", "c", "t", "s", "o")}
    swapped = {x: a[y] for x, y in zip("nmabhg", "mnbagh", strict=True)}
    i = np.where(np.isnan(v), mix(a["w"], 4), 0)
    return d.make(a.shape, **swapped, v=v, i=i, w=mix(a["w"], 5), **keep)


def _exp(d: Weights, a: np.ndarray) -> np.ndarray:
    """One exponential."""
    degree = 2 * (a["n"] + a["m"]) + 4 * np.maximum(a["h"], a["g"]) + 2
    hashed = a["a"] + a["b"] + a["e"] > 0
    with np.errstate(all="ignore"):
        v = np.where(np.isinf(a["v"]) | (a["v"] == 0), np.exp(a["v"]), np.nan)
    out = d.make(a.shape, e=np.where(np.isnan(v), degree, 0), v=v, w=mix(a["w"], 6), **{k: a[k] for k in "ctso"})
    return np.where(hashed, d.opaque(a), out) if hashed.any() else out


def _max(d: Weights, rows: np.ndarray) -> np.ndarray:
    """A new value for the data in each row; one datum alone stays, beside minus infinity."""
    known = ~np.isnan(rows["v"])
    data = (~known).sum(-1).astype(np.float64)
    number = np.max(np.where(known, rows["v"], -np.inf), axis=-1)
    weight = np.maximum(misses(rows, rows, inner=False), rows["s"]).max(-1)
    shape = rows.shape[:-1]
    out = d.make(shape, n=1.0, t=1 + data + rows["t"].sum(-1), s=weight, c=rows["c"].max(-1), o=_fresh(d, shape))
    only = np.take_along_axis(rows, np.argmin(known, -1)[..., None], -1)[..., 0]
    out = np.where((data == 1) & (number == -np.inf), only, out)
    return np.where(data == 0, d.reals(number), out)


def _greatest(d: Weights, rows: np.ndarray) -> np.ndarray:
    """The maximum: a new value, or in an order one of its arguments."""
    free = _max(d, rows)
    if not d.modes.order:
        return free
    out = d.join([rows[..., k] for k in range(rows.shape[-1])])
    data = np.isnan(rows["v"]).any(-1)
    out["v"], out["c"] = free["v"], np.where(data, rows["c"].sum(-1) + rows.shape[-1], 0)
    return out


def _log(d: Weights, a: np.ndarray) -> np.ndarray:
    """A new value, or in q alone something that vanishes when its argument is 1."""
    if not d.modes.logs:
        return d.opaque(a)
    fields = {"n": a["n"] + a["m"] + 1, "a": a["a"] + a["b"], "h": np.logaddexp2(a["h"], a["g"])}
    out = d.make(a.shape, **fields, **{k: a[k] for k in "ectso"})
    return np.where(np.isnan(a["v"]), out, d.opaque(a))


def _total(d: Weights, rows: np.ndarray) -> np.ndarray:
    """A sum over one denominator keeps it; others are added one after another."""
    same = (rows["i"] == rows[..., :1]["i"]) | (rows["v"] == 0)
    if not same.all():
        out = rows[..., 0]
        for k in range(1, rows.shape[-1]):
            out = _add(d, out, rows[..., k])
        return out
    fields = {k: rows[k].max(-1) for k in "nmbgeis"} | {k: rows[k].sum(-1) for k in "ctv"}
    fields |= {k: np.logaddexp2.reduce(rows[k], -1) for k in "ah"}
    alike = ((rows["o"] == rows["o"].max(-1)[..., None]) | (rows["o"] == 0)).all(-1)
    fields["t"] = np.where(alike, rows["t"].max(-1), fields["t"])
    fields["o"] = np.where(
        alike, rows["o"].max(-1), (rows["o"] * np.arange(1, 2 * rows.shape[-1], 2).astype(np.uint64)).sum(-1)
    )
    fields["a"] = np.where(fields["e"] == 0, 0, fields["a"])
    return d.make(rows.shape[:-1], **fields, w=mix(rows["w"], 2).sum(-1))


def _via_exp(d: Weights, a: np.ndarray) -> np.ndarray:
    e, one = _exp(d, _add(d, a, a)), d.reals(1.0)
    return _mul(d, _sub(d, e, one), _recip(d, _add(d, e, one)))


def _pow(d: Weights, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    a, b = np.broadcast_arrays(a, b)
    n = b["v"].flat[0] if b.size else 0.0
    if (b["v"] == n).all() and float(n).is_integer() and abs(n) <= 64:
        out = d.reals(np.ones(a.shape))
        for _ in range(int(abs(n))):
            out = _mul(d, out, a)
        return out if n >= 0 else _recip(d, out)
    return (
        _add(d, _exp(d, _mul(d, a, b)), d.opaque(a, b))
        if (a["v"] > 0).all()
        else _mul(d, d.opaque(a, b), _mul(d, a, a))
    )


ERROR_BOUND.fill({
    "add": _add, "mul": _mul, "sub": _sub, "neg": lambda d, a: _neg(d, a), "recip": _recip,
    "div": lambda d, a, b: _mul(d, a, _recip(d, b)),
    "exp": _exp, "exp2": lambda d, a: _exp(d, _mul(d, a, d.reals(math.log(2)))),
    "expm1": lambda d, a: _sub(d, _exp(d, a), d.reals(1.0)),
    "exp10": lambda d, a: _exp(d, _mul(d, a, d.reals(math.log(10)))),
    "log": _log, "log1p": lambda d, a: _log(d, _add(d, a, d.reals(1.0))),
    "log2": lambda d, a: _mul(d, _log(d, a), _recip(d, d.reals(math.log(2)))),
    "log10": lambda d, a: _mul(d, _log(d, a), _recip(d, d.reals(math.log(10)))),
    "rsqrt": lambda d, a: _recip(d, d.opaque(a)), "pow": _pow, "tanh": _via_exp,
    "max": lambda d, *xs: _greatest(d, np.stack(np.broadcast_arrays(*xs), -1)),
    "min": lambda d, *xs: _neg(d, _greatest(d, np.stack([_neg(d, x) for x in np.broadcast_arrays(*xs)], -1))),
})  # fmt: skip
ERROR_BOUND.derive((r.name for r in OPS.values() if r.type in ("int", "bool")), "the machine's, or Weights.choice")
ERROR_BOUND.derive(FOLDS, "over an axis: Weights.fold")
ERROR_BOUND.derive(("where", "pick"), "one of several values: Weights.join")
