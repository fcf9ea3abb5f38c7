"""tt.dot: a @ b + c. On terms: products of distinct rows with distinct columns, known zeros left out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...terms import construct as T
from ...terms.domain import Ids, as_ids, distinct_rows
from ...ttir.ir import Op
from ..machine import settle
from ..registry import CHECKS, handles, signed

if TYPE_CHECKING:
    from ..interpret import Run


@handles("tt.dot")
def _dot(run: Run, op: Op, a: Any, b: Any, c: Any) -> Any:
    """Reals are exact whatever inputPrecision says; integers accumulate in the result's type."""
    t = op.results[0].type
    if t.is_int:
        a, b = (signed(run, x, v.type.bits) for x, v in zip((a, b), op.operands, strict=False))
    if not any(isinstance(x, Ids) for x in (a, b)):
        product = np.matmul(np.asarray(a).astype(np.asarray(c).dtype) if t.is_int and not isinstance(c, Ids) else a, b)
        return settle(run.domain.apply("add", product, c), t)
    left, right, start = as_ids(a), as_ids(b), as_ids(c)
    if left.ndim == 2:
        return settle(Ids(product_of_terms(left, right, start)), t)
    return settle(Ids(np.stack([product_of_terms(*parts) for parts in zip(left, right, start, strict=True)])), t)


def product_of_terms(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """ids of a @ b + c, for ids a[M,K], b[K,N], c[M,N]."""
    rows, row_of = distinct_rows(a)
    columns, column_of = distinct_rows(b.T)
    lists = [[T.TERMS[i] for i in row] for row in rows], [[T.TERMS[i] for i in column] for column in columns]
    sums = np.empty((len(rows), len(columns)), object)
    for i, row in enumerate(lists[0]):
        for j, column in enumerate(lists[1]):
            sums[i, j] = products(row, column)
    known: dict[tuple[int, int, int], int] = {}
    out = np.empty(c.shape, np.int32)
    for m, i in enumerate(row_of.tolist()):
        for n, j in enumerate(column_of.tolist()):
            key = (i, j, c[m, n])
            if key not in known:
                known[key] = T.add(T.TERMS[c[m, n]], *sums[i, j]).id
            out[m, n] = known[key]
    return out


def products(row: list[T.Term], column: list[T.Term]) -> list[T.Term]:
    """The terms x * y that are not zero. Masks first: 0 * undefined is undefined, not 0."""
    out = []
    for x, y in zip(row, column, strict=True):
        if x is ZERO or y is ZERO:
            if x.op == "undef" or y.op == "undef":
                out.append(T.mul(x, y))
        elif x.op in COMPOUND or y.op in COMPOUND or x.type != y.type:
            out.append(T.mul(x, y))
        else:  # already normal
            out.append(T.node("mul", (x, y) if x.id < y.id else (y, x), None, x.type))
    return out


COMPOUND = {"const", "mul", "undef"}
ZERO = T.const(0)
CHECKS["tt.dot_scaled"] = lambda op: op.name
