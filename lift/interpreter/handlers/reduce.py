"""tt.reduce and tt.scan: one n-ary fold where the combiner is a known monoid, any other one is executed as it
stands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...terms import construct as T
from ...terms.domain import Ids, as_ids, distinct_rows, shaped
from ...ttir.ir import Op, Region, Type
from ..machine import converted, settle
from ..monoids import monoid
from ..registry import handles

if TYPE_CHECKING:
    from ..interpret import Run


@handles("tt.reduce")
def _reduce(run: Run, op: Op, *xs: Any) -> list[Any]:
    axis, m = op.attrs["axis"], monoid(run, op)
    if m is not None:
        out = (m.other if run.rebracketed and m.other else m.fold)(run.domain, xs, axis)
    else:
        out = (_backwards if run.rebracketed else tree)(run, op.regions[0], list(xs), axis)
    return [_typed(x, v.type) for x, v in zip(out, op.results, strict=True)]


def _typed(x: Any, t: Type) -> Any:
    return settle(x, t) if isinstance(x, Ids) else converted(x, t)


def tree(run: Run, region: Region, xs: list[Any], axis: int) -> list[Any]:
    """Neighbours pairwise, in order, all pairs at once; an odd last element waits."""
    part = lambda x, s: shaped(x, lambda a: np.moveaxis(np.moveaxis(a, axis, 0)[s], 0, axis))  # noqa: E731
    while (n := xs[0].shape[axis]) > 1:
        pairs = [part(x, slice(0, n // 2 * 2, 2)) for x in xs], [part(x, slice(1, n // 2 * 2, 2)) for x in xs]
        joined = run.region(region, [*pairs[0], *pairs[1]])
        rest = [part(x, slice(n - n % 2, n)) for x in xs]
        xs = [_concatenate(j, r, axis) for j, r in zip(joined, rest, strict=True)]
    return [shaped(x, lambda a: np.squeeze(a, axis)) for x in xs]


def _backwards(run: Run, region: Region, xs: Sequence[np.ndarray | Ids], axis: int) -> list[np.ndarray | Ids]:
    """Element by element, the last one first: a mean of means is the same in all balanced trees, and not here."""
    at = lambda k: [shaped(x, lambda a: np.take(a, k, axis)) for x in xs]  # noqa: E731
    carried = at(-1)
    for k in range(xs[0].shape[axis] - 2, -1, -1):
        carried = run.region(region, [*carried, *at(k)])
    return carried


def _concatenate(a: Any, b: Any, axis: int) -> Any:
    if isinstance(a, Ids) or isinstance(b, Ids):
        return Ids(np.concatenate([as_ids(a), as_ids(b)], axis))
    return np.concatenate([a, b], axis)


@handles("tt.scan")
def _scan(run: Run, op: Op, *xs: Any) -> list[Any]:
    """Prefix k is the reduction of elements 0..k (from the end, in reverse)."""
    axis, reverse = op.attrs["axis"], op.attrs.get("reverse", False)
    m = monoid(run, op)
    flip = lambda x: shaped(x, lambda a: np.flip(a, axis)) if reverse else x  # noqa: E731
    xs = tuple(map(flip, xs))
    if m is not None and m.row is not None:
        out = [_accumulate(m.row, xs[0], axis)]
    else:
        out = (_doubled if run.rebracketed else _prefixes)(run, op.regions[0], xs, axis)
    return [_typed(flip(x), v.type) for x, v in zip(out, op.results, strict=True)]


_ACCUMULATE = {
    "add": np.add, "mul": np.multiply, "max": np.fmax, "min": np.fmin,
    "bitxor": np.bitwise_xor, "bitor": np.bitwise_or, "bitand": np.bitwise_and,
}  # fmt: skip


def _accumulate(row: str, x: Any, axis: int) -> Any:
    if not isinstance(x, Ids):
        return _ACCUMULATE[row].accumulate(x, axis=axis, dtype=x.dtype)
    rows = np.moveaxis(x.ids, axis, -1)
    distinct, inverse = distinct_rows(rows.reshape(-1, rows.shape[-1]))
    out = np.empty_like(distinct)
    for i, r in enumerate(distinct):
        total = T.TERMS[r[0]]
        out[i, 0] = total.id
        for k in range(1, len(r)):
            total = T.make(row, total, T.TERMS[r[k]])
            out[i, k] = total.id
    return Ids(np.moveaxis(out[inverse].reshape(rows.shape), -1, axis))


def _prefixes(run: Run, region: Region, xs: Sequence[Any], axis: int) -> list[Any]:
    """The region from element to element, all other axes at once."""
    at = lambda k: [shaped(x, lambda a: np.take(a, k, axis)) for x in xs]  # noqa: E731
    carried = at(0)
    steps = [carried]
    for k in range(1, xs[0].shape[axis]):
        carried = run.region(region, [*carried, *at(k)])
        steps.append(carried)
    return [_stack([s[i] for s in steps], axis) for i in range(len(xs))]


def _doubled(run: Run, region: Region, xs: Sequence[np.ndarray | Ids], axis: int) -> list[np.ndarray | Ids]:
    """The same if the region is associative: in step k every element takes the one 2^k before it (Hillis, Steele)."""
    part = lambda x, s: shaped(x, lambda a: np.moveaxis(np.moveaxis(a, axis, 0)[s], 0, axis))  # noqa: E731
    out, step, n = list(xs), 1, xs[0].shape[axis]
    while step < n:
        joined = run.region(
            region, [*(part(x, slice(0, n - step)) for x in out), *(part(x, slice(step, n)) for x in out)]
        )
        out = [_concatenate(part(x, slice(0, step)), j, axis) for x, j in zip(out, joined, strict=True)]
        step *= 2
    return out


def _stack(parts: list[Any], axis: int) -> Any:
    if any(isinstance(p, Ids) for p in parts):
        return Ids(np.stack([as_ids(p) for p in parts], axis))
    return np.stack(parts, axis)
