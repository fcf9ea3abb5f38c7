# sound
"""The index of the token is widened before it is multiplied (pattern of databricks/megablocks#185)."""

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def padded_gather_kernel(a_ptr, b_ptr, indices_ptr, num_tokens, num_columns, BLOCK_X: tl.constexpr):
    """Row p of b is row indices[p] of a; an index of num_tokens stands for padding."""
    pid = tl.program_id(0).to(tl.int64)
    token = tl.load(indices_ptr + pid).to(tl.int64)
    a_ptr += token * num_columns
    b_ptr += pid * num_columns
    filled = tl.where(token < num_tokens, num_columns, 0)
    for start in range(0, num_columns, BLOCK_X):
        cols = start + tl.arange(0, BLOCK_X)
        x = tl.load(a_ptr + cols, mask=cols < filled, other=0.0)
        tl.store(b_ptr + cols, x, mask=cols < num_columns)


@case(a="f16[T,N]", indices="i32[P] < T + 1", where="P < 2**31 and T < 2**31 - 1 and N <= 65536")
def padded_gather(a, indices):
    T, N = a.shape
    b = torch.empty((indices.shape[0], N), dtype=a.dtype, device=a.device)
    padded_gather_kernel[(indices.shape[0],)](a, b, indices, T, N, BLOCK_X=256)
    return b


@padded_gather.reference
def _(a, indices):
    return torch.cat([a, torch.zeros_like(a[:1])])[indices]
