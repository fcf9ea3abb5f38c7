# sound
"""gelu by tanh, with sqrt(2/pi) to the last digit."""

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def gelu_kernel(x_ptr, out_ptr, n_elements, BLOCK: tl.constexpr):
    """x sigmoid(2 u) with u = sqrt(2/pi) (x + 0.044715 x^3)."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n_elements, other=0.0).to(tl.float32)
    u = 0.7978845608028654 * (x + 0.044715 * x * x * x)
    tl.store(out_ptr + at, x * tl.sigmoid(2.0 * u), mask=at < n_elements)


def gelu(x):
    out = torch.empty(x.shape, dtype=torch.float32, device=x.device)
    n = x.numel()
    gelu_kernel[(triton.cdiv(n, 1024),)](x, out, n, BLOCK=1024)
    return out


@case(x="f16[M,N]", where="M * N < 2**30")
def gelu_of_matrix(x):
    return gelu(x)


@gelu_of_matrix.reference
def _(x):
    return torch.nn.functional.gelu(x.float(), approximate="tanh")
