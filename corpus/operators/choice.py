"""Which one is largest: argmax by a loop over the row, gating by the best expert, and counting values (histogram)."""

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def argmax_kernel(x_ptr, out_ptr, N, stride_x, BLOCK: tl.constexpr):
    """A later block wins only by being strictly larger, so that the first maximum is kept."""
    row = tl.program_id(0).to(tl.int64)
    best = -float("inf")
    best_index = 0
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * stride_x + cols, mask=cols < N, other=-float("inf")).to(tl.float32)
        value, index = tl.max(x, axis=0, return_indices=True)
        if value > best:
            best = value
            best_index = start + index
    tl.store(out_ptr + row, best_index)


@triton.jit
def gate_kernel(logits_ptr, weight_ptr, expert_ptr, M, E, BLOCK_M: tl.constexpr, BLOCK_E: tl.constexpr):
    """The expert with the largest logit, and its softmax probability exp(0) / sum(exp(x - max))."""
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    experts = tl.arange(0, BLOCK_E)
    valid = (rows[:, None] < M) & (experts[None, :] < E)
    x = tl.load(logits_ptr + rows[:, None] * E + experts[None, :], mask=valid, other=-float("inf"))
    x = tl.where(rows[:, None] < M, x, 0.0)
    top = tl.max(x, axis=1)
    expert = tl.argmax(x, axis=1)
    weight = 1.0 / tl.sum(tl.exp(x - top[:, None]), axis=1)
    tl.store(weight_ptr + rows, weight, mask=rows < M)
    tl.store(expert_ptr + rows, expert, mask=rows < M)


@triton.jit
def histogram_kernel(x_ptr, counts_ptr, N, BINS: tl.constexpr, BLOCK: tl.constexpr):
    """Counts of this block's values, added to everybody's."""
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < N
    x = tl.load(x_ptr + offsets, mask=mask, other=0)
    counts = tl.histogram(x, BINS, mask=mask)
    tl.atomic_add(counts_ptr + tl.arange(0, BINS), counts)


@triton.jit
def bincount_kernel(x_ptr, weight_ptr, out_ptr, N, BLOCK: tl.constexpr):
    """Each element adds its weight to its bin."""
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < N
    bin_ = tl.load(x_ptr + offsets, mask=mask, other=0)
    weight = tl.load(weight_ptr + offsets, mask=mask, other=0.0)
    tl.atomic_add(out_ptr + bin_, weight, mask=mask)


@case(x="f32[M,N]")
def argmax(x):
    M, N = x.shape
    out = torch.empty((M,), dtype=torch.int64, device=x.device)
    argmax_kernel[(M,)](x, out, N, x.stride(0), BLOCK=1024)
    return out


@argmax.reference
def _(x):
    return torch.argmax(x, dim=-1)


@case(logits="f32[M,E]")
def top1_gating(logits):
    M, E = logits.shape
    weight = torch.empty((M,), dtype=torch.float32, device=logits.device)
    expert = torch.empty((M,), dtype=torch.int32, device=logits.device)
    gate_kernel[(triton.cdiv(M, 16),)](logits, weight, expert, M, E, BLOCK_M=16, BLOCK_E=triton.next_power_of_2(E))
    return {"weight": weight, "expert": expert}


@top1_gating.reference
def _(logits):
    return {"weight": torch.softmax(logits, dim=-1).amax(dim=-1), "expert": logits.argmax(dim=-1).to(torch.int32)}


@case(x="i32[N] < 16")
def histogram(x, bins=16):
    counts = torch.zeros((bins,), dtype=torch.int32, device=x.device)
    histogram_kernel[(triton.cdiv(x.numel(), 256),)](x, counts, x.numel(), BINS=bins, BLOCK=256)
    return counts


@histogram.reference
def _(x):
    return (x[None, :] == torch.arange(16)[:, None]).sum(dim=1).to(torch.int32)


@case(x="i64[N] < K", weight="f32[N]", like="f32[K]")
def bincount(x, weight, like):
    out = torch.zeros_like(like)
    bincount_kernel[(triton.cdiv(x.numel(), 128),)](x, weight, out, x.numel(), BLOCK=128)
    return out


@bincount.reference
def _(x, weight, like):
    return torch.zeros_like(like).index_add(0, x, weight)
