# sound
"""Probabilities of the logits near the maximum of their row, of any strides."""

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def min_p_kernel(logits_ptr, probs_ptr, V, margin, stride_m, stride_v, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK).to(tl.int64)
    mask = cols < V
    logits = tl.load(logits_ptr + row * stride_m + cols * stride_v, mask=mask, other=-float("inf"))
    shifted = logits - tl.max(logits, axis=0)
    kept = tl.where(shifted >= -margin, tl.exp(shifted), 0.0)
    tl.store(probs_ptr + row * V + cols, kept / tl.sum(kept, axis=0), mask=mask)


def min_p(logits, margin):
    M, V = logits.shape
    probs = torch.empty((M, V), dtype=logits.dtype, device=logits.device)
    min_p_kernel[(M,)](logits, probs, V, margin, *logits.stride(), BLOCK=triton.next_power_of_2(V))
    return probs


@case(logits="f32[M,V] strided", margin=2.0, where="M < 2**31 and V <= 65536")
def sampling_probabilities(logits, margin):
    return min_p(logits, margin)


@sampling_probabilities.reference
def _(logits, margin):
    shifted = logits - logits.amax(dim=-1, keepdim=True)
    kept = torch.where(shifted >= -margin, torch.exp(shifted), 0.0)
    return kept / kept.sum(dim=-1, keepdim=True)
