# expect: wrong-result at line 18
"""Elements side by side in memory are reduced, whatever `dim` says; pattern of flagos-ai/FlagGems#4995."""

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def log_softmax_kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = row * N + tl.arange(0, BLOCK)
    mask = tl.arange(0, BLOCK) < N
    x = tl.load(x_ptr + at, mask=mask, other=-float("inf"))
    shifted = x - tl.max(x, axis=0)
    tl.store(out_ptr + at, shifted - tl.log(tl.sum(tl.exp(shifted), axis=0)), mask=mask)


def log_softmax(x, dim):
    N = x.shape[dim]
    out = torch.empty_like(x)
    log_softmax_kernel[(x.numel() // N,)](x, out, N, BLOCK=triton.next_power_of_2(N))
    return out


@case(x="f32[A,N,C]", where="A * N * C < 2**30 and N <= 65536")
def log_softmax_of_middle_axis(x):
    return log_softmax(x, dim=1)


@log_softmax_of_middle_axis.reference
def _(x):
    return torch.log_softmax(x, dim=1)
