# REFUTED: no shape was run at which the host function's cap of the grid matters

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def k0(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    n = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    in_n = n < N
    x_n = tl.load(x_ptr + n, mask=in_n, other=0)
    tl.store(out_ptr + n, tl.log(tl.abs(x_n) + 1.0), mask=in_n)


@case(x="f32[N]")
def capped_and_tested(x):
    """N = 19201: the last element is not written."""
    N = x.shape[0]
    t0 = torch.empty((N,), dtype=torch.float32)
    k0[(min(triton.cdiv(N, 64), 300),)](x, t0, N, BLOCK=64)
    return t0


@capped_and_tested.reference
def _(x):
    N = x.shape[0]
    t0 = torch.log(torch.abs(x) + 1.0)
    return t0
