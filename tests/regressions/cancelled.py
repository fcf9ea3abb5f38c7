# a value clause: what may be no number (0 / 0, a root or logarithm of -1) cancels, without a clause

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, N, OP: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < N, other=1.0)
    y = tl.load(y_ptr + i, mask=i < N, other=1.0)
    if OP == "times_zero":
        z = x / y * 0.0
    elif OP == "minus_itself":
        z = x / y - x / y
    elif OP == "added_and_subtracted":
        z = (x / y + 1.0) - x / y
    elif OP == "ratio_of_powers":
        z = tl.exp(x / y) / tl.exp(x / y)
    elif OP == "root_times_zero":
        z = tl.sqrt(x) * 0.0
    elif OP == "logarithms":
        z = tl.log(x) - tl.log(x)
    elif OP == "is_finite":
        z = tl.where(x / y - x / y == 0, 1.0, 0.0)
    tl.store(out_ptr + i, z, mask=i < N)


def run(x, y, op):
    out = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 16),)](x, y, out, x.numel(), OP=op, BLOCK=16)
    return out


@case(x="f32[N]", y="f32[N]")
def times_zero(x, y):
    """x = y = 0: NaN, not 0."""
    return run(x, y, "times_zero")


@times_zero.reference
def _(x, y):
    return torch.zeros_like(x)


@case(x="f32[N]", y="f32[N]")
def minus_itself(x, y):
    """x = y = 0: NaN, not 0."""
    return run(x, y, "minus_itself")


@minus_itself.reference
def _(x, y):
    return torch.zeros_like(x)


@case(x="f32[N]", y="f32[N]")
def added_and_subtracted(x, y):
    """x = y = 0: NaN, not 1."""
    return run(x, y, "added_and_subtracted")


@added_and_subtracted.reference
def _(x, y):
    return torch.ones_like(x)


@case(x="f32[N]", y="f32[N]")
def ratio_of_powers(x, y):
    """x = y = 0: NaN, not 1."""
    return run(x, y, "ratio_of_powers")


@ratio_of_powers.reference
def _(x, y):
    return torch.ones_like(x)


@case(x="f32[N]", y="f32[N]")
def root_times_zero(x, y):
    """x = -1: NaN, not 0."""
    return run(x, y, "root_times_zero")


@root_times_zero.reference
def _(x, y):
    return torch.zeros_like(x)


@case(x="f32[N]", y="f32[N]")
def logarithms(x, y):
    """x = -1: NaN, not 0."""
    return run(x, y, "logarithms")


@logarithms.reference
def _(x, y):
    return torch.zeros_like(x)


@case(x="f32[N]", y="f32[N]")
def is_finite(x, y):
    """x = y = 0: 0, not 1."""
    return run(x, y, "is_finite")


@is_finite.reference
def _(x, y):
    return torch.ones_like(x)
