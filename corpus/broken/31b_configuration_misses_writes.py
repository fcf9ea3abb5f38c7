# expect: broken-contract at line 24
"""The grid is that of one block size; with the other, half is unwritten; pattern of triton-lang/triton#6547."""

import torch
import triton
import triton.language as tl

from trilift import case

CONFIGS = [triton.Config({"BLOCK": 1024}, num_warps=8), triton.Config({"BLOCK": 512}, num_warps=4)]


@triton.autotune(configs=CONFIGS, key=["n_elements"])
@triton.jit
def negate_kernel(x_ptr, out_ptr, n_elements, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n_elements, other=0.0)
    tl.store(out_ptr + at, -x, mask=at < n_elements)


def negate(x):
    out = torch.empty_like(x)
    n = x.numel()
    negate_kernel[(triton.cdiv(n, 1024),)](x, out, n)
    return out


@case(x="f32[M,N]", where="M * N < 2**30")
def negated(x):
    return negate(x)


@negated.reference
def _(x):
    return -x
