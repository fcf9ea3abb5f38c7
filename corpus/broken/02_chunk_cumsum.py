# expect: int32-overflow at line 19
"""The first element of a sequence, (batch * T * H + head) * S, is an int32 and wraps in the later sequences of a batch
(pattern of fla-org/flash-linear-attention#1080).
"""

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def chunk_local_cumsum_kernel(s_ptr, o_ptr, T, H, S, BT: tl.constexpr, BS: tl.constexpr):
    """Cumulative sum over the tokens of each chunk of BT."""
    i_bh, i_t = tl.program_id(0), tl.program_id(1).to(tl.int64)
    i_b, i_h = i_bh // H, i_bh % H
    bos = i_b * T
    base = (bos * H + i_h) * S
    rows = i_t * BT + tl.arange(0, BT)
    cols = tl.arange(0, BS)
    offsets = base + rows[:, None] * H * S + cols[None, :]
    mask = (rows[:, None] < T) & (cols[None, :] < S)
    s = tl.load(s_ptr + offsets, mask=mask, other=0.0)
    tl.store(o_ptr + offsets, tl.cumsum(s, axis=0), mask=mask)


@case(s="f32[B,T,H,S]", where="B * T * H < 2**31 and T <= 65535 * 64 and S <= 256")
def chunk_local_cumsum(s):
    B, T, H, S = s.shape
    o = torch.empty_like(s)
    grid = (B * H, triton.cdiv(T, 64))
    chunk_local_cumsum_kernel[grid](s, o, T, H, S, BT=64, BS=triton.next_power_of_2(S))
    return o


@chunk_local_cumsum.reference
def _(s):
    t = torch.arange(s.shape[1])
    before = (t[:, None] // 64 == t[None, :] // 64) & (t[None, :] <= t[:, None])
    return torch.einsum("tu,buhs->bths", before.to(s.dtype), s)
