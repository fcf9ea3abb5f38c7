# sound
"""Gradient of the weight of a layer_norm over the last axis, of any rank."""

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def weight_gradient_kernel(dy_ptr, x_ptr, mean_ptr, rstd_ptr, dw_ptr, M, N, BLOCK: tl.constexpr):
    cols = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < N
    dw = tl.zeros((BLOCK,), tl.float32)
    for row in range(M):
        dy = tl.load(dy_ptr + row * N + cols, mask=mask, other=0.0).to(tl.float32)
        x = tl.load(x_ptr + row * N + cols, mask=mask, other=0.0).to(tl.float32)
        mean = tl.load(mean_ptr + row)
        rstd = tl.load(rstd_ptr + row)
        dw += dy * ((x - mean) * rstd)
    tl.store(dw_ptr + cols, dw, mask=mask)


def weight_gradient(dy, x, mean, rstd):
    M, N = mean.numel(), x.shape[-1]
    dw = torch.empty((x.shape[-1],), dtype=torch.float32, device=x.device)
    weight_gradient_kernel[(triton.cdiv(N, 128),)](dy, x, mean, rstd, dw, M, N, BLOCK=128)
    return dw


@case(dy="f16[B,S,D]", x="f16[B,S,D]", mean="f32[B,S]", rstd="f32[B,S]", where="B * S * D < 2**30")
def layer_norm_weight_gradient(dy, x, mean, rstd):
    return weight_gradient(dy, x, mean, rstd)


@layer_norm_weight_gradient.reference
def _(dy, x, mean, rstd):
    rows, D = mean.numel(), x.shape[-1]
    normal = (x.float().reshape(rows, D) - mean.reshape(rows, 1)) * rstd.reshape(rows, 1)
    return (dy.float().reshape(rows, D) * normal).sum(dim=0)
