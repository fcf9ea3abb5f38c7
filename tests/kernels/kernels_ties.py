"""Kernels that are wrong where two numbers are equal, and nowhere else; beside right ones."""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl

from trilift import case


@triton.jit
def shrink_kernel(x, out, n, LIMIT: tl.constexpr, STRICT: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    kept = tl.abs(v) > LIMIT if STRICT else tl.abs(v) >= LIMIT
    tl.store(out + i, tl.where(kept, v, 0.0), mask=i < n)


@triton.jit
def threshold_kernel(x, out, n, STRICT: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    kept = v > 0.1 if STRICT else v >= 0.1
    tl.store(out + i, tl.where(kept, v, 20.0), mask=i < n)


@triton.jit
def agree_kernel(x, y, out, n, STRICT: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a, b = tl.load(x + i, mask=i < n), tl.load(y + i, mask=i < n)
    near = tl.abs(a - b) <= 0.25 * tl.abs(b) if STRICT else tl.abs(a - b) < 0.25 * tl.abs(b)
    tl.store(out + i, near.to(tl.float32), mask=i < n)


@triton.jit
def double_kernel(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n, other=0.0)
    tl.store(out + i, tl.where(v.to(tl.float64) > 0.1, 1.0, 0.0), mask=i < n)


def launched(kernel, *tensors, **constants):
    out = torch.empty_like(tensors[0])
    kernel[(triton.cdiv(out.numel(), 64),)](*tensors, out, out.numel(), **constants, BLOCK=64)
    return out


def hard(x):
    return F.hardshrink(x, 0.5)


def above(x):
    return F.threshold(x, 0.1, 20.0)


def above_in_double(x):
    return (x.double() > 0.1).to(torch.float32)


def above_in_single(x):
    return (x > 0.1).to(torch.float32)


def agree(x, y):
    return (torch.abs(x - y) <= 0.25 * torch.abs(y)).to(torch.float32)


@case(x="f32[N]")
def shrunk(x):
    return launched(shrink_kernel, x, LIMIT=0.5, STRICT=True)


@case(x="f32[N]")
def shrunk_not_at_the_limit(x):
    return launched(shrink_kernel, x, LIMIT=0.5, STRICT=False)


@case(x="f32[N]")
def thresholded(x):
    return launched(threshold_kernel, x, STRICT=True)


@case(x="f32[N]")
def thresholded_not_at_the_limit(x):
    return launched(threshold_kernel, x, STRICT=False)


@case(x="f32[N]", y="f32[N]")
def near(x, y):
    return launched(agree_kernel, x, y, STRICT=True)


@case(x="f32[N]", y="f32[N]")
def near_not_at_zeros(x, y):
    return launched(agree_kernel, x, y, STRICT=False)


@case(x="f32[N]")
def compared_in_double(x):
    return launched(double_kernel, x)


@case(x="f32[N]")
def compared_in_double_not_in_single(x):
    return launched(double_kernel, x)


compared_in_double.reference(above_in_double)
compared_in_double_not_in_single.reference(above_in_single)
for c in (shrunk, shrunk_not_at_the_limit):
    c.reference(hard)
for c in (thresholded, thresholded_not_at_the_limit):
    c.reference(above)
for c in (near, near_not_at_zeros):
    c.reference(agree)

RIGHT = (shrunk, thresholded, near, compared_in_double)
AT_FLOATS = (shrunk_not_at_the_limit, near_not_at_zeros)  # 0.1 is no number of 32 bits
WRONG = (*AT_FLOATS, thresholded_not_at_the_limit)
IN_DOUBLE = (compared_in_double, compared_in_double_not_in_single)
