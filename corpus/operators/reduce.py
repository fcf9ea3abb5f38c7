"""Reductions: sum and mean by looping over the row, max and logsumexp with the row in a block, columns by atomics."""

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def sum_kernel(
    x_ptr,
    out_ptr,
    M,
    N,
    stride_xm,
    stride_xn: tl.int64,
    MEAN: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, N, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)[None, :]
        mask = (rows < M) & (cols < N)
        acc += tl.load(x_ptr + rows * stride_xm + cols * stride_xn, mask=mask, other=0.0).to(tl.float32)
    total = tl.sum(acc, axis=1)[:, None]
    if MEAN:
        total = total / N
    tl.store(out_ptr + rows, total, mask=rows < M)


@triton.jit
def max_kernel(x_ptr, out_ptr, N, stride_xm, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride_xm + cols, mask=cols < N, other=-float("inf"))
    tl.store(out_ptr + row, tl.max(x, axis=0))


@triton.jit
def logsumexp_kernel(x_ptr, out_ptr, N, stride_xm, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride_xm + cols, mask=cols < N, other=-float("inf")).to(tl.float32)
    top = tl.max(x, axis=0)
    tl.store(out_ptr + row, top + tl.log(tl.sum(tl.exp(x - top), axis=0)))


@triton.jit
def column_sum_kernel(x_ptr, out_ptr, M, N, stride_xm, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """Each program adds the column sums of its tile to the output."""
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = (rows[:, None] < M) & (cols[None, :] < N)
    tile = tl.load(x_ptr + rows[:, None] * stride_xm + cols[None, :], mask=mask, other=0.0)
    tl.atomic_add(out_ptr + cols, tl.sum(tile, axis=0), mask=cols < N)


def row_sum(x, mean, block_m=8, block_n=128):
    """Sum or mean over the last axis of a matrix of any strides."""
    M, N = x.shape
    out = torch.empty((M,), dtype=torch.float32, device=x.device)
    sum_kernel[(triton.cdiv(M, block_m),)](x, out, M, N, *x.stride(), MEAN=mean, BLOCK_M=block_m, BLOCK_N=block_n)
    return out


@case(x="f32[M,N] strided")
def sum(x):
    return row_sum(x, mean=False)


@sum.reference
def _(x):
    return x.sum(dim=-1)


@case(x="f16[M,N]")
def mean(x):
    return row_sum(x, mean=True)


@mean.reference
def _(x):
    return x.float().mean(dim=-1)


@case(x="f32[M,N]")
def max(x):
    M, N = x.shape
    out = torch.empty((M,), dtype=x.dtype, device=x.device)
    max_kernel[(M,)](x, out, N, x.stride(0), BLOCK=triton.next_power_of_2(N))
    return out


@max.reference
def _(x):
    return x.amax(dim=-1)


@case(x="f32[M,N]")
def logsumexp(x):
    M, N = x.shape
    out = torch.empty((M,), dtype=torch.float32, device=x.device)
    logsumexp_kernel[(M,)](x, out, N, x.stride(0), BLOCK=triton.next_power_of_2(N))
    return out


@logsumexp.reference
def _(x):
    return torch.logsumexp(x, dim=-1)


@case(x="f32[M,N]", where="N <= 65535 * 64")
def column_sum(x):
    M, N = x.shape
    out = torch.zeros((N,), dtype=torch.float32, device=x.device)
    column_sum_kernel[(triton.cdiv(M, 32), triton.cdiv(N, 64))](x, out, M, N, x.stride(0), BLOCK_M=32, BLOCK_N=64)
    return out


@column_sum.reference
def _(x):
    return x.sum(dim=0)
