# expect: int32-overflow at line 30
"""Indices are narrowed to int32 and multiplied by the stride of a row, which wraps at row 20972 of 102400 columns
(pattern of flagos-ai/FlagGems#6411).
"""

import triton
import triton.language as tl

from trilift import case


@triton.jit
def index_put_kernel(
    inp_ptr,
    indices_ptr,
    values_ptr,
    M,
    N,
    stride_inp,
    stride_values,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """inp[indices[m], :] += values[m, :]; several m may meet in one row."""
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = (rows[:, None] < M) & (cols[None, :] < N)
    index = tl.load(indices_ptr + rows, mask=rows < M, other=0).to(tl.int32)
    values = tl.load(values_ptr + rows[:, None] * stride_values + cols[None, :], mask=mask, other=0.0)
    inp_offset = index[:, None] * stride_inp + cols[None, :]
    tl.atomic_add(inp_ptr + inp_offset, values, mask=mask, sem="relaxed")


@case(
    inp="f32[V,N]",
    indices="i64[M] < V",
    values="f32[M,N]",
    where="M < 2**31 and V < 2**31 and N <= 131072",
)
def index_put_accumulate(inp, indices, values):
    M, N = values.shape
    out = inp.clone()
    grid = (triton.cdiv(M, 4), triton.cdiv(N, 256))
    index_put_kernel[grid](out, indices, values, M, N, out.stride(0), values.stride(0), BLOCK_M=4, BLOCK_N=256)
    return out


@index_put_accumulate.reference
def _(inp, indices, values):
    return inp.index_add(0, indices, values)
