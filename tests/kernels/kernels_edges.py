"""Kernels that compute something else where no lane is padded, or beside a number of their code."""

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def row_kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    j = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + j, mask=j < N, other=0.0)
    tl.store(out_ptr + row, tl.max(x, 0))


@triton.jit
def special_kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < N)
    tl.store(out_ptr + i, tl.where(N == 777, 3 * x, x), mask=i < N)


@triton.jit
def double_kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, 2 * tl.load(x_ptr + i, mask=i < N), mask=i < N)


@case(x="f32[M,N]", where="N <= 1024")
def wrong_largest_or_zero(x):
    out = torch.empty(x.shape[0], dtype=x.dtype, device=x.device)
    row_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return out


@case(x="f32[M,N]", where="N <= 128")
def wrong_largest_or_zero_of_128(x):
    out = torch.empty(x.shape[0], dtype=x.dtype, device=x.device)
    row_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=128)
    return out


@case(x="f32[N]")
def wrong_at_one_size(x):
    out = torch.empty_like(x)
    special_kernel[(triton.cdiv(x.numel(), 128),)](x, out, x.numel(), BLOCK=128)
    return out


@case(x="f32[N,N,N,N,N,N,N,N,N,N]")
def wrong_one_size_only(x):
    out = torch.empty_like(x)
    double_kernel[(triton.cdiv(x.numel(), 128),)](x, out, x.numel(), BLOCK=128)
    return out


@case(x="f32[N]", where="N >= 64")
def rest_is_unset(x):
    """The grid is rounded down: elements after the last whole block are not written."""
    out = torch.empty_like(x)
    double_kernel[(x.numel() // 64,)](x, out, x.numel(), BLOCK=64)
    return out


@case(x="f32[M,N]", where="N <= 1024")
def right_relu_of_largest(x):
    out = torch.empty(x.shape[0], dtype=x.dtype, device=x.device)
    row_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=2048)
    return out
