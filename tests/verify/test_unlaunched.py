"""Kernels whose launches nobody knows: what is certain is found, with numbers; nothing is said of their twins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import triton
import triton.language as tl

from trilift.lift.ttir import lower
from trilift.verify.audit.finding import Finding
from trilift.verify.audit.unlaunched import findings


@triton.jit
def sum_of_undefined(x, out, stride, N, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < N)
    tl.store(out, tl.sum(v))


@triton.jit
def sum_of_defined(x, out, stride, N, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < N)
    tl.store(out, tl.sum(tl.where(i < N, v, 0.0)))


@triton.jit
def sum_with_other(x, out, stride, N, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out, tl.sum(tl.load(x + i, mask=i < N, other=0.0)))


@triton.jit
def wider_store(x, out, stride, N, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i + 1 < N)
    tl.store(out + i, v + 1, mask=i < N)


@triton.jit
def store_under_another_size(x, out, stride, N, BLOCK: tl.constexpr):
    """stride may be a size that the host function keeps below N."""
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < N)
    tl.store(out + i, v + 1, mask=i < stride)


@triton.jit
def same_store(x, out, stride, N, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < N)
    tl.store(out + i, v + 1, mask=(i < N) & (i < BLOCK))


@triton.jit
def masked_by_product(x, out, stride, N, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < N)
    tl.store(out, tl.sum(v * tl.where(i < N, 1.0, 0.0)))


@triton.jit
def masked_by_data(x, out, stride, N, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    keep = tl.load(out + i) > 0
    tl.store(out + i, tl.load(x + i, mask=keep))


@triton.jit
def mask_that_is_always_true(x, out, stride, N, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out, tl.sum(tl.load(x + i, mask=i < BLOCK)))


@triton.jit
def assumed(x, out, stride, N, BLOCK: tl.constexpr):
    tl.assume(N >= BLOCK)
    i = tl.arange(0, BLOCK)
    tl.store(out, tl.sum(tl.load(x + i, mask=i < N)))


@triton.jit
def later_program_only(x, out, stride, N, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=tl.program_id(0) < 1)
    tl.store(out + i, v)


@triton.jit
def in_a_branch(x, out, stride, N, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    if N > 7:
        tl.store(out, tl.sum(tl.load(x + i, mask=i < N)))


@triton.jit
def product(x, out, stride, N, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    tl.store(out + row * stride + i, 0.0)


@triton.jit
def wide_product(x, out, stride, N, BLOCK: tl.constexpr):
    row, i = tl.program_id(0).to(tl.int64), tl.arange(0, BLOCK)
    tl.store(out + row * stride + i, 0.0)


@triton.jit
def product_that_is_no_address(x, out, stride, N, BLOCK: tl.constexpr):
    tl.store(out, tl.program_id(0) * stride)


@triton.jit
def product_of_a_tile(x, out, stride, N, BLOCK: tl.constexpr):
    rows = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + rows * stride, 0.0, mask=rows < N)


@triton.jit
def two_products(x, out, stride, N, BLOCK: tl.constexpr):
    row, column = tl.program_id(0), tl.program_id(1)
    tl.store(out + row * stride, tl.load(x + column * N))


@triton.jit
def small_product(x, out, stride, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    if row < 100 and stride < 100:
        tl.store(out + row * stride, 0.0)


@triton.jit
def narrow_sum(x, out, stride, N, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    acc = tl.zeros([BLOCK], tl.bfloat16)
    for k in range(N):
        acc += tl.load(x + k * BLOCK + i).to(tl.bfloat16)
    tl.store(out + i, acc)


@triton.jit
def wide_sum(x, out, stride, N, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    acc = tl.zeros([BLOCK], tl.float32)
    for k in range(N):
        acc += tl.load(x + k * BLOCK + i).to(tl.bfloat16)
    tl.store(out + i, acc.to(tl.bfloat16))


@triton.jit
def narrow_but_no_sum(x, out, stride, N, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    best = tl.zeros([BLOCK], tl.float16)
    for k in range(N):
        best = tl.maximum(best, tl.load(x + k * BLOCK + i).to(tl.float16))
    tl.store(out + i, best)


@triton.jit
def narrow_dot(x, out, stride, N, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    at = i[:, None] * BLOCK + i[None, :]
    acc = tl.zeros([BLOCK, BLOCK], tl.float16)
    for k in range(N):
        a = tl.load(x + k * BLOCK * BLOCK + at).to(tl.float16)
        acc = tl.dot(a, a, acc, out_dtype=tl.float16)
    tl.store(out + at, acc)


SIGNATURE = {"x": "*fp32", "out": "*fp32", "stride": "i32", "N": "i32", "BLOCK": "constexpr"}
CASES: list[tuple[Any, list[str]]] = [
    (sum_of_undefined, ["undefined-value"]),
    (sum_of_defined, []),
    (sum_with_other, []),
    (wider_store, ["undefined-value"]),
    (store_under_another_size, []),
    (same_store, []),
    (masked_by_product, []),
    (masked_by_data, []),
    (mask_that_is_always_true, []),
    (assumed, []),
    (later_program_only, []),
    (in_a_branch, ["undefined-value"]),
    (product, ["int32-overflow"]),
    (wide_product, []),
    (product_that_is_no_address, []),
    (product_of_a_tile, ["int32-overflow"]),
    (two_products, ["int32-overflow"]),
    (small_product, []),
    (narrow_sum, ["precision-loss"]),
    (wide_sum, []),
    (narrow_but_no_sum, []),
    (narrow_dot, ["precision-loss"]),
]


def found(kernel: Any, **changes: str) -> list[Finding]:
    module = lower.lower(kernel, SIGNATURE | changes, {"BLOCK": 16}, {})
    out, why = findings(module)
    assert why == ""
    return out


@pytest.mark.parametrize(("kernel", "rules"), CASES, ids=[k.fn.__name__ for k, _ in CASES])
def test_what_is_found(kernel: Any, rules: list[str]) -> None:
    assert [f.rule for f in found(kernel)] == rules


def line(kernel: Any, text: str) -> int:
    source: list[str] = kernel.raw_src
    return int(kernel.starting_line_number) + next(i for i, s in enumerate(source) if text in s)


@pytest.mark.parametrize(
    ("kernel", "text"),
    [(sum_of_undefined, "tl.load"), (product, "row * stride"), (narrow_sum, "acc +="), (narrow_dot, "tl.dot")],
)
def test_it_names_the_line_to_change(kernel: Any, text: str) -> None:
    (f,) = found(kernel)
    assert f.place is not None and (f.place.file, f.place.line) == (__file__, line(kernel, text))


@pytest.mark.parametrize(("kernel", "holds"), [
    (sum_of_undefined, lambda n: n["N"] < 16),
    (wider_store, lambda n: 0 < n["N"] <= 16),
    (in_a_branch, lambda n: 7 < n["N"] < 16),
    (product, lambda n: n["stride"] * n["program_id(0)"] >= 2**31),
    (product_of_a_tile, lambda n: n["stride"] * n["program_id(1)"] * 16 >= 2**31),
])  # fmt: skip
def test_the_numbers_show_it(kernel: Any, holds: Callable[[dict[str, Any]], bool]) -> None:
    (f,) = found(kernel)
    assert holds(dict(f.example))


def test_further_products_are_steps() -> None:
    (f,) = found(two_products)
    assert [s.text for s in f.steps] in (["so does program_id(1) * N"], ["so does program_id(0) * stride"])


def test_a_wide_argument_does_not_wrap() -> None:
    assert found(product, stride="i64") == []
