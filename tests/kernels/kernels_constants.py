"""Constants that are nearly a number: right where the tensors' type does not tell them apart, wrong where it does."""

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def kernel(x_ptr, out_ptr, n, FUNCTION: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    if FUNCTION == "neighbour":
        y = x * 1.0000001192092896
    elif FUNCTION == "floor of a neighbour":
        y = tl.floor(x * 1.0000001192092896)
    elif FUNCTION == "amplified":
        y = (x * 1.0000001192092896 - x) * 8388608.0
    elif FUNCTION == "sine":
        y = tl.sin(x * 1.00000005)
    elif FUNCTION == "root":
        y = x * 0.70710677
    elif FUNCTION == "precise root":
        y = x * 0.7071067811865476
    elif FUNCTION == "tenth":
        y = x * 0.1
    tl.store(out_ptr + i, y, mask=i < n)


def launched(x, function):
    out = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), FUNCTION=function, BLOCK=64)
    return out


@case(x="f32[N]")
def wrong_neighbour(x):
    return launched(x, "neighbour")


@wrong_neighbour.reference
def _(x):
    return x * 1.0


@case(x="f32[N]")
def wrong_floor(x):
    return launched(x, "floor of a neighbour")


@wrong_floor.reference
def _(x):
    return torch.floor(x)


@case(x="f32[N]")
def wrong_difference(x):
    return launched(x, "amplified")


@wrong_difference.reference
def _(x):
    return 0 * x


@case(x="f64[N]")
def wrong_sine(x):
    return launched(x, "sine")


@wrong_sine.reference
def _(x):
    return torch.sin(x)


@case(x="f64[N]")
def wrong_root(x):
    return launched(x, "root")


@wrong_root.reference
def _(x):
    return x / 2**0.5


@case(x="f64[N]")
def right_root(x):
    return launched(x, "precise root")


@right_root.reference
def _(x):
    return x / 2**0.5


@case(x="f32[N]")
def right_single_root(x):
    return launched(x, "root")


@right_single_root.reference
def _(x):
    return x / 2**0.5


@case(x="f32[N]")
def right_single_sine(x):
    return launched(x, "sine")


@right_single_sine.reference
def _(x):
    return torch.sin(x)


@case(x="f64[N]")
def right_tenth(x):
    return launched(x, "tenth")


@right_tenth.reference
def _(x):
    return x * 0.1
