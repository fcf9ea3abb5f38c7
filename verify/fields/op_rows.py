"""Rows of `lift.terms.ops` and folds on values of a field."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from trilift.lift.terms.meanings import Domain
from trilift.lift.terms.ops import OPS

from . import residues as Z
from .pairs import LARGEST, LOST, POISON, TABLE, VALUE, NotTestable, Redraw

if TYPE_CHECKING:
    from .field import Field

FIELD = Domain("field", missing="opaque", says="a value modulo the primes p and q of the field test", of_terms=False)
SYMMETRY = Domain("field symmetry", missing="opaque", says="the sign of the hash of -x: even or odd", of_terms=False)


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
    return d.value(turned[0], turned[1], -a["v"])


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
        return d.value(parts[0], parts[1], np.where(a["v"] == 0, np.nan, 1 / a["v"]))


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
    data: set[int] = set()
    top = -math.inf
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
        d.value(sums[0], sums[1], rows["v"].sum(-1)),
        np.where((rows["p"] == POISON).any(-1), d.reals(np.nan), d.reals(0)),
    )


def _product(d: Field, rows: np.ndarray) -> np.ndarray:
    out = rows[..., 0]
    for k in range(1, rows.shape[-1]):
        out = _mul(d, out, rows[..., k])
    return out


def _stacked(fold: Callable[[Field, np.ndarray], Any]) -> Callable[..., Any]:
    return lambda d, *xs: fold(d, np.stack(np.broadcast_arrays(*xs), -1))


FOLDS: dict[str, Callable[[Any, np.ndarray], Any]] = {
    "sum": _total, "prod": _product, "amax": _amax, "amin": _amin,
    "argmax": lambda d, rows: _best(d, rows)[1], "argmin": lambda d, rows: _best(d, _neg(d, rows))[1],
}  # fmt: skip
FIELD.fill({
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
    "to_int": lambda d, a: _integers(d, a),
    **{name: _compare(name) for name in COMPARISONS},
})  # fmt: skip
FIELD.derive((r.name for r in OPS.values() if r.type in ("int", "bool")), "the machine's integers and booleans")
FIELD.derive(FOLDS, "over an axis: FOLDS")
FIELD.derive(("where", "pick"), "a choice of values: Field.where, Field.pick")
SYMMETRY.fill(dict.fromkeys(("abs", "cos", "cosh"), "even") | dict.fromkeys(
    ("sign", "sin", "erf", "asin", "atan", "sinh", "asinh", "atanh", "erfinv", "cbrt", "trunc"), "odd"
))  # fmt: skip
SYMMETRY.derive((*FIELD.rows, *FIELD.derived), "not hashed: a row of the field")


def _integers(d: Field, a: np.ndarray) -> np.ndarray:
    if np.isnan(a["v"]).any():
        raise NotTestable("an integer that depends on real data")
    out: np.ndarray = np.trunc(a["v"]).astype(np.int64)
    return out
