"""Kernels with integer scalars of every sign, of which some are right for positive ones only."""

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def scaled(x_ptr, out_ptr, N, s, MODE: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < N, other=0.0)
    if MODE == "times":
        y = x * s
    elif MODE == "at least one":
        y = x * tl.maximum(s, 1)
    elif MODE == "below":
        y = tl.where(i < s, x, 0.0)
    elif MODE == "seven":
        y = tl.where(s > 0, x * s, x * 7)
    elif MODE == "size":
        y = x * tl.abs(s)
    elif MODE == "square":
        y = x * s * s
    elif MODE == "remainder":
        y = x * (s % 4)
    elif MODE == "parity":
        y = x * (s & 1)
    tl.store(out_ptr + i, y, mask=i < N)


def run(x, s, mode):
    out = torch.empty_like(x)
    scaled[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), s, MODE=mode, BLOCK=64)
    return out


def made(name, scalar, host, reference):
    """A case of `host(x, s)` against `reference(x, s)`."""

    def fn(x, s):
        return host(x, s)

    fn.__name__ = name
    found = case(x="f32[N]", s=scalar)(fn)
    found.reference(reference)
    return found


def times(x, s):
    return x * s


right_times = made("right_times", "i32", lambda x, s: run(x, s, "times"), times)
right_below = made(
    "right_below",
    "i32",
    lambda x, s: run(x, s, "below"),
    lambda x, s: torch.where(torch.arange(x.shape[0]) < s, x, 0.0),
)
right_size = made("right_size", "i32", lambda x, s: run(x, s, "size"), lambda x, s: x * abs(s))
right_size_of_natural = made("right_size_of_natural", "i32 in (0, 100)", lambda x, s: run(x, s, "size"), times)
right_square = made("right_square", "i32 in (-9, 9)", lambda x, s: run(x, s, "square"), lambda x, s: x * s * s)
right_positive = made("right_positive", "i32 > 0", lambda x, s: run(x, s, "at least one"), times)

wrong_at_least_one = made("wrong_at_least_one", "i32", lambda x, s: run(x, s, "at least one"), times)
wrong_seven = made("wrong_seven", "i32", lambda x, s: run(x, s, "seven"), times)
wrong_size = made("wrong_size", "i32", lambda x, s: run(x, s, "size"), times)
wrong_size_of_small = made("wrong_size_of_small", "i32 in (-5, 5)", lambda x, s: run(x, s, "size"), times)
wrong_host_or = made("wrong_host_or", "i32", lambda x, s: run(x, s or 1, "times"), times)
wrong_host_size = made("wrong_host_size", "i32", lambda x, s: run(x, abs(s), "times"), times)
wrong_host_max = made("wrong_host_max", "i32 in (-3, 4)", lambda x, s: run(x, max(s, 0), "times"), times)
wrong_remainder = made("wrong_remainder", "i32", lambda x, s: run(x, s, "remainder"), lambda x, s: x * (s % 4))


@triton.jit
def rotate(x_ptr, out_ptr, s, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < N)
    tl.store(out_ptr + (i + s) % N, x, mask=i < N)


@case(x="f32[N]", s="i32")
def wrong_rotation(x, s):
    """Not proved for any sign; -5 % 4 is -1 in Triton, before the first element."""
    out = torch.empty_like(x)
    rotate[(triton.cdiv(x.shape[0], 16),)](x, out, s, x.shape[0], BLOCK=16)
    return out


wrong_rotation.reference(lambda x, s: torch.roll(x, s))
