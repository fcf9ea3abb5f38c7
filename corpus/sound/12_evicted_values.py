# sound
"""Values before the window are masked as the keys are (pattern of vllm-project/vllm#30887)."""

import torch
import triton
import triton.language as tl

from trilift import case

EVICTED = 16  # entries of the cache before the window, which nobody fills


@triton.jit
def window_decode_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    o_ptr,
    scale,
    first,
    last,
    headdim,
    stride_kh,
    stride_kn,
    stride_vh,
    stride_vn,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    """One query per head over the entries first..last of its cache."""
    head = tl.program_id(0).to(tl.int64)
    d = tl.arange(0, BLOCK_D)
    pos = tl.arange(0, BLOCK_N)
    window = (pos >= first) & (pos < last)
    q = tl.load(q_ptr + head * headdim + d, mask=d < headdim, other=0.0).to(tl.float32) * scale
    k_mask = window[:, None] & (d[None, :] < headdim)
    k = tl.load(k_ptr + head * stride_kh + pos[:, None] * stride_kn + d[None, :], mask=k_mask, other=0.0)
    scores = tl.where(window, tl.sum(q[None, :] * k.to(tl.float32), axis=1), -float("inf"))
    p = tl.exp(scores - tl.max(scores, axis=0))
    p = p / tl.sum(p, axis=0)
    v_mask = window[:, None] & (d[None, :] < headdim)
    v_ptrs = v_ptr + head * stride_vh + pos[:, None] * stride_vn + d[None, :]
    v = tl.load(v_ptrs, mask=v_mask, other=0.0)
    o = tl.sum(p[:, None] * v.to(tl.float32), axis=0)
    tl.store(o_ptr + head * headdim + d, o.to(o_ptr.dtype.element_ty), mask=d < headdim)


@case(q="f16[H,D]", k="f16[H,N,D]", v="f16[H,N,D]", where="H < 2**31 and N <= 2048 and D <= 256")
def window_decode(q, k, v):
    H, N, D = k.shape
    k_cache = torch.empty((H, EVICTED + N, D), dtype=k.dtype, device=k.device)
    v_cache = torch.empty_like(k_cache)
    k_cache[:, EVICTED:] = k
    v_cache[:, EVICTED:] = v
    o = torch.empty_like(q)
    strides = k_cache.stride(0), k_cache.stride(1), v_cache.stride(0), v_cache.stride(1)
    blocks = {"BLOCK_N": triton.next_power_of_2(EVICTED + N), "BLOCK_D": triton.next_power_of_2(D)}
    window_decode_kernel[(H,)](q, k_cache, v_cache, o, D**-0.5, EVICTED, EVICTED + N, D, *strides, **blocks)
    return o


@window_decode.reference
def _(q, k, v):
    scores = (q[:, None].float() * k.float()).sum(-1) * q.shape[-1] ** -0.5
    return (torch.softmax(scores, dim=-1)[..., None] * v.float()).sum(1).to(q.dtype)
