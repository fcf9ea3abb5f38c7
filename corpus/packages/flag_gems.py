"""flag-gems: replacements of PyTorch's operators. The reference of each is the operator of the same name.

Many of its elementwise kernels are generated when they are first called.
"""

from __future__ import annotations

import importlib
import os

import torch
import torch.nn.functional as F

from trilift import case

from ._setup import gradients, package


def before() -> None:
    os.environ["GEMS_VENDOR"] = "nvidia"


def after() -> None:
    """Block pointers are gone from Triton, so the generator is told not to use them. The tuner and the kernel cache,
    which time kernels and launch what was compiled before, step aside. Random numbers get a fixed seed and offset."""
    for configuration in importlib.import_module("flag_gems.utils.codegen_config_utils").CODEGEN_COFIGS.values():
        if configuration is not None:
            configuration.prefer_block_pointer = False
    entry = importlib.import_module("flag_gems.utils.libentry")
    entry.LibEntry.run = lambda self, *args, **options: (self.fn.run(*args, **options), {})
    if "run" in vars(entry.LibTuner):
        del entry.LibTuner.run
    importlib.import_module("flag_gems.ops.dropout").philox_backend_seed_offset = lambda *args, **options: (7, 0)


ops = package("flag_gems.ops", "flag-gems", before, after)
fused = package("flag_gems.fused", "flag-gems", before, after)
EPS = 1e-5
MN = "f32[M,N]"


def define(name, host, reference, **parameters):
    """A case from its host function and its reference (or None), both called with the parameters by name."""
    host.__name__ = name
    globals()[name] = case(**parameters)(host)
    if reference is not None:
        globals()[name].reference(reference)


# Elementwise: name, and what PyTorch calls it where that differs


def unary(name, reference):
    define(name, lambda x: getattr(ops, name)(x), lambda x: reference(x), x=MN)


UNARY = """abs acos atan ceil cos cosh erf exp exp2 expm1 log log10 neg reciprocal relu rsqrt sigmoid sin sqrt square
tan tanh angle isfinite isinf isnan isneginf signbit logical_not arcsinh round nan_to_num"""
for name in UNARY.split():
    unary(name, getattr(torch, name))
for name, reference in {
    "silu": F.silu,
    "selu": F.selu,
    "celu": F.celu,
    "elu": F.elu,
    "log_sigmoid": F.logsigmoid,
    "hardsigmoid": F.hardsigmoid,
    "relu6": F.relu6,
    "softplus": F.softplus,
    "softshrink": F.softshrink,
    "gelu": F.gelu,
}.items():
    unary(name, reference)

define("gelu_tanh", lambda x: ops.gelu(x, approximate="tanh"), lambda x: F.gelu(x, approximate="tanh"), x=MN)
define("logit", lambda x: ops.logit(x, 0.125), lambda x: torch.logit(x, 0.125), x=MN)
define("threshold", lambda x: ops.threshold(x, 0.5, 2.0), lambda x: F.threshold(x, 0.5, 2.0), x=MN)
define("clamp", lambda x: ops.clamp(x, -0.5, 0.5), lambda x: torch.clamp(x, -0.5, 0.5), x=MN)
define("clamp_min", lambda x: ops.clamp_min(x, 0.25), lambda x: torch.clamp_min(x, 0.25), x=MN)
define("pow_scalar_exponent", lambda x: ops.pow_tensor_scalar(x, 3), lambda x: x**3, x=MN)
define("pow_scalar_base", lambda x: ops.pow_scalar(2.0, x), lambda x: 2.0**x, x=MN)
define("exp_in_place", lambda x: ops.exp_(x), lambda x: x.exp_(), x=MN)
define("to_half", lambda x: ops.to_copy(x, dtype=torch.float16), lambda x: x, x=MN)
define("glu", lambda x: ops.glu(x, -1), lambda x: F.glu(x, -1), x="f32[M,2*N]")


def binary(name, reference, x=MN, y=MN):
    define(name, lambda x, y: getattr(ops, name)(x, y), lambda x, y: reference(x, y), x=x, y=y)


BINARY = """add sub mul true_divide maximum minimum fmin atan2 copysign hypot logaddexp eq ge gt le lt ne
logical_and logical_or"""
for name in BINARY.split():
    binary(name, getattr(torch, name))
