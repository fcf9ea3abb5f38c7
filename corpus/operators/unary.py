"""Functions of one number over a flat tensor. The function is a jitted one, handed to the kernel as a constant."""

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

from trilift import case


@triton.jit
def unary_kernel(x_ptr, y_ptr, n_elements, FUNCTION: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    tl.store(y_ptr + offsets, FUNCTION(x), mask=mask)


@triton.jit
def negative_of(x):
    return -x


@triton.jit
def reciprocal_of(x):
    return 1.0 / x


@triton.jit
def exp_of(x):
    return tl.exp(x)


@triton.jit
def sin_of(x):
    return tl.sin(x)


@triton.jit
def cos_of(x):
    return tl.cos(x)


@triton.jit
def log_of(x):
    return tl.log(x)


@triton.jit
def abs_of(x):
    return tl.abs(x)


@triton.jit
def rsqrt_of(x):
    return tl.rsqrt(x)


@triton.jit
def tanh_of(x):
    return libdevice.tanh(x)


def unary(x, function, block=1024):
    """function of every element of the contiguous tensor x, same shape and dtype."""
    y = torch.empty_like(x)
    unary_kernel[(triton.cdiv(x.numel(), block),)](x, y, x.numel(), FUNCTION=function, BLOCK=block)
    return y


@case(x="f32[M,N]")
def neg(x):
    return unary(x, negative_of)


@neg.reference
def _(x):
    return -x


@case(x="f32[M,N] > 0")
def reciprocal(x):
    return unary(x, reciprocal_of)


@reciprocal.reference
def _(x):
    return 1 / x


@case(x="f32[M,N]")
def exp(x):
    return unary(x, exp_of)


@exp.reference
def _(x):
    return torch.exp(x)


@case(x="f32[M,N]")
def sin(x):
    return unary(x, sin_of)


@sin.reference
def _(x):
    return torch.sin(x)


@case(x="f32[M,N]")
def cos(x):
    return unary(x, cos_of)


@cos.reference
def _(x):
    return torch.cos(x)


@case(x="f32[M,N] > 0")
def log(x):
    return unary(x, log_of)


@log.reference
def _(x):
    return torch.log(x)


@case(x="f16[M,N]")
def abs(x):
    return unary(x, abs_of)


@abs.reference
def _(x):
    return torch.abs(x)


@case(x="f32[M,N] > 0")
def rsqrt(x):
    return unary(x, rsqrt_of)


@rsqrt.reference
def _(x):
    return torch.rsqrt(x)


@case(x="f32[M,N]")
def tanh(x):
    return unary(x, tanh_of)


@tanh.reference
def _(x):
    return torch.tanh(x)
