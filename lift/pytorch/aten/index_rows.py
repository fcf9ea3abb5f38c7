"""PyTorch operators with index tensors, and those that write into a part of a tensor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...errors import Unsupported
from ...terms import construct as T
from ...terms import index as I
from ...terms.term import Term, TermLike
from ..symbolic_tensor import (
    ONE,
    Index,
    SymbolicTensor,
    aligned,
    bound,
    broadcast_shapes,
    choose,
    expand,
    full,
    kind,
    reshape,
    tensor,
    wrapped,
)
from .elementwise import Operand, operand
from .operator_row import Row, Rows
from .shape_rows import ZERO, Size, conj, span

ROWS = Rows(__name__)


# ---- writing into a part --------------------------------------------------------------------------------------------
@ROWS("slice_scatter")
def slice_scatter(
    self: SymbolicTensor, src: SymbolicTensor, dim: int = 0, start: Any = None, end: Any = None, step: int = 1
) -> SymbolicTensor:
    """self with the slice replaced by src."""
    d = self.dim(dim)
    first, last = span(self.shape[d], start, end)

    def at(i: Index) -> Term:
        k = I.normal(i[d] - first)
        on_step = T.const(True) if step == 1 else T.make("eq", I.mod(k, step), 0)
        inside = conj(not_less(i[d], first), I.less(i[d], last), on_step)
        if inside is T.const(False):
            return self.at(i)
        return choose(inside, src.at((*i[:d], I.floordiv(k, step), *i[d + 1 :])), self.at(i))

    return tensor(self.shape, at, self.type)


def not_less(a: Term, b: Term) -> Term:
    return T.make("not", I.less(a, b))


@ROWS("select_scatter")
def select_scatter(self: SymbolicTensor, src: SymbolicTensor, dim: int, index: Any) -> SymbolicTensor:
    d = self.dim(dim)
    k = wrapped(index, self.shape[d])
    return tensor(
        self.shape, lambda i: choose(T.make("eq", i[d], k), src.at(i[:d] + i[d + 1 :]), self.at(i)), self.type
    )


@ROWS("diagonal_scatter")
def diagonal_scatter(
    self: SymbolicTensor, src: SymbolicTensor, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> SymbolicTensor:
    a, b = self.dim(dim1), self.dim(dim2)

    def at(i: Index) -> Term:
        rest = tuple(x for d, x in enumerate(i) if d not in (a, b))
        on = T.make("eq", I.normal(i[b] - i[a]), offset)
        return T.where(on, src.at((*rest, I.normal(i[a] - max(-offset, 0)))), self.at(i))

    return tensor(self.shape, at, self.type)


@ROWS("diag_embed")
def _diag_embed(self: SymbolicTensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> SymbolicTensor:
    n = self.shape[-1] + abs(offset)
    zeros = full((*self.shape[:-1], n, n), 0, self.type)
    a, b = dim1 % (self.rank + 1), dim2 % (self.rank + 1)
    if (a, b) != (self.rank - 1, self.rank):
        raise Unsupported("aten.diag_embed", why="only the last two dimensions")
    return diagonal_scatter(zeros, self, offset, a, b)


def _into_zeros(scatter: Callable[..., SymbolicTensor]) -> Callable[..., SymbolicTensor]:
    return lambda grad, sizes, *where: scatter(full(sizes, 0, grad.type), grad, *where)


ROWS.add(
    Row("slice_backward", "grad_output, input_sizes, dim, start, end, step", _into_zeros(slice_scatter)),
    Row("select_backward", "grad_output, input_sizes, dim, index", _into_zeros(select_scatter)),
    Row("diagonal_backward", "grad_output, input_sizes, offset, dim1, dim2", _into_zeros(diagonal_scatter)),
)


@ROWS("unfold_backward")
def _unfold_backward(grad_in: SymbolicTensor, input_sizes: Size, dim: int, size: int, step: int) -> SymbolicTensor:
    """grad[p] = sum of grad_in[w, p - w*step] over the windows w that contain p."""
    d = dim % len(input_sizes)
    axis = bound(grad_in.shape[d])
    w = T.axis(axis)

    def at(i: Index) -> Term:
        k = I.normal(i[d] - w * step)
        inside = conj(T.make("le", 0, k), T.make("lt", k, size))
        return T.fold("sum", axis, T.where(inside, grad_in.at((*i[:d], w, *i[d + 1 :], k)), 0))

    return tensor(input_sizes, at, grad_in.type)


# ---- indexing -------------------------------------------------------------------------------------------------------
@ROWS("index_select")
def _index_select(self: SymbolicTensor, dim: int, index: SymbolicTensor) -> SymbolicTensor:
    d = self.dim(dim)
    shape = (*self.shape[:d], I.numel(index.shape), *self.shape[d + 1 :])
    row = lambda i: index.at((i[d],) if index.rank else ())  # noqa: E731
    return tensor(shape, lambda i: self.at((*i[:d], row(i), *i[d + 1 :])), self.type)


@ROWS("gather")
def _gather(self: SymbolicTensor, dim: int, index: SymbolicTensor, sparse_grad: bool = False) -> SymbolicTensor:
    d = self.dim(dim)
    if not self.rank:
        return expand(self, index.shape)
    return tensor(index.shape, lambda i: self.at((*i[:d], index.at(i), *i[d + 1 :])), self.type)


@ROWS("take")
def _take(self: SymbolicTensor, index: SymbolicTensor) -> SymbolicTensor:
    flat = reshape(self, [I.numel(self.shape)])
    return tensor(index.shape, lambda i: flat.at((from_end(index.at(i), flat.shape[0]),)), self.type)


def from_end(k: Term, size: Term) -> Term:
    """An index that may be negative, as PyTorch's x[k] reads it."""
    k = wrapped(k, size)
    unknown = not k.is_const and not I.nonnegative(k)
    return T.where(T.make("lt", k, 0), k + size, k) if unknown else k


