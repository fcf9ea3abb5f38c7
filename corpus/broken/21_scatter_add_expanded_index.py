# expect: broken-contract at line 26
"""An expanded index is walked as if it were dense; pattern of flagos-ai/FlagGems#6017."""

import triton
import triton.language as tl
from torch import Tensor

from trilift import case


@triton.jit
def scatter_add_kernel(out_ptr, index_ptr, src_ptr, N, BLOCK: tl.constexpr):
    """out[index[m, n], n] += src[m, n]."""
    row = tl.program_id(0)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < N
    index = tl.load(index_ptr + row * N + cols, mask=mask, other=0)
    src = tl.load(src_ptr + row * N + cols, mask=mask, other=0.0)
    tl.atomic_add(out_ptr + index * N + cols, src, mask=mask)


def scatter_add(x: Tensor, index: Tensor, src: Tensor) -> Tensor:
    out = x.clone()
    M, N = src.shape
    grid = (M, triton.cdiv(N, 256))
    scatter_add_kernel[grid](out, index, src, N, BLOCK=256)
    return out


@case(x="f32[V,N]", rows="i64[M] < V", src="f32[M,N]", where="M * N < 2**30 and V * N < 2**30 and N <= 2**20")
def add_rows(x, rows, src):
    """As `x.scatter_add(0, rows[:, None].expand_as(src), src)` is commonly written."""
    return scatter_add(x, rows[:, None].expand(-1, src.shape[1]), src)


@add_rows.reference
def _(x, rows, src):
    return x.index_add(0, rows, src)
