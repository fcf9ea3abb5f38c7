# expect: int32-overflow at line 30
"""batch * batch_stride is an int32 for the input, and wraps in large batches (pattern of microsoft/dion#102)."""

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def xxt_kernel(
    a_ptr,
    c_ptr,
    M,
    K,
    a_stride_b,
    a_stride_r,
    a_stride_c,
    c_stride_b,
    c_stride_r,
    c_stride_c,
    BLOCK_M: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """C = A @ A.T for each matrix of the batch."""
    batch_idx = tl.program_id(0)
    rows = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(2) * BLOCK_M + tl.arange(0, BLOCK_M)
    a_ptr += batch_idx * a_stride_b
    c_ptr += batch_idx.to(tl.int64) * c_stride_b
    acc = tl.zeros((BLOCK_M, BLOCK_M), tl.float32)
    for start in range(0, K, BLOCK_K):
        ks = start + tl.arange(0, BLOCK_K)
        a_mask = (rows[:, None] < M) & (ks[None, :] < K)
        t_mask = (ks[:, None] < K) & (cols[None, :] < M)
        a = tl.load(a_ptr + rows[:, None] * a_stride_r + ks[None, :] * a_stride_c, mask=a_mask, other=0.0)
        t = tl.load(a_ptr + ks[:, None] * a_stride_c + cols[None, :] * a_stride_r, mask=t_mask, other=0.0)
        acc = tl.dot(a, t, acc)
    c_mask = (rows[:, None] < M) & (cols[None, :] < M)
    c = acc.to(c_ptr.dtype.element_ty)
    tl.store(c_ptr + rows[:, None] * c_stride_r + cols[None, :] * c_stride_c, c, mask=c_mask)


@case(a="f16[B,M,K]", where="B < 2**31 and M <= 32768 and K <= 32768")
def batched_gram(a):
    B, M, K = a.shape
    c = torch.empty((B, M, M), dtype=a.dtype, device=a.device)
    grid = (B, triton.cdiv(M, 64), triton.cdiv(M, 64))
    xxt_kernel[grid](a, c, M, K, *a.stride(), *c.stride(), BLOCK_M=64, BLOCK_K=32)
    return c


@batched_gram.reference
def _(a):
    a32 = a.float()
    return (a32 @ a32.transpose(1, 2)).to(a.dtype)
