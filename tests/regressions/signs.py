# a value clause: a comparison is decided by the sign of what may be no number (0 / 0), without a clause

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, N, OP: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < N, other=1.0)
    y = tl.load(y_ptr + i, mask=i < N, other=1.0)
    if OP == "one_side":
        z = (x / y > 0).to(tl.float32) + (x / y <= 0).to(tl.float32)
    elif OP == "absolute_value":
        z = tl.where(tl.abs(x / y) >= 0, 1.0, 0.0)
    elif OP == "exponential":
        z = tl.where(tl.exp(x / y) > 0, 1.0, 0.0)
    elif OP == "rectified":
        z = tl.where(x / y > 0, x / y, 0.0)
    tl.store(out_ptr + i, z, mask=i < N)


def run(x, y, op):
    out = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 16),)](x, y, out, x.numel(), OP=op, BLOCK=16)
    return out


@case(x="f32[N]", y="f32[N]")
def one_side(x, y):
    """x = y = 0: 0, not 1."""
    return run(x, y, "one_side")


@one_side.reference
def _(x, y):
    return torch.ones_like(x)


@case(x="f32[N]", y="f32[N]")
def absolute_value(x, y):
    """x = y = 0: 0, not 1."""
    return run(x, y, "absolute_value")


@absolute_value.reference
def _(x, y):
    return torch.ones_like(x)


@case(x="f32[N]", y="f32[N]")
def exponential(x, y):
    """x = y = 0: 0, not 1."""
    return run(x, y, "exponential")


@exponential.reference
def _(x, y):
    return torch.ones_like(x)


@case(x="f32[N]", y="f32[N]")
def rectified(x, y):
    """x = y = 0: 0, not NaN."""
    return run(x, y, "rectified")


@rectified.reference
def _(x, y):
    return torch.relu(x / y)
