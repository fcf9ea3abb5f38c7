"""Combiners that are not associative, or not commutative: the order in which Triton combines is its own choice."""

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def decay(a, b):
    return a * 0.5 + b


@triton.jit
def minus(a, b):
    return a - b


@triton.jit
def mean(a, b):
    return (a + b) * 0.5


@triton.jit
def scan_kernel(x, o, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(o + i, tl.associative_scan(tl.load(x + i), 0, decay))


@triton.jit
def reduce_kernel(x, o, BLOCK: tl.constexpr):
    tl.store(o, tl.reduce(tl.load(x + tl.arange(0, BLOCK)), 0, minus))


@triton.jit
def mean_kernel(x, o, BLOCK: tl.constexpr):
    tl.store(o, tl.reduce(tl.load(x + tl.arange(0, BLOCK)), 0, mean))


@case(x="f32[8]")
def decayed(x):
    o = torch.empty_like(x)
    scan_kernel[(1,)](x, o, BLOCK=8)
    return o


@decayed.reference
def _(x):
    out = [x[0]]
    for k in range(1, 8):
        out.append(out[-1] * 0.5 + x[k])
    return torch.stack(out)


@case(x="f32[8]")
def difference(x):
    """The reference is the tree of neighbours, as our machine reduces."""
    o = torch.empty(1)
    reduce_kernel[(1,)](x, o, BLOCK=8)
    return o


@difference.reference
def _(x):
    while len(x) > 1:
        x = x[0::2] - x[1::2]
    return x


@case(x="f32[8]")
def tree_mean(x):
    """Right in every order of a balanced tree, which nothing promises: the mean of pairs is not associative."""
    o = torch.empty(1)
    mean_kernel[(1,)](x, o, BLOCK=8)
    return o


@tree_mean.reference
def _(x):
    return x.mean().reshape(1)


@triton.jit
def argmax_kernel(x_ptr, out_ptr, N, LEFT: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < N, other=-2147483648)
    tl.store(out_ptr, tl.argmax(x, 0, tie_break_left=LEFT))


def argmax(x, left):
    out = torch.empty(1, dtype=torch.int64)
    argmax_kernel[(1,)](x, out, x.shape[0], LEFT=left, BLOCK=64)
    return out


@case(x="i32[N]", where="N <= 64")
def last_of_ties(x):
    """x = [7, 7]: either position."""
    return argmax(x, False)


last_of_ties.reference(lambda x: torch.argmax(x).reshape(1))


@case(x="i32[N]", where="N <= 64")
def first_of_ties(x):
    return argmax(x, True)


first_of_ties.reference(lambda x: torch.argmax(x).reshape(1))