for name in ("bitwise_and", "bitwise_or"):
    define(
        name,
        lambda x, y, name=name: getattr(ops, name + "_tensor")(x, y),
        lambda x, y, name=name: getattr(torch, name)(x, y),
        x="i32[M,N]",
        y="i32[M,N]",
    )
define("bitwise_not", lambda x: ops.bitwise_not(x), lambda x: torch.bitwise_not(x), x="i32[M,N]")
define("pow_tensors", lambda x, y: ops.pow_tensor_tensor(x, y), lambda x, y: torch.pow(x, y), x=MN, y=MN)
define("floor_divide", lambda x, y: ops.floor_divide(x, y), lambda x, y: torch.floor_divide(x, y), x=MN, y=MN)
define("remainder", lambda x, y: ops.remainder(x, y), lambda x, y: torch.remainder(x, y), x=MN, y=MN)
define("add_alpha", lambda x, y: ops.add(x, y, alpha=0.5), lambda x, y: x + 0.5 * y, x=MN, y=MN)
define("add_row", lambda x, y: ops.add(x, y), lambda x, y: x + y, x=MN, y="f32[N]")
define("mul_column", lambda x, y: ops.mul(x, y), lambda x, y: x * y, x=MN, y="f32[M,1]")
define("mul_transposed", lambda x, y: ops.mul(x.t(), y), lambda x, y: x.t() * y, x=MN, y="f32[N,M]")
define("add_scalar", lambda x: ops.add(x, 1.5), lambda x: x + 1.5, x=MN)
define("eq_scalar", lambda x: ops.eq_scalar(x, 0.5), lambda x: x == 0.5, x=MN)
define("lerp", lambda x, y, w: ops.lerp_tensor(x, y, w), lambda x, y, w: torch.lerp(x, y, w), x=MN, y=MN, w=MN)
define("addcmul", lambda x, y, z: ops.addcmul(x, y, z, value=2.0), lambda x, y, z: x + 2.0 * y * z, x=MN, y=MN, z=MN)
define("addcdiv", lambda x, y, z: ops.addcdiv(x, y, z), lambda x, y, z: x + y / z, x=MN, y=MN, z=MN)
define(
    "where", lambda c, x, y: ops.where_self(c, x, y), lambda c, x, y: torch.where(c, x, y), c="bool[M,N]", x=MN, y=MN
)
define(
    "masked_fill", lambda x, m: ops.masked_fill(x, m, -1.0), lambda x, m: x.masked_fill(m, -1.0), x=MN, m="bool[M,N]"
)
define("silu_and_mul", lambda x, y: fused.silu_and_mul(x, y), lambda x, y: F.silu(x) * y, x=MN, y=MN)
define("gelu_and_mul", lambda x, y: fused.gelu_and_mul(x, y), lambda x, y: F.gelu(x) * y, x=MN, y=MN)
define("mse_loss", lambda x, y: ops.mse_loss(x, y), lambda x, y: F.mse_loss(x, y), x=MN, y=MN)
define("soft_margin_loss", lambda x, y: ops.soft_margin_loss(x, y), lambda x, y: F.soft_margin_loss(x, y), x=MN, y=MN)

# Derivatives that PyTorch has as operators of their own

define("tanh_backward", lambda dy, y: ops.tanh_backward(dy, y), lambda dy, y: dy * (1 - y * y), dy=MN, y=MN)
define("sigmoid_backward", lambda dy, y: ops.sigmoid_backward(dy, y), lambda dy, y: dy * y * (1 - y), dy=MN, y=MN)
define("silu_backward", lambda dy, x: ops.silu_backward(dy, x), lambda dy, x: gradients(F.silu, dy, x), dy=MN, x=MN)
define("gelu_backward", lambda dy, x: ops.gelu_backward(dy, x), lambda dy, x: gradients(F.gelu, dy, x), dy=MN, x=MN)
define(
    "elu_backward",
    lambda dy, x: ops.elu_backward(dy, 1.0, 1.0, 1.0, False, x),
    lambda dy, x: gradients(F.elu, dy, x),
    dy=MN,
    x=MN,
)
define(
    "threshold_backward",
    lambda dy, x: ops.threshold_backward(dy, x, 0.5),
    lambda dy, x: torch.where(x <= 0.5, 0.0, dy),
    dy=MN,
    x=MN,
)
define(
    "glu_backward",
    lambda dy, x: ops.glu_backward(dy, x, -1),
    lambda dy, x: gradients(lambda x: F.glu(x, -1), dy, x),
    dy=MN,
    x="f32[M,2*N]",
)

