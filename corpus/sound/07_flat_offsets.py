# sound
"""The program id is widened before it becomes an offset (pattern of triton-lang/triton#6748)."""

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def axpby_kernel(x_ptr, y_ptr, out_ptr, alpha, beta, n_elements, BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(0).to(tl.int64)
    offsets = pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0)
    y = tl.load(y_ptr + offsets, mask=mask, other=0.0)
    tl.store(out_ptr + offsets, alpha * x + beta * y, mask=mask)


@case(x="f32[N]", y="f32[N]", alpha="f32", beta="f32", where="N < 2**40")
def axpby(x, y, alpha, beta):
    out = torch.empty_like(x)
    n_elements = x.numel()
    axpby_kernel[(triton.cdiv(n_elements, 1024),)](x, y, out, alpha, beta, n_elements, BLOCK_SIZE=1024)
    return out


@axpby.reference
def _(x, y, alpha, beta):
    return alpha * x + beta * y
