"""Floats that become integers of 8 bits: the number must fit, on both sides."""

import torch
import triton
import triton.language as tl

from trilift import case

BLOCK = 64


@triton.jit
def narrowed(x, y, N, NARROW: tl.constexpr, FACTOR: tl.constexpr, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    q = tl.load(x + i, mask=i < N).to(NARROW)
    if FACTOR != 1:
        q = q.to(tl.int32) * FACTOR
    tl.store(y + i, q, mask=i < N)


def run(x, narrow, dtype, factor=1):
    y = torch.empty(x.shape, dtype=dtype)
    narrowed[(triton.cdiv(x.numel(), BLOCK),)](x, y, x.numel(), NARROW=narrow, FACTOR=factor, B=BLOCK)
    return y


# ---- right


@case(x="f32[N]")
def to_int8(x):
    return run(x, tl.int8, torch.int8)


to_int8.reference(lambda x: x.to(torch.int8))


@case(x="f32[N]")
def to_uint8(x):
    return run(x, tl.uint8, torch.uint8)


to_uint8.reference(lambda x: x.to(torch.uint8))


@case(x="f32[N]")
def int8_times_three(x):
    return run(x, tl.int8, torch.int32, 3)


int8_times_three.reference(lambda x: x.to(torch.int8).to(torch.int32) * 3)


@case(x="f32[N]")
def uint8_times_three(x):
    return run(x, tl.uint8, torch.int32, 3)


uint8_times_three.reference(lambda x: x.to(torch.uint8).to(torch.int32) * 3)


# ---- wrong


@case(x="f32[N]")
def product_in_uint8(x):
    """x = 100: 300 against 44."""
    return run(x, tl.uint8, torch.int32, 3)


product_in_uint8.reference(lambda x: (x.to(torch.uint8) * 3).to(torch.int32))


@case(x="f32[N]")
def int8_in_uint8(x):
    """x = 200: a number that does not fit int8 against 200."""
    return run(x, tl.int8, torch.uint8)


int8_in_uint8.reference(lambda x: x.to(torch.uint8))
