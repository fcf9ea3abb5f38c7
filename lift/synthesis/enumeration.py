"""Bottom-up synthesis: expressions over axes and sizes, by increasing size, kept only if their values are new.

Types prune (integers, booleans, reals are enumerated apart), values prune (two expressions with the same values at
every sample are one: the smaller is kept). The goal of a search is a vector of values at the points of several shapes
at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..terms import construct as T
from ..terms.term import Axis, Term

Dims = dict[str, int | float]
POINTS = 600  # at most so many points are used while searching; the answer is checked on all


@dataclass(frozen=True, slots=True)
class Points:
    """Sample points: for every shape its dims and, for every axis, the index at each point (int64 vectors)."""

    axes: tuple[Axis, ...]
    dims: tuple[Dims, ...]
    index: tuple[np.ndarray, ...]  # per shape: [len(axes), points]

    @property
    def count(self) -> int:
        return sum(i.shape[1] for i in self.index)

    def values_of(self, t: Term) -> np.ndarray:
        """The term's values at all points, concatenated over shapes."""
        return np.concatenate([_at(t, self.axes, d, i) for d, i in zip(self.dims, self.index, strict=True)])

    def thinned(self, keep: np.ndarray) -> Points:
        """Only the points with the given positions in the concatenation."""
        out, start = [], 0
        for i in self.index:
            mine = keep[(keep >= start) & (keep < start + i.shape[1])] - start
            out.append(i[:, mine])
            start += i.shape[1]
        return Points(self.axes, self.dims, tuple(out))


def _at(t: Term, axes: tuple[Axis, ...], dims: Dims, index: np.ndarray) -> np.ndarray:
    from ..terms.domain import FLOAT64

    n = index.shape[1]
    if t.op == "const":
        return np.full(n, t.attr)
    if t.op in ("size", "scalar"):
        return np.full(n, dims[t.attr])
    if t.op == "axis":
        return np.asarray(index[axes.index(t.attr)])
    return np.asarray(FLOAT64.apply(t.op, *(_at(a, axes, dims, index) for a in t.args)))


class Bank:
    """Expressions found so far, smallest first, with their value vectors."""

    def __init__(self, points: Points, prune: bool = True) -> None:
        self.points, self.prune = points, prune
        self.terms: list[Term] = []
        self.values: list[np.ndarray] = []
        self.sizes: list[int] = []
        self.found: dict[bytes, int] = {}
        self.tried = 0

    def put(self, t: Term, v: np.ndarray, size: int) -> None:
        self.tried += 1
        key = np.ascontiguousarray(v, np.float64).tobytes()
        if self.prune and key in self.found:
            return
        self.found.setdefault(key, len(self.terms))
        self.terms.append(t)
        self.values.append(v)
        self.sizes.append(size)

    def look(self, v: np.ndarray) -> Term | None:
        k = self.found.get(np.ascontiguousarray(v, np.float64).tobytes())
        return None if k is None else self.terms[k]


BINARY: list[tuple[str, Callable[[np.ndarray, np.ndarray], bool]]] = [
    ("add", lambda a, b: True),
    ("sub", lambda a, b: True),
    ("mul", lambda a, b: True),
    ("floordiv", lambda a, b: bool((b > 0).all())),
    ("mod", lambda a, b: bool((b > 0).all())),
    ("min", lambda a, b: True),
    ("max", lambda a, b: True),
]


def integers(
    points: Points, largest: int = 5, limit: int = 4000, prune: bool = True, constants: Sequence[int] = ()
) -> Iterator[Bank]:
    """The bank of integer expressions, after each size up to `largest`; stops when it holds `limit` of them. Its
    numbers are 0, 1, 2 and `constants`."""
    from ..terms.ops import OPS

    bank = Bank(points, prune)
    names = sorted({n for d in points.dims for n, v in d.items() if isinstance(v, (int, np.integer))})
    leaves = (
        [T.axis(a) for a in points.axes]
        + [T.size(n) for n in names]
        + [T.const(c) for c in dict.fromkeys((0, 1, 2, *constants))]
    )
    for leaf in leaves:
        bank.put(leaf, np.asarray(points.values_of(leaf), np.int64), 1)
    yield bank
    for size in range(3, largest + 1):
        known = list(range(len(bank.terms)))
        for i in known:
            for j in known:
                if bank.sizes[i] + bank.sizes[j] + 1 != size or (bank.terms[i].is_const and bank.terms[j].is_const):
                    continue
                a, b = bank.values[i], bank.values[j]
                for op, applies in BINARY:
                    if not applies(a, b) or (op in ("add", "mul", "min", "max") and j < i):
                        continue
                    bank.put(OPS[op].on_terms(bank.terms[i], bank.terms[j]), OPS[op].numpy(a, b), size)
                    if len(bank.terms) >= limit:
                        yield bank
                        return
        yield bank


