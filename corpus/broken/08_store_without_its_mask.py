# expect: write-race at line 37
"""The mask of the rows is used by the loads and forgotten by the store, so that the last tile of a sequence overwrites
the first rows of the next one (pattern of Dao-AILab/flash-attention#2789).
"""

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def bwd_preprocess_kernel(
    o_ptr,
    do_ptr,
    delta_ptr,
    seqlen,
    headdim,
    stride_ob,
    stride_om,
    stride_dob,
    stride_dom,
    BLOCK_M: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    """delta[b, m] = sum of o[b, m, d] * do[b, m, d] over d; the sequences lie one after the other in delta."""
    start_m = tl.program_id(0).to(tl.int64) * BLOCK_M
    batch = tl.program_id(1).to(tl.int64)
    offs_m = start_m + tl.arange(0, BLOCK_M)
    offs_d = tl.arange(0, BLOCK_D)
    mask_m = offs_m < seqlen
    mask = mask_m[:, None] & (offs_d[None, :] < headdim)
    o = tl.load(o_ptr + batch * stride_ob + offs_m[:, None] * stride_om + offs_d[None, :], mask=mask, other=0.0)
    do = tl.load(do_ptr + batch * stride_dob + offs_m[:, None] * stride_dom + offs_d[None, :], mask=mask, other=0.0)
    delta = tl.sum(o.to(tl.float32) * do.to(tl.float32), axis=1)
    tl.store(delta_ptr + batch * seqlen + offs_m, delta)


@case(o="f16[B,M,D]", do="f16[B,M,D]", where="B <= 65535 and M < 2**31 and D <= 256")
def attention_delta(o, do):
    B, M, D = o.shape
    buffer = torch.empty(B * M + 128, dtype=torch.float32, device=o.device)  # room for the last tile
    strides = o.stride(0), o.stride(1), do.stride(0), do.stride(1)
    grid = (triton.cdiv(M, 128), B)
    bwd_preprocess_kernel[grid](o, do, buffer, M, D, *strides, BLOCK_M=128, BLOCK_D=triton.next_power_of_2(D))
    return buffer[: B * M].view(B, M)


@attention_delta.reference
def _(o, do):
    return (o.float() * do.float()).sum(-1)
