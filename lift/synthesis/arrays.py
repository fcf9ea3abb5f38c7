"""Arrays of term ids, one per shape, -1 where an element does not matter."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..terms.skeleton import skeleton
from ..terms.term import TERMS, Axis, Term

Arrays = tuple[np.ndarray, ...]


def without_constant_axes(axes: tuple[Axis, ...], ids: Arrays) -> tuple[tuple[Axis, ...], Arrays]:
    """Without the axes along which no element changes, at any shape (unknown elements agree with all)."""
    keep = list(range(len(axes)))
    for d in reversed(range(len(axes))):
        position = keep.index(d)
        squeezed = [_squeeze(a, position) for a in ids]
        if all(s is not None for s in squeezed):
            ids = tuple(s for s in squeezed if s is not None)
            keep.remove(d)
    return tuple(axes[d] for d in keep), ids


def _squeeze(a: np.ndarray, d: int) -> np.ndarray | None:
    if a.shape[d] == 0:
        return None
    top = a.max(axis=d)
    return top if ((a == np.expand_dims(top, d)) | (a < 0)).all() else None


def map_terms(ids: Arrays, f: Callable[[Term], Term]) -> Arrays:
    return tuple(map_ids(a, lambda i: f(TERMS[i]).id) for a in ids)


def map_ids(a: np.ndarray, f: Callable[[int], int]) -> np.ndarray:
    distinct, inverse = np.unique(a, return_inverse=True)
    return np.array([f(int(i)) if i >= 0 else -1 for i in distinct], np.int32)[inverse].reshape(a.shape)


def choose_single(a: np.ndarray, members: dict[int, list[Term]]) -> np.ndarray:
    """The single member of each element, -1 where there is none."""
    return map_ids(a, lambda i: members[i][0].id if members.get(i) else -1)


def numbers_of(a: np.ndarray) -> np.ndarray:
    distinct, inverse = np.unique(a, return_inverse=True)
    return np.array([TERMS[i].attr if i >= 0 else 0 for i in distinct], np.float64)[inverse].reshape(a.shape)


def depth(t: Term) -> int:
    """How many conditions of one kind follow each other in the else branches of t."""
    n, kind = 0, None
    while t.op == "where" and (kind is None or skeleton(t.args[0]) == kind):
        n, kind, t = n + 1, skeleton(t.args[0]), t.args[2]
    return n


def _opened(t: Term) -> tuple[list[Term], list[Term], Term]:
    """Conditions and values, innermost (earliest) first, and what is under them."""
    conditions: list[Term] = []
    values: list[Term] = []
    for _ in range(depth(t)):
        conditions.append(t.args[0])
        values.append(t.args[1])
        t = t.args[2]
    return conditions[::-1], values[::-1], t


def layers(a: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Conditions and values [..., n] and bases [...] of an array of stores, each n deep."""
    distinct, inverse = np.unique(a, return_inverse=True)
    rows = [_opened(TERMS[i]) if i >= 0 else None for i in distinct]
    conditions = np.array([[t.id for t in r[0]] if r else [-1] * n for r in rows], np.int32)
    values = np.array([[t.id for t in r[1]] if r else [-1] * n for r in rows], np.int32)
    base = np.array([r[2].id if r else -1 for r in rows], np.int32)
    k = inverse.ravel()
    return conditions[k].reshape(*a.shape, n), values[k].reshape(*a.shape, n), base[k].reshape(a.shape)
