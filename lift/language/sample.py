"""Random inputs for a formula: arrays as large as its reads need, small numbers for its sizes and scalars."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ..errors import Unsupported
from ..terms import term as T
from ..terms.term import Axis, Term
from .evaluate import evaluate

LARGE = 5e6  # elements


def dims(
    terms: Iterable[Term], axes: Iterable[Axis], seed: int = 0, low: int = 2, high: int = 5
) -> dict[str, int | float]:
    """A number for every size (low..high, different where possible) and scalar (0.1..1)."""
    rng = np.random.default_rng(seed)
    seen = {s for t in [*terms, *(a.size for a in axes)] for s in _everything(t)}
    names = sorted({s.attr for s in seen if s.op == "size"})
    numbers = rng.permutation(np.arange(low, high + 1))
    out: dict[str, int | float] = {name: int(numbers[k % len(numbers)]) for k, name in enumerate(names)}
    for name, kind in sorted({(s.attr, s.type) for s in seen if s.op == "scalar"}):
        out[name] = int(rng.integers(1, 4)) if kind == T.INT else float(rng.uniform(0.1, 1))
    return out


def _everything(t: Term) -> set[Term]:
    """Subterms, also those in the sizes of axes."""
    out = set(t.walk())
    for a in {s.attr for s in out if isinstance(s.attr, Axis)}:
        out |= set(a.size.walk())
    return out


def inputs(
    terms: Sequence[Term], numbers: dict[str, int | float], seed: int = 0, positive: bool = False
) -> dict[str, np.ndarray]:
    """float64 in -2..2 (0.1..2 if `positive`), integers 0..2, booleans, for every tensor that the terms read."""
    rng = np.random.default_rng(seed)
    reads = {s for t in terms for s in t.walk() if s.op == "read"}
    shapes: dict[str, list[int]] = {}
    arrays: dict[str, np.ndarray] = {}
    pending = sorted(reads, key=lambda r: (_depth(r), repr(r)))
    for r in pending:
        extents = [_extent(i, arrays, numbers) for i in r.args]
        old = shapes.setdefault(r.attr, extents)
        shapes[r.attr] = [max(a, b) for a, b in zip(old, extents, strict=True)]
        if r is [s for s in pending if s.attr == r.attr][-1]:
            arrays[r.attr] = _array(rng, tuple(shapes[r.attr]), r.type, positive)
    return arrays


def _depth(r: Term) -> int:
    return sum(s.op == "read" for i in r.args for s in i.walk())


def _extent(index: Term, arrays: dict[str, np.ndarray], numbers: dict[str, int | float]) -> int:
    missing = {str(s.attr) for s in index.walk() if s.op == "read"} - set(arrays)
    if missing:
        raise Unsupported(f"evaluation of {missing.pop()} at indices that depend on its elements", why=repr(index))
    values = evaluate(index, sorted(index.free, key=repr), arrays, numbers)
    return max(int(values.max()) + 1, 1) if values.size else 1


def _array(rng: Any, shape: tuple[int, ...], kind: str, positive: bool) -> np.ndarray:
    if kind == T.REAL:
        return np.asarray(rng.uniform(0.1 if positive else -2.0, 2.0, shape))
    return np.asarray(rng.integers(0, 3, shape) if kind == T.INT else rng.integers(0, 2, shape).astype(bool))


def _work(terms: Iterable[Term], axes: Iterable[Axis], numbers: dict[str, int | float]) -> float:
    """An upper bound of the elements of one value: the product of the sizes of all axes."""
    every = {*axes, *(s.attr for t in terms for s in t.walk() if isinstance(s.attr, Axis))}
    return float(np.prod([float(evaluate(a.size, (), {}, numbers)) for a in every]))


def differ(a: Term, b: Term, axes: Sequence[Axis], seeds: int = 2, tolerance: float = 1e-7) -> str | None:
    """Where two terms differ on random inputs: None if nowhere. Elements where `a` is not finite are not compared."""
    for seed in range(2 * seeds):
        numbers = next(
            (n for high in (5, 3, 2) if _work((a, b), axes, n := dims([a, b], axes, seed, high=high)) < LARGE), None
        )
        if numbers is None:
            raise Unsupported("evaluation on arrays this large", why=repr(axes))
        given = inputs([a, b], numbers, seed, positive=seed >= seeds)
        x, y = (np.asarray(evaluate(t, axes, given, numbers), np.float64) for t in (a, b))
        with np.errstate(invalid="ignore"):
            wrong = np.isfinite(x) & ~(np.abs(x - y) <= tolerance * (1 + np.abs(x)))
        if wrong.any():
            at = tuple(int(k) for k in np.argwhere(wrong)[0])
            return f"element {at} at {numbers}: {x[at]} and {y[at]}"
    return None
