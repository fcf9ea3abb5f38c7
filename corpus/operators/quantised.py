"""Low precision: matmul with int8 and packed int4 weights dequantised in the loop, and quantisation of rows to int8."""

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

from trilift import case


@triton.jit
def int8_kernel(
    x_ptr,
    w_ptr,
    scale_ptr,
    y_ptr,
    M,
    N,
    K,
    stride_xm,
    stride_wk: tl.int64,
    stride_ym,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """y[m, n] = scale[n] * sum over k of x[m, k] * w[k, n]; the scale is applied after the loop."""
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        ks = start + tl.arange(0, BLOCK_K)
        x_mask = (rows[:, None] < M) & (ks[None, :] < K)
        w_mask = (ks[:, None] < K) & (cols[None, :] < N)
        x = tl.load(x_ptr + rows[:, None] * stride_xm + ks[None, :], mask=x_mask, other=0.0)
        w = tl.load(w_ptr + ks[:, None] * stride_wk + cols[None, :], mask=w_mask, other=0)
        acc += tl.dot(x, w.to(x.dtype))
    scale = tl.load(scale_ptr + cols, mask=cols < N, other=0.0)
    mask = (rows[:, None] < M) & (cols[None, :] < N)
    tl.store(y_ptr + rows[:, None] * stride_ym + cols[None, :], acc * scale[None, :], mask=mask)


@triton.jit
def int4_kernel(
    x_ptr,
    w_ptr,
    scale_ptr,
    zero_ptr,
    y_ptr,
    M,
    N: tl.int64,
    K,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """Byte (k // 2, n) holds the weights k (even: low four bits) and k + 1 (odd: high four bits) of column n."""
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    scale = tl.load(scale_ptr + cols, mask=cols < N, other=0.0)
    zero = tl.load(zero_ptr + cols, mask=cols < N, other=0)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        ks = start + tl.arange(0, BLOCK_K)
        x_mask = (rows[:, None] < M) & (ks[None, :] < K)
        w_mask = (ks[:, None] < K) & (cols[None, :] < N)
        x = tl.load(x_ptr + rows[:, None] * K + ks[None, :], mask=x_mask, other=0.0)
        packed = tl.load(w_ptr + (ks[:, None] // 2) * N + cols[None, :], mask=w_mask, other=0)
        nibble = (packed >> ((ks[:, None] % 2) * 4)) & 0xF
        w = (nibble.to(tl.int32) - zero[None, :]).to(tl.float32) * scale[None, :]
        acc += tl.dot(x, w.to(x.dtype))
    mask = (rows[:, None] < M) & (cols[None, :] < N)
    tl.store(y_ptr + rows[:, None] * N + cols[None, :], acc, mask=mask)


@triton.jit
def quantise_kernel(x_ptr, q_ptr, scale_ptr, N, stride_x, stride_q, BLOCK: tl.constexpr):
    """One scale per row: the largest magnitude becomes 127."""
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride_x + cols, mask=cols < N, other=0.0).to(tl.float32)
    scale = tl.max(tl.abs(x), axis=0) / 127.0
    q = libdevice.rint(x / scale).to(tl.int8)
    tl.store(scale_ptr + row, scale)
    tl.store(q_ptr + row * stride_q + cols, q, mask=cols < N)


@case(x="f16[M,K]", w="i8[K,N]", scale="f32[N]", where="N <= 65535 * 64")
def matmul_int8(x, w, scale):
    (M, K), N = x.shape, w.shape[1]
    y = torch.empty((M, N), dtype=torch.float32, device=x.device)
    grid = (triton.cdiv(M, 32), triton.cdiv(N, 64))
    strides = x.stride(0), w.stride(0), y.stride(0)
    int8_kernel[grid](x, w, scale, y, M, N, K, *strides, BLOCK_M=32, BLOCK_N=64, BLOCK_K=32)
    return y


@matmul_int8.reference
def _(x, w, scale):
    return x.to(scale.dtype) @ (w * scale)


@case(x="f32[M,2*K]", w="u8[K,N]", scale="f32[N]", zero="i32[N] < 16", where="N <= 65535 * 32")
def matmul_int4(x, w, scale, zero):
    (M, K), N = x.shape, w.shape[1]
    y = torch.empty((M, N), dtype=torch.float32, device=x.device)
    grid = (triton.cdiv(M, 32), triton.cdiv(N, 32))
    int4_kernel[grid](x, w, scale, zero, y, M, N, K, BLOCK_M=32, BLOCK_N=32, BLOCK_K=64)
    return y


@matmul_int4.reference
def _(x, w, scale, zero):
    nibbles = torch.stack([w & 15, w >> 4], dim=1).reshape(x.shape[1], w.shape[1])
    return x @ ((nibbles.int() - zero).float() * scale)


@case(x="f32[M,N]")
def quantise_rows(x):
    M, N = x.shape
    q = torch.empty((M, N), dtype=torch.int8, device=x.device)
    scale = torch.empty((M,), dtype=torch.float32, device=x.device)
    block = triton.next_power_of_2(N)
    quantise_kernel[(M,)](x, q, scale, N, x.stride(0), q.stride(0), BLOCK=block)
    return {"q": q, "scale": scale}


@quantise_rows.reference
def _(x):
    scale = x.abs().amax(dim=-1) / 127
    return {"q": torch.round(x / scale[:, None]).to(torch.int8), "scale": scale}
