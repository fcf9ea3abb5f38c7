"""PyTorch operators of neural networks: normalisation, embedding, losses, attention, and their gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...errors import Unsupported
from ...terms import construct as T
from ...terms import index as I
from ...terms.term import Term, TermLike
from ..symbolic_tensor import ONE, Index, SymbolicTensor, along, cast, full, reshape, tensor
from .elementwise import elementwise, exp, log, maximum, real, sigmoid, sqrt, where
from .index_rows import matches
from .operator_row import Row, Rows
from .reduction_rows import averaged, logsumexp, matmul, safe_softmax, summed
from .shape_rows import sliced, transpose

ROWS = Rows(__name__)
Size = Sequence[TermLike]


def mul(*xs: Any) -> SymbolicTensor:
    return elementwise(T.mul, *xs)


# ---- normalisation --------------------------------------------------------------------------------------------------
def _statistics(x: SymbolicTensor, dims: Sequence[int], eps: TermLike) -> tuple[SymbolicTensor, SymbolicTensor]:
    """mean and 1 / sqrt(variance + eps) over dims, which stay with size 1."""
    mean = averaged(x, dims, True)
    variance = averaged(real(lambda a, m: (a - m) * (a - m))(x, mean), dims, True)
    return mean, real(lambda v: T.recip(sqrt(v + eps)))(variance)


def _affine(x: SymbolicTensor, weight: SymbolicTensor | None, bias: SymbolicTensor | None) -> SymbolicTensor:
    out = x if weight is None else mul(x, weight)
    return out if bias is None else elementwise(T.add, out, bias)


@ROWS("native_layer_norm")
def _layer_norm(
    input: SymbolicTensor, normalized_shape: Size, weight: Any, bias: Any, eps: TermLike
) -> tuple[SymbolicTensor, ...]:
    dims = [-1 - k for k in range(len(normalized_shape))]
    mean, rstd = _statistics(input, dims, eps)
    normal = real(lambda x, m, r: (x - m) * r)(input, mean, rstd)
    return _affine(normal, weight, bias), mean, rstd


@ROWS("_fused_rms_norm")
def _rms_norm(
    input: SymbolicTensor, normalized_shape: Size, weight: Any, eps: TermLike | None
) -> tuple[SymbolicTensor, ...]:
    if eps is None:
        raise Unsupported("aten._fused_rms_norm without eps", why="PyTorch takes that of a type")
    dims = [-1 - k for k in range(len(normalized_shape))]
    square = averaged(mul(input, input), dims, True)
    rstd = real(lambda v: T.recip(sqrt(v + eps)))(square)
    return _affine(mul(input, rstd), weight, None), rstd


def _centred(g: SymbolicTensor, normal: SymbolicTensor, rstd: SymbolicTensor, dims: Sequence[int]) -> SymbolicTensor:
    """rstd * (g - mean(g) - normal * mean(g * normal)): the gradient through (x - mean) * rstd."""
    return real(lambda a, m, z, s, r: r * (a - m - z * s))(
        g, averaged(g, dims, True), normal, averaged(mul(g, normal), dims, True), rstd
    )


@ROWS("native_layer_norm_backward")
def _layer_norm_backward(
    grad_out: SymbolicTensor, input: SymbolicTensor, normalized_shape: Size, mean: SymbolicTensor, rstd: SymbolicTensor,
    weight: SymbolicTensor | None, bias: SymbolicTensor | None, output_mask: Sequence[bool],
) -> tuple[SymbolicTensor | None, ...]:  # fmt: skip
    inner = [-1 - k for k in range(len(normalized_shape))]
    outer = list(range(input.rank - len(normalized_shape)))
    normal = real(lambda x, m, r: (x - m) * r)(input, mean, rstd)
    dx = _centred(_affine(grad_out, weight, None), normal, rstd, inner)
    column = lambda t: summed(t, outer) if outer else t  # noqa: E731
    return dx, column(mul(grad_out, normal)), column(grad_out)


@ROWS("_fused_rms_norm_backward")
def _rms_norm_backward(
    grad_out: SymbolicTensor,
    input: SymbolicTensor,
    normalized_shape: Size,
    rstd: SymbolicTensor,
    weight: SymbolicTensor | None,
    output_mask: object,
) -> tuple[SymbolicTensor | None, ...]:
    inner = [-1 - k for k in range(len(normalized_shape))]
    outer = list(range(input.rank - len(normalized_shape)))
    normal, g = mul(input, rstd), _affine(grad_out, weight, None)
    dx = real(lambda a, z, s, r: r * (a - z * s))(g, normal, averaged(mul(g, normal), inner, True), rstd)
    weighted = mul(grad_out, normal)
    return dx, summed(weighted, outer) if outer else weighted


def _grouped(x: SymbolicTensor, group: int) -> SymbolicTensor:
    """[N, C, ...] as [N, group, C/group, ...]."""
    return reshape(x, (x.shape[0], group, I.quotient(x.shape[1], T.const(group)), *x.shape[2:]))


def _per_channel(w: SymbolicTensor, group: int, rank: int) -> SymbolicTensor:
    """[C] as [1, group, C/group, 1 ...]."""
    return reshape(w, (1, group, I.quotient(w.shape[0], T.const(group)), *[1] * (rank - 2)))


@ROWS("native_group_norm")
def _group_norm(
    input: SymbolicTensor, weight: Any, bias: Any, N: object, C: object, HxW: object, group: int, eps: TermLike
) -> tuple[SymbolicTensor, ...]:
    x = _grouped(input, group)
    mean, rstd = _statistics(x, range(2, x.rank), eps)
    normal = real(lambda a, m, r: (a - m) * r)(x, mean, rstd)
    w, b = (None if p is None else _per_channel(p, group, input.rank) for p in (weight, bias))
    flat = (input.shape[0], T.const(group))
    return reshape(_affine(normal, w, b), input.shape), reshape(mean, flat), reshape(rstd, flat)


@ROWS("native_group_norm_backward")
def _group_norm_backward(
    grad_out: SymbolicTensor, input: SymbolicTensor, mean: SymbolicTensor, rstd: SymbolicTensor, weight: Any,
    N: object, C: object, HxW: object, group: int, output_mask: object,
) -> tuple[SymbolicTensor, ...]:  # fmt: skip
    x, g = _grouped(input, group), _grouped(grad_out, group)
    spread = (input.shape[0], T.const(group), *[ONE] * (x.rank - 2))
    m, r = reshape(mean, spread), reshape(rstd, spread)
    normal = real(lambda a, b, c: (a - b) * c)(x, m, r)
    scaled = _affine(g, None if weight is None else _per_channel(weight, group, input.rank), None)
    others = [0, *range(3, x.rank)]
    dx = _centred(scaled, normal, r, range(2, x.rank))
    channels = lambda t: reshape(summed(t, others), [input.shape[1]])  # noqa: E731
    return reshape(dx, input.shape), channels(mul(g, normal)), channels(g)


def _batch_norm(
    input: SymbolicTensor, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool, momentum: object,
    eps: TermLike,
) -> tuple[SymbolicTensor, ...]:  # fmt: skip
    column = lambda t: None if t is None else reshape(t, (t.shape[0], *[1] * (input.rank - 2)))  # noqa: E731
    if training:
        mean, rstd = _statistics(input, [d for d in range(input.rank) if d != 1], eps)
        saved = [reshape(t, [input.shape[1]]) for t in (mean, rstd)]
        normal = real(lambda x, m, r: (x - m) * r)(input, mean, rstd)
    else:
        saved = [full((0,), 0, T.REAL)] * 2
        scale = lambda x, m, v: (x - m) * T.recip(sqrt(v + eps))  # noqa: E731
        normal = real(scale)(input, column(running_mean), column(running_var))
    return (_affine(normal, column(weight), column(bias)), *saved)


BATCH_NORM = (
    "input, weight=None, bias=None, running_mean=None, running_var=None, training=False, momentum=None, eps=1e-05"
)

ROWS.add(
    Row("native_batch_norm _native_batch_norm_legit _native_batch_norm_legit_functional", BATCH_NORM, _batch_norm),
    Row(
        "_native_batch_norm_legit_no_training",
        BATCH_NORM.replace("training=False, ", ""),
        lambda x, w, b, mean, variance, momentum, eps: _batch_norm(x, w, b, mean, variance, False, momentum, eps),
    ),
)


# ---- embedding and dropout ------------------------------------------------------------------------------------------
@ROWS("embedding")
def _embedding(
    weight: SymbolicTensor,
    indices: SymbolicTensor,
    padding_idx: object = -1,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> SymbolicTensor:
    row = lambda i: indices.at(i[: indices.rank])  # noqa: E731
    return tensor((*indices.shape, weight.shape[1]), lambda i: weight.at((row(i), i[-1])), weight.type)


@ROWS("embedding_dense_backward")
def _embedding_backward(
    grad_output: SymbolicTensor,
    indices: SymbolicTensor,
    num_weights: TermLike,
    padding_idx: int,
    scale_grad_by_freq: bool,
) -> SymbolicTensor:
    """grad[v, d] = sum of grad_output[j, d] over the positions j whose index is v; none for the padding index."""
    if scale_grad_by_freq:
        raise Unsupported("aten.embedding_dense_backward", why="scale_grad_by_freq")

    def at(i: Index) -> Term:
        total = matches(
            indices.shape, lambda j: T.make("eq", indices.at(j), i[0]), lambda j: grad_output.at((*j, i[1]))
        )
        return total if padding_idx == -1 else where(T.make("eq", i[0], padding_idx), 0, total)

    return tensor((num_weights, grad_output.shape[-1]), at, grad_output.type)


@ROWS("native_dropout dropout")
def _dropout(input: SymbolicTensor, p: Any, train: bool | None = True) -> Any:
    if train and p != 0:
        raise Unsupported("aten.native_dropout", why="random numbers have no formula", help="pass the mask as an input")
    return input, full(input.shape, True)


@ROWS("native_dropout_backward")
def _dropout_backward(grad_output: SymbolicTensor, mask: SymbolicTensor, scale: TermLike) -> SymbolicTensor:
    return real(lambda g, m: g * m * scale)(grad_output, mask)


# ---- losses ---------------------------------------------------------------------------------------------------------
NONE, MEAN, SUM = 0, 1, 2


def _reduced(x: SymbolicTensor, reduction: int) -> SymbolicTensor:
    return x if reduction == NONE else averaged(x) if reduction == MEAN else summed(x)


def _share(grad: SymbolicTensor, x: SymbolicTensor, reduction: int) -> SymbolicTensor:
    """The gradient that reaches each element through the reduction."""
    return real(lambda g: g / I.numel(x.shape))(grad) if reduction == MEAN else grad


def _nll_weights(target: SymbolicTensor, weight: SymbolicTensor | None, ignore_index: int) -> SymbolicTensor:
    """The weight of each row: 0 where the target is ignored."""

    def at(i: Index) -> Term:
        t = target.at(i)
        return where(T.make("ne", t, ignore_index), ONE if weight is None else weight.at((t,)), 0)

    return tensor(target.shape, at, T.REAL)


def _class_dim(self: SymbolicTensor) -> int:
    return 1 if self.rank > 1 else 0


@ROWS("nll_loss_forward nll_loss2d_forward")
def _nll_loss(
    self: SymbolicTensor, target: SymbolicTensor, weight: Any, reduction: int, ignore_index: int
) -> tuple[SymbolicTensor, ...]:
    """-weight[t] * x[n, t], and the total weight."""
    c = _class_dim(self)
    w = _nll_weights(target, weight, ignore_index)

    def row(i: Index) -> Term:
        t = target.at(i)
        taken = self.at((*i[:c], t, *i[c:]))
        scaled = -taken if weight is None else -weight.at((t,)) * taken
        return where(T.make("ne", t, ignore_index), scaled, 0)

    losses, total = tensor(target.shape, row, T.REAL), summed(w)
    if reduction == NONE:
        return losses, full((), 0, T.REAL)
    return (real(T.div)(summed(losses), total) if reduction == MEAN else summed(losses)), total


@ROWS("nll_loss_backward nll_loss2d_backward")
def _nll_loss_backward(
    grad_output: SymbolicTensor,
    self: SymbolicTensor,
    target: SymbolicTensor,
    weight: Any,
    reduction: int,
    ignore_index: int,
    total_weight: SymbolicTensor,
) -> SymbolicTensor:
    c = _class_dim(self)
    w = _nll_weights(target, weight, ignore_index)

    def at(i: Index) -> Term:
        n = i[:c] + i[c + 1 :]
        g = grad_output.at(n if grad_output.rank else ())
        g = g / total_weight.at(()) if reduction == MEAN else g
        return where(T.make("eq", i[c], target.at(n)), -g * w.at(n), 0)

    return tensor(self.shape, at, T.REAL)


@ROWS("mse_loss")
def _mse_loss(self: SymbolicTensor, target: SymbolicTensor, reduction: int = MEAN) -> SymbolicTensor:
    return _reduced(real(lambda a, b: (a - b) * (a - b))(self, target), reduction)


@ROWS("mse_loss_backward")
def _mse_loss_backward(
    grad_output: SymbolicTensor, self: SymbolicTensor, target: SymbolicTensor, reduction: int
) -> SymbolicTensor:
    return real(lambda g, a, b: 2 * g * (a - b))(_share(grad_output, self, reduction), self, target)


@ROWS("l1_loss")
def _l1_loss(self: SymbolicTensor, target: SymbolicTensor, reduction: int = MEAN) -> SymbolicTensor:
    return _reduced(real(lambda a, b: T.make("abs", a - b))(self, target), reduction)


@ROWS("smooth_l1_loss")
def _smooth_l1(
    self: SymbolicTensor, target: SymbolicTensor, reduction: int = MEAN, beta: TermLike = 1
) -> SymbolicTensor:
    def loss(a: Term, b: Term) -> Term:
        d = T.make("abs", a - b)
        return where(T.make("lt", d, beta), 0.5 * d * d / beta, d - 0.5 * T.const(beta))

    return _reduced(real(loss)(self, target), reduction)


@ROWS("huber_loss")
def _huber(self: SymbolicTensor, target: SymbolicTensor, reduction: int = MEAN, delta: TermLike = 1) -> SymbolicTensor:
    def loss(a: Term, b: Term) -> Term:
        d = T.make("abs", a - b)
        return where(T.make("le", d, delta), 0.5 * d * d, delta * (d - 0.5 * T.const(delta)))

    return _reduced(real(loss)(self, target), reduction)


@ROWS("binary_cross_entropy")
def _binary_cross_entropy(
    self: SymbolicTensor, target: SymbolicTensor, weight: Any = None, reduction: int = MEAN
) -> SymbolicTensor:
    """PyTorch's clamp of the logarithms at -100 is kept."""
    low = lambda x: maximum(log(x), -100)  # noqa: E731
    loss = real(lambda p, y: -(y * low(p) + (1 - y) * low(1 - p)))(self, target)
    return _reduced(_affine(loss, weight, None), reduction)


