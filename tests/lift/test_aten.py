# ruff: noqa: E501 - tables, one sample a line
"""Every operator of PyTorch that we read: its formula, found at symbolic sizes, gives PyTorch's own numbers at two shapes;
and its meaning at concrete shapes gives them operator by operator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from trilift.lift.capture.trace import Buffer, TensorRef
from trilift.lift.cases.declaration import make_case
from trilift.lift.errors import Unsupported
from trilift.lift.language.evaluate import evaluate
from trilift.lift.pytorch import concrete, read
from trilift.lift.pytorch.aten import operators
from trilift.lift.pytorch.symbols import dtype_name
from trilift.lift.terms import construct as T
from trilift.lift.terms.domain import FLOAT64, Ids

SHAPES = [{"B": 2, "M": 3, "N": 5, "K": 4, "D": 6}, {"B": 3, "M": 4, "N": 7, "K": 2, "D": 5}]
X, XY = {"x": "f64[M,N]"}, {"x": "f64[M,N]", "y": "f64[M,N]"}
POSITIVE = {"x": "f64[M,N] in (0.1, 0.9)"}
INT, INTS = {"x": "i64[M,N] in (-9, 9)"}, {"x": "i64[M,N] in (-9, 9)", "y": "i64[M,N] in (1, 9)"}
Sample = tuple[Callable[..., Any], dict[str, str]]
SAMPLES: dict[str, Sample] = {}


def unary(names: str, specs: dict[str, str], more: dict[str, Any] | None = None) -> None:
    for name in names.split():
        f = getattr(torch, name, None) or getattr(F, name)
        SAMPLES[name] = (lambda x, f=f: f(x, **(more or {})), specs)


def binary(names: str, specs: dict[str, str]) -> None:
    for name in names.split():
        f = getattr(torch, name)
        SAMPLES[name] = (lambda x, y, f=f: f(x, y), specs)


def gradient(f: Callable[..., Any]) -> Callable[..., Any]:
    """The gradients of f with respect to its real arguments, weighted by dy."""

    def g(dy: Any, **args: Any) -> Any:
        args = {k: v.detach().requires_grad_() if v.is_floating_point() else v for k, v in args.items()}
        return torch.autograd.grad(f(**args), [v for v in args.values() if v.is_floating_point()], dy)

    return g


unary(
    "neg abs sign exp exp2 expm1 sin cos tan atan sinh cosh tanh erf floor ceil trunc round frac square sgn positive", X
)
unary(
    "sigmoid relu silu mish hardsigmoid hardswish softplus logsigmoid erfc gelu elu leaky_relu hardtanh relu6 selu celu",
    X,
)
unary(
    "isnan isinf isfinite isposinf isneginf signbit sinc angle deg2rad rad2deg softsign tanhshrink softshrink hardshrink nan_to_num",
    X,
)
unary("reciprocal log log2 log1p log10 sqrt rsqrt asin acos logit", POSITIVE)
unary("sum mean prod amax amin argmax argmin var std max min all any count_nonzero std_mean var_mean logical_not", X)
binary(
    "add sub mul div maximum minimum fmax fmin atan2 eq ne lt le gt ge logaddexp logaddexp2 hypot remainder fmod floor_divide copysign xlogy heaviside",
    {"x": "f64[M,N]", "y": "f64[M,N] in (0.1, 2)"},
)
binary("bitwise_and bitwise_or bitwise_xor remainder fmod floor_divide logical_and logical_or logical_xor", INTS)
SAMPLES.update({
    "gelu_tanh": (lambda x: F.gelu(x, approximate="tanh"), X),
    "alpha": (lambda x, y: torch.add(x, y, alpha=3) + torch.sub(x, y, alpha=2) + torch.rsub(x, 2, alpha=4), XY),
    "broadcast": (lambda x, y: x[:, None, :] * y + 1, {"x": "f64[M,N]", "y": "f64[K,1]"}),
    "rounding": (lambda x, y: torch.div(x, y, rounding_mode="floor") + torch.div(x, y, rounding_mode="trunc"), INTS),
    "rounding real": (lambda x: torch.div(x, 0.3, rounding_mode="floor") + torch.div(x, 0.3, rounding_mode="trunc"), X),
    "powers": (lambda x: x**2 + x**3 + x**-1 + x**0.5 + x**1.5 + x**-0.5 + x**5 + x**0 + 2**x + x**x, POSITIVE),
    "shifts": (lambda x, y: (x << 2) + (x >> 1) + (~x) + (x ^ y), INTS),
    "bools": (lambda x: ((x > 0) & (x < 1)) | ~(x > -1) ^ (x == 0), X),
    "bool arithmetic": (lambda x: (x > 0) * 2 + (x > 0).sum() + (x > 0).float().mean() + ((x > 0) != (x > 1)), X),
    "bool equality": (lambda x: (((x > 0) == 0), (x > 0) != 0, (x > 0) == (x > 1), (x > 0) == 1, (x > 0) == 2, x == 0), X),
    "where": (lambda x, y: torch.where(x > y, x, y.new_zeros(())) + torch.where(x > 0, 1.0, 2.0), XY),
    "masked_fill": (lambda x: x.masked_fill(x > 0, -1.0).masked_fill_(x < -1, 2.0), X),
    "clamp": (lambda x: x.clamp(-0.5, 0.5) + x.clamp(min=0) + x.clamp(max=0) + torch.clamp(x, x.new_zeros(()), None), X),
    "threshold": (lambda x: F.threshold(x, 0.1, 20.0), X),
    "lerp": (lambda x, y: torch.lerp(x, y, 0.3) + torch.lerp(x, y, x), XY),
    "addc": (lambda x, y: torch.addcmul(x, x, y, value=2) + torch.addcdiv(x, x, y.abs() + 1, value=3), XY),
    "round2": (lambda x: torch.round(x, decimals=2), X),
    "sums": (lambda x: (x.sum(0), x.sum(-1, keepdim=True), x.sum((0, 1)), x.mean(1), x.mean((0, 1), keepdim=True)), X),
    "extrema": (lambda x: (*x.max(1), *x.min(0, keepdim=True), x.amax((0, 1)), x.argmax(1), x.argmin(0, keepdim=True)), X),
    "topk1": (lambda x: x.topk(1, -1), X),
    "any all": (lambda x: ((x > 0).any(1), (x > -2).all(0), x.any(), (x > 0).all()), X),
    "moments": (lambda x: (x.var(1), x.var(0, correction=0), x.std(1, keepdim=True), *torch.var_mean(x, 1, unbiased=False)), X),
    "logsumexp": (lambda x: (x.logsumexp(1), x.logsumexp((0, 1), keepdim=True)), X),
    "norms": (lambda x: (x.norm(), x.norm(dim=1), x.norm(1, -1), torch.linalg.vector_norm(x, float("inf"), 1), x.norm(3)), X),
    "scans": (lambda x: (x.cumsum(1), x.cumsum(0), x.cumprod(-1), x.logcumsumexp(1)), X),
    "running extrema": (lambda x: (*x.cummax(1), *x.cummin(0)), X),
    "softmax": (lambda x: (x.softmax(1), x.log_softmax(0), F.softmin(x, -1)), X),
    "normalize": (lambda x: F.normalize(x, dim=-1), X),
    "cosine": (lambda x, y: F.cosine_similarity(x, y, dim=1), XY),
    # products
    "mm": (lambda x, y: (x @ y, torch.mm(x, y)), {"x": "f64[M,N]", "y": "f64[N,K]"}),
    "bmm": (lambda x, y: (x @ y, torch.bmm(x, y)), {"x": "f64[B,M,N]", "y": "f64[B,N,K]"}),
    "matmul4": (lambda x, y: x @ y.transpose(-1, -2), {"x": "f64[B,M,N,D]", "y": "f64[B,M,K,D]"}),
    "matmul broadcast": (lambda x, y: x @ y, {"x": "f64[B,M,N]", "y": "f64[N,K]"}),
    "addmm": (lambda b, x, y: torch.addmm(b, x, y, beta=2, alpha=3), {"b": "f64[K]", "x": "f64[M,N]", "y": "f64[N,K]"}),
    "baddbmm": (lambda b, x, y: torch.baddbmm(b, x, y), {"b": "f64[M,K]", "x": "f64[B,M,N]", "y": "f64[B,N,K]"}),
    "dot mv": (lambda x, y: (x @ y, torch.dot(y, y), torch.mv(x, y), torch.outer(y, y)), {"x": "f64[M,N]", "y": "f64[N]"}),
    "addmv": (lambda b, x, y: torch.addmv(b, x, y), {"b": "f64[M]", "x": "f64[M,N]", "y": "f64[N]"}),
    "linear": (lambda x, w, b: F.linear(x, w, b), {"x": "f64[B,M,N]", "w": "f64[K,N]", "b": "f64[K]"}),
    "einsum": (lambda x, y: torch.einsum("bij,bkj->ik", x, y), {"x": "f64[B,M,N]", "y": "f64[B,K,N]"}),
    "einsum trace": (lambda x, y: torch.einsum("...ij,...jk->...ik", x, y), {"x": "f64[B,M,N]", "y": "f64[B,N,K]"}),
    # views
    "view": (lambda x: (x.view(-1), x.reshape(x.shape[1], -1), x.view(-1, x.shape[2]), x.flatten(1)), {"x": "f64[B,M,D]"}),
    "heads": (lambda x: x.view(x.shape[0], -1, 4).transpose(0, 1).reshape(x.shape[1] // 4, -1), {"x": "f64[M,4*D]"}),
    "unflatten": (lambda x: x.unflatten(1, (2, -1)).sum(1), {"x": "f64[M,2*D]"}),
    "dims": (lambda x: x.unsqueeze(0).squeeze(0).unsqueeze(-1).squeeze().t().permute(1, 0).movedim(0, 1).mT, X),
    "expand": (lambda x: x[:, None].expand(-1, 3, -1) + x.unsqueeze(1).expand(x.shape[0], 3, x.shape[1]), X),
    "slices": (lambda x: (x[1], x[:, -1], x[:, 1:], x[:-1], x[:, ::2], x[1:3, 1:4], x[..., -2:]), X),
    "pieces": (lambda x: (*x.split(2, 1), *x.chunk(3, 1), *x.unbind(1), *x.split([1, 5], 1)), {"x": "f64[M,6]"}),
    "chunk": (lambda x: x.chunk(2, -1), {"x": "f64[M,2*D]"}),
    "diagonal": (lambda x: (x.diagonal(), x.diagonal(1, 1, 0), torch.diag_embed(x[0])), {"x": "f64[N,N]"}),
    "unfold": (lambda x: x.unfold(1, 3, 2), X),
    "cat": (lambda x, y: (torch.cat([x, y], 0), torch.cat([x, x * 2, y], 0), torch.stack([x, x], 1)), {"x": "f64[M,N]", "y": "f64[K,N]"}),
    "pads": (lambda x: (F.pad(x, (1, 2), value=3.0), F.pad(x, (0, 0, 2, 1)), F.pad(x, (-1, 1))), X),
    "flips": (lambda x: (x.flip(0), x.flip(0, 1), x.roll(1, 1), x.roll((1, -2), (0, 1)), x.roll(3)), X),
    "repeats": (lambda x: (x.repeat(2, 3), x.repeat(2, 1, 1), x.repeat_interleave(2, 1), x.tile(1, 2), x.repeat_interleave(3)), X),
    "triangles": (lambda x: (x.tril(), x.triu(1), x.tril(-1), (x > 0).tril()), X),
    # creation
    "likes": (lambda x: (torch.zeros_like(x), torch.ones_like(x), torch.full_like(x, 2), x.new_zeros(3), x.new_ones(2), x.new_full((2,), 5.0)), X),
    "creation": (lambda x: (torch.zeros(2, 3), torch.ones(x.shape[0]), torch.full((2,), 1.5), torch.eye(x.shape[1]), torch.eye(3, 2)), X),
    "ranges": (lambda x: (torch.arange(x.shape[1]), torch.arange(2, 9, 3), torch.arange(5, 0, -2), torch.linspace(0, 1, 5)), X),
    "constants": (lambda x: x[0, :3] * torch.tensor([1.0, 2.0, 3.0]) + torch.tensor(2.0), X),
    "one_hot": (lambda x, i: (F.one_hot(i, 7), F.one_hot(i, x.shape[1])), {"x": "f64[M,N]", "i": "i64[M] < 5"}),
    "casts": (lambda x: (x.to(torch.int64), x.float(), x.bool(), (x > 0).to(torch.int32), x.long().double() / 2), X),
    "narrow casts": (lambda x: (x.to(torch.int8), (x * 300).to(torch.uint8), (x % 7).to(torch.int8), x.clamp(-9, 9).to(torch.int16)), {"x": "i64[M,N] in (-999, 999)"}),
    "unpacking": (lambda x: torch.stack([x & 15, (x >> 4).to(torch.uint8)], 1).to(torch.int32) - 8, {"x": "u8[M,N] in (0, 255)"}),
    "empty": (lambda x: torch.empty_like(x).copy_(x) + torch.empty(x.shape, dtype=x.dtype).fill_(2.0).zero_(), X),
    "copies": (lambda x: x.clone().detach().contiguous().add_(1).mul_(2).relu_().sub_(x), X),
    # indexing
    "index_select": (lambda x, i: (x.index_select(0, i), x[i], x[:, i[:2] * 0]), {"x": "f64[M,N]", "i": "i64[K] < M"}),
    "index": (lambda x, i, j: (x[i, j], x[i[:, None], j[None, :]], x[:, i - 2]), {"x": "f64[M,N]", "i": "i64[K] < M", "j": "i64[K] < N"}),
    "index apart": (lambda x, i: x[i, :, i], {"x": "f64[M,N,M]", "i": "i64[K] < M"}),
    "gather": (lambda x, i: (x.gather(1, i), torch.take(x, i)), {"x": "f64[M,N]", "i": "i64[M,K] < N"}),
    "take_along_dim": (lambda x, i: torch.take_along_dim(x, i[:, None], 1), {"x": "f64[M,N]", "i": "i64[M] < N"}),
    "scatter": (lambda x, i: (x.scatter(1, i, 9.0), x.scatter_add(1, i, x), x.scatter(1, i, x, reduce="add")), {"x": "f64[M,N]", "i": "i64[M,N] < N"}),
    "scatter last": (lambda x, i: x.scatter(1, i, x * 2), {"x": "f64[M,N]", "i": "i64[M,1] < N"}),
    "scatter_reduce": (lambda x, i: x.scatter_reduce(1, i, x, "sum"), {"x": "f64[M,N]", "i": "i64[M,N] < N"}),
    "index_add": (lambda x, i, y: x.index_add(0, i, y, alpha=2), {"x": "f64[M,N]", "i": "i64[K] < M", "y": "f64[K,N]"}),
    "index_copy": (lambda x, i, y: (x.index_copy(0, i, y), x.index_fill(0, i, 3.0)), {"x": "f64[M,N]", "i": "i64[1] < M", "y": "f64[1,N]"}),
    "index_put": (lambda x, i, y: x.index_put((i,), y, accumulate=True), {"x": "f64[M,N]", "i": "i64[K] < M", "y": "f64[K,N]"}),
    "assignment": (lambda x, i, y: _assigned(x.clone(), i, y), {"x": "f64[M,N]", "i": "i64[1] < M", "y": "f64[1,N]"}),
    "isin": (lambda x, y: torch.isin(x, y), {"x": "i64[M,N] in (0, 9)", "y": "i64[K] in (0, 9)"}),
    # networks
    "layer_norm": (lambda x, w, b: F.layer_norm(x, (x.shape[-1],), w, b), {"x": "f64[M,N]", "w": "f64[N]", "b": "f64[N]"}),
    "layer_norm 2d": (lambda x: F.layer_norm(x, x.shape[1:]), {"x": "f64[B,M,N]"}),
    "rms_norm": (lambda x, w: F.rms_norm(x, (x.shape[-1],), w, 1e-6), {"x": "f64[M,N]", "w": "f64[N]"}),
    "group_norm": (lambda x, w, b: F.group_norm(x, 2, w, b), {"x": "f64[B,2*K,N]", "w": "f64[2*K]", "b": "f64[2*K]"}),
    "batch_norm": (lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True), {"x": "f64[B,K,N]", "w": "f64[K]", "b": "f64[K]"}),
    "batch_norm inference": (lambda x, m, v: F.batch_norm(x, m, v), {"x": "f64[B,K,N]", "m": "f64[K]", "v": "f64[K] > 0"}),
    "instance_norm": (lambda x: F.instance_norm(x), {"x": "f64[B,K,N]"}),
    "embedding": (lambda w, i: F.embedding(i, w), {"w": "f64[N,D]", "i": "i64[B,M] < N"}),
    "dropout off": (lambda x: F.dropout(x, 0.5, training=False), X),
    "conv1d": (lambda x, w, b: F.conv1d(x, w, b, stride=2, padding=1), {"x": "f64[B,K,N]", "w": "f64[D,K,3]", "b": "f64[D]"}),
    "conv groups": (lambda x, w: F.conv1d(x, w, padding=2, groups=2, dilation=2), {"x": "f64[B,2*K,N]", "w": "f64[4,K,3]"}),
    "conv depthwise": (lambda x, w: F.conv1d(x, w, padding=2, groups=4)[..., :-2], {"x": "f64[B,4,N]", "w": "f64[4,1,3]"}),
    "conv2d": (lambda x, w: F.conv2d(x, w, padding=(1, 0)), {"x": "f64[B,2,M,N]", "w": "f64[K,2,3,2]"}),
    "conv_transpose": (lambda x, w: F.conv_transpose1d(x, w, stride=2, padding=1), {"x": "f64[B,K,N]", "w": "f64[K,D,3]"}),
    "pools": (lambda x: (F.max_pool1d(x, 2), F.avg_pool1d(x, 3, 2, 1), F.avg_pool1d(x, 3, 1, 1, count_include_pad=False)), {"x": "f64[B,M,N]"}),
    "pools2d": (lambda x: (*F.max_pool2d(x, (3, 2), 1, 1, return_indices=True),  F.avg_pool2d(x, 2), F.adaptive_avg_pool2d(x, 1)), {"x": "f64[B,1,M,N]"}),
    "glu": (lambda x: F.glu(x, -1), {"x": "f64[M,2*D]"}),
    "attention": (lambda q, k, v: F.scaled_dot_product_attention(q, k, v), {"q": "f64[B,2,M,D]", "k": "f64[B,2,N,D]", "v": "f64[B,2,N,K]"}),
    "masked": (lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, attn_mask=m & (torch.arange(q.shape[1]) > 0)[:, None]), {"q": "f64[B,M,D]", "k": "f64[B,N,D]", "v": "f64[B,N,K]", "m": "bool[M,N]"}),
    "gqa": (lambda q, k, v: F.scaled_dot_product_attention(q, k, v, enable_gqa=True), {"q": "f64[B,2*K,M,D]", "k": "f64[B,K,N,D]", "v": "f64[B,K,N,D]"}),
    "causal": (lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.3), dict.fromkeys("qkv", "f64[B,2,M,D]")),
    # losses
    "cross_entropy": (lambda x, i: F.cross_entropy(x, i), {"x": "f64[M,N]", "i": "i64[M] < N"}),
    "cross_entropy more": (lambda x, i, w: (F.cross_entropy(x, i, w, reduction="none"), F.cross_entropy(x, i, reduction="sum", ignore_index=1), F.cross_entropy(x, i, w, label_smoothing=0.1)), {"x": "f64[M,N]", "i": "i64[M] < N", "w": "f64[N] > 0"}),
    "cross_entropy soft": (lambda x, y: F.cross_entropy(x, y), XY),
    "losses": (lambda x, y: (F.mse_loss(x, y), F.l1_loss(x, y), F.smooth_l1_loss(x, y), F.huber_loss(x, y, delta=0.7), F.mse_loss(x, y, reduction="none")), XY),
    "bce": (lambda x, y: (F.binary_cross_entropy(x, y), F.binary_cross_entropy_with_logits(x, y)), {"x": "f64[M] in (0.1, 0.9)", "y": "f64[M] in (0, 1)"}),
    "kl": (lambda x, y: (F.kl_div(x, y, reduction="batchmean"), F.kl_div(x, y, reduction="sum", log_target=True)), {"x": "f64[M,N]", "y": "f64[M,N] in (0.1, 1)"}),
    "margins": (lambda x, y: (F.hinge_embedding_loss(x, y.sign()), F.soft_margin_loss(x, y.sign())), XY),
})  # fmt: skip
DY = {"dy": "f64[M,N]", "x": "f64[M,N]"}
for _name in [
    "sigmoid",
    "tanh",
    "relu",
    "silu",
    "hardswish",
    "hardsigmoid",
    "softplus",
    "logsigmoid",
    "gelu",
    "elu",
    "leaky_relu",
    "hardtanh",
    "exp",
    "root",
    "erf",
    "mish",
]:
    _f = getattr(F, _name, None) or getattr(torch, _name, None) or (lambda x: (x * x + 1).sqrt())
    SAMPLES[f"d {_name}"] = (gradient(lambda x, f=_f: f(x)), DY)
SAMPLES.update({
    "d gelu_tanh": (gradient(lambda x: F.gelu(x, approximate="tanh")), DY),
    "d softmax": (gradient(lambda x: x.softmax(-1) + x.log_softmax(0)), DY),
    "d layer_norm": (gradient(lambda x, w, b: F.layer_norm(x, (x.shape[-1],), w, b)), DY | {"w": "f64[N]", "b": "f64[N]"}),
    "d rms_norm": (gradient(lambda x, w: F.rms_norm(x, (x.shape[-1],), w)), DY | {"w": "f64[N]"}),
    "d group_norm": (gradient(lambda x, w, b: F.group_norm(x, 2, w, b)), {"dy": "f64[B,2*K,N]", "x": "f64[B,2*K,N]", "w": "f64[2*K]", "b": "f64[2*K]"}),
    "d conv1d": (gradient(lambda x, w, b: F.conv1d(x, w, b, padding=1)), {"dy": "f64[B,D,N]", "x": "f64[B,K,N]", "w": "f64[D,K,3]", "b": "f64[D]"}),
    "d embedding": (gradient(lambda w, i: F.embedding(i, w)), {"dy": "f64[B,M,D]", "w": "f64[N,D]", "i": "i64[B,M] < N"}),
    "d cross_entropy": (gradient(lambda x, i: F.cross_entropy(x, i)), {"dy": "f64[]", "x": "f64[M,N]", "i": "i64[M] < N"}),
    "d losses": (gradient(lambda x, y: F.mse_loss(x, y) + F.smooth_l1_loss(x, y)), {"dy": "f64[]", **XY}),
    "d matmul": (gradient(lambda x, w: x @ w.T), {"dy": "f64[M,K]", "x": "f64[M,N]", "w": "f64[K,N]"}),
    "d shapes": (gradient(lambda x: torch.cat([x[:, 1:], x[:, :1]], 1).t().flip(0).t() * x.cumsum(1)), DY),
    "d views": (gradient(lambda x: x.view(-1).unfold(0, 2, 1).sum(1)[0] + x.diagonal().sum() + x[0, 1] + x.max(1)[0].sum()), {"dy": "f64[]", "x": "f64[M,N]"}),
    "d gather": (gradient(lambda x, i: x.gather(1, i) + x[i[:, 0]][:, :1] + x.index_select(0, i[:, 0])[:, :1]), {"dy": "f64[M,K]", "x": "f64[M,N]", "i": "i64[M,K] < 2"}),
    "d attention": (gradient(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True)), dict.fromkeys(("dy", "q", "k", "v"), "f64[B,2,M,D]")),
    "d reductions": (gradient(lambda x: x.var(1) + x.norm(dim=1) + x.logsumexp(1) + x.mean(1) + x.prod(1) + x.amax(1)), {"dy": "f64[M]", "x": "f64[M,N]"}),
})  # fmt: skip


def _assigned(x: torch.Tensor, i: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    x[:, 0] = 1.0
    x[1:, 2:4] += 2
    x[x > 1] = -1.0
    x[i] = y
    x.diagonal().mul_(3)
    return x


def outputs_of(out: Any) -> list[torch.Tensor]:
    return [out] if isinstance(out, torch.Tensor) else list(out)


def as_array(x: torch.Tensor) -> np.ndarray:
    return x.detach().numpy() if x.dtype == torch.bool else x.detach().double().numpy()


@pytest.mark.parametrize("name", SAMPLES)
def test_formula_gives_the_numbers_of_pytorch(name: str) -> None:
    f, specs = SAMPLES[name]
    case = make_case(name, f, specs)
    formulas = read.read_case(case, f).formulas
    for dims in SHAPES:
        args = case.sample(dims, np.random.default_rng(1))
        with torch.no_grad() if not name.startswith("d ") else torch.enable_grad():
            expected = outputs_of(f(**args))
        assert len(formulas) == len(expected)
        inputs = {k: as_array(v) if v.is_floating_point() else v.numpy() for k, v in args.items()}
        for formula, want in zip(formulas, expected, strict=True):
            got = evaluate(formula.term, formula.axes, inputs, dims)
            assert got.shape == tuple(want.shape)
            np.testing.assert_allclose(got.astype(np.float64), as_array(want).astype(np.float64), rtol=1e-6, atol=1e-7)


EDGES = torch.tensor([-20.0, -6, -4, -3, -2, -1, -0.5, 0, 0.25, 0.5, 1, 2, 3, 4, 5, 6, 19, 20], dtype=torch.float64)
PIECES = "relu relu6 hardswish hardsigmoid hardtanh leaky_relu elu celu selu softplus softshrink hardshrink logsigmoid"


@pytest.mark.parametrize("name", [*PIECES.split(), *(f"d {n}" for n in PIECES.split())])
def test_formulas_at_the_edges_of_pieces(name: str) -> None:
    f = getattr(F, name.removeprefix("d "))
    plain = lambda x: f(x)  # noqa: E731
    fn, specs = (gradient(plain), DY) if name.startswith("d ") else (plain, {"x": "f64[M,N]"})
    x = EDGES.reshape(3, 6)
    given = {"dy": 1.5 + x.abs(), "x": x} if name.startswith("d ") else {"x": x}
    (formula,) = read.read_case(make_case(name, fn, specs), fn).formulas
    (want,) = outputs_of(fn(**given))
    got = evaluate(formula.term, formula.axes, {k: as_array(v) for k, v in given.items()}, {"M": 3, "N": 6})
    np.testing.assert_allclose(got.astype(np.float64), as_array(want), rtol=1e-6, atol=1e-7)


def test_an_output_that_is_a_text_is_not_supported() -> None:
    f = lambda x: ("text",)  # noqa: E731
    case = make_case("f", f, {"x": "f32[N]"})
    with pytest.raises(Unsupported, match="an output that is a text"):
        read.read_case(case, f)


def test_a_text_beside_a_tensor_is_left_out() -> None:
    f = lambda x: ("text", 2 * x, 3)  # noqa: E731
    (formula,) = read.read_case(make_case("f", f, {"x": "f32[N]"}), f).formulas
    assert str(formula.term) == "mul(2, x[n])"


def test_functions_of_integers_beyond_64_bits() -> None:
    assert FLOAT64.apply("exp", np.array([-(10**30)])) == 0 and FLOAT64.apply("div", np.array([10**30]), 2.0) == 5e29


def ref(t: torch.Tensor) -> TensorRef:
    buffer = Buffer(t.data_ptr(), t.untyped_storage().nbytes(), "x", t)
    return TensorRef(t.data_ptr(), tuple(t.shape), tuple(t.stride()), dtype_name(t.dtype), buffer)


class Compared(TorchDispatchMode):
    """Every operator that runs is also given its meaning, at the shapes at hand."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        contents: dict[int, np.ndarray] = {}

        def lifted(x: Any) -> Any:
            if isinstance(x, torch.Tensor):
                r = ref(x)
                contents[id(r)] = x.detach().numpy().copy()
                keep.append(r)
                return r
            return type(x)(map(lifted, x)) if isinstance(x, list | tuple) else x

        keep: list[TensorRef] = []
        symbolic = lifted(tuple(args)), {k: lifted(v) for k, v in kwargs.items()}
        out = func(*args, **kwargs)
        if operators.has_row(func) and "empty" not in func._schema.name:
            self.compare(func, symbolic, contents, out)
        return out

    def compare(self, func: Any, symbolic: Any, contents: dict[int, np.ndarray], out: Any) -> None:
        got = concrete.meaning(func, *symbolic, lambda r: contents[id(r)], FLOAT64)
        self.seen.add(operators.packet(func))
        for g, want in zip(got, out if isinstance(out, tuple | list) else (out,), strict=False):
            if g is not None and want is not None and want.numel() and tuple(g.shape) == tuple(want.shape):
                tolerance = 1e-4 if want.dtype == torch.float32 else 1e-7
                np.testing.assert_allclose(
                    np.asarray(g, np.float64), as_array(want).astype(np.float64), rtol=1e-5, atol=tolerance
                )


