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

HELD_ELEMENTS = 2**28
"""Numbers that one evaluation holds at a time, 2 GiB of float64."""


def evaluate(
    term: Term,
    axes: Sequence[Axis],
    inputs: Mapping[str, Any],
    dims: Mapping[str, int | float],
    domain: Float64 | Symbolic = FLOAT64,
) -> Any:
    """The tensor of `term` over `axes`, an array whose shape is the axes' sizes. `inputs` maps names to arrays of the
    domain, `dims` maps size and scalar names to numbers. Out-of-range reads give nan (undef in the symbolic domain).
    An element does not depend on its neighbours: numbers that would fill the memory are found part by part."""
    reader = _Evaluation(inputs, dims, domain, ())
    return reader.part(term, tuple(axes), tuple(range(reader.extent(a)) for a in axes))


def number(t: Term, dims: Mapping[str, int | float]) -> int:
    """A size under these dims."""
    return int(_Evaluation({}, dims, FLOAT64, ()).value(t, ()))


class NegativeSize(Unsupported):
    """An axis has less than no elements: the term is not meant for these dims."""


class _ManyElements(Exception):
    """The values at hand would fill the memory."""


class _Evaluation:
    """Every value is an array with one dimension per axis in scope (size 1 where it does not vary). The first axes in
    scope take the positions `at` alone."""

    def __init__(
        self,
        inputs: Mapping[str, Any],
        dims: Mapping[str, int | float],
        domain: Float64 | Symbolic,
        at: tuple[range, ...],
    ) -> None:
        self.inputs, self.dims, self.domain, self.at = inputs, dims, domain, at
        self.memo: dict[tuple[int, tuple[Axis, ...]], np.ndarray | Ids] = {}
        self.held_elements = 0

    def part(self, term: Term, axes: tuple[Axis, ...], at: tuple[range, ...]) -> np.ndarray | Ids:
        """The elements of `term` at these positions of `axes`; two halves where that would hold too much at once."""
        try:
            out = _Evaluation(self.inputs, self.dims, self.domain, at).value(term, axes)
        except _ManyElements:
            k = max(range(len(at)), key=lambda k: len(at[k]))
            middle = len(at[k]) // 2
            halves = (at[k][:middle], at[k][middle:])
            parts = [self.part(term, axes, (*at[:k], half, *at[k + 1 :])) for half in halves]
            return np.concatenate([x for x in parts if isinstance(x, np.ndarray)], axis=k)
        found: np.ndarray | Ids = shaped(out, lambda a: np.broadcast_to(a, tuple(map(len, at))))
        return found

    def value(self, t: Term, scope: tuple[Axis, ...]) -> Any:
        key = (t.id, scope)
        if key not in self.memo:
            self.memo[key] = self._value(t, scope)
            self._hold(self.memo[key])
        return self.memo[key]

    def _hold(self, value: np.ndarray | Ids) -> None:
        self.held_elements += value.size if isinstance(self.domain, Float64) else 0
        if self.held_elements > HELD_ELEMENTS and any(len(positions) > 1 for positions in self.at):
            raise _ManyElements

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
                positions = self.at[where] if where < len(self.at) else range(self.extent(t.attr))
                return np.asarray(positions, np.int64).reshape([-1 if k == where else 1 for k in range(len(scope))])
            case "undef":
                return np.full(ones, np.nan)
            case "read":
                return self._read(t, scope)
        if t.op in NAMED:
            return self.value(unfold(t), scope)
        if t.op in FOLDS:
            inner = self.value(t.args[0], (*scope, t.attr))
            n = self.extent(t.attr)
            full = shaped(inner, lambda a: np.broadcast_to(a, (*a.shape[:-1], n)))
            return self.domain.fold(t.op, full, -1)
        return self.domain.apply(t.op, *(self.value(a, scope) for a in t.args))

    def extent(self, a: Axis) -> int:
        """The size of an axis. Raises NegativeSize."""
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
