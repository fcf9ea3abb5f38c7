# sound
"""Scales of rows and blocks that do not exist are not read (pattern of vllm-project/vllm#47303)."""

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def mx_matmul_kernel(
    x_ptr,
    w_ptr,
    scale_ptr,
    y_ptr,
    M,
    N,
    K,
    stride_xm,
    stride_wn,
    stride_sn,
    stride_ym,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """y = x @ dequantised(w).T; 32 neighbours of a row of w share a scale, a power of two stored with bias 127."""
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        ks = start + tl.arange(0, BLOCK_K)
        x_mask = (rows[:, None] < M) & (ks[None, :] < K)
        w_mask = (cols[None, :] < N) & (ks[:, None] < K)
        x = tl.load(x_ptr + rows[:, None] * stride_xm + ks[None, :], mask=x_mask, other=0.0)
        w = tl.load(w_ptr + cols[None, :] * stride_wn + ks[:, None], mask=w_mask, other=0)
        exponent = tl.load(scale_ptr + cols[None, :] * stride_sn + ks[:, None] // 32, mask=w_mask, other=127)
        scale = tl.exp2(exponent.to(tl.float32) - 127.0)
        acc += tl.dot(x.to(tl.float32), w.to(tl.float32) * scale, input_precision="ieee")
    mask = (rows[:, None] < M) & (cols[None, :] < N)
    tl.store(y_ptr + rows[:, None] * stride_ym + cols[None, :], acc, mask=mask)


@case(
    x="f16[M,32*G]",
    w="i8[N,32*G]",
    scale="u8[N,G] in (96, 160)",
    where="M < 2**31 and N <= 2**20 and G <= 2**16",
)
def mx_matmul(x, w, scale):
    (M, K), N = x.shape, w.shape[0]
    y = torch.empty((M, N), dtype=torch.float32, device=x.device)
    grid = (triton.cdiv(M, 32), triton.cdiv(N, 32))
    strides = x.stride(0), w.stride(0), scale.stride(0), y.stride(0)
    mx_matmul_kernel[grid](x, w, scale, y, M, N, K, *strides, BLOCK_M=32, BLOCK_N=32, BLOCK_K=64)
    return y


@mx_matmul.reference
def _(x, w, scale):
    factor = torch.exp2(scale.float() - 127.0).repeat_interleave(32, dim=1)
    return x.float() @ (w.float() * factor).T
