# sound
"""The tail is larger than every number of the row (pattern of flagos-ai/FlagGems#6447)."""

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def argmin_kernel(x_ptr, out_ptr, N, stride_x, BLOCK_N: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK_N)
    x = tl.load(x_ptr + row * stride_x + cols, mask=cols < N, other=0.0)
    tl.store(out_ptr + row, tl.argmin(tl.where(cols < N, x, float("inf")), axis=0))


@case(x="f32[M,N]", where="M < 2**31 and N <= 65536")
def argmin(x):
    M, N = x.shape
    out = torch.empty((M,), dtype=torch.int32, device=x.device)
    argmin_kernel[(M,)](x, out, N, x.stride(0), BLOCK_N=triton.next_power_of_2(N))
    return out


@argmin.reference
def _(x):
    return torch.argmin(x, dim=-1).to(torch.int32)
