"""References that branch on remainders of sizes, which the host function does not."""

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def scale_kernel(out, x, s, N, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, s * tl.load(x + at, mask=at < N), mask=at < N)


def scaled(x, s):
    out = torch.empty_like(x)
    scale_kernel[(triton.cdiv(x.numel(), 64),)](out, x, s, x.numel(), BLOCK=64)
    return out


@case(x="f32[N]")
def wrong_below_the_largest_remainder(x):
    return scaled(x, 2.0)


@wrong_below_the_largest_remainder.reference
def _(x):
    return x * 2.0 if x.shape[0] % 1000 < 999 else x * 3.0


@case(x="f32[N]")
def wrong_at_the_largest_remainder(x):
    return scaled(x, 3.0)


@wrong_at_the_largest_remainder.reference
def _(x):
    return x * 2.0 if x.shape[0] % 1000 < 999 else x * 3.0


@case(x="f32[N]")
def right_below_every_remainder(x):
    return scaled(x, 2.0)


@right_below_every_remainder.reference
def _(x):
    return x * 2.0 if x.shape[0] % 1000 < 1000 else x * 3.0


@case(x="f32[N]")
def right_at_both(x):
    return scaled(x, 2.0 if x.shape[0] % 1000 < 999 else 3.0)


@right_at_both.reference
def _(x):
    return x * 2.0 if x.shape[0] % 1000 < 999 else x * 3.0
