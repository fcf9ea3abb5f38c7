"""Updates in place: one step of AdamW, and an exponential moving average."""

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def adamw_kernel(
    p_ptr, g_ptr, m_ptr, v_ptr, n_elements, lr, beta1, beta2, eps, decay, scale1, scale2, BLOCK: tl.constexpr
):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n_elements
    p = tl.load(p_ptr + offsets, mask=mask)
    g = tl.load(g_ptr + offsets, mask=mask)
    m = tl.load(m_ptr + offsets, mask=mask)
    v = tl.load(v_ptr + offsets, mask=mask)
    m = beta1 * m + (1 - beta1) * g
    v = beta2 * v + (1 - beta2) * g * g
    p = p * (1 - lr * decay) - lr * (m / scale1) / (tl.sqrt(v / scale2) + eps)
    tl.store(p_ptr + offsets, p, mask=mask)
    tl.store(m_ptr + offsets, m, mask=mask)
    tl.store(v_ptr + offsets, v, mask=mask)


@triton.jit
def ema_kernel(average_ptr, x_ptr, decay, n_elements, BLOCK: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * BLOCK
    if start >= n_elements:
        return
    offsets = start + tl.arange(0, BLOCK)
    mask = offsets < n_elements
    average = tl.load(average_ptr + offsets, mask=mask)
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(average_ptr + offsets, tl.fma(average - x, decay, x), mask=mask)


@case(p="f32[N]", g="f32[N]", m="f32[N]", v="f32[N] > 0", lr="f32 > 0")
def adamw(p, g, m, v, lr, beta1=0.9, beta2=0.999, eps=1e-8, decay=0.01, step=3):
    grid = (triton.cdiv(p.numel(), 1024),)
    scale1, scale2 = 1 - beta1**step, 1 - beta2**step
    adamw_kernel[grid](p, g, m, v, p.numel(), lr, beta1, beta2, eps, decay, scale1, scale2, BLOCK=1024)
    return p, m, v


@adamw.reference
def _(p, g, m, v, lr):
    m.copy_(0.9 * m + (1 - 0.9) * g)
    v.copy_(0.999 * v + (1 - 0.999) * g * g)
    step = (m / (1 - 0.9**3)) / (torch.sqrt(v / (1 - 0.999**3)) + 1e-8)
    return p.copy_(p * (1 - lr * 0.01) - lr * step), m, v


@case(average="f32[M,N]", x="f32[M,N]", decay="f32")
def ema(average, x, decay):
    ema_kernel[(triton.cdiv(x.numel(), 512) + 1,)](average, x, decay, x.numel(), BLOCK=512)
    return average


@ema.reference
def _(average, x, decay):
    return average.copy_((average - x) * decay + x)
