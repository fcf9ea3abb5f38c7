"""PyTorch operators that take dimensions together: reductions, scans, softmax, matrix products. name -> meaning."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ..errors import Unsupported
from ..terms import index as I
from ..terms import term as T
from ..terms.term import Term
from .aten_pointwise import (
    Number,
    absolute,
    elementwise,
    eq,
    exp,
    le,
    log,
    logic,
    lt,
    maximum,
    op,
    power,
    predicate,
    real,
    sqrt,
    where,
)
from .symbolic_tensor import (
    Rows,
    SymbolicTensor,
    bound,
    broadcast_shapes,
    cast,
    full,
    kind,
    number,
    permute,
    reduce,
    reshape,
    select,
    tensor,
)

ROWS = Rows()

Dims = Sequence[int] | int | None


def dims_of(dim: Dims) -> list[int] | None:
    return None if dim is None else [dim] if isinstance(dim, int) else list(dim)


def count_of(x: SymbolicTensor, dim: Dims) -> Term:
    """How many elements a reduction over dim takes together."""
    chosen = {x.dim(d) for d in dims_of(dim) or range(x.rank)} if x.rank else set()
    return I.numel(tuple(x.shape[d] for d in sorted(chosen)))


@ROWS("sum")
def summed(self: SymbolicTensor, dim: Dims = None, keepdim: bool = False) -> SymbolicTensor:
    return reduce("sum", self, dims_of(dim), keepdim)


@ROWS("mean")
def averaged(self: SymbolicTensor, dim: Dims = None, keepdim: bool = False) -> SymbolicTensor:
    n = count_of(self, dim)
    return real(lambda s: s / n)(summed(self, dim, keepdim))


@ROWS("prod")
def _prod(self: SymbolicTensor, dim: Dims = None, keepdim: bool = False) -> SymbolicTensor:
    return reduce("prod", self, dims_of(dim), keepdim)


@ROWS("amax")
def _amax(self: SymbolicTensor, dim: Dims = None, keepdim: bool = False) -> SymbolicTensor:
    return reduce("amax", self, dims_of(dim), keepdim)


@ROWS("amin")
def _amin(self: SymbolicTensor, dim: Dims = None, keepdim: bool = False) -> SymbolicTensor:
    return reduce("amin", self, dims_of(dim), keepdim)


@ROWS("argmax")
def _argmax(self: SymbolicTensor, dim: int | None = None, keepdim: bool = False) -> SymbolicTensor:
    return reduce("argmax", self, dims_of(dim), keepdim)


@ROWS("argmin")
def _argmin(self: SymbolicTensor, dim: int | None = None, keepdim: bool = False) -> SymbolicTensor:
    return reduce("argmin", self, dims_of(dim), keepdim)


def _extremum(op_name: str) -> Callable[..., Any]:
    def meaning(
        self: SymbolicTensor, dim: int | None = None, keepdim: bool = False, other: SymbolicTensor | None = None
    ) -> Any:
        if other is not None:
            return elementwise(op(op_name), self, other)
        values = reduce(f"a{op_name}", self, dims_of(dim), keepdim)
        return values if dim is None else (values, reduce(f"arg{op_name}", self, [dim], keepdim))

    return meaning


ROWS["max"], ROWS["min"] = _extremum("max"), _extremum("min")


@ROWS("topk")
def _topk(self: SymbolicTensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    """Only k = 1 is a fold."""
    if T.const(k) is not T.const(1):
        raise Unsupported("aten.topk", why=f"k = {k}: only k = 1 has a formula")
    return ROWS["max" if largest else "min"](self, dim, True)


@ROWS("any")
def _any(self: SymbolicTensor, dim: Dims = None, keepdim: bool = False) -> SymbolicTensor:
    return predicate(lambda n: lt(0, n))(reduce("sum", cast(self, T.BOOL), dims_of(dim), keepdim))


@ROWS("all")
def _all(self: SymbolicTensor, dim: Dims = None, keepdim: bool = False) -> SymbolicTensor:
    return predicate(lambda n: eq(n, 0))(reduce("sum", logic("not")(self), dims_of(dim), keepdim))


ROWS["count_nonzero"] = lambda self, dim=None: reduce("sum", cast(self, T.BOOL), dims_of(dim))


@ROWS("var_mean")
def _var_mean(
    self: SymbolicTensor,
    dim: Any = None,
    unbiased: bool = True,
    correction: Number | None = None,
    keepdim: bool = False,
) -> Any:
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    c = (1 if unbiased else 0) if correction is None else correction
    mean = averaged(self, dim, True)
    squares = elementwise(lambda x, m: (x - m) * (x - m), self, mean)
    n = count_of(self, dim) - T.const(c)
    n = maximum(n, 0) if n.is_const else n
    variance = real(lambda s: s / n)(summed(squares, dim, keepdim))
    return variance, averaged(self, dim, keepdim)


def _moment(pick: Callable[[SymbolicTensor, SymbolicTensor], Any]) -> Callable[..., Any]:
    """A row of the variance v and the mean m."""

    def meaning(
        self: SymbolicTensor,
        dim: Any = None,
        unbiased: bool = True,
        correction: Number | None = None,
        keepdim: bool = False,
    ) -> Any:
        return pick(*_var_mean(self, dim, unbiased, correction, keepdim))

    return meaning


ROWS["var"] = _moment(lambda v, m: v)
ROWS["std"] = _moment(lambda v, m: real(sqrt)(v))
ROWS["std_mean"] = _moment(lambda v, m: (real(sqrt)(v), m))


@ROWS("logsumexp")
def logsumexp(self: SymbolicTensor, dim: Dims, keepdim: bool = False) -> SymbolicTensor:
    return real(log)(summed(real(exp)(self), dim, keepdim))


@ROWS("linalg_vector_norm", "norm")
def _norm(
    self: SymbolicTensor, ord: Number = 2, dim: Dims = None, keepdim: bool = False, p: Number | None = None
) -> SymbolicTensor:
    p = ord if p is None else p
    size = real(absolute)(self)
    match p.attr if isinstance(p, Term) else p:
        case math.inf:
            return _amax(size, dim, keepdim)
        case 0:
            return cast(summed(cast(self, T.BOOL), dim, keepdim), T.REAL)
        case 1:
            return summed(size, dim, keepdim)
        case 2:
            return real(sqrt)(summed(real(lambda x: x * x)(self), dim, keepdim))
    return real(lambda s: power(s, 1 / T.const(p)))(summed(real(lambda x: power(x, p))(size), dim, keepdim))


def _scan(fold: str, unit: Number) -> Callable[..., SymbolicTensor]:
    """Prefix folds: element i takes the elements k <= i."""

    def meaning(self: SymbolicTensor, dim: int) -> SymbolicTensor:
        if self.rank == 0:
            return self
        d = self.dim(dim)
        axis = bound(self.shape[d])
        k = T.axis(axis)
        return tensor(
            self.shape,
            lambda i: T.fold(fold, axis, where(le(k, i[d]), number(self.at((*i[:d], k, *i[d + 1 :]))), unit)),
            T.INT if self.type == T.BOOL else self.type,
        )

    return meaning


ROWS["cumsum"], ROWS["cumprod"] = _scan("sum", 0), _scan("prod", 1)
ROWS["logcumsumexp"] = lambda self, dim: real(log)(ROWS["cumsum"](real(exp)(self), dim))


def _running(fold: str, worst: float) -> Callable[..., tuple[SymbolicTensor, SymbolicTensor]]:
    """Running extremum and, of several equal ones, the last position."""

    def meaning(self: SymbolicTensor, dim: int) -> tuple[SymbolicTensor, SymbolicTensor]:
        values = _scan(fold, worst)(self, dim)
        if self.rank == 0:
            return values, full((), 0)
        d = self.dim(dim)
        axis = bound(self.shape[d])
        k = T.axis(axis)

        def position(i: tuple[Term, ...]) -> Term:
            equal = eq(self.at((*i[:d], k, *i[d + 1 :])), values.at(i))
            return T.fold("amax", axis, where(T.make("and", le(k, i[d]), equal), k, -1))

        return values, tensor(self.shape, position, T.INT)

    return meaning


ROWS["cummax"], ROWS["cummin"] = _running("amax", -math.inf), _running("amin", math.inf)


@ROWS("_softmax", "softmax")
def _softmax(self: SymbolicTensor, dim: int, half_to_float: bool = False) -> SymbolicTensor:
    e = real(exp)(self)
    return real(T.div)(e, summed(e, dim, True))


@ROWS("_safe_softmax")
def safe_softmax(self: SymbolicTensor, dim: int) -> SymbolicTensor:
    """A row of minus infinities gives zeros."""
    e = real(exp)(self)
    return real(lambda a, s: where(eq(s, 0), 0, a / s))(e, summed(e, dim, True))


@ROWS("_log_softmax", "log_softmax")
def _log_softmax(self: SymbolicTensor, dim: int, half_to_float: bool = False) -> SymbolicTensor:
    return real(T.sub)(self, logsumexp(self, dim, True))


@ROWS("_softmax_backward_data")
def _softmax_backward(
    grad_output: SymbolicTensor, output: SymbolicTensor, dim: int, input_dtype: Any = None
) -> SymbolicTensor:
    total = summed(real(T.mul)(grad_output, output), dim, True)
    return real(lambda g, y, s: (g - s) * y)(grad_output, output, total)


@ROWS("_log_softmax_backward_data")
def _log_softmax_backward(
    grad_output: SymbolicTensor, output: SymbolicTensor, dim: int, input_dtype: Any = None
) -> SymbolicTensor:
    return real(lambda g, y, s: g - exp(y) * s)(grad_output, output, summed(grad_output, dim, True))


def contraction(
    size: Term, shape: Sequence[Term], body: Callable[[tuple[Term, ...], Term], Term], type: str
) -> SymbolicTensor:
    """sum over k < size of body(index, k)."""
    axis = bound(size)
    k = T.axis(axis) if size is not T.const(1) else T.const(0)
    fold = (lambda t: t) if size is T.const(1) else (lambda t: T.fold("sum", axis, t))
    return tensor(shape, lambda i: fold(body(i, k)), type)


@ROWS("mm", "bmm", "matmul", "linalg_matmul", "_int_mm")
def matmul(
    self: SymbolicTensor, mat2: SymbolicTensor | None = None, other: SymbolicTensor | None = None
) -> SymbolicTensor:
    """sum over k of a[..., i, k] * b[..., k, j]; batch dimensions are equal, or broadcast."""
    a, b = self, mat2 if mat2 is not None else other
    assert b is not None
    if b.rank == 1:
        return select(matmul(a, reshape(b, (*b.shape, 1))), -1, 0)
    if a.rank == 1:
        return select(matmul(reshape(a, (1, *a.shape)), b), -2, 0)
    batch = broadcast_shapes(a.shape[:-2], b.shape[:-2])

    def left(i: tuple[Term, ...], sizes: Sequence[Term]) -> tuple[Term, ...]:
        own = i[len(i) - len(sizes) :]
        return tuple(T.const(0) if n is T.const(1) else x for x, n in zip(own, sizes, strict=True))

    def body(i: tuple[Term, ...], k: Term) -> Term:
        outer = i[:-2]
        return a.at((*left(outer, a.shape[:-2]), i[-2], k)) * b.at((*left(outer, b.shape[:-2]), k, i[-1]))

    return contraction(a.shape[-1], (*batch, a.shape[-2], b.shape[-1]), body, kind([a, b]))


def _added(self: SymbolicTensor, product: SymbolicTensor, beta: Number, alpha: Number) -> SymbolicTensor:
    if T.const(beta) is T.const(0):
        return elementwise(lambda p: alpha * p, product)
    return elementwise(lambda c, p: beta * c + alpha * p, self, product)


ROWS["dot"] = ROWS["vdot"] = lambda self, tensor=None, other=None: matmul(self, tensor or other)
ROWS["mv"] = lambda self, vec: matmul(self, vec)
ROWS["addmm"] = lambda self, mat1, mat2, beta=1, alpha=1: _added(self, matmul(mat1, mat2), beta, alpha)
ROWS["baddbmm"] = lambda self, batch1, batch2, beta=1, alpha=1: _added(self, matmul(batch1, batch2), beta, alpha)
ROWS["addmv"] = lambda self, mat, vec, beta=1, alpha=1: _added(self, matmul(mat, vec), beta, alpha)
ROWS["linear"] = lambda input, weight, bias=None: _linear(input, weight, bias)


def _linear(input: SymbolicTensor, weight: SymbolicTensor, bias: SymbolicTensor | None = None) -> SymbolicTensor:
    out = matmul(input, permute(weight, [1, 0]))
    return out if bias is None else elementwise(T.add, out, bias)
