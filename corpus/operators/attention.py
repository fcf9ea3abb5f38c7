"""Flash attention, causal and not, and attention of one query over a split cache with grouped heads (two kernels)."""

import math

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def attend(
    acc,
    total,
    top,
    q,
    k_ptr,
    v_ptr,
    rows,
    first,
    last,
    N,
    D,
    stride_kn,
    stride_kd,
    stride_vn,
    stride_vd,
    DIAGONAL: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    """Blocks first..last of keys: running maximum, rescaled sum and rescaled accumulator, in powers of two."""
    d = tl.arange(0, BLOCK_D)
    for start in range(first, last, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)
        k_mask = (d[:, None] < D) & (cols[None, :] < N)
        k = tl.load(k_ptr + d[:, None] * stride_kd + cols[None, :] * stride_kn, mask=k_mask, other=0.0)
        scores = tl.dot(q, k)
        valid = cols[None, :] < N
        if DIAGONAL:
            valid = valid & (cols[None, :] <= rows[:, None])
        scores = tl.where(valid, scores, -float("inf"))
        new_top = tl.maximum(top, tl.max(scores, axis=1))
        p = tl.exp2(scores - new_top[:, None])
        shrink = tl.exp2(top - new_top)
        total = total * shrink + tl.sum(p, axis=1)
        v_mask = (cols[:, None] < N) & (d[None, :] < D)
        v = tl.load(v_ptr + cols[:, None] * stride_vn + d[None, :] * stride_vd, mask=v_mask, other=0.0)
        acc = acc * shrink[:, None] + tl.dot(p.to(v.dtype), v)
        top = new_top
    return acc, total, top


@triton.jit
def attention_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    o_ptr,
    scale,
    stride_qb,
    stride_qh,
    stride_qm,
    stride_qd: tl.int64,
    stride_kb,
    stride_kh,
    stride_kn,
    stride_kd,
    stride_vb,
    stride_vh,
    stride_vn,
    stride_vd,
    stride_ob,
    stride_oh,
    stride_om,
    stride_od,
    M,
    N: tl.int64,
    D,
    CAUSAL: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    """One program per block of queries and head. Causal: blocks left of the diagonal need no mask, the last ones do."""
    block = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1).to(tl.int64)
    batch = tl.program_id(2).to(tl.int64)
    rows = block * BLOCK_M + tl.arange(0, BLOCK_M)
    d = tl.arange(0, BLOCK_D)
    mask = (rows[:, None] < M) & (d[None, :] < D)
    q_ptr += batch * stride_qb + head * stride_qh
    k_ptr += batch * stride_kb + head * stride_kh
    v_ptr += batch * stride_vb + head * stride_vh
    q = tl.load(q_ptr + rows[:, None] * stride_qm + d[None, :] * stride_qd, mask=mask, other=0.0)
    q = (q * (scale * 1.44269504088896)).to(q.dtype)  # exp(x) = exp2(x log2(e))
    top = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    if CAUSAL:
        middle = block * BLOCK_M // BLOCK_N * BLOCK_N
        last = min(N, (block + 1) * BLOCK_M)
    else:
        middle = N
        last = N
    acc, total, top = attend(
        acc, total, top, q, k_ptr, v_ptr, rows, 0, middle, N, D,
        stride_kn, stride_kd, stride_vn, stride_vd, False, BLOCK_N, BLOCK_D,
    )  # fmt: skip
    if CAUSAL:
        acc, total, top = attend(
            acc, total, top, q, k_ptr, v_ptr, rows, middle, last, N, D,
            stride_kn, stride_kd, stride_vn, stride_vd, True, BLOCK_N, BLOCK_D,
        )  # fmt: skip
    o_ptr += batch * stride_ob + head * stride_oh
    o = acc / total[:, None]
    tl.store(o_ptr + rows[:, None] * stride_om + d[None, :] * stride_od, o, mask=mask)


