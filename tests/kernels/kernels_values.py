"""Kernels whose numbers overflow, turn into NaN or lose their digits, each beside one that does not."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from trilift import case


def rows(kernel, x, columns=None, dtype=None, warps=4, **constants):
    """One program for each row of x."""
    m, n = x.shape
    out = torch.empty((m, columns if columns else n) if columns != 1 else (m,), dtype=dtype or x.dtype)
    kernel[(m,)](x, out, n, BLOCK=triton.next_power_of_2(n), num_warps=warps, **constants)
    return out


# ---- overflow --------------------------------------------------------------------------------------------------------


@triton.jit
def softmax_kernel(x, y, n, STABLE: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + tl.program_id(0) * n + i, mask=i < n, other=-float("inf")).to(tl.float32)
    if STABLE:
        v -= tl.max(v, 0)
    e = tl.exp(v)  # overflow
    tl.store(y + tl.program_id(0) * n + i, e / tl.sum(e, 0), mask=i < n)


@case(x="f32[M,N]")
def softmax(x):
    return rows(softmax_kernel, x, STABLE=True)


@softmax.reference
def _(x):
    return torch.softmax(x, -1)


@case(x="f32[M,N]")
def softmax_naive(x):
    return rows(softmax_kernel, x, STABLE=False)


@softmax_naive.reference
def _(x):
    return torch.softmax(x, -1)


@case(x="f32[M,N]")
def softmax_naive_alone(x):
    return rows(softmax_kernel, x, STABLE=False)


@triton.jit
def logsumexp_kernel(x, y, n, STABLE: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + tl.program_id(0) * n + i, mask=i < n, other=-float("inf")).to(tl.float32)
    top = tl.max(v, 0) if STABLE else 0.0
    total = tl.sum(tl.exp(v - top), 0)  # overflow
    tl.store(y + tl.program_id(0), top + tl.log(total))


@case(x="f16[M,N]")
def logsumexp(x):
    return rows(logsumexp_kernel, x, 1, torch.float32, STABLE=True)


@logsumexp.reference
def _(x):
    return torch.logsumexp(x.float(), -1)


@case(x="f16[M,N]")
def logsumexp_naive(x):
    return rows(logsumexp_kernel, x, 1, torch.float32, STABLE=False)


@logsumexp_naive.reference
def _(x):
    return torch.logsumexp(x.float(), -1)


@triton.jit
def online_softmax_kernel(x, y, n, BLOCK: tl.constexpr):
    row = tl.program_id(0) * n
    top = -float("inf")
    total = 0.0
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        v = tl.load(x + row + i, mask=i < n, other=-float("inf"))
        new = tl.maximum(top, tl.max(v, 0))
        total = total * tl.exp(top - new) + tl.sum(tl.exp(v - new), 0)
        top = new
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        v = tl.load(x + row + i, mask=i < n)
        tl.store(y + row + i, tl.exp(v - top) / total, mask=i < n)


@case(x="f32[M,N]")
def online_softmax(x):
    out = torch.empty_like(x)
    online_softmax_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=16)
    return out


@online_softmax.reference
def _(x):
    return torch.softmax(x, -1)


@triton.jit
def pointwise_kernel(x, y, n, WHICH: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n, other=0.0)
    if WHICH == "exp":
        v = tl.exp(v)
    elif WHICH == "square":
        v = v * v
    elif WHICH == "inverse":
        v = 1 / v
    elif WHICH == "sigmoid":
        v = 1 / (1 + tl.exp(-v))
    elif WHICH == "sigmoid_naive":
        e = tl.exp(v)  # overflow
        v = e / (1 + e)
    elif WHICH == "softplus":
        v = tl.maximum(v, 0) + tl.log(1 + tl.exp(-tl.abs(v)))
    elif WHICH == "softplus_naive":
        v = tl.log(1 + tl.exp(v))  # overflow
    elif WHICH == "gelu":
        v = 0.5 * v * (1 + tl.math.erf(v * 0.7071067811865476))
    elif WHICH == "gelu_rough":
        v = 0.5 * v * (1 + tl.math.erf(v * 0.707))  # truncated
    tl.store(y + i, v, mask=i < n)


def pointwise(x, which):
    y = torch.empty_like(x)
    pointwise_kernel[(triton.cdiv(x.numel(), 16),)](x, y, x.numel(), WHICH=which, BLOCK=16)
    return y


@case(x="f32[N]")
def exp(x):
    return pointwise(x, "exp")


@exp.reference
def _(x):
    return torch.exp(x)


@case(x="f32[N]")
def exp_alone(x):
    return pointwise(x, "exp")


@case(x="f16[N]")
def square(x):
    return pointwise(x, "square")


@square.reference
def _(x):
    return x * x


@case(x="f32[N]")
def inverse(x):
    return pointwise(x, "inverse")


@inverse.reference
def _(x):
    return 1 / x


@case(x="f32[N]")
def inverse_alone(x):
    return pointwise(x, "inverse")


@case(x="f32[N]")
def sigmoid(x):
    return pointwise(x, "sigmoid")


@sigmoid.reference
def _(x):
    return torch.sigmoid(x)


@case(x="f32[N]")
def sigmoid_naive(x):
    return pointwise(x, "sigmoid_naive")


@sigmoid_naive.reference
def _(x):
    return torch.sigmoid(x)


@case(x="f32[N]")
def softplus(x):
    return pointwise(x, "softplus")


@softplus.reference
def _(x):
    return torch.nn.functional.softplus(x)


@case(x="f32[N]")
def softplus_naive_alone(x):
    return pointwise(x, "softplus_naive")


@case(x="f32[N]")
def gelu(x):
    return pointwise(x, "gelu")


@gelu.reference
def _(x):
    return torch.nn.functional.gelu(x)


@case(x="f32[N]")
def gelu_rough(x):
    return pointwise(x, "gelu_rough")


@gelu_rough.reference
def _(x):
    return torch.nn.functional.gelu(x)


@triton.jit
def rms_norm_kernel(x, y, n, WIDE: tl.constexpr, EPS: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + tl.program_id(0) * n + i, mask=i < n, other=0.0)
    v = v.to(tl.float32) if WIDE else v
    squares = v * v  # overflow
    mean = tl.sum(squares.to(tl.float32), 0) / n
    tl.store(y + tl.program_id(0) * n + i, v * tl.rsqrt(mean + EPS), mask=i < n)


def rms(x, eps):
    return x.float() * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + eps)


@case(x="f16[M,N]")
def rms_norm(x):
    return rows(rms_norm_kernel, x, WIDE=True, EPS=1e-6)


@rms_norm.reference
def _(x):
    return rms(x, 1e-6).half()


@case(x="f16[M,N]")
def rms_norm_narrow(x):
    return rows(rms_norm_kernel, x, WIDE=False, EPS=1e-6)


@rms_norm_narrow.reference
def _(x):
    return rms(x, 1e-6).half()


@case(x="f32[M,N]")
def rms_norm_without_eps(x):
    return rows(rms_norm_kernel, x, WIDE=True, EPS=0.0)


@rms_norm_without_eps.reference
def _(x):
    return rms(x, 1e-6)


# ---- NaN -------------------------------------------------------------------------------------------------------------


@triton.jit
def masked_softmax_kernel(x, keep, y, n, GUARDED: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * n
    i = tl.arange(0, BLOCK)
    k = tl.load(keep + row + i, mask=i < n, other=0) != 0
    v = tl.load(x + row + i, mask=i < n, other=0.0)
    v = tl.where(k, v, -float("inf"))
    top = tl.max(v, 0)
    if GUARDED:
        top = tl.where(top == -float("inf"), 0.0, top)
    e = tl.exp(v - top)  # NaN
    total = tl.sum(e, 0)
    if GUARDED:
        total = tl.where(total == 0, 1.0, total)
    tl.store(y + row + i, e / total, mask=i < n)


def masked_softmax_of(x, keep, guarded):
    y = torch.empty_like(x)
    n = x.shape[1]
    masked_softmax_kernel[(x.shape[0],)](x, keep, y, n, GUARDED=guarded, BLOCK=triton.next_power_of_2(n))
    return y


def masked_softmax_reference(x, keep):
    return torch.softmax(x.masked_fill(~keep, -float("inf")), -1).nan_to_num(0.0)


@case(x="f32[M,N]", keep="bool[M,N]")
def masked_softmax(x, keep):
    return masked_softmax_of(x, keep, True)


@masked_softmax.reference
def _(x, keep):
    return masked_softmax_reference(x, keep)


@case(x="f32[M,N]", keep="bool[M,N]")
def masked_softmax_nan(x, keep):
    return masked_softmax_of(x, keep, False)


@masked_softmax_nan.reference
def _(x, keep):
    return masked_softmax_reference(x, keep)


@case(x="f32[M,N]", keep="bool[M,N]")
def masked_softmax_nan_too(x, keep):
    return masked_softmax_of(x, keep, False)


@masked_softmax_nan_too.reference
def _(x, keep):
    return torch.softmax(x.masked_fill(~keep, -float("inf")), -1)


@triton.jit
def attention_kernel(q, k, v, o, m, n, D: tl.constexpr, GUARDED: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    """Query i sees the keys up to i + n - m: with fewer keys than queries the first rows see none."""
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    query = tl.load(q + i[:, None] * D + d[None, :], mask=(i < m)[:, None], other=0.0)
    top = tl.full([BM], -float("inf"), tl.float32)
    total = tl.zeros([BM], tl.float32)
    acc = tl.zeros([BM, D], tl.float32)
    for start in range(0, n, BN):
        j = start + tl.arange(0, BN)
        key = tl.load(k + j[None, :] * D + d[:, None], mask=(j < n)[None, :], other=0.0)
        s = tl.dot(query, key) * 0.25
        s = tl.where((j[None, :] <= i[:, None] + n - m) & (j < n)[None, :], s, -float("inf"))
        new = tl.maximum(top, tl.max(s, 1))
        safe = tl.where(new == -float("inf"), 0.0, new) if GUARDED else new
        p = tl.exp(s - safe[:, None])  # NaN
        scale = tl.exp(top - safe)
        total = total * scale + tl.sum(p, 1)
        value = tl.load(v + j[:, None] * D + d[None, :], mask=(j < n)[:, None], other=0.0)
        acc = acc * scale[:, None] + tl.dot(p.to(value.dtype), value)
        top = new
    if GUARDED:
        total = tl.where(total == 0, 1.0, total)
    tl.store(o + i[:, None] * D + d[None, :], acc / total[:, None], mask=(i < m)[:, None])


def attention_of(q, k, v, guarded):
    o = torch.empty_like(q)
    grid = (triton.cdiv(q.shape[0], 16),)
    attention_kernel[grid](q, k, v, o, q.shape[0], k.shape[0], D=16, GUARDED=guarded, BM=16, BN=16)
    return o


def attention_reference(q, k, v):
    m, n = q.shape[0], k.shape[0]
    s = (q.float() @ k.float().T) * 0.25
    seen = torch.arange(n)[None, :] <= torch.arange(m)[:, None] + n - m
    return (torch.softmax(s.masked_fill(~seen, -float("inf")), -1).nan_to_num(0.0) @ v.float()).to(q.dtype)


@case(q="f16[M,16]", k="f16[N,16]", v="f16[N,16]")
def attention(q, k, v):
    return attention_of(q, k, v, True)


@attention.reference
def _(q, k, v):
    return attention_reference(q, k, v)


@case(q="f16[M,16]", k="f16[N,16]", v="f16[N,16]", where="M <= N")
def attention_where_keys_suffice(q, k, v):
    return attention_of(q, k, v, False)


@case(q="f16[M,16]", k="f16[N,16]", v="f16[N,16]")
def attention_nan(q, k, v):
    return attention_of(q, k, v, False)


@attention_nan.reference
def _(q, k, v):
    return attention_reference(q, k, v)


@case(q="f16[M,16]", k="f16[N,16]", v="f16[N,16]")
def attention_nan_alone(q, k, v):
    return attention_of(q, k, v, False)


@triton.jit
def unmasked_max_kernel(x, y, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + tl.program_id(0) * n + i, mask=i < n)  # undefined beyond n: not this rule's
    tl.store(y + tl.program_id(0), tl.sum(v, 0))


@case(x="f32[M,N]")
def undefined_sum(x):
    return rows(unmasked_max_kernel, x, 1)


@undefined_sum.reference
def _(x):
    return x.sum(-1)


# ---- precision -------------------------------------------------------------------------------------------------------


@triton.jit
def matmul_kernel(a, b, c, M, N, K, ACC: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros([BLOCK, BLOCK], ACC)
    for start in range(0, K, BLOCK):
        k = start + tl.arange(0, BLOCK)
        left = tl.load(a + i[:, None] * K + k[None, :], mask=(i < M)[:, None] & (k < K)[None, :], other=0.0)
        right = tl.load(b + k[:, None] * N + j[None, :], mask=(k < K)[:, None] & (j < N)[None, :], other=0.0)
        acc = tl.dot(left, right, acc, out_dtype=ACC)  # narrow
    tl.store(c + i[:, None] * N + j[None, :], acc, mask=(i < M)[:, None] & (j < N)[None, :])


def matmul_of(a, b, acc):
    c = torch.empty((a.shape[0], b.shape[1]), dtype=a.dtype)
    grid = (triton.cdiv(a.shape[0], 16), triton.cdiv(b.shape[1], 16))
    matmul_kernel[grid](a, b, c, a.shape[0], b.shape[1], a.shape[1], ACC=acc, BLOCK=16)
    return c


@case(a="f16[M,K]", b="f16[K,N]")
def matmul(a, b):
    return matmul_of(a, b, tl.float32)


@matmul.reference
def _(a, b):
    return a @ b


@case(a="f16[M,K]", b="f16[K,N]")
def matmul_narrow(a, b):
    return matmul_of(a, b, tl.float16)


@matmul_narrow.reference
def _(a, b):
    return a @ b


@triton.jit
def row_sum_kernel(x, y, n, WIDE: tl.constexpr, BLOCK: tl.constexpr):
    acc = tl.zeros([BLOCK], tl.float32 if WIDE else y.dtype.element_ty)
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        acc += tl.load(x + tl.program_id(0) * n + i, mask=i < n, other=0.0)  # narrow
    tl.store(y + tl.program_id(0), tl.sum(acc.to(tl.float32), 0))


def row_sum_of(x, wide):
    y = torch.empty(x.shape[0], dtype=x.dtype)
    row_sum_kernel[(x.shape[0],)](x, y, x.shape[1], WIDE=wide, BLOCK=16)
    return y


@case(x="bf16[M,N]")
def row_sum(x):
    return row_sum_of(x, True)


@row_sum.reference
def _(x):
    return x.sum(-1)


@case(x="bf16[M,N]")
def row_sum_narrow(x):
    return row_sum_of(x, False)


@row_sum_narrow.reference
def _(x):
    return x.sum(-1)


@case(x="bf16[M,N]")
def row_sum_narrow_alone(x):
    return row_sum_of(x, False)


@triton.jit
def column_sum_kernel(x, y, m, n, BLOCK: tl.constexpr):
    j = tl.arange(0, BLOCK)
    v = tl.load(x + tl.program_id(0) * n + j, mask=j < n, other=0.0)
    tl.atomic_add(y + j, v, mask=j < n)  # narrow


def column_sum_of(x, dtype):
    y = torch.zeros(x.shape[1], dtype=dtype)
    column_sum_kernel[(x.shape[0],)](x, y, *x.shape, BLOCK=triton.next_power_of_2(x.shape[1]))
    return y.to(x.dtype)


@case(x="f16[M,N]")
def column_sum_narrow(x):
    return column_sum_of(x, torch.float16)


@column_sum_narrow.reference
def _(x):
    return x.sum(0)


@triton.jit
def pairs_kernel(x, y, n, WIDE: tl.constexpr, BLOCK: tl.constexpr):
    """Two rows at a time."""
    i = tl.arange(0, BLOCK)
    acc = tl.zeros([BLOCK], tl.float32)
    for r in range(0, n, 2):
        a = tl.load(x + r * BLOCK + i)
        b = tl.load(x + (r + 1) * BLOCK + i)
        acc += a.to(tl.float32) + b.to(tl.float32) if WIDE else (a + b).to(tl.float32)  # narrow
    tl.store(y + i, acc)


def pairs_of(x, wide):
    y = torch.empty(16, dtype=torch.float32)
    pairs_kernel[(1,)](x, y, x.shape[0], WIDE=wide, BLOCK=16)
    return y


@case(x="f16[2*N,16]")
def pairs(x):
    return pairs_of(x, True)


@pairs.reference
def _(x):
    return x.float().sum(0)


@case(x="f16[2*N,16]")
def pairs_narrow(x):
    return pairs_of(x, False)


@pairs_narrow.reference
def _(x):
    return x.float().sum(0)


@triton.jit
def variance_kernel(x, y, n, WHICH: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + tl.program_id(0) * n + i, mask=i < n, other=0.0).to(tl.float32)
    mean = tl.sum(v, 0) / n
    if WHICH == "two":
        d = tl.where(i < n, v - mean, 0.0)
        out = tl.sum(d * d, 0) / n
    else:
        squares = tl.sum(v * v, 0) / n
        out = squares - mean * mean  # cancellation
    tl.store(y + tl.program_id(0), out)


def variance_reference(x):
    return x.var(-1, correction=0)


@case(x="f32[M,N]")
def variance(x):
    return rows(variance_kernel, x, 1, WHICH="two")


@variance.reference
def _(x):
    return variance_reference(x)


@case(x="f32[M,N]")
def variance_of_squares(x):
    return rows(variance_kernel, x, 1, WHICH="one")


@variance_of_squares.reference
def _(x):
    return variance_reference(x)


@case(x="f32[M,N]")
def variance_of_squares_alone(x):
    return rows(variance_kernel, x, 1, WHICH="one")


@triton.jit
def welford_kernel(x, y, n, BLOCK: tl.constexpr):
    mean = tl.zeros([BLOCK], tl.float32)
    m2 = tl.zeros([BLOCK], tl.float32)
    count = tl.zeros([BLOCK], tl.float32)
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        v = tl.load(x + tl.program_id(0) * n + i, mask=i < n, other=0.0)
        count = tl.where(i < n, count + 1, count)
        delta = v - mean
        mean = tl.where(i < n, mean + delta / count, mean)
        m2 = tl.where(i < n, m2 + delta * (v - mean), m2)
    whole = tl.sum(mean * count, 0) / n
    d = tl.where(count > 0, mean - whole, 0.0)
    tl.store(y + tl.program_id(0), (tl.sum(m2, 0) + tl.sum(d * d * count, 0)) / n)


@case(x="f32[M,N]")
def welford(x):
    y = torch.empty(x.shape[0], dtype=x.dtype)
    welford_kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK=16)
    return y


@welford.reference
def _(x):
    return variance_reference(x)


@triton.jit
def layer_norm_kernel(x, y, n, ONE: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + tl.program_id(0) * n + i, mask=i < n, other=0.0).to(tl.float32)
    mean = tl.sum(v, 0) / n
    if ONE:
        var = tl.sum(v * v, 0) / n - mean * mean  # cancellation
    else:
        d = tl.where(i < n, v - mean, 0.0)
        var = tl.sum(d * d, 0) / n
    tl.store(y + tl.program_id(0) * n + i, (v - mean) * tl.rsqrt(var + 1e-5), mask=i < n)


@case(x="f16[M,N]")
def layer_norm(x):
    return rows(layer_norm_kernel, x, ONE=False)


@layer_norm.reference
def _(x):
    return torch.nn.functional.layer_norm(x, x.shape[-1:])


@case(x="f32[M,N]")
def layer_norm_of_squares(x):
    return rows(layer_norm_kernel, x, ONE=True)


@layer_norm_of_squares.reference
def _(x):
    return torch.nn.functional.layer_norm(x, x.shape[-1:])


@triton.jit
def difference_kernel(x, y, z, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(z + i, tl.load(x + i, mask=i < n) - tl.load(y + i, mask=i < n), mask=i < n)


@case(x="f32[N]", y="f32[N]")
def difference(x, y):
    z = torch.empty_like(x)
    difference_kernel[(triton.cdiv(x.numel(), 16),)](x, y, z, x.numel(), BLOCK=16)
    return z
