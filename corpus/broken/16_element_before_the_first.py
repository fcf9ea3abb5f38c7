# expect: out-of-bounds at line 19
"""The choice by where comes after the load, which reads the element before the first (pattern of
vllm-project/vllm-ascend#16275).
"""

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def lengths_kernel(ends_ptr, lengths_ptr, batch, BLOCK: tl.constexpr):
    """Lengths of sequences from where they end."""
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < batch
    end = tl.load(ends_ptr + offsets, mask=mask, other=0)
    start = tl.where(offsets == 0, 0, tl.load(ends_ptr + offsets - 1, mask=mask, other=0))
    tl.store(lengths_ptr + offsets, end - start, mask=mask)


@case(ends="i32[N] < 2**30", where="N < 2**31")
def lengths_of_sequences(ends):
    lengths = torch.empty_like(ends)
    lengths_kernel[(triton.cdiv(ends.numel(), 128),)](ends, lengths, ends.numel(), BLOCK=128)
    return lengths


@lengths_of_sequences.reference
def _(ends):
    return torch.cat([ends[:1], ends[1:] - ends[:-1]])
