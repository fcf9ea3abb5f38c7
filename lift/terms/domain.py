"""Domains: what an array is and what the rows of `lift.terms.ops` do to it.

Float64    numpy arrays; reals are float64, integers and booleans keep their machine type.
           `handlers`: operations of Triton IR that a domain of this kind executes in its own way.
Symbolic   either a numpy array, when every element is a known number, or `Ids`, an array of term ids. Operations on
           known numbers are numpy's; otherwise the term of each distinct combination of arguments is made once and
           scattered back.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..runtime import budget
from . import construct as T
from .ops import OPS, ORDERED, UNINTERPRETED


@dataclass(frozen=True, slots=True, eq=False)
class Ids:
    """An array of terms: `ids[i, j]` indexes `term.TERMS`."""

    ids: np.ndarray

    @property
    def shape(self) -> tuple[int, ...]:
        return self.ids.shape

    @property
    def ndim(self) -> int:
        return self.ids.ndim

    @property
    def size(self) -> int:
        return self.ids.size

    def terms(self) -> np.ndarray:
        """The same array with Term objects (dtype object)."""
        out = np.empty(self.ids.size, object)
        out[:] = [T.TERMS[i] for i in self.ids.ravel()]
        return out.reshape(self.ids.shape)

    def map(self, f: Callable[[np.ndarray], np.ndarray]) -> Ids:
        """The same elements elsewhere: f is a numpy shape operation (reshape, transpose, broadcast_to, indexing)."""
        return Ids(f(self.ids))


Array = np.ndarray | Ids


def shaped(x: Any, f: Callable[[np.ndarray], np.ndarray]) -> Any:
    """A shape operation on a value of any domain."""
    return x.map(f) if isinstance(x, Ids) else f(np.asarray(x))


def as_ids(x: Any) -> np.ndarray:
    """int32 array of term ids; numbers become constants."""
    if isinstance(x, Ids):
        return x.ids
    a = np.asarray(x)
    core = a[varying(a)]
    values, inverse = np.unique(core.ravel(), return_inverse=True, equal_nan=True)
    table = np.array([T.const(v).id if v == v else T.undef("nan").id for v in values.tolist()], np.int32)
    return np.broadcast_to(table[inverse].reshape(core.shape), a.shape)


def varying(*arrays: np.ndarray) -> tuple[slice, ...]:
    """The index that keeps one element of every axis along which no array (of one shape) changes: stride 0."""
    return tuple(
        slice(0, 1) if not any(strides) else slice(None) for strides in zip(*(a.strides for a in arrays), strict=True)
    )


def on_distinct(f: Callable[..., T.Term], *xs: Array) -> Ids:
    """f(term, term, ...) elementwise with broadcasting, called once per distinct combination."""
    arrays = np.broadcast_arrays(*(as_ids(x) for x in xs))
    shape, core = arrays[0].shape, varying(*arrays)
    cores = [a[core] for a in arrays]
    columns = [a.ravel() for a in cores]
    packed, first = columns[0], np.zeros(0, np.intp)
    for column in columns[1:]:  # number the combinations so far, then pair them with the next column
        packed = (
            np.unique(packed, return_inverse=True)[1].astype(np.int64)
            if packed.dtype != np.int32
            else packed.astype(np.int64)
        )
        packed = packed << 32 | column
    _, first, inverse = np.unique(packed, return_index=True, return_inverse=True)
    budget.spend("symbolic element", len(first))
    rows = zip(*(c[first].tolist() for c in columns), strict=True)
    out = np.fromiter((f(*(T.TERMS[k] for k in row)).id for row in rows), np.int32, len(first))
    return Ids(np.broadcast_to(out[inverse].reshape(cores[0].shape), shape))


def distinct_rows(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(the different rows of a matrix, which of them each row is)."""
    seen: dict[bytes, int] = {}
    inverse = np.array([seen.setdefault(row.tobytes(), len(seen)) for row in np.ascontiguousarray(rows)], np.intp)
    first = np.unique(inverse, return_index=True)[1]
    return rows[first], inverse


BITWISE = {"bitand", "bitor", "bitxor", "shl", "shr", *(n for n in OPS if n.startswith(("wrap", "from_bits")))}