def _advanced(indices: Sequence[SymbolicTensor | None]) -> tuple[list[int], tuple[Term, ...], int]:
    """Indexed dimensions, the broadcast shape of the index tensors, and where that shape goes in the result."""
    dims = [d for d, i in enumerate(indices) if i is not None]
    shape = broadcast_shapes(*(i.shape for i in indices if i is not None))
    together = dims == list(range(dims[0], dims[-1] + 1))
    return dims, shape, dims[0] if together else 0


def _picks(x: SymbolicTensor, indices: Sequence[SymbolicTensor | None], dims: list[int], j: Index) -> dict[int, Term]:
    picks = {}
    for d in dims:
        index = indices[d]
        assert index is not None
        picks[d] = from_end(index.at(aligned(index, j)), x.shape[d])
    return picks


@ROWS("index _unsafe_index")
def _index(self: SymbolicTensor, indices: Sequence[SymbolicTensor | None]) -> SymbolicTensor:
    """x[i, :, j]: index tensors broadcast together, their dimensions in front unless they are adjacent."""
    if any(i is not None and i.type == T.BOOL for i in indices):
        raise Unsupported("aten.index with a mask", why="the result's size depends on data")
    dims, shape, place = _advanced(indices)
    if not dims:
        return self
    rest = [d for d in range(self.rank) if d not in dims]

    def at(i: Index) -> Term:
        j, others = i[place : place + len(shape)], i[:place] + i[place + len(shape) :]
        own = dict(zip(rest, others, strict=True)) | _picks(self, indices, dims, j)
        return self.at(tuple(own[d] for d in range(self.rank)))

    free = [self.shape[d] for d in rest]
    return tensor((*free[:place], *shape, *free[place:]), at, self.type)