# Reductions and scans

for name in ("sum", "mean", "prod", "max", "min"):
    unary(name, getattr(torch, name))
define("sum_dim", lambda x: ops.sum_dim(x, [1]), lambda x: x.sum(1), x=MN)
define("sum_first_dim", lambda x: ops.sum_dim(x, [0]), lambda x: x.sum(0), x=MN)
define("mean_dim", lambda x: ops.mean_dim(x, [1], True), lambda x: x.mean(1, keepdim=True), x=MN)
define("prod_dim", lambda x: ops.prod_dim(x, 1), lambda x: x.prod(1), x=MN)
define("max_dim", lambda x: ops.max_dim(x, 1), lambda x: tuple(torch.max(x, 1)), x=MN)
define("min_dim", lambda x: ops.min_dim(x, 1), lambda x: tuple(torch.min(x, 1)), x=MN)
define("amax", lambda x: ops.amax(x, [1]), lambda x: x.amax(1), x=MN)
define("argmax", lambda x: ops.argmax(x, 1), lambda x: x.argmax(1), x=MN)
define("argmin", lambda x: ops.argmin(x, 1), lambda x: x.argmin(1), x=MN)
define("all_dim", lambda x: ops.all_dim(x, 1), lambda x: x.all(1), x="bool[M,N]")
define("any_dim", lambda x: ops.any_dim(x, 1), lambda x: x.any(1), x="bool[M,N]")
define("count_nonzero", lambda x: ops.count_nonzero(x, 1), lambda x: x.count_nonzero(1), x=MN)
define("var_mean", lambda x: ops.var_mean(x, [1]), lambda x: tuple(torch.var_mean(x, 1)), x=MN)
define("std", lambda x: ops.std(x, [1]), lambda x: x.std(1), x=MN)
define("vector_norm", lambda x: ops.vector_norm(x, 2, [1]), lambda x: torch.linalg.vector_norm(x, 2, 1), x=MN)
define("vector_norm_1", lambda x: ops.vector_norm(x, 1, [1]), lambda x: x.abs().sum(1), x=MN)
define("cumsum", lambda x: ops.cumsum(x, 1), lambda x: x.cumsum(1), x=MN)
define("cumsum_first_dim", lambda x: ops.cumsum(x, 0), lambda x: x.cumsum(0), x=MN)
define("cummax", lambda x: ops.cummax(x, 1), lambda x: tuple(torch.cummax(x, 1)), x=MN)
define("cummin", lambda x: ops.cummin(x, 1), lambda x: tuple(torch.cummin(x, 1)), x=MN)
define("trace", lambda x: ops.trace(x), lambda x: x.trace(), x="f32[N,N]")
define("topk", lambda x: ops.topk(x, 2), lambda x: tuple(torch.topk(x, 2)), x=MN, where="N > 2")
define("sort", lambda x: ops.sort(x), lambda x: tuple(torch.sort(x)), x=MN)

# Linear algebra

