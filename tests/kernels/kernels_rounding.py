"""Kernels whose float32 results float64 does not give, and variances of fewer elements than their correction."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def _nearest(x_ptr, out_ptr, n, MAGIC: tl.constexpr, BACK: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.store(out_ptr + i, (x + MAGIC) - BACK, mask=i < n)


def _rounded(x, back):
    out = torch.empty_like(x)
    _nearest[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), MAGIC=12582912.0, BACK=back, BLOCK=64)
    return out


@case(x="f32[N] in (-1000, 1000)")
def magic_number(x):
    """The nearest integer, for in float32 numbers from 2^23 on are integers."""
    return _rounded(x, 12582912.0)


@case(x="f32[N] in (-1000, 1000)")
def magic_number_by_one(x):
    return _rounded(x, 12582911.0)


@magic_number.reference
@magic_number_by_one.reference
def _(x):
    return torch.round(x)


@triton.jit
def _spread(x_ptr, out_ptr, N, TAKEN: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + i, mask=i < N, other=0.0)
    d = tl.where(i < N, x - tl.sum(x, 0) / N, 0.0)
    tl.store(out_ptr + row, tl.sum(d * d, 0) / (N - TAKEN))


def _variance(x, taken):
    out = torch.empty(x.shape[0], dtype=x.dtype, device=x.device)
    _spread[(x.shape[0],)](x, out, x.shape[1], TAKEN=taken, BLOCK=64)
    return out


@case(x="f32[M,N]", where="N <= 64")
def variance_of_three(x):
    """-2 for [1, 3], where PyTorch divides by max(0, 2 - 3)."""
    return _variance(x, 3)


@variance_of_three.reference
def _(x):
    return x.var(-1, correction=3)


@case(x="f32[M,N]", where="N <= 64 and N > 3")
def variance_of_more_than_three(x):
    return _variance(x, 3)


@variance_of_more_than_three.reference
def _(x):
    return x.var(-1, correction=3)


@case(x="f32[M,N]", where="N <= 64")
def variance_of_one(x):
    return _variance(x, 1)


@variance_of_one.reference
def _(x):
    return x.var(-1)


@case(x="f32[M,N]")
def powers(x):
    return _rounded(x, 12582912.0)


@powers.reference
def _(x):
    return x ** float("inf")