def matches(shape: Sequence[Term], test: Callable[[Index], Term], value: Callable[[Index], TermLike]) -> Term:
    """sum of value(j) over all j of shape for which test(j)."""
    axes = [bound(n) for n in shape]
    j = tuple(ZERO if a.size is ONE else T.axis(a) for a in axes)
    out = T.where(test(j), value(j), 0)
    for a in reversed(axes):
        out = T.fold("sum", a, out) if a.size is not ONE else out
    return out


def last_match(shape: Sequence[Term], test: Callable[[Index], Term]) -> Term:
    """The greatest row-major position j of shape for which test(j), or -1: of several writes the last one stays."""
    axes = [bound(n) for n in shape]
    j = tuple(ZERO if a.size is ONE else T.axis(a) for a in axes)
    out = T.where(test(j), I.linear(j, tuple(shape)), -1)
    for a in reversed(axes):
        out = T.fold("amax", a, out) if a.size is not ONE else out
    return out


def written(
    old: Term, shape: tuple[Term, ...], test: Callable[[Index], Term], value: Callable[[Index], Term], constant: bool
) -> Term:
    """The value of one element after the writes value(j) for all j of shape with test(j): value of the last such j in
    row-major order, `old` if there is none. `constant`: value does not depend on j."""
    if constant:
        hit = T.make("lt", 0, matches(shape, test, lambda j: 1))
        return T.where(hit, value(tuple(ZERO for _ in shape)), old)
    p = last_match(shape, test)
    return T.where(T.make("le", 0, p), value(I.unravel(p, shape)), old)


@ROWS("index_put _unsafe_index_put", "torch.Tensor.index_put_")
def _index_put(
    self: SymbolicTensor, indices: Sequence[SymbolicTensor | None], values: SymbolicTensor, accumulate: bool = False
) -> SymbolicTensor:
    if any(i is not None and i.type == T.BOOL for i in indices):
        return _mask_put(self, indices, values, accumulate)
    dims, shape, place = _advanced(indices)
    rest = [d for d in range(self.rank) if d not in dims]

    def at(i: Index) -> Term:
        others = tuple(i[d] for d in rest)
        test = lambda j: conj(*(T.make("eq", k, i[d]) for d, k in _picks(self, indices, dims, j).items()))  # noqa: E731
        value = lambda j: values.at(aligned(values, (*others[:place], *j, *others[place:])))  # noqa: E731
        if accumulate:
            return self.at(i) + matches(shape, test, value)
        return written(self.at(i), shape, test, value, values.shape == () or all(n is ONE for n in values.shape))

    return tensor(self.shape, at, self.type)


def _mask_put(
    self: SymbolicTensor, indices: Sequence[SymbolicTensor | None], values: SymbolicTensor, accumulate: bool
) -> SymbolicTensor:
    """x[mask] = number."""
    mask = indices[0]
    if mask is None or any(i is not None for i in indices[1:]) or any(n is not ONE for n in values.shape):
        raise Unsupported("aten.index_put with a mask", why="only x[mask] = number has a formula")
    value = values.at(tuple(ZERO for _ in values.shape))
    new = (lambda i: self.at(i) + value) if accumulate else (lambda i: value)
    return tensor(self.shape, lambda i: choose(mask.at(i[: mask.rank]), new(i), self.at(i)), self.type)


ROWS.add(
    Row(
        "_index_put_impl",
        "self, indices, values, accumulate=False, unsafe=False",
        lambda x, indices, values, accumulate, unsafe: _index_put(x, indices, values, accumulate),
    )
)


def _scatter_with(combine: Callable[..., Term] | None) -> Callable[..., SymbolicTensor]:
    """self[.., index[j], ..] = or += src[j] along dim: the other coordinates are those of j."""

    def meaning(
        self: SymbolicTensor, dim: int, index: SymbolicTensor, src: SymbolicTensor | None = None, value: Any = None
    ) -> SymbolicTensor:
        source = src if src is not None else full(index.shape, value, self.type)
        if not self.rank:
            return tensor(
                (), lambda i: source.at(()) if combine is None else combine(self.at(()), source.at(())), self.type
            )
        d = self.dim(dim)

        def at(i: Index) -> Term:
            inside = [I.less(i[k], n) for k, n in enumerate(index.shape) if k != d]
            j = lambda k: (*i[:d], k[0], *i[d + 1 :])  # noqa: E731
            test = lambda k: conj(*inside, T.make("eq", index.at(j(k)), i[d]))  # noqa: E731
            take = lambda k: source.at(j(k))  # noqa: E731
            if combine is None:
                return written(self.at(i), (index.shape[d],), test, take, src is None)
            return combine(self.at(i), matches((index.shape[d],), test, take))

        return tensor(self.shape, at, kind([self, source]))

    return meaning


