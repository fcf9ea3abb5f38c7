"""Quotients and remainders of integers by tensors and scalars that may be 0 or negative."""

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def quotient_kernel(x_ptr, y_ptr, out_ptr, N, OP: tl.constexpr, OTHER: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < N
    x, y = tl.load(x_ptr + i, mask=m, other=0), tl.load(y_ptr + i, mask=m, other=OTHER)
    if OP == "div":
        z = x // y
    elif OP == "mod":
        z = x % y
    elif OP == "floor":
        r = x % y
        z = x // y - ((r != 0) & ((r < 0) != (y < 0))).to(tl.int32)
    elif OP == "python_mod":
        r = x % y
        z = tl.where((r != 0) & ((r < 0) != (y < 0)), r + y, r)
    elif OP == "guarded":
        z = tl.where(y == 0, 0, x // tl.where(y == 0, 1, y))
    tl.store(out_ptr + i, z, mask=m)


@triton.jit
def scalar_kernel(x_ptr, out_ptr, s, N, OP: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < N, other=0)
    tl.store(out_ptr + i, x // s if OP == "div" else x % s, mask=i < N)


def divided(x, y, op, other=1):
    out = torch.empty_like(x)
    quotient_kernel[(triton.cdiv(x.numel(), 64),)](x, y, out, x.numel(), OP=op, OTHER=other, BLOCK=64)
    return out


def by_scalar(x, s, op):
    out = torch.empty_like(x)
    scalar_kernel[(triton.cdiv(x.numel(), 64),)](x, out, s, x.numel(), OP=op, BLOCK=64)
    return out


# ---- wrong ---------------------------------------------------------------------------------------------------------


@case(x="i32[N]", y="i32[N]")
def truncates_against_floor(x, y):
    """x = -1, y = 2: 0 against -1."""
    return divided(x, y, "div")


truncates_against_floor.reference(lambda x, y: x // y)


@case(x="i32[N]", y="i32[N]")
def c_remainder_against_python(x, y):
    """x = -1, y = 2: -1 against 1."""
    return divided(x, y, "mod")


c_remainder_against_python.reference(lambda x, y: torch.remainder(x, y))


@case(x="i32[N]", s="i32")
def scalar_truncates(x, s):
    """x = -1, s = 2: 0 against -1."""
    return by_scalar(x, s, "div")


scalar_truncates.reference(lambda x, s: x // s)


@case(x="i32[N]", y="i32[N]")
def lanes_divide_by_zero(x, y):
    """Lanes behind the end divide by 0."""
    return divided(x, y, "div", 0)


lanes_divide_by_zero.reference(lambda x, y: torch.div(x, y, rounding_mode="trunc"))


# ---- right where the divisor is not 0 --------------------------------------------------------------------------------


@case(x="i32[N]", y="i32[N]")
def truncated_quotient(x, y):
    return divided(x, y, "div")


truncated_quotient.reference(lambda x, y: torch.div(x, y, rounding_mode="trunc"))


@case(x="i32[N]", y="i32[N]")
def remainder_of_c(x, y):
    return divided(x, y, "mod")


remainder_of_c.reference(lambda x, y: torch.fmod(x, y))


@case(x="i32[N]", s="i32")
def quotient_by_scalar(x, s):
    return by_scalar(x, s, "div")


quotient_by_scalar.reference(lambda x, s: torch.div(x, s, rounding_mode="trunc"))


@case(x="i32[N]", s="i32", where="s >= 1")
def quotient_by_positive_scalar(x, s):
    return by_scalar(x, s, "div")


quotient_by_positive_scalar.reference(lambda x, s: torch.div(x, s, rounding_mode="trunc"))


@case(x="i32[N] < 1000", y="i32[N] in (1, 1000)")
def floor_of_positives(x, y):
    return divided(x, y, "div")


floor_of_positives.reference(lambda x, y: x // y)


@case(x="i32[N]", y="i32[N]")
def guarded_quotient(x, y):
    return divided(x, y, "guarded")


guarded_quotient.reference(
    lambda x, y: torch.where(y == 0, 0, torch.div(x, torch.where(y == 0, 1, y), rounding_mode="trunc"))
)