def find_integer(
    points: Points, target: np.ndarray, largest: int = 5, limit: int = 2500, prune: bool = True
) -> Term | None:
    """The smallest integer expression with these values, also as a sum or difference of two that are in the bank."""
    thin, few = _thin(points, target)
    for bank in integers(thin, largest, limit, prune):
        candidates = [bank.look(few)]
        for t, v in zip(bank.terms, bank.values, strict=True):
            if (other := bank.look(few - v)) is not None:
                candidates.append(t + other)
        for c in candidates:
            if c is not None and np.array_equal(points.values_of(c), target):
                return c
    return None


def find_quasi_affine(points: Points, target: np.ndarray) -> Term | None:
    """c + sum of c_a * i_a + one or two d * (i_b // q): what affine indices become when an axis is split, packed,
    merged or repeated. (i % q is i - q * (i // q).) q is a constant, a dim or a product of dims."""
    thin, few = _thin(points, target)
    shape = np.repeat(np.arange(len(thin.index)), [i.shape[1] for i in thin.index])
    divided = [T.make("floordiv", T.axis(a), q) for a in points.axes for q in _divisors(points)]
    divided = [d for d in divided if thin.values_of(d).any()][:40]
    for features in [[d] for d in divided] + [[d, e] for k, d in enumerate(divided) for e in divided[:k]]:
        t = _combination(thin, few, [*map(T.axis, points.axes), *features], shape)
        if t is not None and np.array_equal(points.values_of(t), target):
            return t
    return None


def _divisors(points: Points) -> list[Term]:
    dims = [T.size(n) for n in sorted(points.dims[0]) if isinstance(points.dims[0][n], (int, np.integer))]
    pairs = [a * b for k, a in enumerate(dims) for b in dims[:k]]
    return [*map(T.const, (2, 3, 4, 8, 16, 32, 64, 128)), *dims, *pairs]


def _combination(points: Points, target: np.ndarray, features: list[Term], shape: np.ndarray) -> Term | None:
    """The target as a sum of multiples of the features; coefficients may be expressions of the dims."""
    from ..terms.fit import fit

    columns = [points.values_of(f) for f in features]
    solved: list[list[int | None]] = []
    for s in range(len(points.dims)):
        rows = shape == s
        matrix = np.column_stack([np.ones(rows.sum()), *(c[rows] for c in columns)])
        x = np.linalg.lstsq(matrix, target[rows].astype(np.float64), rcond=None)[0]
        if not np.array_equal(np.round(matrix @ np.round(x)), target[rows]):
            return None
        solved.append([round(v) if column.any() else None for v, column in zip(x, matrix.T, strict=True)])
    total = T.const(0)
    for k, values in enumerate(zip(*solved, strict=True)):
        known = [(v, d) for v, d in zip(values, points.dims, strict=True) if v is not None]
        c = fit([v for v, _ in known], [d for _, d in known]) if known else T.const(0)
        if c is None:
            return None
        total = total + (c if k == 0 else c * features[k - 1])
    return total if np.array_equal(points.values_of(total), target) else None


def turns(points: Points, target: np.ndarray, most: int = 8) -> list[int]:
    """Constants for conditions: powers of two and indices at which the truth turns along some axis, sizes of axes."""
    found = [
        {n for k in range(len(index)) for n in _turning(index, truth, k).tolist()}
        for index, truth in _by_shape(points, target)
    ]
    blocks = {c for here in found for c in here if c >= 8 and c & (c - 1) == 0}  # only the larger shapes cross a block
    common = sorted(set.intersection(*found)) if found else []
    extents = [a.size.attr for a in points.axes if a.size.is_const]
    return list(dict.fromkeys([*sorted(blocks), *extents, *common]))[:most]


def _thin(points: Points, target: np.ndarray) -> tuple[Points, np.ndarray]:
    keep = np.arange(points.count)
    if points.count > POINTS:
        keep = np.sort(np.random.default_rng(0).choice(points.count, POINTS, replace=False))
    return points.thinned(keep), target[keep]


def find_predicate(points: Points, target: np.ndarray, prune: bool = True) -> Term | None:
    """The smallest comparison of integer expressions with these truth values; else a conjunction or disjunction of two
    or three comparisons."""
    if target.all():
        return T.const(True)
    if not target.any():
        return T.const(False)
    points, target = _relevant(points, target)
    thin, few = _thin(points, target)
    if few.all() or not few.any():
        thin, few = points, target
    for bank in integers(thin, 3, 400, prune, turns(points, target)):
        atoms = _comparisons(bank)
        exact = lambda t: np.array_equal(points.values_of(t), target)  # noqa: E731
        for t, v in atoms:
            if np.array_equal(v, few) and exact(t):
                return t
        for op in ("and", "or"):
            if (found := _cover(atoms, few, op, exact)) is not None:
                return found
    return None


