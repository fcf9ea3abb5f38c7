"""Pairs of kernels that are equal at some sizes only, or that seem to be where one is read by a wrong formula."""

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def tiles_kernel(x, out, M, N, CLAMP: tl.constexpr, GROUP: tl.constexpr, TILE: tl.constexpr):
    pid = tl.program_id(0)
    rows, columns = tl.cdiv(M, TILE), tl.cdiv(N, TILE)
    first = pid // (GROUP * columns) * GROUP
    high = min(rows - first, GROUP) if CLAMP else GROUP
    i = (first + pid % (GROUP * columns) % high) * TILE + tl.arange(0, TILE)
    j = pid % (GROUP * columns) // high * TILE + tl.arange(0, TILE)
    inside = (i[:, None] < M) & (j[None, :] < N)
    at = i[:, None] * N + j[None, :]
    tl.store(out + at, tl.load(x + at, mask=inside) * 2.0, mask=inside)


def by_tiles(x, clamp):
    M, N = x.shape
    out = torch.zeros_like(x)
    grid = (triton.cdiv(M, 16) * triton.cdiv(N, 16),)
    tiles_kernel[grid](x, out, M, N, CLAMP=clamp, GROUP=4, TILE=16)
    return out


@case(x="f32[M,N]")
def all_tiles(x):
    return by_tiles(x, True)


@case(x="f32[M,N]")
def some_tiles(x):
    """The last group is not cut off at the last row: tiles are left out at M = 16, N = 17 already."""
    return by_tiles(x, False)


@triton.jit
def sum_kernel(x, out, N, OTHER: tl.constexpr, BLOCK: tl.constexpr):
    total = 0.0
    for start in range(0, N, BLOCK):
        i = start + tl.arange(0, BLOCK)
        total += tl.sum(tl.load(x + tl.program_id(0) * N + i, mask=i < N, other=OTHER))
    tl.store(out + tl.program_id(0), total)


def summed(x, other):
    out = torch.empty(x.shape[0], device=x.device)
    sum_kernel[(x.shape[0],)](x, out, x.shape[1], OTHER=other, BLOCK=32)
    return out


@case(x="f32[M,N]")
def sums(x):
    return summed(x, 0.0)


@case(x="f32[M,N]")
def sums_with_ones(x):
    """Beyond the end of a row, each element counts as 1."""
    return summed(x, 1.0)


@case(y="f32[N,M]")
def sums_of_other_names(y):
    return summed(y, 0.0)


sums_with_ones.reference(lambda x: x.sum(1))


@triton.jit
def strided_kernel(x, o, sm, sn, M, N, F, B: tl.constexpr):
    a = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(o + a, tl.load(x + a // N * sm + a % N * sn, mask=a < M * N) * F, mask=a < M * N)


@case(x="f32[M,N] strided")
def wrong_where_contiguous(x):
    M, N = x.shape
    o = torch.empty((M, N), dtype=x.dtype, device=x.device)
    factor = 3.0 if x.is_contiguous() else 2.0
    strided_kernel[(triton.cdiv(M * N, 64),)](x, o, x.stride(0), x.stride(1), M, N, factor, B=64)
    return o


wrong_where_contiguous.reference(lambda x: x * 2)
