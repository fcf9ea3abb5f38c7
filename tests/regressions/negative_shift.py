# not TESTED: a shift by less than 0 or by the width and more is not defined
# mended

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < N)
    y = tl.load(y_ptr + i, mask=i < N)
    tl.store(out_ptr + i, x >> y, mask=i < N)


@case(x="i32[N]", y="i32[N]")
def negative_shift(x, y):
    """x >> -1 is 0 or -1 in PyTorch, and anything in a kernel."""
    out = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 16),)](x, y, out, x.numel(), BLOCK=16)
    return out


@negative_shift.reference
def _(x, y):
    return x >> y