@ROWS("binary_cross_entropy_with_logits")
def _bce_logits(
    self: SymbolicTensor, target: SymbolicTensor, weight: Any = None, pos_weight: Any = None, reduction: int = MEAN
) -> SymbolicTensor:
    """-(p * y * log s(x) + (1 - y) * log s(-x))."""
    positive = target if pos_weight is None else mul(target, pos_weight)
    loss = real(lambda x, y, p: p * log(1 + exp(-x)) + (1 - y) * log(1 + exp(x)))(self, target, positive)
    return _reduced(_affine(loss, weight, None), reduction)


@ROWS("glu")
def _glu(self: SymbolicTensor, dim: int = -1) -> SymbolicTensor:
    half = I.floordiv(self.shape[self.dim(dim)], 2)
    a, b = sliced(self, dim, 0, half), sliced(self, dim, half, half * 2)
    return real(lambda x, y: x * sigmoid(y))(a, b)


# ---- attention ----------------------------------------------------------------------------------------------------
def _per_head(t: SymbolicTensor, query: SymbolicTensor) -> SymbolicTensor:
    """Keys or values of fewer heads, each shared by a group of the query's heads."""
    if t.rank < 4 or t.shape[-3] is query.shape[-3] or t.shape[-3] is ONE:
        return t
    group = I.quotient(query.shape[-3], t.shape[-3])
    return along(t, -3, query.shape[-3], lambda head: I.floordiv(head, group))


