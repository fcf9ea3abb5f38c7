"""Known numbers as expressions: constants over the dims, functions of the indices, truth values as conditions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import NotLifted
from ..language.evaluate import evaluate
from ..terms import construct as T
from ..terms.fit import fit
from ..terms.term import Axis, Term
from .enumeration import find_integer, find_predicate, find_quasi_affine, points

Dims = dict[str, int | float]
Axes = tuple[Axis, ...]
Values = Sequence[np.ndarray]  # per shape an array over the axes
Care = Sequence[np.ndarray]  # per shape: which elements matter


@dataclass(frozen=True, slots=True)
class Quantities:
    """Fits numbers seen at several shapes; `dims` are the sizes and scalars of each."""

    dims: tuple[Dims, ...]
    prune: bool = True
    affine_only: bool = False

    def size(self, sizes: Sequence[int]) -> Term | None:
        """A size as an expression of the dims, None if it is none."""
        numbers = [int(s) for s in sizes]
        found = fit(numbers, list(self.dims))
        if found is not None and any(t.op in ("floordiv", "next_power_of_2", "min", "max") for t in found.walk()):
            return self.windows(numbers) or found
        return found

    def windows(self, numbers: Sequence[int]) -> Term | None:
        """(D + c) // d for a dim D and small c and d: how many windows of a pooling there are."""
        for name in (n for n, v in self.dims[0].items() if isinstance(v, int)):
            for d in (1, 2, 3, 4):
                for c in sorted(range(-8, 9), key=abs):
                    if all((e[name] + c) // d == v for e, v in zip(self.dims, numbers, strict=True)):
                        return T.make("floordiv", T.size(name) + c, d) if d > 1 else T.size(name) + c
        return None

    def names(self) -> str:
        return ", ".join(self.dims[0])

    def constant(self, values: Sequence[float | None]) -> Term:
        """One number per shape (None: not seen there; 0 if nowhere). Raises NotLifted where it fits no expression."""
        seen = [(v, d) for v, d in zip(values, self.dims, strict=True) if v is not None]
        numbers = [int(v) if float(v).is_integer() else float(v) for v, _ in seen]
        if not numbers:
            return T.const(0)
        if len(set(numbers)) == 1 or np.allclose(numbers, numbers[0], rtol=1e-9, atol=0):
            return T.const(numbers[0])
        if all(v < 0 for v in numbers):
            return T.mul(-1, self.constant([None if v is None else -v for v in values]))
        dims = [d for _, d in seen]
        found = fit(numbers, dims) or square(numbers, dims) or rate(numbers, dims)
        if found is None:
            raise NotLifted(f"{numbers} fits no expression of {self.names()}")
        return found

    def guard(self, axes: Axes, truth: Values, care: Care) -> Term:
        """The condition on indices that holds exactly where `truth` does, wherever `care` does."""
        wanted = np.concatenate([t[c] for t, c in zip(truth, care, strict=True)])
        if wanted.all():
            return T.const(True)
        found = find_predicate(points(axes, self.dims, care), wanted, self.prune)
        if found is None:
            why = f"true at {int(wanted.sum())} of {wanted.size} points over {axes}"
            raise NotLifted("no condition on the indices found", why=why)
        return found

    def index(self, axes: Axes, values: Values, care: Care) -> Term | None:
        """Numbers as a function of the indices: affine, quasi-affine, enumerated; or exp of an affine one."""
        found = self.affine(axes, values, care)
        if self.affine_only:
            return found
        wanted = np.concatenate([v[c] for v, c in zip(values, care, strict=True)])
        if found is None and np.isfinite(wanted).all() and np.array_equal(wanted, np.round(wanted)):
            at, whole = points(axes, self.dims, care), wanted.astype(np.int64)
            found = find_quasi_affine(at, whole) or find_integer(at, whole, prune=self.prune)
        if found is None and len(axes) == 1:
            found = self.piecewise(axes[0], values, care)
        if found is None and (wanted > 0).all():
            exponent = self.affine(axes, [np.log(np.where(v > 0, v, 1)) for v in values], care)
            found = None if exponent is None else T.make("exp", exponent)
        return found

    def affine(self, axes: Axes, values: Values, care: Care) -> Term | None:
        """c + sum of c_a * index_a, the coefficients being expressions of the dims."""
        solutions = [s for v, c in zip(values, care, strict=True) if (s := coefficients(v, c)) is not None]
        whole = all(np.array_equal(v[c], np.round(v[c])) for v, c in zip(values, care, strict=True))
        if len(solutions) < len(values):
            return None
        if whole and any(x is not None and not x.is_integer() for s in solutions for x in s):
            return None  # i / 2 on even i is i // 2
        try:
            slopes = [self.constant(column) for column in list(zip(*solutions, strict=True))[1:]]
            return T.add(self.constant(self.starts(solutions, slopes, care)), *map(T.mul, slopes, map(T.axis, axes)))
        except NotLifted:
            return None

    def starts(self, solutions: Sequence[list[float | None]], slopes: Sequence[Term], care: Care) -> list[float | None]:
        """The constant of each shape. Where an axis does not vary at a shape, its share is in that shape's constant."""
        out: list[float | None] = []
        for (start, *own), d, c in zip(solutions, self.dims, care, strict=True):
            at = [int(row[0]) for row in np.nonzero(c)]
            still = [k for k, v in enumerate(own) if v is None]
            out.append((start or 0) - sum(float(evaluate(slopes[k], (), {}, d)) * at[k] for k in still))
        return out

    def piecewise(self, axis: Axis, values: Values, care: Care, most: int = 4) -> Term | None:
        """Affine pieces along one axis, as many at every shape: the reflected index of a padding."""
        if not all(c.all() for c in care):
            return None
        starts = [bends(v) for v in values]
        count = len(starts[0])
        if not 1 < count <= most or any(len(s) != count for s in starts):
            return None
        whole = [[*s, len(v)] for s, v in zip(starts, values, strict=True)]
        found: Term | None = None
        for k in reversed(range(count)):
            mine = [np.arange(s[k], s[k + 1]) for s in whole]
            here = [np.isin(np.arange(len(v)), m) for v, m in zip(values, mine, strict=True)]
            piece, end = self.affine((axis,), values, here), self.size([s[k + 1] for s in whole])
            if piece is None or end is None:
                return None
            found = piece if found is None else T.where(T.make("lt", T.axis(axis), end), piece, found)
        return found


def bends(v: np.ndarray) -> list[int]:
    """Where the affine pieces of a sequence begin."""
    starts, k = [0], 2
    while k < len(v):
        if k - starts[-1] >= 2 and v[k] - v[k - 1] != v[k - 1] - v[k - 2]:
            starts.append(k)
        k += 1
    return starts


def coefficients(v: np.ndarray, care: np.ndarray) -> list[float | None] | None:
    """[c0, c1, ...] with v = c0 + c1*i1 + ... wherever care holds; None for the coefficient of an axis that does not
    vary there. None if v is not affine."""
    index = np.array(np.nonzero(care))
    wanted = v[care].astype(np.float64)
    if not np.isfinite(wanted).all() or wanted.size == 0:
        return None
    varies = [bool((row != row[0]).any()) for row in index]
    matrix = np.column_stack([np.ones(wanted.size), *(row for row, d in zip(index, varies, strict=True) if d)])
    solution = np.linalg.lstsq(matrix, wanted, rcond=None)[0]
    solution = np.where(np.abs(solution - np.round(solution)) < 1e-9, np.round(solution), solution)
    if not np.allclose(matrix @ solution, wanted, rtol=1e-9, atol=1e-12):
        return None
    it = iter(solution[1:])
    return [float(solution[0]), *(float(next(it)) if d else None for d in varies)]


def square(values: Sequence[float], dims: Sequence[Dims]) -> Term | None:
    """r * r for an expression r of the dims: 1 / (C * L) ** 2."""
    root = fit([math.sqrt(v) for v in values], dims) if all(v > 0 for v in values) else None
    return None if root is None else T.mul(root, root)


def rate(values: Sequence[float], dims: Sequence[Dims]) -> Term | None:
    """c * s, 1 + c * s or c * s - 1 for a scalar s and a plain number c: 1 - 0.01 * lr."""
    for name in (n for n, v in dims[0].items() if isinstance(v, float)):
        for base in (0, 1, -1):
            c = [(v - base) / d[name] if d[name] else np.nan for v, d in zip(values, dims, strict=True)]
            if len(c) > 1 and np.allclose(c, c[0], rtol=1e-5, atol=0) and (nice := float(f"{c[0]:.6g}")):
                return T.add(base, T.mul(nice, T.scalar(name)))
    return None
