# not PROVED: a shift of the reference does not wrap in eight bits

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < N)
    tl.store(out_ptr + i, x.to(tl.int16) << 1, mask=i < N)


@case(x="u8[N]")
def narrow_shift(x):
    """x = 128: 256, not 0."""
    out = torch.empty_like(x, dtype=torch.int16)
    kernel[(triton.cdiv(x.numel(), 16),)](x, out, x.numel(), BLOCK=16)
    return out


@narrow_shift.reference
def _(x):
    return (x << 1).to(torch.int16)
