# expect: out-of-bounds at line 32
"""A segment ends where the next one starts, also for the last one, after which the array of starts has no entry
(pattern of thunlp/TritonBench#12, apply_penalty).
"""

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def apply_penalty_kernel(
    logits_ptr,
    frequency_ptr,
    ids_ptr,
    counts_ptr,
    starts_ptr,
    out_ptr,
    batch,
    vocab,
    total,
    stride_logits,
    BLOCK_V: tl.constexpr,
    BLOCK_P: tl.constexpr,
):
    """Lowers each logit by frequency[b] for each time that its token was seen in sequence b."""
    cur_batch = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * BLOCK_V + tl.arange(0, BLOCK_V)
    start = tl.load(starts_ptr + cur_batch)
    end = tl.load(starts_ptr + cur_batch + 1)
    frequency = tl.load(frequency_ptr + cur_batch)
    seen = tl.zeros((BLOCK_V,), tl.float32)
    for first in range(start, end, BLOCK_P):
        offs = first + tl.arange(0, BLOCK_P)
        ids = tl.load(ids_ptr + offs, mask=offs < end, other=-1)
        counts = tl.load(counts_ptr + offs, mask=offs < end, other=0).to(tl.float32)
        seen += tl.sum(tl.where(ids[:, None] == cols[None, :], counts[:, None], 0.0), axis=0)
    logits = tl.load(logits_ptr + cur_batch * stride_logits + cols, mask=cols < vocab, other=0.0)
    tl.store(out_ptr + cur_batch * stride_logits + cols, logits - frequency * seen, mask=cols < vocab)


@case(
    logits="f32[B,V]",
    frequency="f32[B]",
    ids="i32[T] < V",
    counts="i32[T] < 1024",
    starts="i32[B] < T + 1",
    where="B < 2**31 and V <= 2**20 and T <= 2**24",
)
def apply_penalty(logits, frequency, ids, counts, starts):
    B, V = logits.shape
    out = torch.empty_like(logits)
    grid = (B, triton.cdiv(V, 64))
    args = logits, frequency, ids, counts, starts, out
    apply_penalty_kernel[grid](*args, B, V, ids.shape[0], logits.stride(0), BLOCK_V=64, BLOCK_P=16)
    return out


@apply_penalty.reference
def _(logits, frequency, ids, counts, starts):
    ends = torch.cat([starts[1:], torch.full_like(starts[:1], ids.shape[0])])
    place = torch.arange(ids.shape[0])[None, :]
    mine = (place >= starts[:, None]) & (place < ends[:, None])
    seen = (ids[:, None] == torch.arange(logits.shape[1])[None, :]).float() * counts[:, None]
    return logits - frequency[:, None] * (mine.float() @ seen)
