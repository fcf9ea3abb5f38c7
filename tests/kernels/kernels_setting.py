"""Small host functions whose launches depend on the shape in one way each."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from trilift.lift.cases.declaration import case


@triton.jit
def copy_kernel(x, y, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + o, tl.load(x + o, mask=o < n), mask=o < n)


@triton.jit
def scale_kernel(x, y, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + o, tl.load(x + o, mask=o < n) * (2.0 / BLOCK), mask=o < n)


@triton.jit
def odd_at_4096_kernel(x, y, n, BLOCK: tl.constexpr):
    o = tl.arange(0, BLOCK)
    v = tl.load(x + o, mask=o < n)
    if BLOCK == 4096:
        v = v + 1
    tl.store(y + o, v, mask=o < n)


@triton.jit
def add_number_kernel(x, y, n, NUMBER: tl.constexpr, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + o, tl.load(x + o, mask=o < n) + NUMBER, mask=o < n)


@case(x="f32[N]")
def two_kernels(x):
    y, n = torch.empty_like(x), x.numel()
    if n > 1000:
        scale_kernel[(triton.cdiv(n, 256),)](x, y, n, BLOCK=256)
    else:
        copy_kernel[(triton.cdiv(n, 64),)](x, y, n, BLOCK=64)
    return y


@case(x="f32[N]")
def block_from_a_table(x):
    y, n = torch.empty_like(x), x.numel()
    block = 64 if n <= 300 else 128 if n % 3 else 512
    scale_kernel[(triton.cdiv(n, block),)](x, y, n, BLOCK=block)
    return y


@case(x="f32[N]", where="N <= 8192")
def branch_on_the_block(x):
    y, n = torch.empty_like(x), x.numel()
    odd_at_4096_kernel[(1,)](x, y, n, BLOCK=triton.next_power_of_2(n))
    return y


@case(x="f32[N]", c="f32")
def constexpr_number(x, c):
    y, n = torch.empty_like(x), x.numel()
    add_number_kernel[(triton.cdiv(n, 64),)](x, y, n, NUMBER=c, BLOCK=64)
    return y


@case(x="f32[M,N]", i="i64[M] < N")
def host_operations(x, i):
    y = torch.empty_like(x)
    copy_kernel[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), BLOCK=64)
    total = y.sum(dim=1, keepdim=True)
    y.mul_(2).sub_(total / y.shape[1])
    rows = torch.arange(x.shape[0]) * 3
    z = torch.zeros(x.shape[1], x.shape[0])
    z.copy_(y.t())
    z[1:].fill_(7)
    picked = torch.gather(y, 1, i[:, None])
    return {"y": y, "z": z, "rows": rows, "picked": picked.to(torch.float64), "half": y.half()}


@case(x="f32[N]")
def reinterpreted(x):
    y = torch.empty_like(x)
    copy_kernel[(triton.cdiv(x.numel(), 64),)](x.view(torch.int32), y.view(torch.int32), x.numel(), BLOCK=64)
    return y


@case(x="f32[N]")
def random_in_between(x):
    y = torch.empty_like(x)
    copy_kernel[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), BLOCK=64)
    return y + torch.rand(x.shape)


@case(x="f32[M,N] strided")
def rows_of_a_view(x):
    y = torch.empty(x.shape)
    part = x[1:] if x.shape[0] > 1 else x
    copy_kernel[(triton.cdiv(x.numel(), 64),)](part, y, part.numel(), BLOCK=64)
    return y


@triton.jit
def projected_kernel(x, w, y, M, H, D, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    block = tl.program_id(0)
    blocks = tl.cdiv(D, BLOCK)
    h, d = block // blocks, block % blocks * BLOCK + tl.arange(0, BLOCK)
    m = tl.arange(0, ROWS)
    total = tl.zeros((ROWS, BLOCK), tl.float32)
    for j in range(H * D):
        column = tl.load(x + m * (H * D) + j, mask=m < M, other=0.0)
        row = tl.load(w + j * (H * D) + h * D + d, mask=d < D, other=0.0)
        total += column[:, None] * row[None, :]
    tl.store(y + m[:, None] * (H * D) + h * D + d[None, :], total, mask=(m[:, None] < M) & (d[None, :] < D))


def _projected(x, w, heads, blocks):
    M, D = x.shape[0], x.shape[2]
    y = torch.empty_like(x)
    projected_kernel[(heads * blocks,)](x, w, y, M, heads, D, ROWS=triton.next_power_of_2(M), BLOCK=32)
    return y


@case(x="f32[M,H,D]", w="f32[H,D,H,D]")
def projected(x, w):
    return _projected(x, w, x.shape[1], triton.cdiv(x.shape[2], 32))


@case(x="f32[M,H,D]", w="f32[H,D,H,D]")
def projected_without_blocks(x, w):
    return _projected(x, w, x.shape[1], 1)


@projected.reference
@projected_without_blocks.reference
def _(x, w):
    return torch.einsum("mij,ijhd->mhd", x, w)


@triton.jit
def doubled_kernel(x, y, M, H, D, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    rows, h = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.program_id(1)
    columns = tl.arange(0, BLOCK)
    at = (rows[:, None] * H + h) * D + columns[None, :]
    mask = (rows[:, None] < M) & (columns[None, :] < D)
    tl.store(y + at, 2 * tl.load(x + at, mask=mask, other=0.0), mask=mask)


def _doubled(x, rows):
    M, H, D = x.shape
    y = torch.empty_like(x)
    block = max(16, triton.next_power_of_2(D))
    doubled_kernel[(triton.cdiv(M, rows or block), H)](x, y, M, H, D, ROWS=16, BLOCK=block)
    return y


@case(x="f32[M,H,D]", w="f32[H,D,H,D]")
def doubled_by_sixteen(x, w):
    return _doubled(x, 16)


@case(x="f32[M,H,D]", w="f32[H,D,H,D]")
def doubled_by_blocks(x, w):
    return _doubled(x, 0)


@doubled_by_sixteen.reference
@doubled_by_blocks.reference
def _(x, w):
    return 2 * x


@triton.jit
def unrolled_kernel(x, o, N, PADDED: tl.constexpr, WRONG_FROM: tl.constexpr, BLOCK: tl.constexpr):
    for start in tl.static_range(0, PADDED, BLOCK):
        i = start + tl.arange(0, BLOCK)
        v = tl.load(x + i, mask=i < N)
        tl.store(o + i, v * 2 if start < WRONG_FROM else v, mask=i < N)


def unrolled(x, wrong_from):
    o, padded = torch.empty_like(x), triton.next_power_of_2(x.numel())
    unrolled_kernel[(1,)](x, o, x.numel(), PADDED=padded, WRONG_FROM=wrong_from, BLOCK=min(padded, 256))
    return o


@case(x="f32[N]")
def unrolled_row(x):
    return unrolled(x, 1 << 30)


@case(x="f32[N]")
def unrolled_row_that_ends_wrong(x):
    return unrolled(x, 8192)


for _case in (unrolled_row, unrolled_row_that_ends_wrong):
    _case.reference(lambda x: 2 * x)
