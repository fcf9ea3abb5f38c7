"""A norm whose squares are of the type of its inputs, and one that widens them first."""

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def kernel(x_ptr, out_ptr, N, WIDE: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + i, mask=i < N, other=0.0)
    if WIDE:
        x = x.to(tl.float32)
    tl.store(out_ptr + row * N + i, x / tl.sqrt(tl.sum(x * x, 0) / N), mask=i < N)


def normed(x, wide):
    out = torch.empty_like(x)
    kernel[(x.shape[0],)](x, out, x.shape[1], WIDE=wide, BLOCK=64)
    return out


@case(x="f16[M,N]", where="N <= 64")
def squares_in_f16(x):
    return normed(x, False)


@case(x="f16[M,N]", where="N <= 64")
def squares_in_f32(x):
    return normed(x, True)


@case(x="bf16[M,N]", where="N <= 64")
def squares_in_bf16(x):
    return normed(x, False)
