"""References that branch on sizes: each way is what the kernel computes, or the kernel is wrong."""

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def multiplied(x_ptr, out_ptr, N, factor, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < N, other=0.0)
    tl.store(out_ptr + i, x * factor, mask=i < N)


def twice(x):
    out = torch.empty_like(x)
    multiplied[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), 2, BLOCK=64)
    return out


def made(name, reference):
    """A case of `twice` against the reference."""

    def fn(x):
        return twice(x)

    fn.__name__ = name
    found = case(x="f32[N]")(fn)
    found.reference(reference)
    return found


right_above = made("right_above", lambda x: x + x if x.shape[0] > 5000 else x * 2)
right_single = made("right_single", lambda x: x + x if x.shape[0] == 1 else x * 2)
right_parity = made("right_parity", lambda x: x + x if x.numel() % 2 == 0 else x * 2)

wrong_number = made("wrong_number", lambda x: x * 3 if x.shape[0] == 4099 else x * 2)
wrong_above = made("wrong_above", lambda x: x * 3 if x.shape[0] > 5000 else x * 2)
wrong_single = made("wrong_single", lambda x: x * 3 if x.shape[0] == 1 else x * 2)
wrong_parity = made("wrong_parity", lambda x: x * 3 if x.shape[0] % 2 == 0 else x * 2)
wrong_third_way = made("wrong_third_way", lambda x: x * 2 if x.shape[0] < 99 else x + x if x.shape[0] < 200 else x * 3)
