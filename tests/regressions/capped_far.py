# REFUTED: a run had at most 600 programs, the grid ends at 2000

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < N)
    tl.store(out_ptr + i, x * 2.0, mask=i < N)


@case(x="f32[N]")
def capped_far(x):
    """N = 32001: the last element is not written."""
    out = torch.empty_like(x, dtype=torch.float32)
    kernel[(min(triton.cdiv(x.numel(), 16), 2000),)](x, out, x.numel(), BLOCK=16)
    return out


@capped_far.reference
def _(x):
    return x * 2.0
