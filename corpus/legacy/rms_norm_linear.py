"""An RMS norm with a kernel of its own, then a linear layer of PyTorch."""

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def rms_norm_kernel(x_ptr, out_ptr, stride_x, stride_out, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    n = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride_x + n, mask=n < N, other=0.0).to(tl.float32)
    scale = 1 / tl.sqrt(tl.sum(x * x, axis=0) / N + eps)
    tl.store(out_ptr + row * stride_out + n, x * scale, mask=n < N)


@case(x="f32[M,K]", w="f32[N,K]", where="K <= 65536")
def rms_norm_linear(x, w):
    M, K = x.shape
    normed = torch.empty_like(x)
    rms_norm_kernel[(M,)](x, normed, x.stride(0), normed.stride(0), K, 1e-6, BLOCK=triton.next_power_of_2(K))
    return torch.nn.functional.linear(normed, w)


@rms_norm_linear.reference
def _(x, w):
    return torch.nn.functional.linear(x / torch.sqrt((x * x).mean(-1, keepdim=True) + 1e-6), w)
