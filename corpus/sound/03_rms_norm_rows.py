# sound
"""The index of the row is 64 bits wide (pattern of linkedin/Liger-Kernel#803)."""

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def rms_norm_forward_kernel(y_ptr, x_ptr, w_ptr, row_stride, n_cols, eps, BLOCK_SIZE: tl.constexpr):
    row_idx = tl.program_id(0).to(tl.int64)
    col_offsets = tl.arange(0, BLOCK_SIZE)
    mask = col_offsets < n_cols
    row_start = row_idx * row_stride
    x = tl.load(x_ptr + row_start + col_offsets, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + col_offsets, mask=mask, other=0.0).to(tl.float32)
    rstd = tl.rsqrt(tl.sum(x * x, axis=0) / n_cols + eps)
    y = x * rstd * w
    tl.store(y_ptr + row_start + col_offsets, y.to(y_ptr.dtype.element_ty), mask=mask)


@case(x="f16[M,N]", w="f16[N]", where="M < 2**31 and N <= 65536")
def rms_norm_forward(x, w, eps=1e-6):
    M, N = x.shape
    y = torch.empty_like(x)
    rms_norm_forward_kernel[(M,)](y, x, w, x.stride(0), N, eps, BLOCK_SIZE=triton.next_power_of_2(N))
    return y


@rms_norm_forward.reference
def _(x, w, eps=1e-6):
    x32 = x.float()
    return (x32 * torch.rsqrt(x32.pow(2).mean(-1, keepdim=True) + eps) * w.float()).to(x.dtype)
