"""Rotary embedding: halves rotated out of place, neighbouring pairs rotated in place."""

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def rope_kernel(
    x_ptr,
    cos_ptr,
    sin_ptr,
    out_ptr,
    S,
    H,
    K,
    stride_xb,
    stride_xs,
    stride_xh,
    stride_os,
    BLOCK_H: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """One token: all heads at once. (x1, x2) -> (x1 cos - x2 sin, x2 cos + x1 sin), x1 and x2 the halves of a head."""
    token = tl.program_id(0).to(tl.int64)
    batch = token // S
    position = token % S
    k = tl.arange(0, BLOCK_K)
    cos = tl.load(cos_ptr + position * K + k, mask=k < K, other=0)[None, :]
    sin = tl.load(sin_ptr + position * K + k, mask=k < K, other=0)[None, :]
    h = tl.arange(0, BLOCK_H)
    mask = (h[:, None] < H) & (k[None, :] < K)
    first = batch * stride_xb + position * stride_xs + h[:, None] * stride_xh + k[None, :]
    x1 = tl.load(x_ptr + first, mask=mask, other=0)
    x2 = tl.load(x_ptr + first + K, mask=mask, other=0)
    out = token * stride_os + h[:, None] * (2 * K) + k[None, :]
    tl.store(out_ptr + out, x1 * cos - x2 * sin, mask=mask)
    tl.store(out_ptr + out + K, x2 * cos + x1 * sin, mask=mask)


@triton.jit
def rope_pairs_kernel(x_ptr, cos_ptr, sin_ptr, T, K, BLOCK_T: tl.constexpr, BLOCK_K: tl.constexpr):
    """Columns 2k and 2k + 1 are a pair, split and joined in registers."""
    t = tl.program_id(0).to(tl.int64) * BLOCK_T + tl.arange(0, BLOCK_T)[:, None]
    d = tl.arange(0, 2 * BLOCK_K)[None, :]
    k = tl.arange(0, BLOCK_K)[None, :]
    x_mask = (t < T) & (d < 2 * K)
    mask = (t < T) & (k < K)
    x = tl.load(x_ptr + t * 2 * K + d, mask=x_mask, other=0.0)
    even, odd = tl.split(tl.reshape(x, (BLOCK_T, BLOCK_K, 2)))
    cos = tl.load(cos_ptr + t * K + k, mask=mask, other=1.0)
    sin = tl.load(sin_ptr + t * K + k, mask=mask, other=0.0)
    rotated = tl.join(even * cos - odd * sin, odd * cos + even * sin)
    tl.store(x_ptr + t * 2 * K + d, tl.reshape(rotated, (BLOCK_T, 2 * BLOCK_K)), mask=x_mask)


@case(x="f32[B,S,H,2*K]", cos="f32[S,K]", sin="f32[S,K]")
def rope(x, cos, sin):
    B, S, H, D = x.shape
    out = torch.empty_like(x)
    block_h, block_k = triton.next_power_of_2(H), triton.next_power_of_2(D // 2)
    strides = (*x.stride()[:3], out.stride(1))
    rope_kernel[(B * S,)](x, cos, sin, out, S, H, D // 2, *strides, BLOCK_H=block_h, BLOCK_K=block_k)
    return out


@rope.reference
def _(x, cos, sin):
    x1, x2 = x.chunk(2, dim=-1)
    c, s = cos[None, :, None, :], sin[None, :, None, :]
    return torch.cat([x1 * c - x2 * s, x2 * c + x1 * s], dim=-1)


@case(x="f32[T,2*K]", cos="f32[T,K]", sin="f32[T,K]")
def rope_pairs(x, cos, sin):
    T, D = x.shape
    block_k = triton.next_power_of_2(D // 2)
    rope_pairs_kernel[(triton.cdiv(T, 16),)](x, cos, sin, T, D // 2, BLOCK_T=16, BLOCK_K=block_k)
    return x


@rope_pairs.reference
def _(x, cos, sin):
    even, odd = x[:, 0::2], x[:, 1::2]
    return x.copy_(torch.stack([even * cos - odd * sin, odd * cos + even * sin], dim=-1).reshape(x.shape))