define("mm", lambda a, b: ops.mm(a, b), lambda a, b: a @ b, a="f32[M,K]", b="f32[K,N]")
define("mm_transposed", lambda a, b: ops.mm(a, b.t()), lambda a, b: a @ b.t(), a="f32[M,K]", b="f32[N,K]")
define("bmm", lambda a, b: ops.bmm(a, b), lambda a, b: a @ b, a="f32[B,M,K]", b="f32[B,K,N]")
define(
    "addmm",
    lambda c, a, b: ops.addmm(c, a, b, beta=0.5, alpha=2.0),
    lambda c, a, b: 0.5 * c + 2.0 * (a @ b),
    c=MN,
    a="f32[M,K]",
    b="f32[K,N]",
)
define(
    "baddbmm",
    lambda c, a, b: ops.baddbmm(c, a, b),
    lambda c, a, b: c + a @ b,
    c="f32[B,M,N]",
    a="f32[B,M,K]",
    b="f32[B,K,N]",
)
define("addmv", lambda c, a, v: ops.addmv(c, a, v), lambda c, a, v: c + a @ v, c="f32[M]", a=MN, v="f32[N]")
define("addr", lambda c, u, v: ops.addr(c, u, v), lambda c, u, v: c + torch.outer(u, v), c=MN, u="f32[M]", v="f32[N]")
define("mv", lambda a, v: ops.mv(a, v), lambda a, v: a @ v, a=MN, v="f32[N]")
define("dot", lambda u, v: ops.dot(u, v), lambda u, v: torch.dot(u, v), u="f32[N]", v="f32[N]")
define("outer", lambda u, v: fused.outer(u, v), lambda u, v: torch.outer(u, v), u="f32[M]", v="f32[N]")
define("kron", lambda a, b: ops.kron(a, b), lambda a, b: torch.kron(a, b), a=MN, b="f32[3,2]")
define(
    "conv1d", lambda x, w: ops.conv1d(x, w), lambda x, w: F.conv1d(x, w), x="f32[B,3,L]", w="f32[2,3,3]", where="L > 3"
)
define(
    "conv2d",
    lambda x, w: ops.conv2d(x, w),
    lambda x, w: F.conv2d(x, w),
    x="f32[B,2,5,L]",
    w="f32[2,2,3,3]",
    where="L > 3",
)
define(
    "attention",
    lambda q, k, v: ops.scaled_dot_product_attention(q, k, v),
    lambda q, k, v: F.scaled_dot_product_attention(q, k, v),
    q="f32[B,2,M,16]",
    k="f32[B,2,N,16]",
    v="f32[B,2,N,16]",
)

# Softmax, normalisation, losses

define("softmax", lambda x: ops.softmax(x, 1), lambda x: torch.softmax(x, 1), x=MN)
define("softmax_first_dim", lambda x: ops.softmax(x, 0), lambda x: torch.softmax(x, 0), x=MN)
define("log_softmax", lambda x: ops.log_softmax(x, 1), lambda x: torch.log_softmax(x, 1), x=MN)
define(
    "softmax_backward",
    lambda dy, y: ops.softmax_backward(dy, y, 1, torch.float32),
    lambda dy, y: y * (dy - (y * dy).sum(1, keepdim=True)),
    dy=MN,
    y=MN,
)
define(
    "log_softmax_backward",
    lambda dy, y: ops.log_softmax_backward(dy, y, 1, torch.float32),
    lambda dy, y: dy - torch.exp(y) * dy.sum(1, keepdim=True),
    dy=MN,
    y=MN,
)
NORM = {"x": MN, "w": "f32[N]", "b": "f32[N]"}


def layer(x, w, b):
    return F.layer_norm(x, x.shape[-1:], w, b, EPS)


def statistics(x):
    return x.mean(1), torch.rsqrt(x.var(1, correction=0) + EPS)


define(
    "layer_norm",
    lambda x, w, b: ops.layer_norm(x, x.shape[-1:], w, b, EPS),
    lambda x, w, b: (layer(x, w, b), *statistics(x)),
    **NORM,
)
define(
    "layer_norm_backward",
    lambda dy, x, w, b, mean, rstd: ops.layer_norm_backward(dy, x, x.shape[-1:], mean, rstd, w, b, [True, True, True]),
    None,
    dy=MN,
    **NORM,
    mean="f32[M]",
    rstd="f32[M]",
)


def rms(x, w):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + EPS) * w


