# no crash: a shift of a real number that became an integer: TypeError of numpy

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < N, other=1)
    tl.store(out_ptr + i, x.to(tl.int32) << 3, mask=i < N)


@case(x="f32[N]")
def shift_of_a_real(x):
    out = torch.empty_like(x, dtype=torch.int32)
    kernel[(triton.cdiv(x.numel(), 16),)](x, out, x.numel(), BLOCK=16)
    return out


@shift_of_a_real.reference
def _(x):
    return x.to(torch.int32) << 3
