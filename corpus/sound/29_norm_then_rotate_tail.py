# sound
"""rms_norm of a row whose last R numbers are rotated; each number is stored once."""

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def norm_rotate_kernel(x_ptr, cos_ptr, sin_ptr, out_ptr, D, eps, R: tl.constexpr, BLOCK: tl.constexpr):
    """The rotated numbers are pairs (r, r + R / 2) of the last R of the row."""
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * D + cols, mask=cols < D, other=0.0).to(tl.float32)
    rstd = tl.rsqrt(tl.sum(x * x, axis=0) / D + eps)
    tl.store(out_ptr + row * D + cols, x * rstd, mask=cols < D - R)
    r = tl.arange(0, R)
    tail = row * D + D - R
    mine = tl.load(x_ptr + tail + r).to(tl.float32) * rstd
    partner = tl.load(x_ptr + tail + (r + R // 2) % R).to(tl.float32) * rstd
    sign = tl.where(r < R // 2, -1.0, 1.0)
    cos = tl.load(cos_ptr + row * R + r)
    sin = tl.load(sin_ptr + row * R + r)
    tl.store(out_ptr + tail + r, mine * cos + sign * partner * sin)


def norm_rotate(x, cos, sin, eps):
    M, D = x.shape
    R = cos.shape[1]
    out = torch.empty((M, D), dtype=torch.float32, device=x.device)
    norm_rotate_kernel[(M,)](x, cos, sin, out, D, eps, R=R, BLOCK=triton.next_power_of_2(D))
    return out


@case(x="f16[M,D]", cos="f32[M,16]", sin="f32[M,16]", eps=1e-6, where="M < 2**31 and D >= 16 and D <= 65536")
def query_norm(x, cos, sin, eps):
    return norm_rotate(x, cos, sin, eps)


@query_norm.reference
def _(x, cos, sin, eps):
    x = x.float()
    normal = x * torch.rsqrt(x.pow(2).mean(dim=-1, keepdim=True) + eps)
    head, tail = normal[:, :-16], normal[:, -16:]
    turned = torch.cat([-tail[:, 8:], tail[:, :8]], dim=1)
    return torch.cat([head, tail * cos + turned * sin], dim=1)
