"""PyTorch operators that take dimensions together: reductions, scans, softmax, matrix products."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ...errors import Unsupported
from ...terms import construct as T
from ...terms import index as I
from ...terms.term import Term
from ..symbolic_tensor import (
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
from .elementwise import (
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
from .operator_row import Meaning, Result, Row, Rows

ROWS = Rows(__name__)
NN = "torch.nn.functional."

Dims = Sequence[int] | int | None


def dims_of(dim: Dims) -> list[int] | None:
    return None if dim is None else [dim] if isinstance(dim, int) else list(dim)


def count_of(x: SymbolicTensor, dim: Dims) -> Term:
    """How many elements a reduction over dim takes together."""
    chosen = {x.dim(d) for d in dims_of(dim) or range(x.rank)} if x.rank else set()
    return I.numel(tuple(x.shape[d] for d in sorted(chosen)))


@ROWS("sum", "torch.sum", cast_first=True)
def summed(self: SymbolicTensor, dim: Dims = None, keepdim: bool = False) -> SymbolicTensor:
    return reduce("sum", self, dims_of(dim), keepdim)


@ROWS("mean", "torch.mean", cast_first=True)
def averaged(self: SymbolicTensor, dim: Dims = None, keepdim: bool = False) -> SymbolicTensor:
    n = count_of(self, dim)
    return real(lambda s: s / n)(summed(self, dim, keepdim))


def _folded(fold: str, x: SymbolicTensor, dim: Dims, keepdim: bool) -> SymbolicTensor:
    return reduce(fold, x, dims_of(dim), keepdim)


def _any(x: SymbolicTensor, dim: Dims, keepdim: bool) -> SymbolicTensor:
    return predicate(lambda n: lt(0, n))(_folded("sum", cast(x, T.BOOL), dim, keepdim))


def _all(x: SymbolicTensor, dim: Dims, keepdim: bool) -> SymbolicTensor:
    return predicate(lambda n: eq(n, 0))(_folded("sum", logic("not")(x), dim, keepdim))


def _extremum(op_name: str) -> Meaning:
    def meaning(
        self: SymbolicTensor, dim: int | None = None, keepdim: bool = False, other: SymbolicTensor | None = None
    ) -> Result:
        if other is not None:
            return elementwise(op(op_name), self, other)
        values = reduce(f"a{op_name}", self, dims_of(dim), keepdim)
        return values if dim is None else (values, reduce(f"arg{op_name}", self, [dim], keepdim))

    return meaning


_max, _min = _extremum("max"), _extremum("min")


@ROWS("topk", "torch.topk")
def _topk(self: SymbolicTensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Result:
    """Only k = 1 is a fold."""
    if T.const(k) is not T.const(1):
        raise Unsupported("aten.topk", why=f"k = {k}: only k = 1 has a formula")
    return (_max if largest else _min)(self, dim, True)


@ROWS("var_mean", "torch.var_mean")
def _var_mean(
    self: SymbolicTensor,
    dim: Any = None,
    unbiased: bool = True,
    correction: Number | None = None,
    keepdim: bool = False,
) -> tuple[SymbolicTensor, SymbolicTensor]:
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    c = (1 if unbiased else 0) if correction is None else correction
    mean = averaged(self, dim, True)
    squares = elementwise(lambda x, m: (x - m) * (x - m), self, mean)
    taken = T.const(c)
    n = count_of(self, dim) - taken
    positive = taken.is_const and taken.attr <= 1 and not n.is_const  # sizes are at least 1
    n = n if positive else maximum(n, 0)
    variance = real(lambda s: s / n)(summed(squares, dim, keepdim))
    return variance, averaged(self, dim, keepdim)


def _moment(pick: Callable[[SymbolicTensor, SymbolicTensor], Result]) -> Meaning:
    """A row of the variance v and the mean m."""
    return lambda x, dim, unbiased, correction, keepdim: pick(*_var_mean(x, dim, unbiased, correction, keepdim))


@ROWS("logsumexp", "torch.logsumexp")
def logsumexp(self: SymbolicTensor, dim: Dims, keepdim: bool = False) -> SymbolicTensor:
    return real(log)(summed(real(exp)(self), dim, keepdim))


def _norm(self: SymbolicTensor, p: Number | None, dim: Dims = None, keepdim: bool = False) -> SymbolicTensor:
    """(sum of |x|^p)^(1/p)."""
    p = 2 if p is None else p
    size = real(absolute)(self)
    match p.attr if isinstance(p, Term) else p:
        case math.inf:
            return _folded("amax", size, dim, keepdim)
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


def softmax(self: SymbolicTensor, dim: int) -> SymbolicTensor:
    e = real(exp)(self)
    return real(T.div)(e, summed(e, dim, True))


@ROWS("_safe_softmax")
def safe_softmax(self: SymbolicTensor, dim: int) -> SymbolicTensor:
    """A row of minus infinities gives zeros."""
    e = real(exp)(self)
    return real(lambda a, s: where(eq(s, 0), 0, a / s))(e, summed(e, dim, True))


def _log_softmax(self: SymbolicTensor, dim: int) -> SymbolicTensor:
    return real(T.sub)(self, logsumexp(self, dim, True))


@ROWS("_softmax_backward_data")
def _softmax_backward(
    grad_output: SymbolicTensor, output: SymbolicTensor, dim: int, input_dtype: object = None
) -> SymbolicTensor:
    total = summed(real(T.mul)(grad_output, output), dim, True)
    return real(lambda g, y, s: (g - s) * y)(grad_output, output, total)


@ROWS("_log_softmax_backward_data")
def _log_softmax_backward(
    grad_output: SymbolicTensor, output: SymbolicTensor, dim: int, input_dtype: object = None
) -> SymbolicTensor:
    return real(lambda g, y, s: g - exp(y) * s)(grad_output, output, summed(grad_output, dim, True))


def contraction(
    size: Term, shape: Sequence[Term], body: Callable[[tuple[Term, ...], Term], Term], of_type: str
) -> SymbolicTensor:
    """sum over k < size of body(index, k)."""
    axis = bound(size)
    k = T.axis(axis) if size is not T.const(1) else T.const(0)
    fold = (lambda t: t) if size is T.const(1) else (lambda t: T.fold("sum", axis, t))
    return tensor(shape, lambda i: fold(body(i, k)), of_type)


def matmul(a: SymbolicTensor, b: SymbolicTensor) -> SymbolicTensor:
    """sum over k of a[..., i, k] * b[..., k, j]; batch dimensions are equal, or broadcast."""
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


@ROWS("linear", NN + "linear")
def _linear(input: SymbolicTensor, weight: SymbolicTensor, bias: SymbolicTensor | None = None) -> SymbolicTensor:
    out = matmul(input, permute(weight, [1, 0]))
    return out if bias is None else elementwise(T.add, out, bias)


MOMENT = "self, dim=None, unbiased=True, correction=None, keepdim=False"

ROWS.add(
    # reductions
    Row("prod", "self, dim=None, keepdim=False", partial(_folded, "prod"), "torch.prod", cast_first=True),
    Row("amax", "self, dim=None, keepdim=False", partial(_folded, "amax"), "torch.amax"),
    Row("amin", "self, dim=None, keepdim=False", partial(_folded, "amin"), "torch.amin"),
    Row("argmax", "self, dim=None, keepdim=False", partial(_folded, "argmax"), "torch.argmax"),
    Row("argmin", "self, dim=None, keepdim=False", partial(_folded, "argmin"), "torch.argmin"),
    Row("max", "self, dim=None, keepdim=False, other=None", _max, "torch.max"),
    Row("min", "self, dim=None, keepdim=False, other=None", _min, "torch.min"),
    Row("any", "self, dim=None, keepdim=False", _any, "torch.any"),
    Row("all", "self, dim=None, keepdim=False", _all, "torch.all"),
    Row("count_nonzero", "self, dim=None", lambda x, dim: _folded("sum", cast(x, T.BOOL), dim, False), "torch.count_nonzero"),
    Row("var", MOMENT, _moment(lambda v, m: v), "torch.var"),
    Row("std", MOMENT, _moment(lambda v, m: real(sqrt)(v)), "torch.std"),
    Row("std_mean", MOMENT, _moment(lambda v, m: (real(sqrt)(v), m)), "torch.std_mean"),
    Row("linalg_vector_norm", "self, ord=2, dim=None, keepdim=False", _norm, "torch.linalg.vector_norm", cast_first=True),
    Row("norm", "self, p=2, dim=None, keepdim=False", _norm, "torch.norm", cast_first=True),
    # scans
    Row("cumsum", "self, dim", _scan("sum", 0), "torch.cumsum", cast_first=True),
    Row("cumprod", "self, dim", _scan("prod", 1), "torch.cumprod", cast_first=True),
    Row("logcumsumexp", "self, dim", lambda x, dim: real(log)(_scan("sum", 0)(real(exp)(x), dim)), "torch.logcumsumexp"),
    Row("cummax", "self, dim", _running("amax", -math.inf), "torch.cummax"),
    Row("cummin", "self, dim", _running("amin", math.inf), "torch.cummin"),
    # softmax
    Row("softmax", "self, dim", softmax, NN + "softmax", cast_first=True),
    Row("_softmax", "self, dim, half_to_float", lambda x, dim, half: softmax(x, dim), NN + "softmax"),
    Row("log_softmax", "self, dim", _log_softmax, NN + "log_softmax", cast_first=True),
    Row("_log_softmax", "self, dim, half_to_float", lambda x, dim, half: _log_softmax(x, dim), NN + "log_softmax"),
    # products
    Row("mm bmm _int_mm", "self, mat2", matmul, "torch.mm"),
    Row("matmul linalg_matmul", "self, other", matmul, "torch.matmul"),
    Row("dot", "self, tensor", matmul, "torch.dot"),
    Row("vdot", "self, other", matmul, "torch.vdot"),
    Row("mv", "self, vec", matmul, "torch.mv"),
    Row("addmm", "self, mat1, mat2, beta=1, alpha=1", lambda c, a, b, beta, alpha: _added(c, matmul(a, b), beta, alpha), "torch.addmm"),
    Row("baddbmm", "self, batch1, batch2, beta=1, alpha=1", lambda c, a, b, beta, alpha: _added(c, matmul(a, b), beta, alpha), "torch.baddbmm"),
    Row("addmv", "self, mat, vec, beta=1, alpha=1", lambda c, a, b, beta, alpha: _added(c, matmul(a, b), beta, alpha), "torch.addmv"),
)  # fmt: skip
