"""Kernels that are right under a precondition only, and wrappers that check it or do not."""

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def one_block_kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.program_id(0) * N + at, mask=at < N, other=-float("inf"))
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + tl.program_id(0) * N + at, e / tl.sum(e, axis=0), mask=at < N)


def softmax_in_one_block(x, limit):
    if x.shape[1] > limit:
        raise ValueError(f"rows are longer than {limit}")
    out = torch.empty_like(x)
    one_block_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=128)
    return out


@case(x="f32[M,N]")
def unchecked(x):
    return softmax_in_one_block(x, 1 << 30)


@case(x="f32[M,N]")
def checked(x):
    return softmax_in_one_block(x, 128)


@case(x="f32[M,N]")
def checked_badly(x):
    return softmax_in_one_block(x, 256)


for softmax in (unchecked, checked, checked_badly):
    softmax.reference(lambda x: torch.softmax(x, -1))


@triton.jit
def matmul_kernel(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        ks = k + tl.arange(0, BK)
        acc += tl.dot(tl.load(a + rows[:, None] * K + ks[None, :]), tl.load(b + ks[:, None] * N + cols[None, :]))
    tl.store(c + rows[:, None] * N + cols[None, :], acc)


@case(a="f32[M,K]", b="f32[K,N]")
def matmul_without_masks(a, b):
    M, K, N = *a.shape, b.shape[1]
    c = torch.empty((M, N))
    matmul_kernel[(triton.cdiv(M, 16), triton.cdiv(N, 32))](a, b, c, M, N, K, BM=16, BN=32, BK=16)
    return c


matmul_without_masks.reference(lambda a, b: a @ b)


@triton.jit
def double_kernel(x_ptr, y_ptr, N, stride_m, BLOCK: tl.constexpr):
    for start in range(0, N, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + tl.program_id(0) * stride_m + at, mask=at < N)
        tl.store(y_ptr + tl.program_id(0) * N + at, 2 * x, mask=at < N)


@case(x="f32[M,N] strided")
def stride_ignored(x):
    y = torch.empty(x.shape)
    double_kernel[(x.shape[0],)](x, y, x.shape[1], x.stride(0), BLOCK=16)
    return y


@case(x="f32[M,N] strided")
def never_right(x):
    y = torch.empty(x.shape)
    double_kernel[(x.shape[0],)](x, y, x.shape[1], x.stride(0), BLOCK=16)
    return y


stride_ignored.reference(lambda x: 2 * x)
never_right.reference(lambda x: 3 * x)


@triton.jit
def quotient_kernel(out, x, y, N, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = i < N
    a, b = tl.load(x + i, mask=mask, other=0.0), tl.load(y + i, mask=mask, other=1.0)
    tl.store(out + i, a / b, mask=mask)


@case(x="f32[N]", y="f32[N]")
def quotient(x, y):
    out = torch.empty_like(x)
    quotient_kernel[(triton.cdiv(x.numel(), 64),)](out, x, y, x.numel(), BLOCK=64)
    return out


@quotient.reference
def _(x, y):
    return x * y / (y * y)
