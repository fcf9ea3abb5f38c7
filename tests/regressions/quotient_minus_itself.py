# not PROVED: a product with 0 is 0, and a difference 0, also of a quotient that is no number (0 / 0); no clause
# open

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < N, other=1)
    y = tl.load(y_ptr + i, mask=i < N, other=1)
    tl.store(out_ptr + i, x / y - x / y, mask=i < N)


@case(x="f32[N]", y="f32[N]")
def quotient_minus_itself(x, y):
    out = torch.empty_like(x, dtype=torch.float32)
    kernel[(triton.cdiv(x.numel(), 16),)](x, y, out, x.numel(), BLOCK=16)
    return out


@quotient_minus_itself.reference
def _(x, y):
    return torch.zeros_like(x)
