# sound
"""log_softmax along any axis: INNER elements lie between neighbours of the reduced axis."""

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def log_softmax_kernel(x_ptr, out_ptr, N, INNER, BLOCK: tl.constexpr):
    outer = tl.program_id(0) // INNER
    inner = tl.program_id(0) % INNER
    at = outer.to(tl.int64) * N * INNER + tl.arange(0, BLOCK).to(tl.int64) * INNER + inner
    mask = tl.arange(0, BLOCK) < N
    x = tl.load(x_ptr + at, mask=mask, other=-float("inf"))
    shifted = x - tl.max(x, axis=0)
    tl.store(out_ptr + at, shifted - tl.log(tl.sum(tl.exp(shifted), axis=0)), mask=mask)


def log_softmax(x, dim):
    N = x.shape[dim]
    out = torch.empty_like(x)
    inner = x.shape[dim + 1 :].numel()
    log_softmax_kernel[(x.numel() // N,)](x, out, N, inner, BLOCK=triton.next_power_of_2(N))
    return out


@case(x="f32[A,N,C]", where="A * N * C < 2**30 and N <= 65536")
def log_softmax_of_middle_axis(x):
    return log_softmax(x, dim=1)


@log_softmax_of_middle_axis.reference
def _(x):
    return torch.log_softmax(x, dim=1)
