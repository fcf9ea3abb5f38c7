"""fla-core, the building blocks of flash-linear-attention: norms, gates, scans and linear attention."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from trilift import case

from ._setup import gradients, package

activations = package("fla.modules.activations", "fla")
norms = package("fla.modules.norm.layernorm", "fla")
swish_norms = package("fla.modules.norm.fused_norm_gate", "fla")
l2 = package("fla.modules.norm.l2norm", "fla")
gated_norms = package("fla.modules.norm.layernorm_gated", "fla")
rotary = package("fla.modules.rotary", "fla")
shift = package("fla.modules.token_shift", "fla")
convolution = package("fla.modules.causal_conv1d.ops", "fla")
losses = package("fla.modules.fused_cross_entropy.ops", "fla")
linear_losses = package("fla.modules.fused_linear_cross_entropy.ops", "fla")
utils = package("fla.ops.utils", "fla")
logcumsumexp = package("fla.ops.utils.logcumsumexp", "fla")
products = package("fla.ops.utils.matmul", "fla")
pooling = package("fla.ops.utils.pooling", "fla")
softmaxes = package("fla.ops.utils.softmax", "fla")
common = package("fla.ops.common.chunk_h", "fla")
kkt = package("fla.ops.common.chunk_scaled_dot_kkt", "fla")
linear = package("fla.ops.linear_attn", "fla")
gla = package("fla.ops.gla", "fla")
simple = package("fla.ops.simple_gla", "fla")
hgrn = package("fla.ops.hgrn", "fla")
delta = package("fla.ops.delta_rule", "fla")
gated_delta = package("fla.ops.gated_delta_rule", "fla")
retention = package("fla.ops.retention", "fla")
attention = package("fla.ops.attn", "fla")
based = package("fla.ops.based", "fla")
rebased = package("fla.ops.rebased", "fla")
forgetting = package("fla.ops.forgetting_attn", "fla")
stick = package("fla.ops.stickbreaking_attn", "fla")
rwkv4 = package("fla.ops.rwkv4", "fla")
rwkv6 = package("fla.ops.rwkv6", "fla")
addcmul = package("fla.ops.rwkv7.fused_addcmul", "fla")
update = package("fla.ops.rwkv7.fused_k_update", "fla")
correction = package("fla.ops.rwkv7.gate_output_correction", "fla")
mixing = package("fla.ops.rwkv7.channel_mixing", "fla")
kda = package("fla.ops.kda.gate", "fla")
MN = "f32[M,N]"
EPS = 1e-5


def define(name, host, reference, **parameters):
    """A case from its host function and its reference (or None), both called with the parameters by name."""
    host.__name__ = name
    globals()[name] = case(**parameters)(host)
    if reference is not None:
        globals()[name].reference(reference)


# Activations and gates

for name, reference in {
    "sigmoid": torch.sigmoid,
    "logsigmoid": F.logsigmoid,
    "swish": F.silu,
}.items():
    define(name, lambda x, name=name: getattr(activations, name)(x), lambda x, f=reference: f(x), x=MN)
    define(
        f"{name}_backward",
        lambda x, dy, name=name: gradients(getattr(activations, name), dy, x),
        lambda x, dy, f=reference: gradients(f, dy, x),
        x=MN,
        dy=MN,
    )
for name, reference in {"swiglu": lambda x, y: F.silu(x) * y, "sigmoidglu": lambda x, y: torch.sigmoid(x) * y}.items():
    define(
        name, lambda x, y, name=name: getattr(activations, name)(x, y), lambda x, y, f=reference: f(x, y), x=MN, y=MN
    )
    define(
        f"{name}_backward",
        lambda x, y, dz, name=name: gradients(getattr(activations, name), dz, x, y),
        lambda x, y, dz, f=reference: gradients(f, dz, x, y),
        x=MN,
        y=MN,
        dz=MN,
    )
define("powglu", lambda x, y: activations.powglu(x, y, 3.0), None, x=MN, y=MN)
define("kda_gate", lambda g, a, b: kda.kda_gate_fwd(g, a, b), None, g="f32[B,T,H,K]", a="f32[H]", b="f32[H*K]")


# Norms


def layer(x, w, b):
    return F.layer_norm(x, x.shape[-1:], w, b, EPS)


def rms(x, w):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + EPS) * w


NORM = {"x": MN, "w": "f32[N]", "b": "f32[N]"}
define("layer_norm", lambda x, w, b: norms.layer_norm(x, w, b), layer, **NORM)
define(
    "layer_norm_residual",
    lambda x, w, b, r: norms.layer_norm(x, w, b, r, prenorm=True),
    lambda x, w, b, r: (layer(x + r, w, b), x + r),
    **NORM,
    r=MN,
)
define(
    "layer_norm_backward",
    lambda x, w, b, dy: gradients(norms.layer_norm, dy, x, w, b),
    lambda x, w, b, dy: gradients(layer, dy, x, w, b),
    **NORM,
    dy=MN,
)
define("rms_norm", lambda x, w: norms.rms_norm(x, w, None), rms, x=MN, w="f32[N]")
define(
    "rms_norm_backward",
    lambda x, w, dy: gradients(lambda x, w: norms.rms_norm(x, w, None), dy, x, w),
    lambda x, w, dy: gradients(rms, dy, x, w),
    x=MN,
    w="f32[N]",
    dy=MN,
)
define(
    "group_norm",
    lambda x, w, b: norms.group_norm(x, w, b, num_groups=3),
    lambda x, w, b: F.group_norm(x, 3, w, b, EPS),
    x="f32[M,3*N]",
    w="f32[3*N]",
    b="f32[3*N]",
)


def l2_reference(x):
    return x * torch.rsqrt(x.square().sum(-1, keepdim=True) + 1e-6)


define("l2norm", lambda x: l2.l2norm(x), l2_reference, x=MN)
define(
    "l2norm_backward",
    lambda x, dy: gradients(l2.l2norm, dy, x),
    lambda x, dy: gradients(l2_reference, dy, x),
    x=MN,
    dy=MN,
)


def rms_swish(x, g, w):
    return rms(x, w) * F.silu(g)


define(
    "rms_norm_gated",
    lambda x, g, w: swish_norms.rms_norm_gated(x, g, w, None, eps=EPS),
    rms_swish,
    x=MN,
    g=MN,
    w="f32[N]",
)
define(
    "rms_norm_gated_backward",
    lambda x, g, w, dy: gradients(lambda x, g, w: swish_norms.rms_norm_gated(x, g, w, None, eps=EPS), dy, x, g, w),
    lambda x, g, w, dy: gradients(rms_swish, dy, x, g, w),
    x=MN,
    g=MN,
    w="f32[N]",
    dy=MN,
)
define(
    "layer_norm_gated_sigmoid",
    lambda x, g, w, b: swish_norms.layer_norm_gated(x, g, w, b, "sigmoid", eps=EPS),
    lambda x, g, w, b: layer(x, w, b) * torch.sigmoid(g),
    g=MN,
    **NORM,
)
define(
    "norm_before_gate",
    lambda x, w, z: gated_norms.rmsnorm_fn(x, w, None, z, EPS),
    lambda x, w, z: rms(x, w) * F.silu(z),
    x=MN,
    w="f32[N]",
    z=MN,
)
define(
    "norm_after_gate",
    lambda x, w, z: gated_norms.rmsnorm_fn(x, w, None, z, EPS, None, False),
    lambda x, w, z: rms(x * F.silu(z), w),
    x=MN,
    w="f32[N]",
    z=MN,
)

# Positions, shifts, convolutions


def rotated(x, cos, sin):
    a, b = x.chunk(2, -1)
    c, s = cos[:, None], sin[:, None]
    return torch.cat((a * c - b * s, b * c + a * s), -1)


ROTARY = {"x": "f32[B,T,H,8]", "cos": "f32[T,4]", "sin": "f32[T,4]"}
define("rotary_embedding", lambda x, cos, sin: rotary.rotary_embedding(x, cos, sin), rotated, **ROTARY)
define(
    "rotary_embedding_backward",
    lambda x, cos, sin, dy: gradients(lambda x: rotary.rotary_embedding(x, cos, sin), dy, x),
    lambda x, cos, sin, dy: rotated(dy, cos, -sin),
    **ROTARY,
    dy="f32[B,T,H,8]",
)


def shifted(x):
    return F.pad(x, [0, 0, 1, -1]) - x


define("token_shift", lambda x: shift.token_shift(x), shifted, x="f32[B,T,D]")
define(
    "token_shift_backward",
    lambda x, dy: gradients(shift.token_shift, dy, x),
    lambda x, dy: gradients(shifted, dy, x),
    x="f32[B,T,D]",
    dy="f32[B,T,D]",
)


def causal(x, w):
    y = F.conv1d(x.transpose(1, 2), w[:, None], padding=w.shape[1] - 1, groups=w.shape[0])
    return y[..., : x.shape[1]].transpose(1, 2)


CONV = {"x": "f32[B,T,D]", "w": "f32[D,3]"}
define("causal_conv1d", lambda x, w: convolution.causal_conv1d(x, w)[0], causal, **CONV)
define(
    "causal_conv1d_silu",
    lambda x, w, b: convolution.causal_conv1d(x, w, b, activation="silu")[0],
    lambda x, w, b: F.silu(causal(x, w) + b),
    **CONV,
    b="f32[D]",
)
define(
    "causal_conv1d_backward",
    lambda x, w, dy: gradients(lambda x, w: convolution.causal_conv1d(x, w)[0], dy, x, w),
    lambda x, w, dy: gradients(causal, dy, x, w),
    **CONV,
    dy="f32[B,T,D]",
)

# Losses and softmax

LABELS = {"x": "f32[M,V]", "y": "i64[M] < V"}
define(
    "cross_entropy",
    lambda x, y: losses.cross_entropy_loss(x, y)[0],
    lambda x, y: F.cross_entropy(x, y, reduction="none"),
    **LABELS,
)
define(
    "cross_entropy_backward",
    lambda x, y, dl: gradients(lambda x: losses.cross_entropy_loss(x, y)[0], dl, x),
    lambda x, y, dl: (torch.softmax(x, -1) - F.one_hot(y, x.shape[1])) * dl[:, None],
    **LABELS,
    dl="f32[M]",
)
define(
    "linear_cross_entropy",
    lambda x, y, w: linear_losses.fused_linear_cross_entropy_loss(x, y, w, num_chunks=1),
    lambda x, y, w: F.cross_entropy(x @ w.T, y),
    x="f32[M,H]",
    y="i64[M] < V",
    w="f32[V,H]",
)
define(
    "logsumexp",
    lambda x: linear_losses.logsumexp_fwd(x, 0.5),
    lambda x: torch.logsumexp(0.5 * x, -1),
    x=MN,
)
define("softmax", lambda x: softmaxes.softmax_fwd(x), lambda x: torch.softmax(x, -1), x=MN)
define(
    "softmax_backward",
    lambda p, dp: softmaxes.softmax_bwd(p, dp),
    lambda p, dp: p * (dp - (p * dp).sum(-1, keepdim=True)),
    p=MN,
    dp=MN,
)

# Scans, products, pooling

THREE, FOUR = "f32[B,T,H]", "f32[B,T,H,D]"
define("global_cumsum", lambda s: utils.chunk_global_cumsum(s), lambda s: s.cumsum(1), s=THREE)
define("global_cumsum_vector", lambda s: utils.chunk_global_cumsum(s), lambda s: s.cumsum(1), s=FOUR)
define(
    "global_cumsum_reverse",
    lambda s: utils.chunk_global_cumsum(s, reverse=True),
    lambda s: s.flip(1).cumsum(1).flip(1),
    s=THREE,
)
define(
    "local_cumsum",
    lambda g: utils.chunk_local_cumsum(g, 4),
    lambda g: g.unflatten(1, (-1, 4)).cumsum(2).flatten(1, 2),
    g="f32[B,4*C,H]",
)
define(
    "local_cumsum_vector",
    lambda g: utils.chunk_local_cumsum(g, 16),
    lambda g: g.unflatten(1, (-1, 16)).cumsum(2).flatten(1, 2),
    g="f32[B,16*C,H,D]",
)
define("matmul", lambda a, b: products.matmul(a, b), lambda a, b: a @ b, a="f32[B,M,K]", b="f32[K,N]")
define("addmm", lambda x, a, b: products.addmm(x, a, b), lambda x, a, b: x + a @ b, x=MN, a="f32[M,K]", b="f32[K,N]")
define(
    "mean_pooling",
    lambda x: pooling.mean_pooling(x, 4),
    lambda x: x.unflatten(1, (-1, 4)).mean(2),
    x="f32[B,4*C,H,D]",
)
define(
    "mean_pooling_backward",
    lambda x, dy: gradients(lambda x: pooling.mean_pooling(x, 4), dy, x),
    lambda x, dy: (dy / 4).repeat_interleave(4, 1),
    x="f32[B,4*C,H,D]",
    dy="f32[B,C,H,D]",
)
define("solve_tril", lambda a: utils.solve_tril(a), None, a="f32[B,T,H,16]", where="T % 16 == 0")
define(
    "scaled_dot_kkt",
    lambda k, b: kkt.chunk_scaled_dot_kkt_fwd(k, beta=b, chunk_size=16),
    None,
    k="f32[B,T,H,16]",
    b="f32[B,T,H]",
    where="T % 16 == 0",
)

# Attention and linear attention. Head sizes are at least 16, what a dot product of the hardware takes

QKV = {"q": "f32[B,T,H,16]", "k": "f32[B,T,H,16]", "v": "f32[B,T,H,16]"}
HALF = {"q": "bf16[B,T,H,16]", "k": "bf16[B,T,H,16]", "v": "bf16[B,T,H,16]"}
GATED = {**QKV, "g": "f32[B,T,H,16]"}


def masked(q, k, v, weight):
    """o[t] = sum over s <= t of weight(q[t] . k[s]) v[s]"""
    scores = weight(torch.einsum("bthd,bshd->bhts", q, k)).tril()
    return torch.einsum("bhts,bshd->bthd", scores, v)


def scaled(q, k, v):
    return masked(q, k, v, lambda s: s / 4)


def causal_softmax(q, k, v):
    return F.scaled_dot_product_attention(*(x.transpose(1, 2) for x in (q, k, v)), is_causal=True).transpose(1, 2)


define("recurrent_linear", lambda q, k, v: linear.fused_recurrent_linear_attn(q, k, v)[0], scaled, **QKV)
define(
    "recurrent_linear_backward",
    lambda q, k, v, do: gradients(lambda q, k, v: linear.fused_recurrent_linear_attn(q, k, v)[0], do, q, k, v),
    lambda q, k, v, do: gradients(scaled, do, q, k, v),
    **QKV,
    do="f32[B,T,H,16]",
)
define("chunk_linear", lambda q, k, v: linear.chunk_linear_attn(q, k, v, normalize=False)[0], scaled, **QKV)
define("fused_chunk_linear", lambda q, k, v: linear.fused_chunk_linear_attn(q, k, v, normalize=False)[0], scaled, **QKV)
define("recurrent_gla", lambda q, k, v, g: gla.fused_recurrent_gla(q, k, v, g)[0], None, **GATED)
define("chunk_gla", lambda q, k, v, g: gla.chunk_gla(q, k, v, g)[0], None, **GATED)
define(
    "recurrent_simple_gla",
    lambda q, k, v, g: simple.fused_recurrent_simple_gla(q, k, v, g)[0],
    None,
    **QKV,
    g="f32[B,T,H]",
)
define("chunk_simple_gla", lambda q, k, v, g: simple.chunk_simple_gla(q, k, v, g)[0], None, **QKV, g="f32[B,T,H]")
define("parallel_simple_gla", lambda q, k, v, g: simple.parallel_simple_gla(q, k, v, g)[0], None, **QKV, g="f32[B,T,H]")
define("recurrent_hgrn", lambda x, g: hgrn.fused_recurrent_hgrn(x, g)[0], None, x="f32[B,T,D]", g="f32[B,T,D]")
define(
    "recurrent_hgrn_backward",
    lambda x, g, do: gradients(lambda x, g: hgrn.fused_recurrent_hgrn(x, g)[0], do, x, g),
    None,
    x="f32[B,T,D]",
    g="f32[B,T,D]",
    do="f32[B,T,D]",
)
define("chunk_hgrn", lambda x, g: hgrn.chunk_hgrn(x, g)[0], None, x="f32[B,T,D]", g="f32[B,T,D]")
define(
    "recurrent_delta", lambda q, k, v, b: delta.fused_recurrent_delta_rule(q, k, v, b)[0], None, **QKV, b="f32[B,T,H]"
)
define("chunk_delta", lambda q, k, v, b: delta.chunk_delta_rule(q, k, v, b)[0], None, **HALF, b="bf16[B,T,H]")
define(
    "recurrent_gated_delta",
    lambda q, k, v, g, b: gated_delta.fused_recurrent_gated_delta_rule(q, k, v, g, beta=b)[0],
    None,
    **QKV,
    g="f32[B,T,H]",
    b="f32[B,T,H]",
)
define("recurrent_retention", lambda q, k, v: retention.fused_recurrent_retention(q, k, v)[0], None, **QKV)
define("chunk_retention", lambda q, k, v: retention.chunk_retention(q, k, v)[0], None, **QKV)
define("parallel_retention", lambda q, k, v: retention.parallel_retention(q, k, v)[0], None, **QKV)
define("parallel_attention", lambda q, k, v: attention.parallel_attn(q, k, v), causal_softmax, **QKV)
define("parallel_based", lambda q, k, v: based.parallel_based(q, k, v, use_norm=False), None, **QKV)
define("parallel_rebased", lambda q, k, v: rebased.parallel_rebased(q, k, v, use_normalize=False), None, **QKV)
define(
    "forgetting_attention",
    lambda q, k, v, g: forgetting.parallel_forgetting_attn(q, k, v, g),
    None,
    **QKV,
    g="f32[B,T,H]",
)
define("stickbreaking_attention", lambda q, k, v: stick.parallel_stickbreaking_attn(q, k, v)[0], None, **QKV)
define(
    "chunk_states",
    lambda k, v: common.chunk_fwd_h(k, v, chunk_size=16)[0],
    None,
    k="f32[B,T,H,16]",
    v="f32[B,T,H,16]",
    where="T % 16 == 0",
)
define(
    "recurrent_rwkv4",
    lambda w, u, k, v, s: rwkv4.fused_recurrent_rwkv4(w, u, k, v, s),
    None,
    w="f32[C]",
    u="f32[C]",
    k="f32[B,T,C]",
    v="f32[B,T,C]",
    s="f32[B,3,1,C]",
)
define(
    "recurrent_rwkv6",
    lambda q, k, v, w, u: rwkv6.fused_recurrent_rwkv6(q, k, v, w, u)[0],
    None,
    **QKV,
    w="f32[B,T,H,16]",
    u="f32[H,16]",
)

# Small fusions of RWKV-7

MIX = dict.fromkeys(("xr", "xw", "xk", "xv", "xa", "xg"), "f32[1,1,D]")
define(
    "rwkv7_addcmul",
    lambda h, d, xr, xw, xk, xv, xa, xg: addcmul.fused_addcmul_rwkv7(h, d, xr, xw, xk, xv, xa, xg),
    lambda h, d, xr, xw, xk, xv, xa, xg: tuple(h + d * x for x in (xr, xw, xk, xv, xa, xg)),
    h="f32[B,T,D]",
    d="f32[B,T,D]",
    **MIX,
)
KEYS = {"k": "f32[B,T,D]", "a": "f32[B,T,D]", "c": "f32[1,1,D]"}
define("rwkv7_keys", lambda k, a, c: update.fused_k_rwkv7(k, a, c), lambda k, a, c: k * (1 + (a - 1) * c), **KEYS)
define(
    "rwkv7_keys_backward",
    lambda k, a, c, dy: gradients(update.fused_k_rwkv7, dy, k, a, c),
    lambda k, a, c, dy: gradients(lambda k, a, c: k * (1 + (a - 1) * c), dy, k, a, c),
    **KEYS,
    dy="f32[B,T,D]",
)
define(
    "rwkv7_gate_output_correction",
    lambda o, r, k, c, v, g: correction.gate_output_correction(o, r, k, c, v, g),
    lambda o, r, k, c, v, g: (o + ((r * k * c).sum(-1, keepdim=True) * v).flatten(2)) * g,
    o="f32[B,T,H*D]",
    r="f32[B,T,H,D]",
    k="f32[B,T,H,D]",
    c="f32[H,D]",
    v="f32[B,T,H,D]",
    g="f32[B,T,H*D]",
)
define(
    "rwkv7_relu_square",
    lambda x: mixing.rwkv_relu_and_square_fwd(x, False),
    lambda x: F.relu(x).square(),
    x="f32[B,T,D]",
)


@case(x="f32[B,T,D]", p="f32[B,D]", c="f32[D]")
def rwkv7_mix(x, p, c):
    return mixing.rwkv_mix_fwd(x, p, c)


@rwkv7_mix.reference
def _(x, p, c):
    before = torch.cat((p[:, None], x[:, :-1]), 1)
    return x + (before - x) * c
