"""Kernels that are undefined for some inputs, and references that branch where a size or a scalar is 1.

The first are what Triton documents as undefined (tl.clamp with bounds out of order), what LLVM makes poison (a float
that no integer holds), and what stops (an assert of a debug launch). Each wrong one differs from its reference there.
"""

import torch
import triton
import triton.language as tl

from trilift import case


def case_of(kernel, reference, out=None, options=None, **params):
    """The case of a kernel(x, y, n, *numbers, BLOCK) over one tensor x."""

    def run(x, **numbers):
        y = torch.empty(x.shape, dtype=out or x.dtype, device=x.device)
        n = x.numel()
        kernel[(triton.cdiv(n, 64),)](x, y, n, *numbers.values(), BLOCK=64, **(options or {}))
        return y

    if len(params) == 2:
        name = next(n for n in params if n != "x")
        of = {"s": lambda x, s: run(x, s=s)}[name]
    else:
        of = lambda x: run(x)  # noqa: E731
    of.__name__ = of.__qualname__ = kernel.__name__
    found = case(**params)(of)
    found.reference(reference)
    return found


@triton.jit
def clamp_kernel(x, y, n, s, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.clamp(tl.load(x + i, mask=i < n), -s, s), mask=i < n)


@triton.jit
def crossed_kernel(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.clamp(tl.load(x + i, mask=i < n), 1.0, -1.0), mask=i < n)


@triton.jit
def ordered_kernel(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.clamp(tl.load(x + i, mask=i < n), -1.0, 1.0), mask=i < n)


@triton.jit
def infinity_kernel(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    top = tl.full((BLOCK,), float("inf"), tl.float32).to(tl.int32)
    tl.store(y + i, tl.minimum(tl.load(x + i, mask=i < n), top), mask=i < n)


@triton.jit
def other_kernel(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n - 1, other=1e10), mask=i < n)


@triton.jit
def small_other_kernel(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n, other=7.9), mask=i < n)


@triton.jit
def asserting_kernel(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n, other=1.0)
    tl.device_assert(v > 0, "positive")
    tl.store(y + i, v, mask=i < n)


@triton.jit
def adding_kernel(x, y, n, s: tl.int32, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n) + s, mask=i < n)


clamped = case_of(clamp_kernel, lambda x, s: torch.minimum(torch.maximum(x, 0 * x - s), 0 * x + s), x="f32[N]", s="f32")
crossed = case_of(crossed_kernel, lambda x: x.clamp(min=1.0).clamp(max=-1.0), x="f32[N]")
ordered = case_of(ordered_kernel, lambda x: x.clamp(-1.0, 1.0), x="f32[N]")
infinity = case_of(infinity_kernel, lambda x: x.clone(), x="i32[N]")
other = case_of(other_kernel, lambda x: x.clone(), x="i32[N]")
small_other = case_of(small_other_kernel, lambda x: x.clone(), x="i32[N]")
asserting = case_of(asserting_kernel, lambda x: x.clone(), options={"debug": True}, x="f32[N]")


def branching(reference):
    """The sum of x and s, beside a reference that adds in 8 bits somewhere."""
    return case_of(adding_kernel, reference, out=torch.int32, x="i8[N]", s="i32 in (-3, 3)")


at_one = branching(lambda x, s: (x + 1).int() if s == 1 else x.int() + s)
at_minus_one = branching(lambda x, s: (x - 1).int() if s == -1 else x.int() + s)
one_element = branching(lambda x, s: (x + s).int() if x.shape[0] == 1 else x.int() + s)
below_two = branching(lambda x, s: (x + s).int() if x.numel() < 2 else x.int() + s)
more_than_one = branching(lambda x, s: x.int() + s if x.shape[0] > 1 and x.shape[0] >= 1 else s + x.int())


@case(x="f32[N] strided")
def by_stride(x):
    y = torch.empty(x.shape, device=x.device)
    stride_kernel[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), x.stride(0), BLOCK=64)
    return y


@by_stride.reference
def _(x):
    return x * x.stride(0)


@triton.jit
def stride_kernel(x, y, n, step, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i * step, mask=i < n) * step, mask=i < n)


@case(x="f32[N]")
def fraction_of_a_grid(x):
    y = torch.empty_like(x)
    ordered_kernel[(x.numel() // 64.0 + 1,)](x, y, x.numel(), BLOCK=64)
    return y
