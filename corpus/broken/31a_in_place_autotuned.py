# expect: broken-contract at line 25
"""Autotuning runs the kernel many times, and each run scales its input again; pattern of triton-lang/triton#9230."""

import triton
import triton.language as tl

from trilift import case

CONFIGS = [triton.Config({"BLOCK": 256}), triton.Config({"BLOCK": 1024})]


@triton.autotune(configs=CONFIGS, key=["N"])
@triton.jit
def scale_rows_kernel(x_ptr, scale_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    scale = tl.load(scale_ptr + row)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * N + cols, mask=cols < N, other=0.0)
        tl.store(x_ptr + row * N + cols, x * scale, mask=cols < N)


def scale_rows(x, scale):
    M, N = x.shape
    scale_rows_kernel[(M,)](x, scale, N)
    return x


@case(x="f32[M,N]", scale="f32[M]", where="M < 2**31 and N < 2**30")
def rows_scaled(x, scale):
    return scale_rows(x, scale)


@rows_scaled.reference
def _(x, scale):
    return x.mul_(scale[:, None])
