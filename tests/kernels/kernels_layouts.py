"""Host functions that ask how a tensor lies in memory, each way of the wrong ones wrong once, and right ones beside."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def rows_kernel(x_ptr, out_ptr, in_stride, out_stride, N, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + r * in_stride + i, mask=i < N)
    tl.store(out_ptr + r * out_stride + i, 2 * x, mask=i < N)


def doubled(x, out_stride=None, in_stride=None):
    m, n = x.shape
    out = torch.empty((m, n), dtype=x.dtype, device=x.device)
    strides = (x.stride(0) if in_stride is None else in_stride, n if out_stride is None else out_stride)
    rows_kernel[(m,)](x, out, *strides, n, BLOCK=64)
    return out


def of_rows(fn):
    found = case(x="f32[M,N] strided", where="N <= 64")(fn)
    found.reference(lambda x: 2 * x)
    return found


@of_rows
def dense_where_gaps(x):
    x = x if x.stride(-1) == 1 else x.contiguous()
    return doubled(x)


@of_rows
def dense_where_not(x):
    x = x if x.is_contiguous() else x.contiguous()
    return doubled(x)


@of_rows
def refused_gaps(x):
    assert x.stride(1) == 1 or not x.is_contiguous()
    return doubled(x.contiguous())


@of_rows
def stride_of_the_input(x):
    """Padded rows are stored apart: out of bounds."""
    x = x if x.stride(-1) == 1 else x.contiguous()
    return doubled(x, out_stride=x.stride(0))


@of_rows
def rows_without_pads(x):
    """Padded rows are read as if there were no pads."""
    x = x if x.stride(-1) == 1 else x.contiguous()
    return doubled(x, in_stride=x.shape[1])


@of_rows
def twice_where_contiguous(x):
    """Doubled twice where nothing needs copying."""
    return doubled(doubled(x)) if x.is_contiguous() else doubled(x.contiguous())


@of_rows
def columns_of_a_transpose(x):
    """A transposed tensor is taken for one without pads."""
    if x.stride(0) == 1:
        return doubled(x, in_stride=x.stride(1))
    return doubled(x.contiguous())


@case(x="f32[N] strided", where="N <= 64")
def twice_where_dense(x):
    """A vector without gaps is doubled twice."""
    out = doubled(x.contiguous()[None])[0]
    return doubled(out[None])[0] if x.stride(0) == 1 else out


twice_where_dense.reference(lambda x: 2 * x)


@of_rows
def flat_where_rows_follow(x):
    """Rows that follow one another are taken to have no gaps."""
    if x.stride(0) != x.shape[1]:
        return doubled(x.contiguous())
    return doubled(x, in_stride=x.shape[1])


RIGHT = [dense_where_gaps, dense_where_not, refused_gaps]
WRONG = [stride_of_the_input, rows_without_pads, twice_where_contiguous, columns_of_a_transpose, twice_where_dense]
