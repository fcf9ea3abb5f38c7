"""Numbering the addends of sums: which axes a fold runs over, and which addend stands where.

Addends of one kind differ in some of their coordinates (lift.terms.skeleton). They are numbered by one coordinate,
by the ranks of two or three of them within the element (the channels of a group, the taps of a window), or by rank
alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..terms.skeleton import coordinates, order, origins
from ..terms.term import Term

Rows = list[
    dict[int, list[tuple[Term, tuple[Any, ...]]]]
]  # per shape: element id -> its addends with their coordinates
Extents = dict[str, tuple[tuple[int, ...], ...]]  # the shapes of the inputs, at each shape
SizeOf = Callable[[Sequence[int]], Term | None]  # a size as a term, from its numbers at the shapes


@dataclass(frozen=True, slots=True)
class Choice:
    """New axes of the given sizes; `places[shape][element id]` numbers that element's addends, row-major."""

    sizes: tuple[Term, ...]
    places: list[dict[int, list[tuple[int, Term]]]]
    waste: int


def choices(members: list[dict[int, list[Term]]], size_of: SizeOf, extents: Extents) -> Iterator[Choice]:
    """Ways to number the addends: by one coordinate, by rank, by two or three coordinates. Unguarded ones first."""
    rows = [{i: [(m, coordinates(m)) for m in ts] for i, ts in shape.items()} for shape in members]
    lists = [ms for shape in rows for ms in shape.values()]
    varying = [p for p in range(len(lists[0][0][1])) if any(len({c[p] for _, c in ms}) > 1 for ms in lists)]
    varying = [
        p
        for p in varying
        if all(isinstance(c[p], int) and not isinstance(c[p], bool) and c[p] >= 0 for ms in lists for _, c in ms)
    ]
    single = [p for p in varying if all(len({c[p] for _, c in ms}) == len(ms) for ms in lists)]
    guarded: list[Choice] = []
    limits = [[s[o[1]] for s in extents[o[0]]] if o and o[0] in extents else None for o in origins(lists[0][0][0])]
    for p in single:
        choice, full = by_coordinates((p,), rows, size_of, limits)
        if choice and full:
            yield choice
        elif choice:
            guarded.append(choice)
    for q in _pairs(varying):
        if not set(q) & set(single) and all(len({tuple(c[p] for p in q) for _, c in ms}) == len(ms) for ms in lists):
            choice, full = by_coordinates(q, rows, size_of, limits)
            if choice and full:
                yield choice
            elif choice:
                guarded.append(choice)
    for q in _pairs(varying):
        if (choice := by_ranks(q, rows, size_of)) is not None:
            yield choice
    if (ranked := by_rank(rows, size_of)) is not None:
        yield ranked
    yield from sorted(guarded, key=lambda c: c.waste)


def by_coordinates(
    p: tuple[int, ...], rows: Rows, size_of: SizeOf, limits: Sequence[Sequence[int] | None]
) -> tuple[Choice | None, bool]:
    """Number addends by the coordinates p; full if every element has every combination exactly once. Else the axis is
    the whole one of the tensor that the coordinate indexes."""
    seen = [[1 + max(c[k] for ms in shape.values() for _, c in ms) for shape in rows] for k in p]
    cells = [int(np.prod(n)) for n in zip(*seen, strict=True)]
    full = all(len(ms) == n for shape, n in zip(rows, cells, strict=True) for ms in shape.values())
    sizes = seen if full else [list(limits[k] or s) for k, s in zip(p, seen, strict=True)]
    terms = [t for s in sizes if (t := size_of(s)) is not None]
    if len(terms) < len(p):
        return None, False
    shapes = list(zip(*sizes, strict=True))
    places = [
        {i: [(int(np.ravel_multi_index([c[k] for k in p], n)), m) for m, c in ms] for i, ms in shape.items()}
        for shape, n in zip(rows, shapes, strict=True)
    ]
    waste = sum(int(np.prod(n)) - len(ms) for shape, n in zip(rows, shapes, strict=True) for ms in shape.values())
    return Choice(tuple(terms), places, waste), full


def by_ranks(p: tuple[int, ...], rows: Rows, size_of: SizeOf) -> Choice | None:
    """Number addends by the ranks of the coordinates p among the element's own: the channels of a group."""
    sizes: list[tuple[int, ...]] = []
    places: list[dict[int, list[tuple[int, Term]]]] = []
    for shape in rows:
        values = {i: [sorted({c[k] for _, c in ms}) for k in p] for i, ms in shape.items()}
        lengths = {tuple(len(v) for v in vs) for vs in values.values()}
        if len(lengths) != 1 or any(len(ms) != np.prod(next(iter(lengths))) for ms in shape.values()):
            return None
        n = next(iter(lengths))
        place = lambda i, c: int(np.ravel_multi_index([v.index(c[k]) for v, k in zip(values[i], p, strict=True)], n))  # noqa: B023, E731
        places.append({i: [(place(i, c), m) for m, c in ms] for i, ms in shape.items()})
        sizes.append(n)
        if any(len({q for q, _ in ps}) != len(ps) for ps in places[-1].values()):
            return None
    terms = [size_of([n[k] for n in sizes]) for k in range(len(p))]
    return None if any(t is None for t in terms) else Choice(tuple(t for t in terms if t is not None), places, 0)


def by_rank(rows: Rows, size_of: SizeOf) -> Choice | None:
    """Number addends 0, 1, ... in the order of their coordinates: every element of a shape has as many."""
    counts = [{len(ms) for ms in shape.values()} for shape in rows]
    if any(len(c) != 1 for c in counts):
        return None
    size = size_of([next(iter(c)) for c in counts])
    if size is None:
        return None
    places = [{i: list(enumerate(sorted((m for m, _ in ms), key=order))) for i, ms in shape.items()} for shape in rows]
    return Choice((size,), places, 0)


def _pairs(varying: list[int]) -> Iterator[tuple[int, ...]]:
    few = varying[:8]
    for i, p in enumerate(few):
        for q in few[i + 1 :]:
            yield (p, q)
    for i, p in enumerate(few):
        for j, q in enumerate(few[i + 1 :], i + 1):
            for r in few[j + 1 :]:
                yield (p, q, r)