define("rms_norm", lambda x, w: ops.rms_norm(x, x.shape[-1:], w, EPS), lambda x, w: rms(x, w), x=MN, w="f32[N]")
define(
    "rms_norm_backward",
    lambda dy, x, w: gradients(lambda x, w: ops.rms_norm(x, x.shape[-1:], w, EPS), dy, x, w),
    lambda dy, x, w: gradients(rms, dy, x, w),
    dy=MN,
    x=MN,
    w="f32[N]",
)
define(
    "fused_add_rms_norm",
    lambda x, r, w: fused.fused_add_rms_norm(x.clone(), r.clone(), x.shape[-1:], w, EPS),
    lambda x, r, w: (rms(x + r, w), x + r),
    x=MN,
    r=MN,
    w="f32[N]",
)
define(
    "skip_layer_norm",
    lambda x, r, w, b: fused.skip_layer_norm(x, r, x.shape[-1:], w, b, EPS),
    lambda x, r, w, b: layer(x + r, w, b),
    r=MN,
    **NORM,
)
define(
    "group_norm",
    lambda x, w, b: ops.group_norm(x, w, b, x.shape[0], 6, x.shape[2], 3, EPS)[0],
    lambda x, w, b: F.group_norm(x, 3, w, b, EPS),
    x="f32[B,6,S]",
    w="f32[6]",
    b="f32[6]",
)
define(
    "batch_norm_training",
    lambda x, w, b: ops.batch_norm(x, w, b, None, None, True, 0.1, EPS)[0],
    lambda x, w, b: F.batch_norm(x, None, None, w, b, True, 0.1, EPS),
    x="f32[B,C,S]",
    w="f32[C]",
    b="f32[C]",
)
define(
    "instance_norm",
    lambda x, w, b: fused.instance_norm(x, w, b, None, None, True, 0.1, EPS),
    lambda x, w, b: F.instance_norm(x, None, None, w, b, True, 0.1, EPS),
    x="f32[B,C,S]",
    w="f32[C]",
    b="f32[C]",
)
define(
    "weight_norm",
    lambda v, g: ops.weight_norm_interface(v, g, 0)[0],
    lambda v, g: v * g / torch.linalg.vector_norm(v, 2, 1, keepdim=True),
    v=MN,
    g="f32[M,1]",
)
LABELS = {"x": "f32[M,V]", "y": "i64[M] < V"}
define("cross_entropy", lambda x, y: fused.cross_entropy_loss(x, y), lambda x, y: F.cross_entropy(x, y), **LABELS)
define(
    "cross_entropy_backward",
    lambda x, y, dl: gradients(lambda x: fused.cross_entropy_loss(x, y, reduction="sum"), dl, x),
    lambda x, y, dl: (torch.softmax(x, -1) - F.one_hot(y, x.shape[1])) * dl,
    **LABELS,
    dl="f32[]",
)
define(
    "nll_loss",
    lambda x, y: ops.nll_loss_forward(x, y, None, 0)[0],
    lambda x, y: F.nll_loss(x, y, reduction="none"),
    **LABELS,
)

# Indexing and shapes

