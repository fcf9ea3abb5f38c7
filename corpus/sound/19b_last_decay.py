# sound
"""The load of the last decay has the mask of the columns (pattern of thunlp/TritonBench#12, decay_cumsum)."""

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def prepare_qg_kg_kernel(q_ptr, k_ptr, g_ptr, qg_ptr, kg_ptr, scale, DK, BT: tl.constexpr, BK: tl.constexpr):
    """qg = scale * q * exp(g) and kg = k * exp(last g of the chunk - g), one chunk of BT tokens a program."""
    chunk = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BK)
    rows = tl.arange(0, BT)
    base = chunk * BT * DK
    last_decay = tl.load(g_ptr + base + (BT - 1) * DK + cols, mask=cols < DK, other=0.0)
    offsets = base + rows[:, None] * DK + cols[None, :]
    mask = (rows[:, None] < BT) & (cols[None, :] < DK)
    q = tl.load(q_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    k = tl.load(k_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    g = tl.load(g_ptr + offsets, mask=mask, other=0.0)
    qg = q * tl.exp(g) * scale
    kg = k * tl.exp(last_decay[None, :] - g)
    tl.store(qg_ptr + offsets, qg.to(qg_ptr.dtype.element_ty), mask=mask)
    tl.store(kg_ptr + offsets, kg.to(kg_ptr.dtype.element_ty), mask=mask)


@case(
    q="f16[B,C,16,D]",
    k="f16[B,C,16,D]",
    g="f32[B,C,16,D] in (-4, 0)",
    where="B * C < 2**31 and D <= 256",
)
def prepare_qg_kg(q, k, g):
    B, C, T, D = q.shape
    qg, kg = torch.empty_like(q), torch.empty_like(k)
    block = triton.next_power_of_2(D)
    prepare_qg_kg_kernel[(B * C,)](q, k, g, qg, kg, 0.125, D, BT=16, BK=block)
    return qg, kg


@prepare_qg_kg.reference
def _(q, k, g):
    return (q * torch.exp(g) * 0.125).to(q.dtype), (k * torch.exp(g[:, :, -1:] - g)).to(k.dtype)
