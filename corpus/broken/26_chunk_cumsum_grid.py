# expect: broken-contract at line 23
"""Batches times heads are a grid axis that ends at 65535; pattern of fla-org/flash-linear-attention#172."""

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def chunk_cumsum_kernel(x_ptr, out_ptr, T, CHUNK: tl.constexpr):
    chunk = tl.program_id(0)
    sequence = tl.program_id(1).to(tl.int64)
    t = chunk * CHUNK + tl.arange(0, CHUNK)
    x = tl.load(x_ptr + sequence * T + t, mask=t < T, other=0.0)
    tl.store(out_ptr + sequence * T + t, tl.cumsum(x, axis=0), mask=t < T)


def chunk_cumsum(x, chunk=64):
    B, H, T = x.shape
    out = torch.empty_like(x)
    chunk_cumsum_kernel[(triton.cdiv(T, chunk), B * H)](x, out, T, CHUNK=chunk)
    return out


@case(x="f32[B,H,T]", where="B * H < 2**31 and T <= 2**20")
def gates_within_chunks(x):
    return chunk_cumsum(x)


@gates_within_chunks.reference
def _(x, chunk=64):
    t = torch.arange(x.shape[-1])
    before = (t[None, :] <= t[:, None]) & (t[None, :] // chunk == t[:, None] // chunk)
    return x @ before.to(x.dtype).T
