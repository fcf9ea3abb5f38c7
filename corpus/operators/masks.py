"""Selection by a mask: where, masked_fill in place, and the lower triangle."""

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def where_kernel(condition_ptr, x_ptr, y_ptr, out_ptr, n_elements, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n_elements
    condition = tl.load(condition_ptr + offsets, mask=mask).to(tl.int1)
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, tl.where(condition, x, y), mask=mask)


@triton.jit
def masked_fill_kernel(x_ptr, mask_ptr, value, N, stride_x, stride_mask, BLOCK: tl.constexpr):
    """Stores only the masked elements; the others stay."""
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = cols < N
    fill = tl.load(mask_ptr + row * stride_mask + cols, mask=inside, other=0).to(tl.int1)
    tl.store(x_ptr + row * stride_x + cols, value, mask=inside & fill)


@triton.jit
def tril_kernel(x_ptr, out_ptr, M, N, diagonal, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    for start in range(0, N, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)
        inside = (rows[:, None] < M) & (cols[None, :] < N)
        keep = inside & (cols[None, :] <= rows[:, None] + diagonal)
        x = tl.load(x_ptr + rows[:, None] * N + cols[None, :], mask=keep, other=0.0)
        tl.store(out_ptr + rows[:, None] * N + cols[None, :], x, mask=inside)


@case(condition="bool[M,N]", x="f32[M,N]", y="f32[M,N]")
def where(condition, x, y):
    out = torch.empty_like(x)
    where_kernel[(triton.cdiv(x.numel(), 1024),)](condition, x, y, out, x.numel(), BLOCK=1024)
    return out


@where.reference
def _(condition, x, y):
    return torch.where(condition, x, y)


@case(x="f32[M,N]", mask="bool[M,N]", value="f32", where="N <= 65535 * 512")
def masked_fill(x, mask, value):
    M, N = x.shape
    out = x.clone()
    masked_fill_kernel[(M, triton.cdiv(N, 512))](out, mask, value, N, out.stride(0), mask.stride(0), BLOCK=512)
    return out


@masked_fill.reference
def _(x, mask, value):
    return x.masked_fill(mask, value)


@case(x="f32[M,N]")
def tril(x, diagonal=1):
    M, N = x.shape
    out = torch.empty_like(x)
    tril_kernel[(triton.cdiv(M, 32),)](x, out, M, N, diagonal, BLOCK_M=32, BLOCK_N=64)
    return out


@tril.reference
def _(x):
    return torch.tril(x, 1)
