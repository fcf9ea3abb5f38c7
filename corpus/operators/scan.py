"""Scans of rows: cumsum with a carry between blocks, running maximum, and the sum from each place to the end."""

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def maximum_of(a, b):
    return tl.maximum(a, b)


@triton.jit
def cumsum_kernel(x_ptr, out_ptr, N, stride_xm, stride_xn: tl.int64, stride_om, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    carry = 0.0
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * stride_xm + cols * stride_xn, mask=cols < N, other=0.0).to(tl.float32)
        tl.store(out_ptr + row * stride_om + cols, tl.cumsum(x, axis=0) + carry, mask=cols < N)
        carry += tl.sum(x, axis=0)


@triton.jit
def cummax_kernel(x_ptr, out_ptr, M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    cols = tl.arange(0, BLOCK_N)[None, :]
    mask = (rows < M) & (cols < N)
    x = tl.load(x_ptr + rows * N + cols, mask=mask, other=-float("inf"))
    tl.store(out_ptr + rows * N + cols, tl.associative_scan(x, 1, maximum_of), mask=mask)


@triton.jit
def suffix_sum_kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + cols, mask=cols < N, other=0.0)
    tl.store(out_ptr + row * N + cols, tl.cumsum(x, axis=0, reverse=True), mask=cols < N)


@case(x="f32[M,N] strided")
def cumsum(x):
    M, N = x.shape
    out = torch.empty((M, N), dtype=x.dtype, device=x.device)
    cumsum_kernel[(M,)](x, out, N, *x.stride(), out.stride(0), BLOCK=512)
    return out


@cumsum.reference
def _(x):
    return torch.cumsum(x, dim=-1)


@case(x="f32[M,N]")
def cummax(x):
    M, N = x.shape
    out = torch.empty_like(x)
    cummax_kernel[(triton.cdiv(M, 8),)](x, out, M, N, BLOCK_M=8, BLOCK_N=triton.next_power_of_2(N))
    return out


@cummax.reference
def _(x):
    return torch.cummax(x, dim=-1).values


@case(x="f32[M,N]")
def suffix_sum(x):
    M, N = x.shape
    out = torch.empty_like(x)
    suffix_sum_kernel[(M,)](x, out, N, BLOCK=triton.next_power_of_2(N))
    return out


@suffix_sum.reference
def _(x):
    return torch.flip(torch.cumsum(torch.flip(x, [-1]), dim=-1), [-1])
