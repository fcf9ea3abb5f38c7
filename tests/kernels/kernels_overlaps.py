"""Tensors whose elements may share memory: outputs of narrow pitch, inputs of equal strides, parts of a storage."""

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def rows_kernel(x_ptr, out_ptr, N, x_row, x_column, out_row, out_column, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    for start in range(0, N, BLOCK):
        j = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * x_row + j * x_column, mask=j < N)
        tl.store(out_ptr + row * out_row + j * out_column, x + row, mask=j < N)


def by_rows(x, out):
    rows_kernel[(x.shape[0],)](x, out, x.shape[1], *x.stride(), *out.stride(), BLOCK=32)
    return out


def added(x):
    return x + torch.arange(x.shape[0], device=x.device)[:, None]


@case(x="f32[M,N]")
def wrong_narrow_pitch(x):
    """From N = 1001 on, a row starts on the last element of the one before."""
    M, N = x.shape
    pitch = N if N <= 1000 else N - 1
    return by_rows(x, torch.empty_strided((M, N), (pitch, 1), dtype=x.dtype, device=x.device))


@case(x="f32[M,N]")
def right_wide_pitch(x):
    M, N = x.shape
    return by_rows(x, torch.empty_strided((M, N), (triton.cdiv(N, 16) * 16, 1), dtype=x.dtype, device=x.device))


@case(x="f32[M,N]")
def right_columns(x):
    return by_rows(x, torch.empty_strided(x.shape, (1, x.shape[0]), dtype=x.dtype, device=x.device))


@case(x="f32[M,N] strided")
def clause_as_the_input(x):
    """Where x overlaps itself, so does the output."""
    return by_rows(x, torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device=x.device))


@case(x="f32[M,N] rows")
def clause_by_stride(x):
    """Of strides (1, 1), PyTorch takes the larger dimension first: columns, where there are more of these."""
    out = torch.empty_like(x)
    rows_kernel[(x.shape[0],)](x, out, x.shape[1], *x.stride(), x.shape[1], 1, BLOCK=32)
    return out


@case(x="f32[N]")
def seen_from_the_start(x):
    """The offset counts from the start of the storage of x, which x may be the end of."""
    out = torch.empty_like(x)
    y = x.as_strided((1, x.shape[0]), (x.shape[0], 1), 0)
    rows_kernel[(1,)](y, out, x.shape[0], *y.stride(), x.shape[0], 1, BLOCK=32)
    return out


def renumbered(x):
    """x with its row numbers added, in place."""
    rows_kernel[(x.shape[0],)](x, x, x.shape[1], *x.stride(), *x.stride(), BLOCK=32)
    return x


@case(x="f32[M,N] strided")
def copy_or_not(x):
    """Where x lies by columns, the transposed x is contiguous, and x itself is changed."""
    return renumbered(x.t().contiguous())


@case(x="f32[M,N] strided")
def copy_always(x):
    return renumbered(x.t().clone(memory_format=torch.contiguous_format))


@case(x="f32[N]")
def other_memory(x):
    """An empty tensor is given the storage of x."""
    y = torch.empty(0, dtype=x.dtype, device=x.device).set_(x.untyped_storage())
    out = torch.empty_like(x)
    rows_kernel[(1,)](y, out, x.shape[0], x.shape[0], 1, x.shape[0], 1, BLOCK=32)
    return out


for _by_rows in (wrong_narrow_pitch, right_wide_pitch, right_columns, clause_as_the_input, clause_by_stride):
    _by_rows.reference(added)


@copy_or_not.reference
def _(x):
    return added(x.t())


@copy_always.reference
def _(x):
    return added(x.t())


seen_from_the_start.reference(torch.clone)
other_memory.reference(torch.clone)
