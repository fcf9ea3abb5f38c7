# expect: nan-risk at line 39
"""Rows behind the last query weigh exp(0 + inf), and inf times 0 is NaN in dv; pattern of ROCm/aiter#3551."""

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def value_gradient_kernel(
    q_ptr,
    k_ptr,
    lse_ptr,
    do_ptr,
    dv_ptr,
    M,
    N,
    D,
    scale,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    """dv = p' do with p = exp(q k' * scale - lse), one block of keys per program."""
    cols = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    d = tl.arange(0, BLOCK_D)
    k_mask = (cols[:, None] < N) & (d[None, :] < D)
    k = tl.load(k_ptr + cols[:, None] * D + d[None, :], mask=k_mask, other=0.0)
    dv = tl.zeros((BLOCK_N, BLOCK_D), tl.float32)
    for start in range(0, M, BLOCK_M):
        rows = start + tl.arange(0, BLOCK_M)
        q_mask = (rows[:, None] < M) & (d[None, :] < D)
        q = tl.load(q_ptr + rows[:, None] * D + d[None, :], mask=q_mask, other=0.0)
        do = tl.load(do_ptr + rows[:, None] * D + d[None, :], mask=q_mask, other=0.0)
        lse = tl.load(lse_ptr + rows, mask=rows < M, other=-float("inf"))
        scores = tl.dot(k, tl.trans(q), input_precision="ieee") * scale
        dv += tl.dot(tl.exp(scores - lse[None, :]), do, input_precision="ieee")
    tl.store(dv_ptr + cols[:, None] * D + d[None, :], dv, mask=k_mask)


def value_gradient(q, k, lse, do):
    (M, D), N = q.shape, k.shape[0]
    dv = torch.empty((N, D), dtype=torch.float32, device=q.device)
    block_d = max(16, triton.next_power_of_2(D))
    value_gradient_kernel[(triton.cdiv(N, 32),)](
        q, k, lse, do, dv, M, N, D, D**-0.5, BLOCK_M=32, BLOCK_N=32, BLOCK_D=block_d
    )
    return dv


@case(q="f32[M,D]", k="f32[N,D]", do="f32[M,D]", where="M * D < 2**28 and N * D < 2**28 and D <= 128")
def gradient_of_values(q, k, do):
    lse = torch.logsumexp(q @ k.T * q.shape[-1] ** -0.5, dim=-1)
    return value_gradient(q, k, lse, do)


@gradient_of_values.reference
def _(q, k, do):
    scores = q @ k.T * q.shape[-1] ** -0.5
    return torch.exp(scores - torch.logsumexp(scores, dim=-1, keepdim=True)).T @ do
