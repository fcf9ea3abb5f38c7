"""add, sub, mul, div of two matrices of any strides: tiles numbered along rows, masked at both edges."""

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def binary_kernel(
    x_ptr,
    y_ptr,
    out_ptr,
    M,
    N: tl.int64,
    stride_xm,
    stride_xn,
    stride_ym,
    stride_yn,
    stride_om,
    stride_on,
    OP: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    tile, across = tl.program_id(0), tl.cdiv(N, BLOCK_N)
    rows = tile // across * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    cols = tile % across * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    mask = (rows < M) & (cols < N)
    x = tl.load(x_ptr + rows * stride_xm + cols * stride_xn, mask=mask)
    y = tl.load(y_ptr + rows * stride_ym + cols * stride_yn, mask=mask)
    if OP == "add":
        out = x + y
    elif OP == "sub":
        out = x - y
    elif OP == "mul":
        out = x * y
    else:
        tl.static_assert(OP == "div")
        out = x / y
    tl.store(out_ptr + rows * stride_om + cols * stride_on, out, mask=mask)


def binary(x, y, op, block_m=32, block_n=64):
    """The matrix op(x, y), op one of add, sub, mul, div."""
    M, N = x.shape
    out = torch.empty((M, N), dtype=x.dtype, device=x.device)
    grid = (triton.cdiv(M, block_m) * triton.cdiv(N, block_n),)
    binary_kernel[grid](
        x, y, out, M, N, *x.stride(), *y.stride(), *out.stride(), OP=op, BLOCK_M=block_m, BLOCK_N=block_n
    )
    return out


@case(x="f32[M,N] strided", y="f32[M,N] strided")
def add(x, y):
    return binary(x, y, "add")


@add.reference
def _(x, y):
    return x + y


@case(x="f32[M,N] strided", y="f32[M,N] strided")
def sub(x, y):
    return binary(x, y, "sub")


@sub.reference
def _(x, y):
    return x - y


@case(x="f32[M,N] strided", y="f32[M,N] strided")
def mul(x, y):
    return binary(x, y, "mul")


@mul.reference
def _(x, y):
    return x * y


@case(x="f32[M,N] strided", y="f32[M,N] > 0")
def div(x, y):
    return binary(x, y, "div")


@div.reference
def _(x, y):
    return x / y
