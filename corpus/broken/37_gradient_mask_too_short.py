# expect: undefined-value at line 18
"""The gradient is loaded with the mask of shifted labels, one short; pattern of NVIDIA-NeMo/Automodel#217."""

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def tanh_backward_kernel(dy_ptr, y_ptr, dx_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < N
    shifted = cols < N - 1
    y = tl.load(y_ptr + row * N + cols, mask=mask, other=0.0)
    tl.store(dx_ptr + row * N + cols, tl.load(dy_ptr + row * N + cols, mask=shifted) * (1.0 - y * y), mask=mask)


def tanh_backward(dy, y):
    M, N = y.shape
    dx = torch.empty_like(y)
    tanh_backward_kernel[(M, triton.cdiv(N, 512))](dy, y, dx, N, BLOCK=512)
    return dx


@case(dy="f32[M,N]", y="f32[M,N] in (-1, 1)", where="M < 2**31 and N <= 2**20")
def gradient_of_tanh(dy, y):
    return tanh_backward(dy, y)


@gradient_of_tanh.reference
def _(dy, y):
    return dy * (1.0 - y * y)
