"""Monoids that combiner regions of tt.reduce and tt.scan mean, recognised by running them.

The region runs on random samples in the float64 domain; a monoid of the table that gives the same numbers names the
reduction, which is then one n-ary fold:

    reduce(x, region) = fold(x)     if region(a, b) = a o b on all samples, ties included
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..terms import construct as T
from ..terms.domain import FLOAT64, Ids, as_ids, shaped
from ..ttir.ir import Op, Region, Type
from .machine import machine, take

if TYPE_CHECKING:
    from .interpret import Run

SAMPLES = 96
Fold = Callable[..., list[Any]]


@dataclass(frozen=True, slots=True)
class Monoid:
    """`meaning(a..., b...)` on numpy arrays; `fold(domain, arrays, axis)` of whole arrays; `sums` the term of a
    prefix, if n-ary; `other`: the fold in another order of the elements, where that decides."""

    name: str
    arity: int
    meaning: Callable[..., Sequence[Any]]
    fold: Fold
    row: str | None = None  # the associative row, for scans
    other: Fold | None = None


def _fold(name: str) -> Fold:
    return lambda domain, xs, axis: [domain.fold(name, xs[0], axis)]


def _chain(row: str) -> Fold:
    def fold(domain: Any, xs: Sequence[Any], axis: int) -> list[Any]:
        first = shaped(xs[0], lambda a: np.moveaxis(a, axis, 0))
        parts = [take(first, k) for k in range(first.shape[0])]
        out = parts[0]
        for part in parts[1:]:
            out = domain.apply(row, out, part)
        return [out]

    return fold


def _position(name: str, last: bool = False) -> Fold:
    """Extreme value, and the index operand where it is first (or last) attained."""

    def fold(domain: Any, xs: Sequence[Any], axis: int) -> list[Any]:
        values, index = xs
        n = values.shape[axis]
        best = domain.fold("amax" if name == "argmax" else "amin", values, axis)
        flipped = shaped(values, lambda a: np.flip(a, axis)) if last else values
        at = domain.fold(name, flipped, axis)
        at = domain.apply("sub", np.int64(n - 1), at) if last else at
        return [best, _at(domain, index, at, axis)]

    return fold


def _at(domain: Any, index: Any, at: Any, axis: int) -> Any:
    """index[at] along the axis; at + start when the operand counts from start."""
    if not isinstance(at, Ids):
        where = np.expand_dims(np.asarray(at).astype(np.int64), axis)
        return shaped(index, lambda a: np.take_along_axis(a, where, axis).squeeze(axis))
    rows = np.moveaxis(np.asarray(as_ids(index) if isinstance(index, Ids) else index), axis, -1)
    if not isinstance(index, Ids) and (np.diff(rows, axis=-1) == 1).all() and len(np.unique(rows[..., 0])) == 1:
        return domain.apply("add", at, rows.flat[0])
    elements = [as_ids(rows[..., k]) if not isinstance(index, Ids) else rows[..., k] for k in range(rows.shape[-1])]
    return domain.apply("pick", at, *(Ids(e) for e in elements))


def _welford(domain: Any, xs: Sequence[Any], axis: int) -> list[Any]:
    """mean = sum w m / W;  M2 = sum M2 + sum w (m - mean)^2;  W = sum w."""
    mean, m2, w = xs
    do = domain.apply
    total = domain.fold("sum", w, axis)
    mu = do("div", domain.fold("sum", do("mul", w, mean), axis), do("where", do("eq", total, 0.0), 1.0, total))
    d = do("sub", mean, shaped(mu, lambda a: np.expand_dims(a, axis)))
    return [mu, domain.fold("sum", do("add", m2, do("mul", do("mul", w, d), d)), axis), total]


def _welford_pair(m1: Any, s1: Any, w1: Any, m2: Any, s2: Any, w2: Any) -> Sequence[Any]:
    w = w1 + w2
    ratio = np.where(w == 0, 0.0, w2 / np.where(w == 0, 1, w))
    return m1 + (m2 - m1) * ratio, s1 + s2 + (m2 - m1) ** 2 * w1 * ratio, w


def _softmax(domain: Any, xs: Sequence[Any], axis: int) -> list[Any]:
    """(max m, sum s exp(m - max m)): the running maximum and the rescaled sum."""
    top = domain.fold("amax", xs[0], axis)
    shifted = domain.apply("sub", xs[0], shaped(top, lambda a: np.expand_dims(a, axis)))
    return [top, domain.fold("sum", domain.apply("mul", xs[1], domain.apply("exp", shifted)), axis)]


def _softmax_pair(m1: Any, s1: Any, m2: Any, s2: Any) -> Sequence[Any]:
    m = np.maximum(m1, m2)
    return m, s1 * np.exp(m1 - m) + s2 * np.exp(m2 - m)


def _better(compare: Callable[[Any, Any], Any], first: bool) -> Callable[..., Sequence[Any]]:
    """(value, index) of the better; ties go to the smaller index, or to the larger."""

    def meaning(v1: Any, i1: Any, v2: Any, i2: Any) -> Sequence[Any]:
        left = compare(v1, v2) | ((v1 == v2) & (i1 < i2 if first else i1 > i2))
        return np.where(left, v1, v2), np.where(left, i1, i2)

    return meaning


def _strict(compare: Callable[[Any, Any], Any], left: bool) -> Callable[..., Sequence[Any]]:
    """(value, index) of the better; ties go to one operand, and so to no index in particular."""

    def meaning(v1: Any, i1: Any, v2: Any, i2: Any) -> Sequence[Any]:
        take = compare(v1, v2) | (v1 == v2) if left else compare(v1, v2)
        return np.where(take, v1, v2), np.where(take, i1, i2)

    return meaning


MONOIDS = [
    Monoid("sum", 1, lambda a, b: [a + b], _fold("sum"), "add"),
    Monoid("prod", 1, lambda a, b: [a * b], _fold("prod"), "mul"),
    Monoid("max", 1, lambda a, b: [np.maximum(a, b)], _fold("amax"), "max"),
    Monoid("min", 1, lambda a, b: [np.minimum(a, b)], _fold("amin"), "min"),
    Monoid("xor", 1, lambda a, b: [a ^ b], _chain("bitxor"), "bitxor"),
    Monoid("or", 1, lambda a, b: [a | b], _chain("bitor"), "bitor"),
    Monoid("and", 1, lambda a, b: [a & b], _chain("bitand"), "bitand"),
    Monoid("logsumexp", 1, lambda a, b: [np.logaddexp(a, b)],
           lambda domain, xs, axis: [domain.apply("log", domain.fold("sum", domain.apply("exp", xs[0]), axis))]),
    Monoid("argmax", 2, _better(np.greater, True), _position("argmax")),
    Monoid("argmin", 2, _better(np.less, True), _position("argmin")),
    Monoid("argmax, last", 2, _better(np.greater, False), _position("argmax", last=True)),
    Monoid("argmin, last", 2, _better(np.less, False), _position("argmin", last=True)),
    Monoid("argmax, any", 2, _strict(np.greater, False), _position("argmax"), other=_position("argmax", last=True)),
    Monoid("argmin, any", 2, _strict(np.less, False), _position("argmin"), other=_position("argmin", last=True)),
    Monoid("argmax, any", 2, _strict(np.greater, True), _position("argmax"), other=_position("argmax", last=True)),
    Monoid("argmin, any", 2, _strict(np.less, True), _position("argmin"), other=_position("argmin", last=True)),
    Monoid("sums", 2, lambda a, b, c, d: [a + c, b + d],
           lambda domain, xs, axis: [domain.fold("sum", x, axis) for x in xs]),
    Monoid("softmax", 2, _softmax_pair, _softmax),
    Monoid("welford", 3, _welford_pair, _welford),
]  # fmt: skip
LOGIC = [
    Monoid("any", 1, lambda a, b: [a | b], lambda domain, xs, axis: _nary("or", xs[0], axis)),
    Monoid("all", 1, lambda a, b: [a & b], lambda domain, xs, axis: _nary("and", xs[0], axis)),
]


def _nary(row: str, x: Any, axis: int) -> list[Any]:
    if not isinstance(x, Ids):
        return [(np.any if row == "or" else np.all)(x, axis=axis)]
    rows = np.moveaxis(x.ids, axis, -1)
    flat = rows.reshape(-1, rows.shape[-1])
    out = np.array([T.make(row, *(T.TERMS[i] for i in r)).id for r in flat], np.int32)
    return [Ids(out.reshape(rows.shape[:-1]))]


# ---- recognition -----------------------------------------------------------------------------------------------------


def samples(types: Sequence[Type], seed: int = 0) -> list[list[np.ndarray]]:
    """Two lists of operands: reals and small whole numbers mixed (so that ties occur), the last of three not
    negative."""
    rng = np.random.default_rng(seed)
    out: list[list[np.ndarray]] = []
    for _ in range(2):
        operands: list[np.ndarray] = []
        for k, t in enumerate(types):
            whole = rng.integers(0 if k == 2 else -3, 4, SAMPLES)
            dtype = machine(t)
            if dtype.kind == "f":
                real = rng.normal(size=SAMPLES)
                whole = np.where(np.arange(SAMPLES) % 3 == 0, whole, np.abs(real) if k == 2 else real)
            operands.append(whole % 2 == 1 if dtype.kind == "b" else whole.astype(dtype))
        out.append(operands)
    return out


def recognise(run: Run, region: Region, types: Sequence[Type]) -> Monoid | None:
    """The monoid that the region means on every sample, or None."""
    a, b = samples(types)
    domain, path, run.domain, run.path = run.domain, run.path, FLOAT64, None
    try:
        got = run.region(region, [*a, *b])
    except TypeError:
        return None  # it uses a value from outside that depends on data
    finally:
        run.domain, run.path = domain, path
    if any(isinstance(g, Ids) for g in got):
        return None
    return next((m for m in candidates(types) if _same(m, a, b, got)), None)


def candidates(types: Sequence[Type]) -> list[Monoid]:
    rows = LOGIC if len(types) == 1 and types[0].element == "i1" else MONOIDS
    bits = {"xor", "or", "and"}
    return [m for m in rows if m.arity == len(types) and not (types[0].is_float and m.name in bits)
            and not (types[0].is_int and m.name in ("logsumexp", "softmax", "welford"))]  # fmt: skip


def _same(m: Monoid, a: Sequence[np.ndarray], b: Sequence[np.ndarray], got: Sequence[Any]) -> bool:
    with np.errstate(all="ignore"):
        want = m.meaning(*a, *b)
    return all(np.allclose(g, w, rtol=1e-9, atol=1e-12) for g, w in zip(got, want, strict=True))


def monoid(run: Run, op: Op) -> Monoid | None:
    """`recognise`, once per operation."""
    if op not in run.monoids:
        types = [Type(v.type.element, (), v.type.pointee) for v in op.operands]
        run.monoids[op] = recognise(run, op.regions[0], types)
    return run.monoids[op]
