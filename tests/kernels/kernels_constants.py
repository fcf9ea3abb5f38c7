"""Constants that are nearly a number: right where the tensors' type does not tell them apart, wrong where it does."""

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def kernel(x_ptr, out_ptr, n, FUNCTION: tl.constexpr, BLOCK: tl.constexpr):  # noqa: C901 - one branch for each case
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
    elif FUNCTION == "floor":
        y = tl.floor(x)
    elif FUNCTION == "widened floor":
        y = tl.floor(x.to(tl.float64) * 0.99999999)
    elif FUNCTION == "widened difference":
        y = x + tl.where(i == 6000011, (x.to(tl.float64) * 1.0000000001 - x.to(tl.float64)) * 1e10, 0.0)
    elif FUNCTION == "time":
        y = tl.where(x >= 1700000050.0, 1.0, 0.0)
    elif FUNCTION == "short power":
        y = tl.exp2(x * 1.44269504)
    elif FUNCTION == "power":
        y = tl.exp2(x * 1.4426950408889634)
    elif FUNCTION == "half":
        y = x.to(tl.float16).to(tl.int32)
    elif FUNCTION == "large":
        y = tl.where(x == 16777217, 1, 0)
    elif FUNCTION == "tenth":
        y = x * 0.1
    tl.store(out_ptr + i, y, mask=i < n)


def launched(x, function, dtype=None):
    out = torch.empty_like(x, dtype=dtype or x.dtype)
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


@case(x="f32[N]")
def wrong_widened_floor(x):
    return launched(x, "widened floor")


@wrong_widened_floor.reference
def _(x):
    return torch.floor(x)


@case(x="f32[N]")
def wrong_widened_difference(x):
    return launched(x, "widened difference")


@wrong_widened_difference.reference
def _(x):
    return x * 1.0


@case(x="f64[N]")
def wrong_time(x):
    return launched(x, "time", torch.float32)


@wrong_time.reference
def _(x):
    return (x >= 1700000000.0).float()


@case(x="f64[N]")
def wrong_short_power(x):
    return launched(x, "short power")


@wrong_short_power.reference
def _(x):
    return torch.exp(x)


@case(x="f64[N]")
def right_power(x):
    return launched(x, "power")


@right_power.reference
def _(x):
    return torch.exp(x)


@case(x="f32[N]")
def right_short_power_of_single(x):
    return launched(x, "short power")


@right_short_power_of_single.reference
def _(x):
    return torch.exp(x)


@case(x="i32[N] in (3000, 4000)")
def wrong_everywhere(x):
    return launched(x, "half")


@wrong_everywhere.reference
def _(x):
    return x + 0


@case(x="i32[N]")
def compared(x):
    return launched(x, "large")


@compared.reference
def _(x):
    return (x == 16777217.0).to(torch.int32)


@case(x="f32[N]")
def right_floor(x):
    return launched(x, "floor")


@right_floor.reference
def _(x):
    return torch.floor(x)
