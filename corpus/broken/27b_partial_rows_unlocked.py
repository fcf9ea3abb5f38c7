# expect: read-write-race at line 18
"""Programs of a group load, add and store one row with no lock at all; pattern of meta-pytorch/tritonbench#1266."""

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def bias_gradient_kernel(dy_ptr, partial_ptr, M, N, GROUPS: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = (rows[:, None] < M) & (cols[None, :] < N)
    dy = tl.load(dy_ptr + rows[:, None] * N + cols[None, :], mask=mask, other=0.0)
    at = partial_ptr + tl.program_id(0) % GROUPS * N + cols
    tl.store(at, tl.load(at, mask=cols < N, other=0.0) + tl.sum(dy, axis=0), mask=cols < N)


def bias_gradient(dy, groups=4):
    M, N = dy.shape
    partial = torch.zeros((groups, N), dtype=torch.float32, device=dy.device)
    grid = (triton.cdiv(M, 16), triton.cdiv(N, 64))
    bias_gradient_kernel[grid](dy, partial, M, N, GROUPS=groups, BLOCK_M=16, BLOCK_N=64)
    return partial.sum(dim=0)


@case(dy="f32[M,N]", where="M * N < 2**28 and N <= 2**20")
def gradient_of_bias(dy):
    return bias_gradient(dy)


@gradient_of_bias.reference
def _(dy):
    return dy.sum(dim=0)
