# sound
"""A running mean; the advanced counter goes to a place of its own."""

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def running_mean_kernel(mean_ptr, x_ptr, count_ptr, next_count_ptr, n_elements, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n_elements
    count = tl.load(count_ptr) + 1
    mean = tl.load(mean_ptr + at, mask=mask, other=0.0)
    x = tl.load(x_ptr + at, mask=mask, other=0.0)
    tl.store(mean_ptr + at, mean + (x - mean) / count, mask=mask)
    if tl.program_id(0) == 0:
        tl.store(next_count_ptr, count)


def update_running_mean(mean, x, count):
    n = x.numel()
    next_count = torch.empty_like(count)
    running_mean_kernel[(triton.cdiv(n, 256),)](mean, x, count, next_count, n, BLOCK=256)
    return mean, next_count


@case(mean="f32[N]", x="f32[N]", count="i32[1] < 1000000", where="N < 2**30")
def next_mean(mean, x, count):
    return update_running_mean(mean, x, count)


@next_mean.reference
def _(mean, x, count):
    return mean.copy_(mean + (x - mean) / (count + 1)), count + 1