_scatter, _scatter_add = _scatter_with(None), _scatter_with(T.add)
ROWS.add(Row("scatter_add", "self, dim, index, src", _scatter_add, "torch.scatter_add"))


@ROWS("scatter")
def _scatter_any(
    self: SymbolicTensor, dim: int, index: SymbolicTensor, src: Any = None, value: Any = None, reduce: str | None = None
) -> SymbolicTensor:
    if reduce is None:
        return _scatter(self, dim, index, src, value)
    if reduce in ("add", "sum"):
        return _scatter_add(self, dim, index, src, value)
    raise Unsupported(f"aten.scatter with reduce={reduce}")


@ROWS("scatter_reduce")
def _scatter_reduce(
    self: SymbolicTensor, dim: int, index: SymbolicTensor, src: SymbolicTensor, reduce: str, include_self: bool = True
) -> SymbolicTensor:
    if reduce == "sum" and include_self:
        return _scatter_add(self, dim, index, src)
    raise Unsupported(f"aten.scatter_reduce with reduce={reduce}, include_self={include_self}")


@ROWS("index_add")
def _index_add(
    self: SymbolicTensor, dim: int, index: SymbolicTensor, source: SymbolicTensor, alpha: TermLike = 1
) -> SymbolicTensor:
    d = self.dim(dim)

    def at(i: Index) -> Term:
        test = lambda k: T.make("eq", index.at(k[: index.rank]), i[d])  # noqa: E731
        return self.at(i) + matches(
            (I.numel(index.shape),), test, lambda k: alpha * source.at((*i[:d], k[0], *i[d + 1 :]))
        )

    return tensor(self.shape, at, self.type)


@ROWS("index_copy", "torch.Tensor.index_copy")
def _index_copy(self: SymbolicTensor, dim: int, index: SymbolicTensor, source: SymbolicTensor) -> SymbolicTensor:
    d = self.dim(dim)
    return _rows_written(self, d, index, lambda i, k: source.at((*i[:d], k[0], *i[d + 1 :])), constant=False)


@ROWS("index_fill", "torch.Tensor.index_fill")
def _index_fill(self: SymbolicTensor, dim: int, index: SymbolicTensor, value: Operand) -> SymbolicTensor:
    return _rows_written(self, self.dim(dim), index, lambda i, k: operand(value).at(()), constant=True)


def _rows_written(
    x: SymbolicTensor, d: int, index: SymbolicTensor, take: Callable[[Index, Index], Term], constant: bool
) -> SymbolicTensor:
    """x with take(i, (k,)) at the indices i whose place in dimension d is index[k]."""

    def at(i: Index) -> Term:
        test = lambda k: T.make("eq", index.at(k[: index.rank]), i[d])  # noqa: E731
        return written(x.at(i), (I.numel(index.shape),), test, lambda k: take(i, k), constant)

    return tensor(x.shape, at, x.type)


@ROWS("isin")
def _isin(elements: SymbolicTensor, test_elements: SymbolicTensor) -> SymbolicTensor:
    flat = reshape(test_elements, [I.numel(test_elements.shape)])
    hit = lambda x: T.make("lt", 0, matches(flat.shape, lambda j: T.make("eq", flat.at(j), x), lambda j: 1))  # noqa: E731
    return tensor(elements.shape, lambda i: hit(elements.at(i)), T.BOOL)
