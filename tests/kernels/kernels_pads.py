"""Rows padded with a number that is large and negative but no infinity: exp of it is small, and not 0."""

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def log_sum_kernel(x_ptr, out_ptr, N, PAD: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    j = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + j, mask=j < N, other=PAD)
    top = tl.max(x, 0)
    tl.store(out_ptr + row, top + tl.log(tl.sum(tl.exp(x - top), 0)))


def log_sum(x, pad):
    out = torch.empty(x.shape[0])
    block = triton.next_power_of_2(x.shape[1])
    log_sum_kernel[(x.shape[0],)](x, out, x.shape[1], PAD=pad, BLOCK=block)
    return out


@case(x="f32[M,N]")
def padded_by_1000(x):
    """N = 3, x = -2000: -1000.0 and not -1998.9."""
    return log_sum(x, -1000.0)


@padded_by_1000.reference
def _(x):
    return torch.logsumexp(x, 1)


@case(x="f32[M,N]")
def padded_by_infinity(x):
    """Right."""
    return log_sum(x, float("-inf"))


@padded_by_infinity.reference
def _(x):
    return torch.logsumexp(x, 1)


@triton.jit
def shifted_kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < N)
    small = tl.exp(-400.0 - x) * tl.exp(-400.0 + 0 * x)
    tl.store(out_ptr + i, tl.exp(x) + small, mask=i < N)


@case(x="f32[N]")
def product_of_two(x):
    """x = -900 in exact arithmetic: exp(100) beside exp(-900)."""
    out = torch.empty_like(x)
    shifted_kernel[(triton.cdiv(x.shape[0], 64),)](x, out, x.shape[0], BLOCK=64)
    return out


@product_of_two.reference
def _(x):
    return torch.exp(x)
