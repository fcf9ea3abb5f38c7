"""Kernels that differ from their references beside a number of the code: at few integers, or at sizes of a branch."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def picked_kernel(x_ptr, out_ptr, N, C: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < N)
    tl.store(out_ptr + i, tl.where(x == C, 1, 0), mask=i < N)


@triton.jit
def above_kernel(x_ptr, out_ptr, N, C: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < N)
    tl.store(out_ptr + i, tl.where(x > C, x, -x), mask=i < N)


@triton.jit
def added_kernel(x_ptr, out_ptr, N, b, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < N) + b, mask=i < N)


def mapped(kernel, x, number):
    out = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), number, BLOCK=64)
    return out


@case(x="i32[N]")
def picked(x):
    return mapped(picked_kernel, x, 7777)


@picked.reference
def _(x):
    return (x == 7778).to(x.dtype)


@case(x="i32[N]")
def never_picked(x):
    return mapped(picked_kernel, x, -123456)


@never_picked.reference
def _(x):
    return x - x


@case(x="i32[N]")
def above(x):
    return mapped(above_kernel, x, 5000)


@above.reference
def _(x):
    return torch.where(x >= 5000, x, -x)


@case(x="f32[N]")
def above_real(x):
    return mapped(above_kernel, x, 1e6)


@above_real.reference
def _(x):
    return -x


@case(x="f32[M,N]")
def added_on_a_curve(x):
    M, N = x.shape
    return mapped(added_kernel, x, 1.0 if M * M == N + 3 else 0.0)


@added_on_a_curve.reference
def _(x):
    return x.clone()


@case(x="f32[M,N]")
def added_at_a_product(x):
    M, N = x.shape
    return mapped(added_kernel, x, 1.0 if M * N == 12 else 0.0)


@added_at_a_product.reference
def _(x):
    return x.clone()


@case(x="i32[N]")
def as_it_is(x):
    return mapped(added_kernel, x, 0)


@case(x="i32[N] < 5")
def as_it_is_below_five(x):
    return mapped(added_kernel, x, 0)


@triton.jit
def real_kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < N).to(tl.float32), mask=i < N)


@case(x="i32[N]")
def as_real(x):
    out = torch.empty(x.shape, dtype=torch.float32, device=x.device)
    real_kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), BLOCK=64)
    return out


@case(x="f32[N]")
def one_further(x):
    return mapped(shifted_kernel, x, 1)


@triton.jit
def shifted_kernel(x_ptr, out_ptr, N, by, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    y = tl.load(x_ptr + i + by, mask=i < N, other=0.0)
    tl.store(out_ptr + i, tl.where(i + by < N, y, 0.0), mask=i < N)


@one_further.reference
def _(x):
    return torch.nn.functional.pad(x[1:], (0, 1))


@case(x="f32[N]")
def scaled_a_little(x):
    return mapped(scaled_kernel, x, 1.0000002)


@triton.jit
def scaled_kernel(x_ptr, out_ptr, N, C: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, C * tl.load(x_ptr + i, mask=i < N), mask=i < N)


@scaled_a_little.reference
def _(x):
    return x * 1.0


@case(x="f32[N]")
def raises_at_100(x):
    return mapped(added_kernel, x, 0.0)


@raises_at_100.reference
def _(x):
    return x if x.shape[0] != 100 else 1 / 0


@case(x="f32[N]", where="N == 1237")
def at_one_size(x):
    return mapped(added_kernel, x, 0.0)


@at_one_size.reference
def _(x):
    return x.clone()