@triton.jit
def decode_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    partial_ptr,
    top_ptr,
    total_ptr,
    scale,
    N,
    D,
    H,
    GROUP: tl.constexpr,
    SPLITS: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    """Share of one split of the keys for one head; GROUP heads share their keys. A split may be empty."""
    batch, head, split = tl.program_id(0).to(tl.int64), tl.program_id(1), tl.program_id(2)
    d = tl.arange(0, BLOCK_D)
    q = tl.load(q_ptr + (batch * H + head) * D + d, mask=d < D, other=0.0).to(tl.float32) * scale
    share = tl.cdiv(tl.cdiv(N, SPLITS), BLOCK_N) * BLOCK_N
    groups = H // GROUP
    top = -float("inf")
    total = 0.0
    acc = tl.zeros((BLOCK_D,), tl.float32)
    for start in range(split * share, min(split * share + share, N), BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)
        offsets = ((batch * N + cols[:, None]) * groups + head // GROUP) * D + d[None, :]
        mask = (cols[:, None] < N) & (d[None, :] < D)
        k = tl.load(k_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
        scores = tl.where(cols < N, tl.sum(q[None, :] * k, axis=1), -float("inf"))
        new_top = tl.maximum(top, tl.max(scores, axis=0))
        p = tl.exp(scores - new_top)
        shrink = tl.exp(top - new_top)
        v = tl.load(v_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
        acc = acc * shrink + tl.sum(p[:, None] * v, axis=0)
        total = total * shrink + tl.sum(p, axis=0)
        top = new_top
    out = (batch * H + head) * SPLITS + split
    tl.store(partial_ptr + out * D + d, acc, mask=d < D)
    tl.store(top_ptr + out, top)
    tl.store(total_ptr + out, total)


@triton.jit
def combine_kernel(partial_ptr, top_ptr, total_ptr, o_ptr, D, SPLITS: tl.constexpr, BLOCK_D: tl.constexpr):
    """The splits of one head, each weighted by exp(its maximum - the maximum of all)."""
    head = tl.program_id(0).to(tl.int64)
    split = tl.arange(0, SPLITS)
    d = tl.arange(0, BLOCK_D)
    top = tl.load(top_ptr + head * SPLITS + split)
    weight = tl.exp(top - tl.max(top, axis=0))
    total = tl.sum(tl.load(total_ptr + head * SPLITS + split) * weight, axis=0)
    offsets = (head * SPLITS + split[:, None]) * D + d[None, :]
    partial = tl.load(partial_ptr + offsets, mask=d[None, :] < D, other=0.0)
    tl.store(o_ptr + head * D + d, tl.sum(partial * weight[:, None], axis=0) / total, mask=d < D)


def flash_attention(q, k, v, causal, block_m=64, block_n=64):
    """softmax(q k^T / sqrt(D)) v per batch and head, of any strides."""
    (B, H, M, D), N = q.shape, k.shape[2]
    o = torch.empty((B, H, M, D), dtype=q.dtype, device=q.device)
    block_d = triton.next_power_of_2(D) if D > 16 else 16
    attention_kernel[(triton.cdiv(M, block_m), H, B)](
        q, k, v, o, 1 / math.sqrt(D), *q.stride(), *k.stride(), *v.stride(), *o.stride(), M, N, D,
        CAUSAL=causal, BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_D=block_d, num_warps=4, num_stages=2,
    )  # fmt: skip
    return o


@case(q="f16[B,H,M,D] strided", k="f16[B,H,N,D]", v="f16[B,H,N,D]", where="B <= 65535 and H <= 65535")
def attention(q, k, v):
    return flash_attention(q, k, v, causal=False)


@attention.reference
def _(q, k, v):
    q, k, v = q.float(), k.float(), v.float()
    scores = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
    return torch.softmax(scores, dim=-1) @ v


@case(q="f32[B,H,N,D]", k="f32[B,H,N,D]", v="f32[B,H,N,D]", where="B <= 65535 and H <= 65535")
def attention_causal(q, k, v):
    return flash_attention(q, k, v, causal=True)


@attention_causal.reference
def _(q, k, v):
    scores = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
    n = torch.arange(q.shape[2])
    scores = scores.masked_fill(n[None, :] > n[:, None], -float("inf"))
    return torch.softmax(scores, dim=-1) @ v


@case(q="f16[B,2*G,D]", k="f16[B,N,G,D]", v="f16[B,N,G,D]", where="2 * G <= 65535")
def attention_decode(q, k, v, splits=4):
    (B, H, D), (N, G) = q.shape, k.shape[1:3]
    partial = torch.empty((B, H, splits, D), dtype=torch.float32, device=q.device)
    top = torch.empty((B, H, splits), dtype=torch.float32, device=q.device)
    total = torch.empty_like(top)
    o = torch.empty_like(q)
    block_d = triton.next_power_of_2(D)
    decode_kernel[(B, H, splits)](
        q, k, v, partial, top, total, D**-0.5, N, D, H, GROUP=H // G, SPLITS=splits, BLOCK_N=64, BLOCK_D=block_d
    )
    combine_kernel[(B * H,)](partial, top, total, o, D, SPLITS=splits, BLOCK_D=block_d)
    return o


@attention_decode.reference
def _(q, k, v):
    group = q.shape[1] // k.shape[2]
    k = k.float().repeat_interleave(group, dim=2)
    v = v.float().repeat_interleave(group, dim=2)
    scores = (q.float()[:, None] * k).sum(dim=-1) * q.shape[-1] ** -0.5
    return (torch.softmax(scores, dim=1)[..., None] * v).sum(dim=1)
