# sound
"""The load has the mask of the store (pattern of flagos-ai/FlagGems#5230)."""

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def bucketize_kernel(
    x_ptr, boundaries_ptr, out_ptr, n_elements, n_boundaries, BLOCK: tl.constexpr, BLOCK_B: tl.constexpr
):
    """How many boundaries are smaller than each value."""
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    index = tl.arange(0, BLOCK_B)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0)
    boundaries = tl.load(boundaries_ptr + index, mask=index < n_boundaries, other=float("inf"))
    below = boundaries[None, :] < x[:, None]
    tl.store(out_ptr + offsets, tl.sum(below.to(tl.int64), axis=1), mask=mask)


@case(x="f32[N]", boundaries="f32[K]", where="N < 2**31 and K <= 4096")
def bucketize(x, boundaries):
    N, K = x.numel(), boundaries.numel()
    out = torch.empty(N, dtype=torch.int64, device=x.device)
    bucketize_kernel[(triton.cdiv(N, 64),)](x, boundaries, out, N, K, BLOCK=64, BLOCK_B=triton.next_power_of_2(K))
    return out


@bucketize.reference
def _(x, boundaries):
    return (boundaries[None, :] < x[:, None]).to(torch.int64).sum(-1)
