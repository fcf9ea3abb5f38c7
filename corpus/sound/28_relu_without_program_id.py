# sound
"""relu, a block for each program."""

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def relu_kernel(x_ptr, out_ptr, n_elements, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n_elements, other=0.0)
    tl.store(out_ptr + at, tl.maximum(x, 0.0), mask=at < n_elements)


def relu(x):
    out = torch.empty_like(x)
    n = x.numel()
    relu_kernel[(triton.cdiv(n, 512),)](x, out, n, BLOCK=512)
    return out


@case(x="f32[M,N]", where="M * N < 2**30")
def relu_of_matrix(x):
    return relu(x)


@relu_of_matrix.reference
def _(x):
    return torch.relu(x)
