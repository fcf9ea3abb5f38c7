# expect: broken-contract at line 30
"""The strides of x are used for dy too; pattern of unslothai/unsloth#10617."""

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def rms_norm_backward_kernel(dy_ptr, x_ptr, w_ptr, rstd_ptr, dx_ptr, N, stride_xm, stride_xn, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK).to(tl.int64)
    mask = cols < N
    x = tl.load(x_ptr + row * stride_xm + cols * stride_xn, mask=mask, other=0.0)
    dy = tl.load(dy_ptr + row * stride_xm + cols * stride_xn, mask=mask, other=0.0)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0)
    rstd = tl.load(rstd_ptr + row)
    normal = x * rstd
    wdy = w * dy
    share = tl.sum(normal * wdy, axis=0) / N
    tl.store(dx_ptr + row * N + cols, (wdy - normal * share) * rstd, mask=mask)


def rms_norm_backward(dy, x, w, rstd):
    M, N = x.shape
    dx = torch.empty((M, N), dtype=x.dtype, device=x.device)
    block = triton.next_power_of_2(N)
    rms_norm_backward_kernel[(M,)](dy, x, w, rstd, dx, N, *x.stride(), BLOCK=block)
    return dx


@case(dy="f32[M,N] strided", x="f32[M,N]", w="f32[N]", rstd="f32[M]", where="M < 2**31 and N <= 65536")
def input_gradient(dy, x, w, rstd):
    return rms_norm_backward(dy, x, w, rstd)


@input_gradient.reference
def _(dy, x, w, rstd):
    normal = x * rstd[:, None]
    wdy = w * dy
    return (wdy - normal * (normal * wdy).mean(dim=-1, keepdim=True)) * rstd[:, None]