@pytest.mark.parametrize("name", SAMPLES)
def test_meaning_gives_the_numbers_of_pytorch(name: str) -> None:
    f, specs = SAMPLES[name]
    args = make_case(name, f, specs).sample(SHAPES[0], np.random.default_rng(2))
    with Compared():
        f(**args)


A = torch.ops.aten
G = torch.Generator().manual_seed(0)
R = {
    n: torch.rand(n, dtype=torch.float64, generator=G) + 0.1
    for n in [(3, 5), (4, 5), (5,), (2, 4, 5), (1, 2, 4, 6, 6), (3, 1)]
}
I3 = torch.tensor([2, 0, 1])
DIRECT: list[tuple[Any, tuple[Any, ...]]] = [
    (A._fused_rms_norm.default, (R[3, 5], [5], R[5,], 1e-6)),
    (A.matmul.default, (R[2, 4, 5], R[5,])),
    (A.matmul.default, (R[5,], R[4, 5].t())),
    (A.linear.default, (R[3, 5], R[4, 5], None)),
    (A.chunk.default, (R[4, 5], 3, 1)),
    (A.flatten.using_ints, (R[2, 4, 5], 1, 2)),
    (A.unflatten.int, (R[2, 4, 5], 1, [2, -1])),
    (A.one_hot.default, (I3, 4)),
    (A.narrow.default, (R[3, 5], 1, 1, 3)),
    (A.tile.default, (R[3, 5], [2, 1])),
    (A.repeat_interleave.self_int, (R[3, 5], 2, 0)),
    (A.softmax.int, (R[3, 5], 0)),
    (A.log_softmax.int, (R[3, 5], 1)),
    (A.vdot.default, (R[5,], R[5,])),
    (A.select_scatter.default, (R[3, 5], R[5,], 0, -1)),
    (A.slice_scatter.default, (R[3, 5], R[3, 1].expand(3, 2), 1, 1, 4, 2)),
    (A.diagonal_scatter.default, (R[3, 5], R[5,][:3], 1)),
    (A.diagonal_copy.default, (R[3, 5], -1)),
    (A.nll_loss2d_forward.default, (R[1, 2, 4, 6, 6][:, :, 0], torch.ones(1, 6, 6, dtype=torch.int64), None, 1, -100)),
    (A.native_dropout_backward.default, (R[3, 5], R[3, 5] > 0.5, 2.0)),
    (A.asinh.default, (R[3, 5],)),
    (A.acosh.default, (R[3, 5] + 1,)),
    (A.atanh.default, (R[3, 5] / 2,)),
    (A.avg_pool3d.default, (R[1, 2, 4, 6, 6], [2, 2, 3])),
    (A.max_pool3d_with_indices.default, (R[1, 2, 4, 6, 6], [2, 2, 3], [1, 2, 3])),
    (A._adaptive_avg_pool2d.default, (R[1, 2, 4, 6, 6][0], [3, 2])),
    (A.norm.Scalar, (R[3, 5], 2)),
    (A.bitwise_left_shift.Tensor_Scalar, (I3, 2)),
    (A.true_divide.Tensor, (R[3, 5], R[5,])),
    (A.logit_backward.default, (R[3, 5], R[3, 5] / 2)),
    (A.sum.dim_IntList, (R[3, 5] > 0.5, [1])),
    (A.sum.default, (R[3, 5] > 0.5,)),
    (A._index_put_impl_.default, (R[3, 5].clone(), [I3], R[5,], False)),
    (A.new_empty_strided.default, (R[3, 5], [0, 2], [2, 1])),
    (A.addr.default, (R[3, 5], R[5,][:3], R[5,])),
    (A.renorm.default, (R[3, 5], 2, 0, 0.5)),
]  # fmt: skip


