"""Moving elements: cat along an axis, zeros, pad, transpose."""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl

from trilift import case


@triton.jit
def cat_kernel(
    x_ptr,
    y_ptr,
    out_ptr,
    ROWS,
    x_cols: tl.int64,
    y_cols: tl.int64,
    stride_xr,
    stride_xc,
    stride_yr,
    stride_yc,
    stride_or,
    stride_oc,
    BLOCK_R: tl.constexpr,
    BLOCK_C: tl.constexpr,
):
    """Columns below x_cols come from x, the others from y."""
    tile, across = tl.program_id(0), tl.cdiv(x_cols + y_cols, BLOCK_C)
    rows = tile // across * BLOCK_R + tl.arange(0, BLOCK_R)[:, None]
    cols = tile % across * BLOCK_C + tl.arange(0, BLOCK_C)[None, :]
    from_x = (rows < ROWS) & (cols < x_cols)
    from_y = (rows < ROWS) & (cols >= x_cols) & (cols < x_cols + y_cols)
    x = tl.load(x_ptr + rows * stride_xr + cols * stride_xc, mask=from_x, other=0)
    y = tl.load(y_ptr + rows * stride_yr + (cols - x_cols) * stride_yc, mask=from_y, other=0)
    tl.store(out_ptr + rows * stride_or + cols * stride_oc, tl.where(cols < x_cols, x, y), mask=from_x | from_y)


@triton.jit
def zeros_kernel(out_ptr, n_elements, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.zeros((BLOCK,), out_ptr.dtype.element_ty), mask=offsets < n_elements)


@triton.jit
def pad_kernel(
    x_ptr,
    out_ptr,
    M,
    N,
    top,
    left,
    out_rows,
    out_cols: tl.int64,
    value,
    stride_xm,
    stride_xn,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    tile, across = tl.program_id(0), tl.cdiv(out_cols, BLOCK_N)
    rows = tile // across * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    cols = tile % across * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    m, n = rows - top, cols - left
    inside = (m >= 0) & (m < M) & (n >= 0) & (n < N)
    x = tl.load(x_ptr + m * stride_xm + n * stride_xn, mask=inside, other=value)
    tl.store(out_ptr + rows * out_cols + cols, x, mask=(rows < out_rows) & (cols < out_cols))


@triton.jit
def transpose_kernel(
    x_ptr, out_ptr, M, N: tl.int64, stride_xm, stride_om, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    tile, across = tl.program_id(0), tl.cdiv(N, BLOCK_N)
    rows = tile // across * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tile % across * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = (rows[:, None] < M) & (cols[None, :] < N)
    tile = tl.load(x_ptr + rows[:, None] * stride_xm + cols[None, :], mask=mask)
    tl.store(out_ptr + cols[:, None] * stride_om + rows[None, :], tl.trans(tile), mask=tl.trans(mask))


def concatenate(x, y, axis):
    """cat of two matrices; axis 0 is the same kernel with rows and columns exchanged."""
    r, c = 1 - axis, axis
    shape = [0, 0]
    shape[r], shape[c] = x.shape[r], x.shape[c] + y.shape[c]
    out = torch.empty(shape, dtype=x.dtype, device=x.device)
    grid = (triton.cdiv(shape[r], 16) * triton.cdiv(shape[c], 128),)
    strides = [t.stride(k) for t in (x, y, out) for k in (r, c)]
    cat_kernel[grid](x, y, out, x.shape[r], x.shape[c], y.shape[c], *strides, BLOCK_R=16, BLOCK_C=128)
    return out


@case(x="f32[M,N] strided", y="f32[M,K] strided")
def cat(x, y):
    return concatenate(x, y, axis=1)


@cat.reference
def _(x, y):
    return torch.cat([x, y], dim=1)


@case(x="f32[M,N]", y="f32[K,N]")
def cat_rows(x, y):
    return concatenate(x, y, axis=0)


@cat_rows.reference
def _(x, y):
    return torch.cat([x, y], dim=0)


@case(x="f16[M,N]")
def zeros(x):
    out = torch.empty_like(x)
    zeros_kernel[(triton.cdiv(out.numel(), 1024),)](out, out.numel(), BLOCK=1024)
    return out


@zeros.reference
def _(x):
    return torch.zeros_like(x)


@case(x="f32[M,N] strided", value="f32")
def pad(x, value, margins=(1, 2, 3, 0)):
    left, right, top, bottom = margins
    rows, cols = x.shape[0] + top + bottom, x.shape[1] + left + right
    out = torch.empty((rows, cols), dtype=x.dtype, device=x.device)
    grid = (triton.cdiv(rows, 16) * triton.cdiv(cols, 128),)
    pad_kernel[grid](x, out, *x.shape, top, left, rows, cols, value, *x.stride(), BLOCK_M=16, BLOCK_N=128)
    return out


@pad.reference
def _(x, value):
    margins = (1, 2, 3, 0)
    outside = 1 - F.pad(torch.ones_like(x), margins)
    return F.pad(x, margins) + value * outside


@case(x="f32[M,N]")
def transpose(x):
    M, N = x.shape
    out = torch.empty((N, M), dtype=x.dtype, device=x.device)
    grid = (triton.cdiv(M, 32) * triton.cdiv(N, 32),)
    transpose_kernel[grid](x, out, M, N, x.stride(0), out.stride(0), BLOCK_M=32, BLOCK_N=32)
    return out


@transpose.reference
def _(x):
    return x.T.contiguous()
