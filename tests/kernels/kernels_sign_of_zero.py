"""Cases that read a sign bit, which of a zero is either: `-0.0 < 0` does not hold, `signbit(-0.0)` does."""

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

from trilift import case


@triton.jit
def _signs(x_ptr, out_ptr, N, WAY: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < N, other=0)
    if WAY == "bit":
        sign = tl.where(libdevice.signbit(x) != 0, -1.0, 1.0)
    elif WAY == "copy":
        sign = libdevice.copysign(tl.full((BLOCK,), 1.0, tl.float32), x)
    else:
        sign = tl.where(x < 0, -1.0, 1.0)
    tl.store(out_ptr + i, sign, mask=i < N)


def _signed(x, way):
    out = torch.empty_like(x)
    _signs[(triton.cdiv(x.shape[0], 64),)](x, out, x.shape[0], WAY=way, BLOCK=64)
    return out


@case(x="f32[N]")
def bit_for_comparison(x):
    return _signed(x, "bit")


@bit_for_comparison.reference
def _(x):
    return torch.where(x < 0, -1.0, 1.0)


@case(x="f32[N]")
def comparison_for_copysign(x):
    return _signed(x, "comparison")


@comparison_for_copysign.reference
def _(x):
    return torch.copysign(torch.ones_like(x), x)


@case(x="f32[N]")
def bit_for_signbit(x):
    return _signed(x, "bit")


@bit_for_signbit.reference
def _(x):
    return torch.where(torch.signbit(x), -1.0, 1.0)


@case(x="f32[N]")
def copysign_for_copysign(x):
    return _signed(x, "copy")


@copysign_for_copysign.reference
def _(x):
    return torch.copysign(torch.ones_like(x), x)


@triton.jit
def _sign_of_quotient(x_ptr, y_ptr, out_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < N, other=0)
    y = tl.load(y_ptr + i, mask=i < N, other=1)
    sign = tl.where(libdevice.signbit(x / y * (x - 1)) != 0, -1.0, 1.0)
    tl.store(out_ptr + i, sign, mask=i < N)


@case(x="f32[N]", y="f32[N]")
def bit_of_a_quotient(x, y):
    """Infinite on one side and NaN on the other where y is 0."""
    out = torch.empty_like(x)
    _sign_of_quotient[(triton.cdiv(x.shape[0], 64),)](x, y, out, x.shape[0], BLOCK=64)
    return out


@bit_of_a_quotient.reference
def _(x, y):
    return torch.where(torch.signbit(x / y * x - x / y), -1.0, 1.0)
