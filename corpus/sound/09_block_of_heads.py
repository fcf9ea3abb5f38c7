# sound
"""The store compares the index of the head among all heads (pattern of NVIDIA/Megatron-LM#7103)."""

import torch
import triton
import triton.language as tl

from trilift import case


@triton.autotune(configs=[triton.Config({"BLOCK_H": h}) for h in (1, 2, 4, 8)], key=["head_num", "emb_dim"])
@triton.jit
def rotary_kernel(
    x_ptr,
    cos_ptr,
    sin_ptr,
    out_ptr,
    head_num,
    seqlen,
    emb_dim,
    stride_xh,
    stride_xs,
    stride_oh,
    stride_os,
    BLOCK_H: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    """Rotates the two halves of each head, BLOCK_H heads of one token at a time."""
    token = tl.program_id(0).to(tl.int64)
    local = tl.arange(0, BLOCK_H)[:, None]
    head = (tl.program_id(1) * BLOCK_H + local).to(tl.int64)
    d = tl.arange(0, BLOCK_D)[None, :]
    half = emb_dim // 2
    partner = tl.where(d < half, d + half, d - half)
    cos = tl.load(cos_ptr + token * emb_dim + d, mask=d < emb_dim, other=0.0)
    sin = tl.load(sin_ptr + token * emb_dim + d, mask=d < emb_dim, other=0.0)
    mask = (head < head_num) & (d < emb_dim)
    x = tl.load(x_ptr + head * stride_xh + token * stride_xs + d, mask=mask, other=0.0)
    y = tl.load(x_ptr + head * stride_xh + token * stride_xs + partner, mask=mask, other=0.0)
    out = x * cos + tl.where(d < half, -y, y) * sin
    out_mask = (head < head_num) & (d < emb_dim)
    tl.store(out_ptr + head * stride_oh + token * stride_os + d, out, mask=out_mask)


@case(x="f32[H,S,2*D]", cos="f32[S,2*D]", sin="f32[S,2*D]", where="H <= 65535 and S < 2**31 and D <= 128")
def rotary(x, cos, sin):
    H, S, D = x.shape
    out = torch.empty_like(x)
    strides = x.stride(0), x.stride(1), out.stride(0), out.stride(1)

    def grid(meta):
        return S, triton.cdiv(H, meta["BLOCK_H"])

    rotary_kernel[grid](x, cos, sin, out, H, S, D, *strides, BLOCK_D=triton.next_power_of_2(D))
    return out


@rotary.reference
def _(x, cos, sin):
    half = x.shape[-1] // 2
    turned = torch.cat([-x[..., half:], x[..., :half]], dim=-1)
    return x * cos + turned * sin
