# expect: broken-contract at line 32
"""The kernel handles one block of columns and never advances, and its wrapper lets rows through that are longer than
the block (pattern of facebookresearch/xformers#785).
"""

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def layer_norm_kernel(x_ptr, w_ptr, b_ptr, y_ptr, stride, N, eps, BLOCK_SIZE_N: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK_SIZE_N)
    mask = cols < N
    x = tl.load(x_ptr + row * stride + cols, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / N
    centred = tl.where(mask, x - mean, 0.0)
    rstd = tl.rsqrt(tl.sum(centred * centred, axis=0) / N + eps)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    b = tl.load(b_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    y = centred * rstd * w + b
    tl.store(y_ptr + row * stride + cols, y.to(y_ptr.dtype.element_ty), mask=mask)


@case(x="f16[M,N]", w="f16[N]", b="f16[N]", where="M < 2**31 and N <= 65536")
def layer_norm_forward(x, w, b, eps=1e-5):
    M, N = x.shape
    y = torch.empty_like(x)
    layer_norm_kernel[(M,)](x, w, b, y, x.stride(0), N, eps, BLOCK_SIZE_N=1024)
    return y


@layer_norm_forward.reference
def _(x, w, b, eps=1e-5):
    x32 = x.float()
    centred = x32 - x32.mean(-1, keepdim=True)
    rstd = torch.rsqrt(centred.pow(2).mean(-1, keepdim=True) + eps)
    return (centred * rstd * w.float() + b.float()).to(x.dtype)
