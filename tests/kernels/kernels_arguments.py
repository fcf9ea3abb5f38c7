"""Arguments that Triton specialises or narrows: in tuples, with an annotated type, equal to another one."""

from __future__ import annotations

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from triton.runtime.jit import constexpr_function

from trilift import case

FACTOR = tl.constexpr(2.0)
BY_SIZE = tl.constexpr(2.0)
HOOKED = tl.constexpr(1.0)
UNORDERED = float("nan")


class Pair(NamedTuple):
    n: int
    s: int


@triton.jit
def quotient_kernel(x, o, pair, B: tl.constexpr):
    a = tl.program_id(0) * B + tl.arange(0, B)
    m = a < pair[0]
    tl.store(o + a, tl.load(x + a, mask=m) + (-pair[1]) // 2, mask=m)


@triton.jit(do_not_specialize=["pairs"])
def nested_kernel(x, o, pairs, B: tl.constexpr):
    a = tl.program_id(0) * B + tl.arange(0, B)
    m = a < pairs[0][0]
    tl.store(o + a, tl.load(x + a, mask=m) + (-pairs[0][1]) // 2, mask=m)


@triton.jit
def typed_kernel(x, o, pair, B: tl.constexpr):
    a = tl.program_id(0) * B + tl.arange(0, B)
    m = a < pair[0]
    more: tl.constexpr = 1 if pair[1].dtype == tl.int64 else 0
    tl.store(o + a, tl.load(x + a, mask=m) + more, mask=m)


@triton.jit
def high_kernel(x, o, s, n, B: tl.constexpr):
    a = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(o + a, tl.load(x + a, mask=a < n) + tl.umulhi(s, 65536), mask=a < n)


@triton.jit
def annotated_kernel(x, o, s: tl.int32, n, B: tl.constexpr):
    a = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(o + a, tl.load(x + a, mask=a < n) + s, mask=a < n)


@triton.jit
def narrow_kernel(x, o, s: tl.int8, n, B: tl.constexpr):
    a = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(o + a, tl.load(x + a, mask=a < n) + s, mask=a < n)


@triton.jit
def one_bit_kernel(x, o, f: tl.int1, n, B: tl.constexpr):
    a = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(o + a, tl.load(x + a, mask=a < n) + f.to(tl.int32), mask=a < n)


@triton.jit
def half_kernel(x, o, s: tl.float16, n, B: tl.constexpr):
    a = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(o + a, tl.where(s > 0.1, tl.load(x + a, mask=a < n), 0.0), mask=a < n)


@triton.jit
def by_size_kernel(x, o, n, B: tl.constexpr):
    a = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(o + a, tl.load(x + a, mask=a < n) * BY_SIZE, mask=a < n)


def hook(factor):
    def set_factor(arguments):
        global HOOKED
        HOOKED = tl.constexpr(factor)

    return set_factor


@triton.autotune([triton.Config({"B": 64 * k}, pre_hook=hook(1.0 / k)) for k in (1, 2)], key=[])
@triton.jit
def hooked_kernel(x, o, n, B: tl.constexpr):
    a = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(o + a, tl.load(x + a, mask=a < n) * (HOOKED * B / 64), mask=a < n)


@triton.jit
def gathered_kernel(o, n, B: tl.constexpr, *xs):
    a = tl.program_id(0) * B + tl.arange(0, B)
    total = tl.zeros((B,), tl.float32)
    for k in tl.static_range(len(xs)):
        total += tl.load(xs[k] + a, mask=a < n, other=0.0)
    tl.store(o + a, total, mask=a < n)


@triton.jit
def factor_kernel(x, o, n, B: tl.constexpr):
    a = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(o + a, tl.load(x + a, mask=a < n) * FACTOR, mask=a < n)


@triton.jit
def flag_kernel(x, o, n, FLAG: tl.constexpr, B: tl.constexpr):
    a = tl.program_id(0) * B + tl.arange(0, B)
    plus: tl.constexpr = 1.0 if FLAG is True else 0.0
    tl.store(o + a, tl.load(x + a, mask=a < n) + plus, mask=a < n)


@constexpr_function
def unordered(k):
    return k if UNORDERED != UNORDERED else 0


@triton.jit
def unordered_kernel(x, o, n, B: tl.constexpr):
    a = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(o + a, tl.load(x + a, mask=a < n) + unordered(1), mask=a < n)


def blocks(x):
    return (triton.cdiv(x.numel(), 64),)


def quotient(x, pair):
    o = torch.empty_like(x)
    quotient_kernel[blocks(x)](x, o, pair, B=64)
    return o


@case(x="i32[N] in (-100, 100)")
def right_one_of_two(x):
    return quotient(x, (x.numel(), 1))


@case(x="i32[N] in (-100, 100)")
def wrong_one_of_two(x):
    return quotient(x, (x.numel(), 1))


@case(x="i32[N] in (-100, 100)", s="i32 in (1, 100)")
def wrong_in_a_pair(x, s):
    return quotient(x, Pair(x.numel(), s))


@case(x="i32[N] in (-100, 100)", s="i32 in (1, 100)")
def wrong_nested(x, s):
    o = torch.empty_like(x)
    nested_kernel[blocks(x)](x, o, ((x.numel(), s), 3), B=64)
    return o


@case(x="i32[N] in (-100, 100)", s="i64 in (2, 1099511627776)")
def wrong_wide_in_a_pair(x, s):
    o = torch.empty_like(x)
    typed_kernel[blocks(x)](x, o, (x.numel(), s), B=64)
    return o


@case(x="i64[N] in (-100, 100)", s="i64 in (2, 1099511627776)")
def wrong_high(x, s):
    o = torch.empty_like(x)
    high_kernel[blocks(x)](x, o, s, x.numel(), B=64)
    return o


def annotated(x, s):
    o = torch.empty_like(x)
    annotated_kernel[blocks(x)](x, o, s, x.numel(), B=64)
    return o


@case(x="i64[N] in (-100, 100)", s="i64")
def wrong_annotated(x, s):
    return annotated(x, s)


@case(x="i64[N] in (-100, 100)", s="i32")
def right_annotated(x, s):
    return annotated(x, s)


def annotated_narrow(x, number):
    o = torch.empty_like(x)
    narrow_kernel[blocks(x)](x, o, number, x.numel(), B=64)
    return o


@case(x="i64[N] in (-100, 100)")
def wraps_annotated(x):
    return annotated_narrow(x, 300)


@case(x="i64[N] in (-100, 100)")
def right_annotated_number(x):
    return annotated_narrow(x, 127)


def one_bit(x, f):
    o = torch.empty_like(x)
    one_bit_kernel[blocks(x)](x, o, f, x.numel(), B=64)
    return o


@case(x="i32[N] in (-100, 100)", s="i32")
def right_truth(x, s):
    return one_bit(x, s > 2)


@case(x="i32[N] in (-100, 100)", s="i32")
def right_one(x, s):
    return one_bit(x, 1)


@case(x="i32[N] in (-100, 100)", s="i32")
def two_of_one_bit(x, s):
    return one_bit(x, 2)


@case(x="i32[N] in (-100, 100)", s="i32")
def integer_of_one_bit(x, s):
    return one_bit(x, s)


def where_above(x, s):
    o = torch.empty_like(x)
    half_kernel[blocks(x)](x, o, s, x.numel(), B=64)
    return o


@case(x="f32[N]")
def wrong_half(x):
    return where_above(x, 0.100001)


@case(x="f32[N]")
def right_half(x):
    return where_above(x, 0.1001)


@case(x="f32[N]", s="f32")
def wrong_narrowed(x, s):
    return where_above(x, s)


@case(x="f32[N]", s="f16")
def right_of_half(x, s):
    return where_above(x, s)


def gathered(*xs):
    o = torch.empty_like(xs[0])
    gathered_kernel[blocks(o)](o, o.numel(), 64, *xs)
    return o


@case(x="f32[N]", y="f32[N]", z="f32[N]")
def right_gathered(x, y, z):
    return gathered(x, y, z)


@case(x="f32[N]", y="f32[N]", z="f32[N]")
def wrong_gathered(x, y, z):
    return gathered(x, y)


@case(x="f32[N]")
def wrong_set_by_the_grid(x):
    global FACTOR
    o = torch.empty_like(x)

    def grid(_):
        global FACTOR
        FACTOR = tl.constexpr(3.0)
        return blocks(x)

    FACTOR = tl.constexpr(2.0)
    factor_kernel[grid](x, o, x.numel(), B=64)
    FACTOR = tl.constexpr(2.0)
    return o


def flagged(x, first):
    """Launches twice, with `first` and with True as flag."""
    o, y = torch.empty_like(x), torch.empty_like(x)
    flag_kernel[blocks(x)](x, y, x.numel(), first, B=64)
    flag_kernel[blocks(x)](y, o, x.numel(), True, B=64)
    return o


@case(x="f32[N]")
def wrong_equal_flags(x):
    return flagged(x, 1)


@case(x="f32[N]")
def right_flags(x):
    return flagged(x, 0)


@case(x="f32[N]")
def wrong_factor_by_size(x):
    """In one process, the second size gets the kernel that was compiled for the first."""
    global BY_SIZE
    BY_SIZE = tl.constexpr(2.0 if x.numel() < 64 else 3.0)
    o = torch.empty_like(x)
    by_size_kernel[blocks(x)](x, o, x.numel(), B=64)
    return o


@case(x="f32[N]")
def wrong_flag_by_size(x):
    o = torch.empty_like(x)
    flag_kernel[blocks(x)](x, o, x.numel(), 1 if x.numel() < 64 else True, B=64)
    return o


@case(x="f32[N]")
def wrong_hooks(x):
    o = torch.empty_like(x)
    hooked_kernel[lambda meta: (triton.cdiv(x.numel(), meta["B"]),)](x, o, x.numel())
    return o


@case(x="f32[N]")
def wrong_unordered(x):
    o = torch.empty_like(x)
    unordered_kernel[blocks(x)](x, o, x.numel(), B=64)
    return o


right_one_of_two.reference(lambda x: x - 1)
wrong_one_of_two.reference(lambda x: x.clone())
for _c in (wrong_in_a_pair, wrong_nested):
    _c.reference(lambda x, s: x - s // 2)
wrong_wide_in_a_pair.reference(lambda x, s: x.clone())
wrong_high.reference(lambda x, s: x + s // 65536)
for _c in (wrong_annotated, right_annotated):
    _c.reference(lambda x, s: x + s)
wraps_annotated.reference(lambda x: x + 300 - 256)
right_annotated_number.reference(lambda x: x + 127)
for _c in (wrong_half, right_half):
    _c.reference(lambda x: x.clone())
for _c in (wrong_narrowed, right_of_half):
    _c.reference(lambda x, s: x.clone() if s > 0.1 else torch.zeros_like(x))
wrong_factor_by_size.reference(lambda x: x * (2.0 if x.numel() < 64 else 3.0))
wrong_flag_by_size.reference(lambda x: x + (0 if x.numel() < 64 else 1))
wrong_hooks.reference(lambda x: x * 1.0)
right_truth.reference(lambda x, s: x + (1 if s > 2 else 0))
for _c in (right_one, two_of_one_bit):
    _c.reference(lambda x, s: x + 1)
integer_of_one_bit.reference(lambda x, s: x + s % 2)
for _c in (right_gathered, wrong_gathered):
    _c.reference(lambda x, y, z: x + y + z)
wrong_set_by_the_grid.reference(lambda x: 3 * x)
for _c in (wrong_equal_flags, right_flags, wrong_unordered):
    _c.reference(lambda x: x + 1)