@ROWS("_scaled_dot_product_flash_attention_for_cpu _scaled_dot_product_attention_math")
def _attention(
    query: SymbolicTensor, key: SymbolicTensor, value: SymbolicTensor, dropout_p: float = 0.0, is_causal: bool = False,
    attn_mask: SymbolicTensor | None = None, scale: TermLike | None = None,
) -> tuple[SymbolicTensor, SymbolicTensor]:  # fmt: skip
    """softmax(query @ key.T * scale + mask) @ value, and the logarithms of the denominators."""
    if dropout_p:
        raise Unsupported("attention with dropout", why="random numbers have no formula")
    key, value = (_per_head(t, query) for t in (key, value))
    factor = T.recip(sqrt(query.shape[-1])) if scale is None else T.const(scale)
    scores = elementwise(lambda s: s * factor, matmul(query, transpose(key, -2, -1)))
    if is_causal:
        seen = tensor(scores.shape[-2:], lambda i: T.make("le", i[1], i[0]), T.BOOL)
        scores = elementwise(lambda m, s: where(T.make("ne", m, 0), s, -float("inf")), seen, scores)
    if attn_mask is not None:
        scores = elementwise(T.add, scores, cast(attn_mask, T.REAL))
    return matmul(safe_softmax(scores, -1), value), logsumexp(scores, -1)
