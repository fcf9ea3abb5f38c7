"""Outputs and references that are dicts, in other orders."""

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def two_kernel(x_ptr, a_ptr, b_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < N, other=0.0)
    tl.store(a_ptr + i, 2 * x, mask=i < N)
    tl.store(b_ptr + i, 3 * x, mask=i < N)


def two(x):
    a, b = torch.empty_like(x), torch.empty_like(x)
    two_kernel[(triton.cdiv(x.numel(), 64),)](x, a, b, x.numel(), BLOCK=64)
    return a, b


@case(x="f32[N]")
def keys_in_another_order(x):
    a, b = two(x)
    return {"double": a, "triple": b}


keys_in_another_order.reference(lambda x: {"triple": 3 * x, "double": 2 * x})


@case(x="f32[N]")
def keys_exchanged(x):
    """The values of the keys are exchanged."""
    a, b = two(x)
    return {"triple": a, "double": b}


keys_exchanged.reference(lambda x: {"double": 2 * x, "triple": 3 * x})


@case(x="f32[N]")
def input_among_the_keys(x):
    """Both return x itself under one key."""
    a, _ = two(x)
    return {"double": a, "same": x}


input_among_the_keys.reference(lambda x: {"same": x, "double": 2 * x})


@case(x="f32[N]")
def input_under_another_key(x):
    """The kernel's double is x itself, after it was changed; the reference returns x under the other key."""
    a, _ = two(x)
    return {"double": a, "same": x}


input_under_another_key.reference(lambda x: {"same": 1 * x, "double": 2 * x})
