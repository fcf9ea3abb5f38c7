"""Kernels with known edges and contracts: short blocks, strides that nobody looks at, wrappers that refuse."""

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def row_sum_kernel(out, x, stride, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    v = tl.load(x + row * stride + cols, mask=cols < N, other=0.0)
    tl.store(out + row, tl.sum(v, axis=0))


@triton.jit
def double_kernel(out, x, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, 2 * tl.load(x + at, mask=at < n), mask=at < n)


@triton.jit
def double_unmasked_kernel(out, x, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, 2 * tl.load(x + at))


@triton.jit
def rows_kernel(out, w, ids, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    i = tl.load(ids + row)
    tl.store(out + row * N + cols, tl.load(w + i * N + cols, mask=cols < N), mask=cols < N)


def row_sum(x, block):
    out = torch.empty(x.shape[0], dtype=x.dtype, device=x.device)
    row_sum_kernel[(x.shape[0],)](out, x, x.stride(0), x.shape[1], BLOCK=block)
    return out


def doubled(x, block=32):
    out = torch.empty_like(x)
    double_kernel[(triton.cdiv(x.numel(), block),)](out, x, x.numel(), BLOCK=block)
    return out


@case(x="f32[M,N]")
def short_block(x):
    return row_sum(x, 64)


@short_block.reference
def _(x):
    return x.sum(1)


@case(x="f32[M,N]", where="N <= 64")
def refusing(x):
    if x.shape[1] > 64:
        raise ValueError("rows of 64 at most")
    return row_sum(x, 64)


@refusing.reference
def _(x):
    return x.sum(1)


@case(x="f32[M,N] strided")
def unit_stride(x):
    return row_sum(x, triton.next_power_of_2(x.shape[1]))


@unit_stride.reference
def _(x):
    return x.sum(1)


@case(x="f32[2*H,3]")
def even_rows(x):
    return doubled(x.contiguous())


@case(x="f32[N]", where="N % 32 == 0")
def whole_blocks(x):
    out = torch.empty_like(x)
    double_unmasked_kernel[(triton.cdiv(x.numel(), 32),)](out, x, BLOCK=32)
    return out


@case(x="f32[N]")
def either_block(x):
    return doubled(x, 128 if x.numel() <= 100 else 32)


@case(xs=["f32[N]", "f32[N]"], k="i32 in (0, 5)", eps="f32")
def dense_only(xs, k, eps):
    if not xs[0].is_contiguous():
        raise RuntimeError("it is strided")
    return doubled(xs[0])


@case(w="f32[V,N]", ids="i32[M] < V")
def rows(w, ids):
    N = w.shape[1]
    out = torch.empty((ids.shape[0], N), dtype=w.dtype, device=w.device)
    rows_kernel[(ids.shape[0],)](out, w, ids, N, BLOCK=triton.next_power_of_2(N))
    return out


@case(w="f32[V,N]", ids="i32[M] < V")
def rows_checked(w, ids):
    if ids.numel() and int(ids.max()) >= w.shape[0]:
        raise IndexError("no such row")
    return rows.fn(w, ids)
