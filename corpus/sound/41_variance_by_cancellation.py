# sound
"""layer_norm without weights; the variance is the mean of the squared deviations."""

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def normalise_kernel(x_ptr, out_ptr, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + cols, mask=cols < N, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / N
    centred = tl.where(cols < N, x - mean, 0.0)
    variance = tl.sum(centred * centred, axis=0) / N
    tl.store(out_ptr + row * N + cols, centred * tl.rsqrt(variance + eps), mask=cols < N)


def normalise(x, eps):
    M, N = x.shape
    out = torch.empty((M, N), dtype=torch.float32, device=x.device)
    normalise_kernel[(M,)](x, out, N, eps, BLOCK=triton.next_power_of_2(N))
    return out


@case(x="f16[M,N]", eps=1e-5, where="M < 2**31 and N <= 65536")
def normal_rows(x, eps):
    return normalise(x, eps)


@normal_rows.reference
def _(x, eps):
    centred = x.float() - x.float().mean(dim=-1, keepdim=True)
    return centred * torch.rsqrt(centred.pow(2).mean(dim=-1, keepdim=True) + eps)