def of_whole_numbers(f: Callable[..., Any], *xs: Any) -> Any:
    """f of integers that a formula holds as floats (truncated reals, elements where some are undefined); NaN where one
    is none."""
    arrays = [np.asarray(x) for x in xs]
    with np.errstate(all="ignore"):
        lost = np.logical_or.reduce(np.broadcast_arrays(*(~np.isfinite(x) for x in arrays)))
        whole = [np.where(np.isfinite(x), x, 0).astype(np.int64) if x.dtype.kind == "f" else x for x in arrays]
        out = f(*whole)
    return np.where(lost, np.nan, out) if lost.any() else out


def _reals(x: object) -> object:
    """Integers beyond 64 bits as real numbers: numpy has no exp of 10 ** 30."""
    return x.astype(np.float64) if isinstance(x, np.ndarray) and x.dtype.kind == "O" else x


class Float64:
    """Reals as float64: the kernel without rounding of its narrow types."""

    name = "float64"
    real: np.dtype[Any] = np.dtype(np.float64)
    handlers: Mapping[str, Callable[..., Any]] = {}

    def reals(self, x: Any) -> Any:
        """An array of real numbers as values of this domain."""
        return x

    def poison(self, label: str) -> float:
        """The value that stands for an undefined real in this domain; `label` names its origin."""
        return math.nan

    def integer_poison(self, label: str, dtype: np.dtype[Any]) -> int:
        """The same for integers: every byte 0x5a."""
        return int.from_bytes(b"\x5a" * dtype.itemsize, "little")

    def apply(self, op: str, *xs: Any) -> Any:
        """The row `op` on arrays, with broadcasting."""
        row = OPS[op]
        if op in BITWISE and any(np.asarray(x).dtype.kind == "f" for x in xs):
            return of_whole_numbers(row.numpy, *xs)
        if row.type == T.REAL:
            xs = tuple(map(_reals, xs))
        with np.errstate(all="ignore"):
            if row.arity >= 0 or op in ORDERED:
                return row.numpy(*xs)
            out = xs[0]
            for x in xs[1:]:
                out = row.numpy(out, x)
        return out

    def fold(self, op: str, x: Any, axis: int) -> Any:
        """sum, prod, amax, amin, argmax, argmin along one axis, which disappears. No element has the last two: NaN."""
        if x.shape[axis] == 0:
            empty = {"sum": 0, "prod": 1, "amax": -np.inf, "amin": np.inf}.get(op, np.nan)
            return np.full([n for d, n in enumerate(x.shape) if d != axis % x.ndim], empty)
        if op in ("argmax", "argmin"):
            return getattr(np, op)(x, axis=axis)
        with np.errstate(all="ignore"):
            rows: dict[str, Callable[..., Any]] = {
                "sum": np.sum, "prod": np.prod, "amax": np.fmax.reduce, "amin": np.fmin.reduce
            }  # fmt: skip
            return rows[op](x, axis=axis)


class Symbolic:
    """Terms over single elements, at one concrete shape."""

    name = "symbolic"
    real = Float64.real
    handlers = Float64.handlers
    numbers = Float64()

    def reals(self, x: Any) -> Any:
        return x

    def apply(self, op: str, *xs: Any) -> Any:
        if op not in UNINTERPRETED and not any(isinstance(x, Ids) for x in xs):
            return self.numbers.apply(op, *xs)
        return on_distinct(OPS[op].on_terms, *xs)

    def fold(self, op: str, x: Any, axis: int) -> Any:
        """One n-ary term per slice; slices with the same elements share it."""
        if not isinstance(x, Ids):
            return self.numbers.fold(op, x, axis)
        rows = np.moveaxis(x.ids, axis, -1)
        shape, flat = rows.shape[:-1], rows.reshape(-1, rows.shape[-1])
        distinct, inverse = distinct_rows(flat)
        make = T.FOLDS[op]
        unit = T.const(T.UNIT[make]).id if make in T.UNIT else -1  # x + 0 = x: masked lanes drop out
        kept = [row[row != unit].tolist() or [unit] for row in distinct]
        out = np.array([T.make(make, *(T.TERMS[i] for i in row)).id for row in kept], np.int32)
        return Ids(out[inverse].reshape(shape))


FLOAT64, SYMBOLIC = Float64(), Symbolic()
