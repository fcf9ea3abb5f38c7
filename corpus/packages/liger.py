"""liger-kernel: the wrappers of its training kernels, forward and backward."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from trilift import case

from ._setup import gradients, package

liger = package("liger_kernel.ops", "liger")
attention = package("liger_kernel.ops.multi_token_attention", "liger")
mhc = package("liger_kernel.ops.mhc", "liger")
grpo = package("liger_kernel.ops.grpo_loss", "liger")
EPS = 1e-6
DL = 2.0  # gradient of a scalar loss: a constant, because the wrappers look whether it is 1


# Normalisation


def rms(x, w, offset=0.0):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + EPS) * (w + offset)


@case(x="f32[M,N]", w="f32[N]")
def rms_norm(x, w):
    return liger.LigerRMSNormFunction.apply(x, w, EPS)


@rms_norm.reference
def _(x, w):
    return rms(x, w)


@case(x="f32[M,N]", w="f32[N]")
def rms_norm_gemma(x, w):
    return liger.LigerRMSNormFunction.apply(x, w, EPS, 1.0, "gemma")


@rms_norm_gemma.reference
def _(x, w):
    return rms(x, w, 1.0)


@case(x="f32[M,N]")
def rms_norm_no_weight(x):
    return liger.LigerRMSNormFunction.apply(x, None, EPS)


@rms_norm_no_weight.reference
def _(x):
    return rms(x, 1.0)


@case(x="f32[M,N]", w="f32[N]", dy="f32[M,N]")
def rms_norm_backward(x, w, dy):
    return gradients(lambda x, w: liger.LigerRMSNormFunction.apply(x, w, EPS, 0.0, "llama", False), dy, x, w)


@rms_norm_backward.reference
def _(x, w, dy):
    return gradients(rms, dy, x, w)


@case(x="f32[M,N]", w="f32[N]", dy="f32[M,N]")
def rms_norm_backward_in_place(x, w, dy):
    """The gradient of x is written into dy."""
    return gradients(lambda x, w: liger.LigerRMSNormFunction.apply(x, w, EPS), dy, x, w)


@case(x="f32[M,N]", r="f32[M,N]", w="f32[N]")
def fused_add_rms_norm(x, r, w):
    return liger.LigerFusedAddRMSNormFunction.apply(x, r, w, EPS)


@fused_add_rms_norm.reference
def _(x, r, w):
    return rms(x + r, w), x + r


@case(x="f32[M,N]", r="f32[M,N]", w="f32[N]", dy="f32[M,N]", ds="f32[M,N]")
def fused_add_rms_norm_backward(x, r, w, dy, ds):
    return gradients(lambda x, r, w: liger.LigerFusedAddRMSNormFunction.apply(x, r, w, EPS), (dy, ds), x, r, w)


@fused_add_rms_norm_backward.reference
def _(x, r, w, dy, ds):
    return gradients(lambda x, r, w: (rms(x + r, w), x + r), (dy, ds), x, r, w)


def modulated(x, w, scale, shift):
    return rms(x, w) * (1 + scale) + shift


@case(x="f32[M,N]", w="f32[N]", scale="f32[M,N]", shift="f32[M,N]")
def modulated_rms_norm(x, w, scale, shift):
    return liger.LigerModulatedRMSNormFunction.apply(x, w, scale, shift, EPS)


@modulated_rms_norm.reference
def _(x, w, scale, shift):
    return modulated(x, w, scale, shift)


@case(x="f32[M,N]", w="f32[N]", scale="f32[M,N]", shift="f32[M,N]", dy="f32[M,N]")
def modulated_rms_norm_backward(x, w, scale, shift, dy):
    def norm(x, w, scale, shift):
        return liger.LigerModulatedRMSNormFunction.apply(x, w, scale, shift, EPS, 0.0, "llama", False)

    return gradients(norm, dy, x, w, scale, shift)


@modulated_rms_norm_backward.reference
def _(x, w, scale, shift, dy):
    return gradients(modulated, dy, x, w, scale, shift)


def layer(x, w, b):
    return F.layer_norm(x, x.shape[-1:], w, b, EPS)


@case(x="f32[M,N]", w="f32[N]", b="f32[N]")
def layer_norm(x, w, b):
    return liger.LigerLayerNormFunction.apply(x, w, b, EPS)


@layer_norm.reference
def _(x, w, b):
    return layer(x, w, b)


@case(x="f32[M,N]", w="f32[N]", b="f32[N]", dy="f32[M,N]")
def layer_norm_backward(x, w, b, dy):
    return gradients(lambda x, w, b: liger.LigerLayerNormFunction.apply(x, w, b, EPS), dy, x, w, b)


@layer_norm_backward.reference
def _(x, w, b, dy):
    return gradients(layer, dy, x, w, b)


def grouped(x, w, b):
    return F.group_norm(x, 3, w, b, EPS)


@case(x="f32[B,6,S]", w="f32[6]", b="f32[6]")
def group_norm(x, w, b):
    return liger.LigerGroupNormFunction.apply(x, w, b, 6, 3, EPS)


@group_norm.reference
def _(x, w, b):
    return grouped(x, w, b)


@case(x="f32[B,6,S]", w="f32[6]", b="f32[6]", dy="f32[B,6,S]")
def group_norm_backward(x, w, b, dy):
    return gradients(lambda x, w, b: liger.LigerGroupNormFunction.apply(x, w, b, 6, 3, EPS), dy, x, w, b)


@group_norm_backward.reference
def _(x, w, b, dy):
    return gradients(grouped, dy, x, w, b)


def polynomial(x, w, b):
    powers = [p * torch.rsqrt(p.pow(2).mean(-1, keepdim=True) + EPS) for p in (x * x * x, x * x, x)]
    return w[0] * powers[0] + w[1] * powers[1] + w[2] * powers[2] + b


@case(x="f32[M,N]", w="f32[3]", b="f32[]")
def poly_norm(x, w, b):
    return liger.LigerPolyNormFunction.apply(x, w, b, EPS)


@poly_norm.reference
def _(x, w, b):
    return polynomial(x, w, b)


@case(x="f32[M,N]", w="f32[3]", b="f32[]", dy="f32[M,N]")
def poly_norm_backward(x, w, b, dy):
    return gradients(lambda x, w, b: liger.LigerPolyNormFunction.apply(x, w, b, EPS, False), dy, x, w, b)


@poly_norm_backward.reference
def _(x, w, b, dy):
    return gradients(polynomial, dy, x, w, b)


def dynamic_tanh(x, alpha, gamma, beta):
    return torch.tanh(alpha * x) * gamma + beta


@case(x="f32[M,N]", alpha="f32[1]", gamma="f32[N]", beta="f32[N]")
def dyt(x, alpha, gamma, beta):
    return liger.LigerDyTFunction.apply(x, alpha, gamma, beta)


@dyt.reference
def _(x, alpha, gamma, beta):
    return dynamic_tanh(x, alpha, gamma, beta)


@case(x="f32[M,N]", alpha="f32[1]", gamma="f32[N]", beta="f32[N]", dy="f32[M,N]")
def dyt_backward(x, alpha, gamma, beta, dy):
    return gradients(liger.LigerDyTFunction.apply, dy, x, alpha, gamma, beta)


@dyt_backward.reference
def _(x, alpha, gamma, beta, dy):
    return gradients(dynamic_tanh, dy, x, alpha, gamma, beta)


# Activations


def gelu_tanh_mul(a, b):
    return F.gelu(a, approximate="tanh") * b


@case(a="f32[M,N]", b="f32[M,N]")
def geglu(a, b):
    return liger.LigerGELUMulFunction.apply(a, b)


@geglu.reference
def _(a, b):
    return gelu_tanh_mul(a, b)


@case(a="f32[M,N]", b="f32[M,N]", dc="f32[M,N]")
def geglu_backward(a, b, dc):
    return gradients(liger.LigerGELUMulFunction.apply, dc, a.clone(), b.clone())


@geglu_backward.reference
def _(a, b, dc):
    return gradients(gelu_tanh_mul, dc, a, b)


def silu_mul(a, b):
    return F.silu(a) * b


@case(a="f32[M,N]", b="f32[M,N]")
def swiglu(a, b):
    return liger.LigerSiLUMulFunction.apply(a, b)


@swiglu.reference
def _(a, b):
    return silu_mul(a, b)


@case(a="f32[M,N]", b="f32[M,N]", dc="f32[M,N]")
def swiglu_backward(a, b, dc):
    return gradients(liger.LigerSiLUMulFunction.apply, dc, a.clone(), b.clone())


@swiglu_backward.reference
def _(a, b, dc):
    return gradients(silu_mul, dc, a, b)


def halves(y):
    gate, up = y.chunk(2, -1)
    return F.silu(gate) * up


@case(y="f32[M,2*N]")
def swiglu_gate_up(y):
    return liger.LigerFusedGateUpSiLUMulFunction.apply(y)


@swiglu_gate_up.reference
def _(y):
    return halves(y)


@case(y="f32[M,2*N]", dc="f32[M,N]")
def swiglu_gate_up_backward(y, dc):
    return gradients(liger.LigerFusedGateUpSiLUMulFunction.apply, dc, y)


@swiglu_gate_up_backward.reference
def _(y, dc):
    return gradients(halves, dc, y)


@case(x="f32[M,N]")
def relu_squared(x):
    return liger.LigerReLUSquaredFunction.apply(x)


@relu_squared.reference
def _(x):
    return F.relu(x).square()


@case(x="f32[M,N]", dy="f32[M,N]")
def relu_squared_backward(x, dy):
    return gradients(liger.LigerReLUSquaredFunction.apply, dy, x.clone())


@relu_squared_backward.reference
def _(x, dy):
    return 2 * F.relu(x) * dy


@case(x="f32[M,N]")
def softmax(x):
    return liger.LigerSoftmaxFunction.apply(x)


@softmax.reference
def _(x):
    return torch.softmax(x, -1)


@case(x="f32[M,N]", dy="f32[M,N]")
def softmax_backward(x, dy):
    return gradients(liger.LigerSoftmaxFunction.apply, dy, x)


@softmax_backward.reference
def _(x, dy):
    return gradients(lambda x: torch.softmax(x, -1), dy, x)


@case(x="f32[M,N]")
def sparsemax(x):
    return liger.LigerSparsemaxFunction.apply(x, -1)


@case(x="f32[M,N]", dy="f32[M,N]")
def sparsemax_backward(x, dy):
    return gradients(lambda x: liger.LigerSparsemaxFunction.apply(x, -1), dy, x)


# Positions and embeddings


def rotate(x, cos, sin):
    """Only the first halves of cos and sin are read: the second ones are to be the same."""
    a, b = x.chunk(2, -1)
    c, s = (t[:, None, :, : a.shape[-1]] for t in (cos, sin))
    return torch.cat((a * c - b * s, b * c + a * s), -1)


@case(q="f32[B,2,T,2*D]", k="f32[B,1,T,2*D]", cos="f32[B,T,2*D]", sin="f32[B,T,2*D]")
def rope(q, k, cos, sin):
    return liger.LigerRopeFunction.apply(q.clone(), k.clone(), cos, sin)


@rope.reference
def _(q, k, cos, sin):
    return rotate(q, cos, sin), rotate(k, cos, sin)


@case(q="f32[B,2,T,2*D]", k="f32[B,1,T,2*D]", cos="f32[B,T,2*D]", sin="f32[B,T,2*D]")
def rope_backward(q, k, cos, sin):
    return liger.rope_backward(q.clone(), k.clone(), cos, sin)


@rope_backward.reference
def _(q, k, cos, sin):
    return rotate(q, cos, -sin), rotate(k, cos, -sin)


@case(q="f32[B,2,T,8]", k="f32[B,1,T,8]", cos="f32[3,B,T,8]", sin="f32[3,B,T,8]")
def multimodal_rope(q, k, cos, sin):
    return liger.LigerQwen2VLMRopeFunction.apply(q.clone(), k.clone(), cos, sin, [1, 2, 1])


@case(w="f32[V,D]", i="i64[T] < V")
def embedding(w, i):
    return liger.LigerEmbeddingFunction.apply(w, i)


@embedding.reference
def _(w, i):
    return F.embedding(i, w)


@case(w="f32[V,D]", i="i64[T] < V", dy="f32[T,D]")
def embedding_backward(w, i, dy):
    return gradients(lambda w: liger.LigerEmbeddingFunction.apply(w, i), dy, w)


@embedding_backward.reference
def _(w, i, dy):
    return torch.zeros_like(w).index_add(0, i, dy)


# Losses


@case(x="f32[M,V]", y="i64[M] < V")
def cross_entropy(x, y):
    return liger.LigerCrossEntropyFunction.apply(x, y, None)[0]


@cross_entropy.reference
def _(x, y):
    return F.cross_entropy(x, y)


@case(x="f32[M,V]", y="i64[M] < V")
def cross_entropy_sum(x, y):
    return liger.LigerCrossEntropyFunction.apply(x, y, None, -100, 0.0, 0.0, "sum")[0]


@cross_entropy_sum.reference
def _(x, y):
    return F.cross_entropy(x, y, reduction="sum")


@case(x="f32[M,V]", y="i64[M] < V", w="f32[V]")
def cross_entropy_weighted(x, y, w):
    return liger.LigerCrossEntropyFunction.apply(x, y, w, -100, 0.0, 0.0, "sum")[0]


@cross_entropy_weighted.reference
def _(x, y, w):
    return F.cross_entropy(x, y, w, reduction="sum")


@case(x="f32[M,V]", y="i64[M] < V")
def cross_entropy_smoothed(x, y):
    return liger.LigerCrossEntropyFunction.apply(x, y, None, -100, 0.0, 0.125, "none")[0]


@cross_entropy_smoothed.reference
def _(x, y):
    return F.cross_entropy(x, y, reduction="none", label_smoothing=0.125)


@case(x="f32[M,V]", y="i64[M] < V")
def cross_entropy_softcap_z(x, y):
    loss, z, _, _ = liger.LigerCrossEntropyFunction.apply(x, y, None, -100, 0.25, 0.0, "sum", 30.0, True)
    return loss, z


@cross_entropy_softcap_z.reference
def _(x, y):
    x = 30.0 * torch.tanh(x / 30.0)
    z = 0.25 * torch.logsumexp(x, -1).square().sum()
    return F.cross_entropy(x, y, reduction="sum") + z, z


@case(x="f32[M,V]", y="i64[M] < V")
def cross_entropy_predictions(x, y):
    return liger.LigerCrossEntropyFunction.apply(x, y, None, -100, 0.0, 0.0, "none", None, False, True, True)


@case(x="f32[M,V]", y="i64[M] < V")
def cross_entropy_backward(x, y):
    """The gradient is written into x, hence the copy."""
    return gradients(lambda x: liger.LigerCrossEntropyFunction.apply(x, y, None)[0], torch.tensor(DL), x.clone())


@cross_entropy_backward.reference
def _(x, y):
    return (torch.softmax(x, -1) - F.one_hot(y, x.shape[1])) * (DL / x.shape[0])


@case(x="f32[M,H]", w="f32[V,H]", y="i64[M] < V")
def fused_linear_cross_entropy(x, w, y):
    return liger.LigerFusedLinearCrossEntropyFunction.apply(x, w, y)[0]


@fused_linear_cross_entropy.reference
def _(x, w, y):
    return F.cross_entropy(x @ w.T, y)


@case(x="f32[M,H]", w="f32[V,H]", y="i64[M] < V")
def fused_linear_cross_entropy_backward(x, w, y):
    return gradients(lambda x, w: liger.LigerFusedLinearCrossEntropyFunction.apply(x, w, y)[0], torch.tensor(DL), x, w)


@fused_linear_cross_entropy_backward.reference
def _(x, w, y):
    p = (torch.softmax(x @ w.T, -1) - F.one_hot(y, w.shape[0])) * (DL / x.shape[0])
    return p @ w, p.T @ x


@case(x="f32[S,B,V]", y="i64[S,B] < V")
def vocab_parallel_cross_entropy(x, y):
    return liger.LigerVocabParallelCEFunction.apply(x, y, None, -100, 0.0, "pytorch", "global")


@vocab_parallel_cross_entropy.reference
def _(x, y):
    return torch.logsumexp(x, -1) - torch.gather(x, 2, y[..., None])[..., 0]


@case(x="f32[S,B,V]", y="i64[S,B] < V", dl="f32[S,B]")
def vocab_parallel_cross_entropy_backward(x, y, dl):
    return gradients(
        lambda x: liger.LigerVocabParallelCEFunction.apply(x, y, None, -100, 0.0, "pytorch", "global"), dl, x
    )


@vocab_parallel_cross_entropy_backward.reference
def _(x, y, dl):
    return (torch.softmax(x, -1) - F.one_hot(y, x.shape[-1])) * dl[..., None]


@case(x="f32[M,V]", t="f32[M,V]", y="i64[M] < V")
def cross_entropy_and_tvd(x, t, y):
    return liger.LigerFusedCETVDFunction.apply(x, t, y)


@cross_entropy_and_tvd.reference
def _(x, t, y):
    return F.cross_entropy(x, y, reduction="none"), 0.5 * (torch.softmax(x, -1) - torch.softmax(t, -1)).abs().sum(-1)


@case(x="f32[M,V]", t="f32[M,V]")
def kl_div(x, t):
    return liger.LigerKLDivLossFunction.apply(x, t)


@kl_div.reference
def _(x, t):
    return (t * (torch.log(t.clamp_min(1e-10)) - x)).sum() / x.shape[0]


@case(x="f32[M,V]", t="f32[M,V]")
def kl_div_log_target(x, t):
    return liger.LigerKLDivLossFunction.apply(x, t, "none", True)


@kl_div_log_target.reference
def _(x, t):
    return F.kl_div(x, t, reduction="none", log_target=True)


@case(x="f32[M,V]", t="f32[M,V]")
def kl_div_backward(x, t):
    return gradients(lambda x: liger.LigerKLDivLossFunction.apply(x, t), torch.tensor(DL), x)


@kl_div_backward.reference
def _(x, t):
    return -t * DL / x.shape[0]


@case(x="f32[M,V]", t="f32[M,V]")
def jsd(x, t):
    return liger.LigerJSDFunction.apply(x, t, None, 0.25)


def jensen_shannon(x, t, beta):
    p, q = torch.exp(t), torch.exp(x)
    m = beta * p + (1 - beta) * q
    return (beta * p * (t - torch.log(m)) + (1 - beta) * q * (x - torch.log(m))).sum() / x.shape[0]


@jsd.reference
def _(x, t):
    return jensen_shannon(x, t, 0.25)


@case(x="f32[M,V]", t="f32[M,V]")
def jsd_backward(x, t):
    return gradients(lambda x: liger.LigerJSDFunction.apply(x, t, None, 0.25), torch.tensor(DL), x)


@jsd_backward.reference
def _(x, t):
    return gradients(lambda x: jensen_shannon(x, t, 0.25), torch.tensor(DL, dtype=x.dtype), x)


@case(p="f32[M,V]", q="f32[M,V]")
def tvd(p, q):
    return liger.LigerTVDLossFunction.apply(p, q)


@tvd.reference
def _(p, q):
    return 0.5 * (p - q).abs().sum() / p.shape[0]


@case(p="f32[M,V]", q="f32[M,V]")
def tvd_backward(p, q):
    return gradients(lambda p: liger.LigerTVDLossFunction.apply(p, q), torch.tensor(DL), p)


@tvd_backward.reference
def _(p, q):
    return 0.5 * torch.sign(p - q) * DL / p.shape[0]


@case(x="f32[M,H]", w="f32[V,H]", t="f32[M,H]", u="f32[V,H]")
def fused_linear_jsd(x, w, t, u):
    return liger.LigerFusedLinearJSDFunction.apply(x, w, t, u)


@fused_linear_jsd.reference
def _(x, w, t, u):
    return jensen_shannon(torch.log_softmax(x @ w.T, -1), torch.log_softmax(t @ u.T, -1), 0.5)


@case(x="f32[M,H]", w="f32[V,H]", t="f32[M,V]")
def fused_linear_kl_div(x, w, t):
    return liger.LigerFusedLinearKLDivFunction.apply(x, w, t)


@case(x="f32[B,T+1,V]", i="i64[B,T] < V")
def selective_log_softmax(x, i):
    return grpo.fused_selective_log_softmax(x, i, 0.5)


@selective_log_softmax.reference
def _(x, i):
    return torch.gather(torch.log_softmax(x[:, :-1] / 0.5, -1), 2, i[..., None])[..., 0]


@case(x="f32[B,T+1,V]", old="f32[B,T]", i="i64[B,T] < V", a="f32[B]")
def grpo_loss(x, old, i, a):
    return liger.GrpoLossFunction.apply(x, old, None, i, a, None, 0.5, 0.0, 0.2, 0.2, False, "grpo", None, False)[0]


# Attention and mixing of streams


@case(x="f32[B,L,L]")
def causal_mask_minus_infinity(x):
    return attention._mask_inf_forward(x)


@case(x="f32[B,L,L]")
def causal_mask_zero(x):
    return attention._mask_zero_forward(x)


@causal_mask_zero.reference
def _(x):
    return torch.tril(x)


@case(v="f32[4,T,D]", q="f32[D]", w="f32[D]")
def attention_residual(v, q, w):
    return liger.LigerAttnResFunction.apply(v, q, w, EPS)


def residual(v, q, w):
    p = torch.softmax((rms(v, w) * q).sum(-1), 0)
    return (p[..., None] * v).sum(0)


@attention_residual.reference
def _(v, q, w):
    return residual(v, q, w)


@case(v="f32[4,T,D]", q="f32[D]", w="f32[D]", dh="f32[T,D]")
def attention_residual_backward(v, q, w, dh):
    return gradients(lambda v, q, w: liger.LigerAttnResFunction.apply(v, q, w, EPS), dh, v, q, w)


@attention_residual_backward.reference
def _(v, q, w, dh):
    return gradients(residual, dh, v, q, w)


@case(q="f32[B,2,T,D]", k="f32[B,2,T,D]", v="f32[B,2,T,D]")
def neighborhood_attention(q, k, v):
    return liger.LigerFusedNeighborhoodAttentionFunction.apply(q, k, v, 3)


@case(x="f32[T,4,C]", h="f32[T,4]")
def mhc_pre(x, h):
    return liger.LigerMHCPreFunction.apply(x, h)


@mhc_pre.reference
def _(x, h):
    return (x * h[..., None]).sum(1)


@case(x="f32[T,4,C]", h="f32[T,4]", dy="f32[T,C]")
def mhc_pre_backward(x, h, dy):
    return gradients(liger.LigerMHCPreFunction.apply, dy, x, h)


@mhc_pre_backward.reference
def _(x, h, dy):
    return h[..., None] * dy[:, None], (x * dy[:, None]).sum(-1)


@case(x="f32[T,4,C]", f="f32[T,C]", post="f32[T,4]", res="f32[T,4,4]")
def mhc_post_res(x, f, post, res):
    return liger.LigerMHCPostResFunction.apply(x, f, post, res)


def post_and_residual(x, f, post, res):
    return res @ x + post[..., None] * f[:, None]


@mhc_post_res.reference
def _(x, f, post, res):
    return post_and_residual(x, f, post, res)


@case(x="f32[T,4,C]", f="f32[T,C]", post="f32[T,4]", res="f32[T,4,4]", dy="f32[T,4,C]")
def mhc_post_res_backward(x, f, post, res, dy):
    return gradients(liger.LigerMHCPostResFunction.apply, dy, x, f, post, res)


@mhc_post_res_backward.reference
def _(x, f, post, res, dy):
    return gradients(post_and_residual, dy, x, f, post, res)


@case(x="f32[N,K]", phi="f32[K,24]")
def mhc_mm_norm(x, phi):
    return mhc.mhc_mm_norm_fwd(x, phi, EPS)


@mhc_mm_norm.reference
def _(x, phi):
    scale = torch.rsqrt(x.pow(2).mean(-1) + EPS)
    return (x @ phi) * scale[:, None], scale