def _relevant(points: Points, target: np.ndarray) -> tuple[Points, np.ndarray]:
    """The same problem without the axes along which the truth never turns."""
    keep = [k for k in range(len(points.axes)) if any(_turning(i, t, k).any() for i, t in _by_shape(points, target))]
    if len(keep) == len(points.axes):
        return points, target
    parts = [_distinct(np.vstack([index[keep], truth])) for index, truth in _by_shape(points, target)]
    if any(_distinct(p[:-1]).shape[1] < p.shape[1] for p in parts):
        return points, target  # it turns across a gap
    kept = Points(tuple(points.axes[k] for k in keep), points.dims, tuple(p[:-1] for p in parts))
    return kept, np.concatenate([p[-1].astype(bool) for p in parts])


def _distinct(columns: np.ndarray) -> np.ndarray:
    """The different columns of integers, in lexicographic order."""
    if not columns.size:
        return np.unique(columns, axis=1)
    low = columns.min(axis=1, keepdims=True)
    spans = [int(s) for s in (columns.max(axis=1, keepdims=True) - low).ravel() + 1]
    if math.prod(spans) >= 1 << 62:
        return np.unique(columns, axis=1)
    _, first = np.unique(np.ravel_multi_index(tuple(columns - low), spans), return_index=True)
    return np.asarray(columns[:, first])


def _by_shape(points: Points, target: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    start = 0
    for index in points.index:
        yield index, target[start : start + index.shape[1]]
        start += index.shape[1]


def _turning(index: np.ndarray, truth: np.ndarray, k: int) -> np.ndarray:
    """The indices along axis k at which the truth differs from that one before, all others equal."""
    others = [r for d, r in enumerate(index) if d != k]
    order = np.lexsort((index[k], *others))
    i, t = index[:, order], truth[order]
    step = np.ones(max(i.shape[1] - 1, 0), bool)
    for d, row in enumerate(i):
        step &= row[1:] == row[:-1] + (d == k)
    return np.asarray(i[k, 1:][step & (t[1:] != t[:-1])])


def _comparisons(bank: Bank) -> list[tuple[Term, np.ndarray]]:
    """Distinct truth vectors of a < b, a <= b, a == b over the bank, smallest first."""
    seen: dict[bytes, None] = {}
    out: list[tuple[Term, np.ndarray]] = []
    for i, j in _pairs(bank):
        a, b = bank.values[i], bank.values[j]
        for op, v in (("lt", a < b), ("le", a <= b), ("eq", a == b), ("ne", a != b)):
            if (op in ("eq", "ne") and j < i) or v.all() or not v.any():
                continue
            key = np.packbits(v).tobytes()
            if key not in seen:
                seen[key] = None
                out.append((T.make(op, bank.terms[i], bank.terms[j]), v))
    return out


def _oddness(t: Term) -> int:
    """The rank of an expression as a side of a condition: 0 for a sum, 1 for a product, 2 for a quotient, 3 for a
    remainder, 4 for the rest. Programmers write i < N - 1 more often than i < M // N."""
    return ("add", "mul", "floordiv", "mod").index(t.op) if t.op in ("add", "mul", "floordiv", "mod") else 4


def _pairs(bank: Bank) -> Iterator[tuple[int, int]]:
    """Expressions worth comparing: a leaf with a leaf, a leaf with an operation, two quotients by the same divisor."""
    small = [k for k, n in enumerate(bank.sizes) if n == 1]
    large = sorted((k for k, n in enumerate(bank.sizes) if n > 1), key=lambda k: (_oddness(bank.terms[k]), k))
    blocks = [k for k in large if bank.terms[k].op == "floordiv"]
    yield from ((i, j) for i in small for j in small if i != j)
    yield from (p for i in small for j in large for p in ((i, j), (j, i)))
    yield from ((i, j) for i in blocks for j in blocks if i != j and bank.terms[i].args[1] is bank.terms[j].args[1])


def _cover(
    atoms: Sequence[tuple[Term, np.ndarray]], target: np.ndarray, op: str, exact: Callable[[Term], bool]
) -> Term | None:
    """Two or three atoms whose conjunction (disjunction) is the target: each contains it (is contained in it)."""
    fits = [(t, v) for t, v in atoms if (not (target & ~v).any() if op == "and" else not (v & ~target).any())][:400]
    join = np.logical_and if op == "and" else np.logical_or
    for i, (t, v) in enumerate(fits):
        for u, w in fits[:i]:
            if np.array_equal(join(v, w), target) and exact(c := T.make(op, u, t)):
                return c
    for i, (t, v) in enumerate(fits[:40]):
        for j, (u, w) in enumerate(fits[:i]):
            for s, x in fits[:j]:
                if np.array_equal(join(join(v, w), x), target) and exact(c := T.make(op, s, u, t)):
                    return c
    return None


def points(axes: tuple[Axis, ...], dims: Sequence[Dims], care: Sequence[np.ndarray]) -> Points:
    """The points at which `care` (one boolean array over the axes per shape) holds."""
    places = [np.array(np.nonzero(c)) if axes else np.zeros((0, int(c)), np.int64) for c in care]
    return Points(tuple(axes), tuple(dims), tuple(places))