INDEXED = {"x": MN, "i": "i64[K] < M"}
define("embedding", lambda x, i: ops.embedding(x, i), lambda x, i: F.embedding(i, x), **INDEXED)
define("index_select", lambda x, i: ops.index_select(x, 0, i), lambda x, i: x.index_select(0, i), **INDEXED)
define("index", lambda x, i: ops.index(x, [i]), lambda x, i: x[i], **INDEXED)
define(
    "index_add",
    lambda x, i, s: ops.index_add(x, 0, i, s),
    lambda x, i, s: x.index_add(0, i, s),
    **INDEXED,
    s="f32[K,N]",
)
define(
    "embedding_backward",
    lambda dy, i, x: ops.embedding_backward(dy, i, x.shape[0]),
    lambda dy, i, x: torch.zeros_like(x).index_add(0, i, dy),
    dy="f32[K,N]",
    **INDEXED,
)
define("gather", lambda x, i: ops.gather(x, 1, i), lambda x, i: x.gather(1, i), x=MN, i="i64[M,K] < N")
define(
    "scatter",
    lambda x, i, s: ops.scatter(x, 1, i, s),
    lambda x, i, s: x.scatter(1, i, s),
    x=MN,
    i="i64[M,1] < N",
    s="f32[M,1]",
)
define(
    "scatter_add",
    lambda x, i, s: ops.scatter(x, 1, i, s, reduce="add"),
    lambda x, i, s: x.scatter_add(1, i, s),
    x=MN,
    i="i64[M,K] < N",
    s="f32[M,K]",
)
define("cat", lambda x, y: ops.cat([x, y], 1), lambda x, y: torch.cat([x, y], 1), x=MN, y="f32[M,K]")
define("cat_first_dim", lambda x, y: ops.cat([x, y], 0), lambda x, y: torch.cat([x, y], 0), x=MN, y="f32[K,N]")
define("stack", lambda x, y: ops.stack([x, y], 1), lambda x, y: torch.stack([x, y], 1), x=MN, y=MN)
define("hstack", lambda x, y: ops.hstack([x, y]), lambda x, y: torch.hstack([x, y]), x=MN, y="f32[M,K]")
define("vstack", lambda x, y: ops.vstack([x, y]), lambda x, y: torch.vstack([x, y]), x=MN, y="f32[K,N]")
define("pad", lambda x: ops.pad(x, [1, 2], value=0.5), lambda x: F.pad(x, [1, 2], value=0.5), x=MN)
define(
    "reflection_pad",
    lambda x: ops.reflection_pad1d(x, [1, 2]),
    lambda x: F.pad(x, [1, 2], "reflect"),
    x=MN,
    where="N > 2",
)
define("flip", lambda x: ops.flip(x, [1]), lambda x: x.flip([1]), x=MN)
define("repeat", lambda x: ops.repeat(x, [2, 3]), lambda x: x.repeat(2, 3), x=MN)
define("tile", lambda x: ops.tile(x, [2, 3]), lambda x: x.tile(2, 3), x=MN)
define("roll", lambda x: ops.roll(x, 2, 1), lambda x: x.roll(2, 1), x=MN, where="N > 2")
define(
    "repeat_interleave", lambda x: ops.repeat_interleave_self_int(x, 3, 1), lambda x: x.repeat_interleave(3, 1), x=MN
)
define("tril", lambda x: ops.tril(x), lambda x: x.tril(), x=MN)
define("triu", lambda x: ops.triu(x, 1), lambda x: x.triu(1), x=MN)
define("diag", lambda x: ops.diag(x), lambda x: torch.diag(x), x="f32[N]")
define("diag_embed", lambda x: ops.diag_embed(x), lambda x: torch.diag_embed(x), x=MN)
define(
    "select_scatter",
    lambda x, s: ops.select_scatter(x, s, 0, 1),
    lambda x, s: x.select_scatter(s, 0, 1),
    x=MN,
    s="f32[N]",
)
define(
    "slice_scatter",
    lambda x, s: ops.slice_scatter(x, s, 0, 0, 2),
    lambda x, s: x.slice_scatter(s, 0, 0, 2),
    x=MN,
    s="f32[2,N]",
)
define("pixel_unshuffle", lambda x: ops.pixel_unshuffle(x, 2), lambda x: F.pixel_unshuffle(x, 2), x="f32[B,C,4,2*H]")
define("avg_pool", lambda x: ops.avg_pool2d(x, 2), lambda x: F.avg_pool2d(x, 2), x="f32[B,C,4,2*H]")
define("max_pool", lambda x: ops.max_pool2d_with_indices(x, 2)[0], lambda x: F.max_pool2d(x, 2), x="f32[B,C,4,2*H]")
define("full_like", lambda x: ops.full_like(x, 2.5), lambda x: torch.full_like(x, 2.5), x=MN)
define("zeros_like", lambda x: ops.zeros_like(x), lambda x: torch.zeros_like(x), x=MN)
define("t_copy", lambda x: ops.t_copy(x), lambda x: x.t().clone(), x=MN)
define("arange", lambda x: ops.arange(x.shape[0], device=x.device), lambda x: torch.arange(x.shape[0]), x="f32[N]")
define("eye", lambda x: ops.eye(x.shape[0], device=x.device), lambda x: torch.eye(x.shape[0]), x="f32[N]")
define("one_hot", lambda y: ops.one_hot(y, 7), lambda y: F.one_hot(y, 7), y="i64[M] < 7")
define("upsample_nearest", lambda x: ops.upsample_nearest1d(x, [12]), lambda x: F.interpolate(x, 12), x="f32[B,C,4]")
define("dropout", lambda x: ops.dropout(x, 0.25, True)[0], None, x=MN)
define(
    "dropout_backward",
    lambda dy, m: ops.dropout_backward(dy, m, 1.25),
    lambda dy, m: dy * m * 1.25,
    dy=MN,
    m="bool[M,N]",
)


@case(q="f32[B,T,2,8]", k="f32[B,T,1,8]", cos="f32[T,4]", sin="f32[T,4]")
def rotary(q, k, cos, sin):
    return fused.apply_rotary_pos_emb(q, k, cos, sin)


@rotary.reference
def _(q, k, cos, sin):
    def rotated(x):
        a, b = x.chunk(2, -1)
        c, s = cos[:, None], sin[:, None]
        return torch.cat((a * c - b * s, b * c + a * s), -1)

    return rotated(q), rotated(k)
