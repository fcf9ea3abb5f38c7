"""The value of a formula at one shape: arrays in, array out (numbers or, in the symbolic domain, terms)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import Unsupported
from ..terms.construct import make
from ..terms.domain import FLOAT64, SYMBOLIC, Float64, Ids, Symbolic, as_ids, on_distinct, shaped
from ..terms.term import FOLDS, NAMED, TERMS, Axis, Term, read
from .unfolding import unfold


def evaluate(
    term: Term,
    axes: Sequence[Axis],
    inputs: Mapping[str, Any],
    dims: Mapping[str, int | float],
    domain: Float64 | Symbolic = FLOAT64,
) -> Any:
    """The tensor of `term` over `axes`, an array whose shape is the axes' sizes. `inputs` maps names to arrays of the
    domain, `dims` maps size and scalar names to numbers. Out-of-range reads give nan (undef in the symbolic domain)."""
    out = _Evaluation(inputs, dims, domain).value(term, tuple(axes))
    shape = tuple(number(a.size, dims) for a in axes)
    return shaped(out, lambda a: np.broadcast_to(a, shape))


def number(t: Term, dims: Mapping[str, int | float]) -> int:
    """A size under these dims."""
    return int(_Evaluation({}, dims, FLOAT64).value(t, ()))


class NegativeSize(Unsupported):
    """An axis has less than no elements: the term is not meant for these dims."""


class _Evaluation:
    """Every value is an array with one dimension per axis in scope (size 1 where it does not vary)."""

    def __init__(self, inputs: Mapping[str, Any], dims: Mapping[str, int | float], domain: Float64 | Symbolic) -> None:
        self.inputs, self.dims, self.domain = inputs, dims, domain
        self.memo: dict[tuple[int, tuple[Axis, ...]], Any] = {}

    def value(self, t: Term, scope: tuple[Axis, ...]) -> Any:
        key = (t.id, scope)
        if key not in self.memo:
            self.memo[key] = self._value(t, scope)
        return self.memo[key]

    def _value(self, t: Term, scope: tuple[Axis, ...]) -> Any:
        ones = (1,) * len(scope)
        match t.op:
            case "const":
                return np.full(ones, t.attr)
            case "size" | "scalar":
                if t.attr not in self.dims:
                    raise Unsupported(f"no number for {t.attr}")
                return np.full(ones, self.dims[t.attr])
            case "axis":
                where = max(k for k, a in enumerate(scope) if a == t.attr)
                return np.arange(self._extent(t.attr)).reshape([-1 if k == where else 1 for k in range(len(scope))])
            case "undef":
                return np.full(ones, np.nan)
            case "read":
                return self._read(t, scope)
        if t.op in NAMED:
            return self.value(unfold(t), scope)
        if t.op in FOLDS:
            inner = self.value(t.args[0], (*scope, t.attr))
            n = self._extent(t.attr)
            full = shaped(inner, lambda a: np.broadcast_to(a, (*a.shape[:-1], n)))
            return self.domain.fold(t.op, full, -1)
        return self.domain.apply(t.op, *(self.value(a, scope) for a in t.args))

    def _extent(self, a: Axis) -> int:
        n = number(a.size, self.dims)
        if n < 0:
            at = ", ".join(f"{k} = {v}" for k, v in self.dims.items())
            raise NegativeSize(f"the axis {a.name} has {n} elements at {at}")
        return n

    def _read(self, t: Term, scope: tuple[Axis, ...]) -> Any:
        x = whole(self.inputs[t.attr])
        if not t.args:
            return shaped(x, lambda a: a.reshape((1,) * len(scope)))
        indices = [self.value(a, scope) for a in t.args]
        if any(isinstance(i, Ids) for i in indices):
            return gather(t.attr, x, indices)
        index = [np.asarray(i).astype(np.int64) for i in indices]
        inside = np.ones((1,) * len(scope), bool)
        for i, n in zip(index, x.shape, strict=True):
            inside = inside & (i >= 0) & (i < n)
        if inside.all():
            return shaped(x, lambda a: a[tuple(index)])
        safe = tuple(np.where(inside, i, 0) for i in index)
        if any(n == 0 for n in x.shape):
            return np.full(np.broadcast_shapes(*(i.shape for i in safe)), np.nan)
        return self.domain.apply("where", inside, shaped(x, lambda a: a[safe]), np.nan)


def whole(x: Any) -> Any:
    """Integers of a formula do not wrap: 8, 16 and 32 bits become 64."""
    return x.astype(np.int64) if isinstance(x, np.ndarray) and x.dtype.kind in "iu" and x.dtype.itemsize < 8 else x


def gather(name: str, x: Any, indices: Sequence[Any]) -> Ids:
    """Elements of x at indices that are terms: reads of the input `name`, or picks among an intermediate's."""
    ids = as_ids(x)
    elements = tuple(TERMS[i] for i in ids.ravel())
    if elements and elements[0].op == "read" and elements[0].attr == name:
        return on_distinct(lambda *index: read(name, index, elements[0].type), *indices)
    linear: Any = 0
    for i, n in zip(indices, ids.shape, strict=True):
        linear = SYMBOLIC.apply("add", SYMBOLIC.apply("mul", linear, n), i)
    return on_distinct(lambda index: make("pick", index, *elements), linear)