@pytest.mark.parametrize("k", range(len(DIRECT)))
def test_operator_gives_the_numbers_of_pytorch(k: int) -> None:
    func, args = DIRECT[k]
    contents: dict[int, np.ndarray] = {}
    keep = []

    def lifted(x: Any) -> Any:
        if isinstance(x, torch.Tensor):
            keep.append(ref(x))
            contents[id(keep[-1])] = x.numpy().copy()
            return keep[-1]
        return [lifted(e) for e in x] if isinstance(x, list) else x

    got = concrete.meaning(func, [lifted(a) for a in args], {}, lambda r: contents[id(r)], FLOAT64)
    for g, want in zip(got, outputs_of(func(*args)), strict=True):
        np.testing.assert_allclose(np.asarray(g, np.float64), as_array(want).astype(np.float64), rtol=1e-6, atol=1e-7)


def symbolic(name: str, shape: tuple[int, ...], of_type: str = T.REAL) -> Ids:
    out = np.empty(shape, np.int32)
    for i in np.ndindex(*shape):
        out[i] = T.read(name, i, of_type).id
    return Ids(out)


def test_meaning_on_terms() -> None:
    a, i = ref(torch.zeros(2, 3)), ref(torch.zeros(2, dtype=torch.int64))
    arrays = {a: symbolic("a", (2, 3)), i: symbolic("i", (2,), T.INT)}
    (total,) = concrete.meaning(torch.ops.aten.sum.dim_IntList, (a, [1]), {}, arrays.__getitem__)
    assert str(total.terms()[0]) == "add(a[0, 0], a[0, 1], a[0, 2])"
    (rows,) = concrete.meaning(torch.ops.aten.index.Tensor, (a, [i]), {}, arrays.__getitem__, indices=["i"])
    assert str(rows.terms()[1, 2]) == "a[i[1], 2]"
    twice = symbolic("a", (2, 3)).ids.copy()
    twice[0, 0] = T.add(T.read("a", (0, 0)), 1).id
    arrays[a] = Ids(twice)
    (rows,) = concrete.meaning(torch.ops.aten.index_select.default, (a, 0, i), {}, arrays.__getitem__, indices=["i"])
    assert rows.terms()[0, 0].op == "pick"


def test_unknown_operator_is_named() -> None:
    x = ref(torch.zeros(3))
    with pytest.raises(Unsupported, match=r"aten\.sort"):
        concrete.meaning(torch.ops.aten.sort.default, (x,), {}, lambda r: symbolic("x", (3,)))
    with pytest.raises(Unsupported, match=r"aten\.native_dropout"):
        concrete.meaning(torch.ops.aten.native_dropout.default, (x, 0.5, True), {}, lambda r: symbolic("x", (3,)))
