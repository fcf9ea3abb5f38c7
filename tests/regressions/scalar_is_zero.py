# REFUTED: no run was made at the scalars 0 and 1, where the host function takes another one

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def kernel(x_ptr, out_ptr, s, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < N) * s, mask=i < N)


def scaled(x, s):
    out = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 16),)](x, out, s, x.numel(), BLOCK=16)
    return out


@case(x="f32[N]", s="f32")
def zero_is_none(x, s):
    return scaled(x, s or 1.0)


@case(x="f32[N]", s="f32")
def whole_numbers(x, s):
    return scaled(x, s if s == int(s) else 2 * s)


@zero_is_none.reference
def _(x, s):
    return x * s


@whole_numbers.reference
def _(x, s):
    return x * s * 2
