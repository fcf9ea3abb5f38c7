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


@triton.jit
def argmax_kernel(out_ptr, x_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    best = -float("inf")
    best_index = 0
    for start in range(0, N, BLOCK):
        i = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * N + i, mask=i < N, other=-float("inf"))
        value, index = tl.max(x, axis=0, return_indices=True)
        if value > best:
            best = value
            best_index = start + index
    tl.store(out_ptr + row, best_index)


@triton.jit
def fill_kernel(out_ptr, mask_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    chosen = tl.load(mask_ptr + i, mask=i < N, other=0).to(tl.int1)
    tl.store(out_ptr + i, 7.0, mask=(i < N) & chosen)


@triton.jit
def top_share_kernel(out_ptr, x_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + i, mask=i < N, other=-float("inf"))
    tl.store(out_ptr + row, 1.0 / tl.sum(tl.exp(x - tl.max(x, axis=0)), axis=0))


@case(x="f32[M,N]")
def first_maximum(x):
    out = torch.empty(x.shape[0], dtype=torch.int64)
    argmax_kernel[(x.shape[0],)](out, x, x.shape[1], BLOCK=64)
    return out


@first_maximum.reference
def _(x):
    return x.argmax(-1)


@case(x="f32[N]", mask="bool[N]")
def filled(x, mask):
    out = x.clone()
    fill_kernel[(triton.cdiv(x.numel(), 64),)](out, mask, x.numel(), BLOCK=64)
    return out


@filled.reference
def _(x, mask):
    return x.masked_fill(mask, 7.0)


@case(x="f32[M,N]", where="N <= 64")
def top_share(x):
    out = torch.empty(x.shape[0])
    top_share_kernel[(x.shape[0],)](out, x, x.shape[1], BLOCK=64)
    return out


@top_share.reference
def _(x):
    return x.softmax(-1).amax(-1)
