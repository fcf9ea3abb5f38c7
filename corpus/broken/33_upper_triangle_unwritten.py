# expect: unwritten-output at line 30
"""What lies above the diagonal is returned as it was allocated; pattern of fla-org/flash-linear-attention#1158."""

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def causal_scores_kernel(q_ptr, k_ptr, a_ptr, T, D, BLOCK: tl.constexpr, BLOCK_D: tl.constexpr):
    """A tile above the diagonal has nothing to do."""
    sequence = tl.program_id(0).to(tl.int64)
    if tl.program_id(2) > tl.program_id(1):
        return
    rows = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    cols = tl.program_id(2) * BLOCK + tl.arange(0, BLOCK)
    d = tl.arange(0, BLOCK_D)
    q_mask = (rows[:, None] < T) & (d[None, :] < D)
    k_mask = (d[:, None] < D) & (cols[None, :] < T)
    q = tl.load(q_ptr + (sequence * T + rows[:, None]) * D + d[None, :], mask=q_mask, other=0.0)
    k = tl.load(k_ptr + (sequence * T + cols[None, :]) * D + d[:, None], mask=k_mask, other=0.0)
    keep = (rows[:, None] < T) & (cols[None, :] <= rows[:, None])
    tl.store(a_ptr + (sequence * T + rows[:, None]) * T + cols[None, :], tl.dot(q, k), mask=keep)


def causal_scores(q, k, block=32):
    B, T, D = q.shape
    a = torch.empty((B, T, T), dtype=torch.float32, device=q.device)
    grid = (B, triton.cdiv(T, block), triton.cdiv(T, block))
    causal_scores_kernel[grid](q, k, a, T, D, BLOCK=block, BLOCK_D=max(16, triton.next_power_of_2(D)))
    return a


@case(q="f16[B,T,D]", k="f16[B,T,D]", where="B * T * T < 2**40 and B < 2**31 and T <= 2**20 and D <= 256")
def scores_before(q, k):
    return causal_scores(q, k)


@scores_before.reference
def _(q, k):
    return torch.tril(q.float() @ k.float().transpose(1, 2))
