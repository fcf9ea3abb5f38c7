"""Kernels that are wrong for a few inputs only: on zeros, at the edges of integers, with alternating signs."""

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def beside_kernel(x_ptr, out_ptr, N, OP: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < N, other=0)
    if OP == "zero":
        x = tl.where(x == 0, 1.0, x)
    elif OP == "least":
        x = tl.where(x == -128, 0, x)
    tl.store(out_ptr + i, x, mask=i < N)


def copied(x, op):
    out = torch.empty_like(x)
    beside_kernel[(triton.cdiv(x.numel(), 16),)](x, out, x.numel(), OP=op, BLOCK=16)
    return out


@case(x="f32[N]")
def wrong_at_zero(x):
    return copied(x, "zero")


wrong_at_zero.reference(lambda x: x.clone())


@case(x="i8[N]")
def wrong_at_the_least(x):
    return copied(x, "least")


wrong_at_the_least.reference(lambda x: x.clone())


@case(x="f32[N]")
def right_everywhere(x):
    return copied(x, "copy")


right_everywhere.reference(lambda x: x.clone())


@case(x="f32[N]")
def right_for_positives(x):
    return copied(x, "zero")


right_for_positives.reference(lambda x: torch.where(x == 0, 1.0, x))


@case(x="f32[N] in (0, 1)", y="f32[N] > 0")
def limited(x, y):
    return copied(x, "copy")


@case(x="f32[N]", y="f32[K]")
def wrong_where_two_choices_meet(x, y):
    out = copied(x, "copy")
    return out + 1 if y.numel() == 1 and x.numel() > 1 else out


wrong_where_two_choices_meet.reference(lambda x, y: x.clone())


@case(x="f32[N]", y="f32[K]")
def right_where_two_choices_meet(x, y):
    out = copied(x, "copy")
    return out + 1 if y.numel() == 1 and x.numel() > 1 else out


right_where_two_choices_meet.reference(lambda x, y: x + 1 if y.numel() == 1 and x.numel() > 1 else x.clone())


def short_beyond_many(x):
    n, out = x.numel(), torch.zeros_like(x)
    beside_kernel[(triton.cdiv(n, 16),)](x, out, n - (n > 100000), OP="copy", BLOCK=16)
    return out


wrong_beyond_many = case(x="f32[N]")(lambda x: short_beyond_many(x))
wrong_beyond_many.reference(lambda x: x.clone())
right_beyond_many = case(x="f32[N]")(lambda x: short_beyond_many(x))
right_beyond_many.reference(lambda x: x * (torch.arange(x.numel()) < x.numel() - (x.numel() > 100000)))


@triton.jit
def doubled_kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < N, other=0)
    tl.store(out_ptr + i, x + x, mask=i < N)


@case(x="f32[N]")
def wrong_in_another_kernel(x):
    """The second kernel, for 300 elements and more, doubles what the first copies."""
    if x.numel() < 300:
        return copied(x, "copy")
    out = torch.empty_like(x)
    doubled_kernel[(triton.cdiv(x.numel(), 16),)](x, out, x.numel(), BLOCK=16)
    return out


wrong_in_another_kernel.reference(lambda x: x.clone())
