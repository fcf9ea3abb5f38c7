"""Kernels and references that cast real data to fewer digits, and decide something by it or not."""

from __future__ import annotations

from collections.abc import Callable

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def equal_kernel(x, y, out, n, NARROW: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + i, mask=i < n, other=0.0)
    b = tl.load(y + i, mask=i < n, other=0.0)
    if NARROW:
        a, b = a.to(tl.float16), b.to(tl.float16)
    tl.store(out + i, tl.where(a == b, 1.0, 0.0), mask=i < n)


@triton.jit
def difference_kernel(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + i, mask=i < n, other=0.0).to(tl.float16)
    b = tl.load(y + i, mask=i < n, other=0.0).to(tl.float16)
    tl.store(out + i, tl.where(a - b == 0, 1.0, 0.0), mask=i < n)


@triton.jit
def floor_kernel(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + i, mask=i < n, other=0.0).to(tl.bfloat16).to(tl.float32)
    tl.store(out + i, tl.floor(a), mask=i < n)


@triton.jit
def sign_kernel(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + i, mask=i < n, other=0.0)
    tl.store(out + i, tl.where(a.to(tl.float16) > 0, a, 0.0), mask=i < n)


@triton.jit
def sum_kernel(x, y, out, n, WIDE: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + i, mask=i < n, other=0.0)
    b = tl.load(y + i, mask=i < n, other=0.0)
    if WIDE:
        a, b = a.to(tl.float32), b.to(tl.float32)
    tl.store(out + i, tl.where(a + b > 1, 1.0, 0.0), mask=i < n)


def on(kernel, out, *args: torch.Tensor, **options: bool) -> torch.Tensor:
    kernel[(triton.cdiv(out.numel(), 16),)](*args, out, out.numel(), BLOCK=16, **options)
    return out


def same(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.where(x == y, 1.0, 0.0)


@case(x="f32[N]", y="f32[N]")
def equal_of_casts(x, y):
    return on(equal_kernel, torch.empty_like(x), x, y, NARROW=True)


@case(x="f32[N]", y="f32[N]")
def equal(x, y):
    return on(equal_kernel, torch.empty_like(x), x, y, NARROW=False)


@case(x="f32[N]", y="f32[N]")
def difference_of_casts(x, y):
    return on(difference_kernel, torch.empty_like(x), x, y)


@case(x="f32[N]", y="f32[N]")
def cast_on_the_host(x, y):
    return on(equal_kernel, torch.empty_like(x), x.half(), y.half(), NARROW=False)


@case(x="f32[N]", y="f32[N]")
def copied_on_the_host(x, y):
    a = torch.empty_like(x, dtype=torch.float16)
    a.copy_(x)
    return on(equal_kernel, torch.empty_like(x), a, y.half(), NARROW=False)


@case(x="f32[N]", y="f32[N]")
def cast_in_the_reference(x, y):
    return on(equal_kernel, torch.empty_like(x), x, y, NARROW=False)


@case(x="f32[N]")
def floor_of_a_cast(x):
    return on(floor_kernel, torch.empty_like(x), x)


@case(x="f32[N]")
def sign_of_a_cast(x):
    return on(sign_kernel, torch.empty_like(x), x)


@case(x="bf16[N]", y="bf16[N]")
def sum_in_bf16(x, y):
    return on(sum_kernel, torch.empty_like(x), x, y, WIDE=False)


@case(x="bf16[N]", y="bf16[N]")
def sum_in_the_reference(x, y):
    return on(sum_kernel, torch.empty_like(x), x, y, WIDE=True)


@case(x="bf16[N]", y="bf16[N]")
def sum_in_f32(x, y):
    return on(sum_kernel, torch.empty_like(x), x, y, WIDE=True)


def large_sum(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return (x + y > 1).to(x.dtype)


def large_sum_in_f32(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return (x.float() + y.float() > 1).to(x.dtype)


REFERENCES: tuple[tuple[object, Callable[..., torch.Tensor]], ...] = (
    (equal_of_casts, same),
    (equal, same),
    (difference_of_casts, same),
    (cast_on_the_host, same),
    (copied_on_the_host, same),
    (cast_in_the_reference, lambda x, y: torch.where(x.half() == y.half(), 1.0, 0.0)),
    (floor_of_a_cast, torch.floor),
    (sign_of_a_cast, torch.relu),
    (sum_in_bf16, large_sum_in_f32),
    (sum_in_the_reference, large_sum),
    (sum_in_f32, large_sum_in_f32),
)
for one, reference in REFERENCES:
    one.reference(reference)


@triton.jit
def product_kernel(x_ptr, y_ptr, out_ptr, PRECISION: tl.constexpr):
    at = tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]
    product = tl.dot(tl.load(x_ptr + at), tl.load(y_ptr + at), input_precision=PRECISION)
    tl.store(out_ptr + at, tl.where(product > 0, 1.0, 0.0))


def sign_of_product(x, y, precision):
    out = torch.empty_like(x)
    product_kernel[(1,)](x, y, out, PRECISION=precision)
    return out


@case(x="f32[16,16]", y="f32[16,16]")
def sign_of_a_tf32_product(x, y):
    return sign_of_product(x, y, "tf32")


@case(x="f32[16,16]", y="f32[16,16]")
def sign_of_an_ieee_product(x, y):
    return sign_of_product(x, y, "ieee")


for one in (sign_of_a_tf32_product, sign_of_an_ieee_product):
    one.reference(lambda x, y: torch.where(x @ y > 0, 1.0, 0.0))
