"""Kernels whose certificates are checked, and then spoiled."""

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def shift_kernel(out_ptr, x_ptr, N, C: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < N)
    tl.store(out_ptr + i, tl.maximum(x, 0) + C, mask=i < N)


@triton.jit
def row_sum_kernel(out_ptr, x_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    acc = 0.0
    for k in range(0, N, BLOCK):
        i = k + tl.arange(0, BLOCK)
        acc += tl.sum(tl.load(x_ptr + row * N + i, mask=i < N, other=0.0), axis=0)
    tl.store(out_ptr + row, acc)


@triton.jit
def gather_kernel(out_ptr, x_ptr, ids_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    k = tl.load(ids_ptr + i, mask=i < N, other=0)
    tl.store(out_ptr + i, tl.load(x_ptr + k, mask=i < N), mask=i < N)


def launched(kernel, out, x, *more, **constants):
    kernel[(triton.cdiv(x.numel(), 64),)](out, x, *more, x.numel(), BLOCK=64, **constants)
    return out


@case(x="f32[N]")
def shifted_relu(x):
    return launched(shift_kernel, torch.empty_like(x), x, C=1)


@shifted_relu.reference
def _(x):
    return torch.relu(x) + 1


@case(x="f32[N]")
def two_launches(x):
    middle = launched(shift_kernel, torch.empty_like(x), x, C=1)
    return launched(shift_kernel, torch.empty_like(x), middle, C=2)


@two_launches.reference
def _(x):
    return torch.relu(x) + 3


@case(x="f32[M,N]")
def row_sum(x):
    out = torch.empty(x.shape[0])
    row_sum_kernel[(x.shape[0],)](out, x, x.shape[1], BLOCK=64)
    return out


@row_sum.reference
def _(x):
    return x.sum(-1)


@case(x="f32[V]", ids="i64[N] < V")
def gathered(x, ids):
    out = torch.empty(ids.shape)
    gather_kernel[(triton.cdiv(ids.numel(), 64),)](out, x, ids, ids.numel(), BLOCK=64)
    return out


@gathered.reference
def _(x, ids):
    return x[ids]
