"""Causal depthwise convolution along time, with bias and silu, and max pooling of neighbours."""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl

from trilift import case


@triton.jit
def conv1d_kernel(
    x_ptr,
    w_ptr,
    b_ptr,
    y_ptr,
    T,
    D,
    stride_xb,
    stride_xt,
    WIDTH: tl.constexpr,
    SILU: tl.constexpr,
    BLOCK_T: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    """y[t] = b + sum over w of weight[w] * x[t - WIDTH + 1 + w], zeros before the start."""
    batch = tl.program_id(2).to(tl.int64)
    t = tl.program_id(0).to(tl.int64) * BLOCK_T + tl.arange(0, BLOCK_T)
    d = tl.program_id(1) * BLOCK_D + tl.arange(0, BLOCK_D)
    acc = tl.zeros((BLOCK_T, BLOCK_D), tl.float32)
    acc += tl.load(b_ptr + d, mask=d < D, other=0.0)[None, :]
    for k in tl.static_range(WIDTH):
        past = t - (WIDTH - 1) + k
        mask = (past[:, None] >= 0) & (past[:, None] < T) & (d[None, :] < D)
        x = tl.load(x_ptr + batch * stride_xb + past[:, None] * stride_xt + d[None, :], mask=mask, other=0.0)
        w = tl.load(w_ptr + d * WIDTH + k, mask=d < D, other=0.0)
        acc += x * w[None, :]
    if SILU:
        acc = acc * tl.sigmoid(acc)
    mask = (t[:, None] < T) & (d[None, :] < D)
    tl.store(y_ptr + (batch * T + t[:, None]) * D + d[None, :], acc, mask=mask)


@triton.jit
def max_pool_kernel(x_ptr, out_ptr, N, out_cols, WINDOW: tl.constexpr, STEP: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    out = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    best = tl.full((BLOCK,), -float("inf"), tl.float32)
    for k in range(WINDOW):
        cols = out * STEP + k
        best = tl.maximum(best, tl.load(x_ptr + row * N + cols, mask=cols < N, other=-float("inf")))
    tl.store(out_ptr + row * out_cols + out, best, mask=out < out_cols)


@case(x="f32[B,T,D]", w="f32[D,4]", b="f32[D]", where="B <= 65535 and D <= 65535 * 64")
def conv1d(x, w, b):
    B, T, D = x.shape
    y = torch.empty_like(x)
    grid = (triton.cdiv(T, 32), triton.cdiv(D, 64), B)
    conv1d_kernel[grid](x, w, b, y, T, D, x.stride(0), x.stride(1), WIDTH=4, SILU=True, BLOCK_T=32, BLOCK_D=64)
    return y


@conv1d.reference
def _(x, w, b):
    padded = F.pad(x, (0, 0, 3, 0))
    T = x.shape[1]
    return F.silu(b + sum(padded[:, k : k + T] * w[:, k] for k in range(4)))


@case(x="f32[M,N]", where="3 <= N and N <= 65535 * 512")
def max_pool(x):
    M, N = x.shape
    cols = (N - 3) // 2 + 1
    out = torch.empty((M, cols), dtype=x.dtype, device=x.device)
    max_pool_kernel[(M, triton.cdiv(cols, 256))](x, out, N, cols, WINDOW=3, STEP=2, BLOCK=256)
    return out


@max_pool.reference
def _(x):
    return F.max_pool1d(x[:, None], kernel_size=3, stride=2)[:, 0]
