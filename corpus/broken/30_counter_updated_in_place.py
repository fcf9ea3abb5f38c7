# expect: read-write-race at line 19
"""One program advances the counter that its siblings still have to read; pattern of vllm-project/vllm-ascend#13013."""

import triton
import triton.language as tl

from trilift import case


@triton.jit
def running_mean_kernel(mean_ptr, x_ptr, count_ptr, n_elements, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n_elements
    count = tl.load(count_ptr) + 1
    mean = tl.load(mean_ptr + at, mask=mask, other=0.0)
    x = tl.load(x_ptr + at, mask=mask, other=0.0)
    tl.store(mean_ptr + at, mean + (x - mean) / count, mask=mask)
    if tl.program_id(0) == 0:
        tl.store(count_ptr, count)


def update_running_mean(mean, x, count):
    n = x.numel()
    running_mean_kernel[(triton.cdiv(n, 256),)](mean, x, count, n, BLOCK=256)
    return mean, count


@case(mean="f32[N]", x="f32[N]", count="i32[1] < 1000000", where="N < 2**30")
def next_mean(mean, x, count):
    return update_running_mean(mean, x, count)


@next_mean.reference
def _(mean, x, count):
    return mean.copy_(mean + (x - mean) / (count + 1)), count.add_(1)
