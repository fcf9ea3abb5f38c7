# expect: nan-risk at line 17
"""In a row without a single key, exp(-inf - -inf) is NaN; pattern of pytorch/pytorch#131060."""

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def padded_softmax_kernel(x_ptr, lengths_ptr, out_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    length = tl.load(lengths_ptr + row)
    x = tl.load(x_ptr + row * N + cols, mask=cols < length, other=-float("inf"))
    weights = tl.exp(x - tl.max(x, axis=0))
    total = tl.sum(weights, axis=0)
    tl.store(out_ptr + row * N + cols, weights / total, mask=cols < N)


def padded_softmax(x, lengths):
    M, N = x.shape
    out = torch.empty_like(x)
    padded_softmax_kernel[(M,)](x, lengths, out, N, BLOCK=triton.next_power_of_2(N))
    return out


@case(x="f32[M,N]", lengths="i32[M] < N + 1", where="M < 2**31 and N <= 65536")
def weights_of_keys(x, lengths):
    return padded_softmax(x, lengths)


@weights_of_keys.reference
def _(x, lengths):
    present = torch.arange(x.shape[1])[None, :] < lengths[:, None]
    weights = torch.softmax(x.masked_fill(~present, -float("inf")), dim=-1)
    return torch.where(present, weights, 0.0)
