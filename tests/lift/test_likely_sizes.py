"""Inputs beside the numbers that the code of a case has in it, and contracts of several ways of a host function."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import pytest
import torch
import triton
import triton.language as tl

from trilift import case
from trilift.lift import Case
from trilift.lift.cases.likely_sizes import GROWING, LARGEST, SHAPES, growing, likely, numbers
from trilift.verify import prove

LIMIT = 5000


@triton.jit
def scale_kernel(x, y, n, factor, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n) * factor, mask=i < n)


@triton.jit
def zero_kernel(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, 0.0, mask=i < n)


@lru_cache
def factor(n: int) -> float:
    return 2.0 if n < LIMIT else 3.0


def doubled(name: str, fn: Callable[[Any], Any], where: str = "") -> Case:
    fn.__name__ = name
    made = case(x="f32[N]", **({"where": where} if where else {}))(fn)
    made.reference(lambda x: 2 * x)
    return made


def in_chunks(name: str, wrong: int = -1, chunks: int | None = None) -> Case:
    """Chunks of 1000 elements, one of them three times what it should be, or the first few only."""

    def fn(x: Any) -> Any:
        n, y = x.shape[0], torch.empty_like(x)
        for start in range(0, n, 1000) if chunks is None else range(0, n, 1000)[:chunks]:
            size = min(1000, n - start)
            by = 3.0 if start == wrong else 2.0
            scale_kernel[(triton.cdiv(size, 64),)](x[start:], y[start:], size, by, BLOCK=64)
        return y

    return doubled(name, fn, "N <= 4000")


def cached(x: Any) -> Any:
    n, y = x.shape[0], torch.empty_like(x)
    scale_kernel[(triton.cdiv(n, 64),)](x, y, n, factor(int(str(n))), BLOCK=64)
    return y


def root_of_programs(x: Any) -> Any:
    """So many programs are too few from 4225 elements on, which is no number of the code."""
    n, y = x.shape[0], torch.empty_like(x)
    scale_kernel[(math.isqrt(n) + 1,)](x, y, n, 2.0, BLOCK=64)
    return y


def zeros(x: Any) -> Any:
    """Against a reference that is 0 for less than 100000 elements, and has that number alone."""
    n, y = x.shape[0], torch.empty_like(x)
    zero_kernel[(triton.cdiv(n, 64),)](x, y, n, BLOCK=64)
    return y


def few_are_torch_s(name: str, least: int, by: float = 2.0, at: int = 0) -> Case:
    """Less than `least` elements are left to PyTorch, which multiplies them by 2, and `at` elements by another
    number."""

    def fn(x: Any) -> Any:
        n = x.shape[0]
        if n < least:
            return (by if n == at or not at else 2.0) * x
        y = torch.empty_like(x)
        scale_kernel[(triton.cdiv(n, 64),)](x, y, n, 2.0, BLOCK=64)
        return y

    return doubled(name, fn)


@pytest.mark.smoke
def test_numbers_are_those_of_the_code_its_functions_globals_and_where() -> None:
    assert {64, 1000, 4000} <= set(numbers(in_chunks("chunks")))
    assert LIMIT in numbers(doubled("cached", cached)) and 1 not in numbers(doubled("cached", cached))


@pytest.mark.smoke
def test_likely_inputs_are_beside_the_numbers_and_within_the_case() -> None:
    found = [d["N"] for d in likely(in_chunks("chunks"), {"N": 5})]
    assert {63, 64, 65, 999, 1000, 1001, 3001, 4000} <= set(found) and max(found) == 4000 and len(found) <= SHAPES
    assert found == sorted(found) and LARGEST not in found


@pytest.mark.smoke
def test_likely_scalars_come_first() -> None:
    made = case(x="f32[N]", s="f32 > 0", k="i32")(lambda x, s, k: x)
    first = likely(made, {"N": 5, "s": 0.25, "k": 1})[:8]
    assert {(d["s"], d["k"]) for d in first if d["N"] == 5} >= {(1.0, 1), (0.5, 1), (0.25, -1), (0.25, 0)}
    assert all(d["s"] > 0 for d in likely(made, {"N": 5, "s": 0.25, "k": 1}))


def test_a_contract_of_several_ways_leaves_out_none() -> None:
    (proof,) = prove(in_chunks("chunks"))
    assert proof.verdict.value == "PROVED"
    assert not [c.text for c in proof.contract if c.kind == "shape"]


@pytest.mark.parametrize("wrong", [0, 3000])
def test_a_wrong_chunk_is_refuted(wrong: int) -> None:
    (proof,) = prove(in_chunks("wrong", wrong))
    assert proof.verdict.value == "REFUTED"


@pytest.mark.parametrize("c", [in_chunks("short", chunks=3), doubled("cached", cached)], ids=lambda c: c.name)
def test_a_host_function_that_is_not_followed_is_run_at_its_numbers(c: Case) -> None:
    (proof,) = prove(c)
    assert proof.verdict.value == "REFUTED" and proof.counterexample is not None
    assert proof.counterexample.dims["N"] in (3001, LIMIT)


@pytest.mark.smoke
def test_sizes_grow_within_the_case() -> None:
    assert [d["N"] for d in growing(doubled("rows", root_of_programs), {"N": 5})] == list(GROWING)
    assert [d["N"] for d in growing(in_chunks("chunks"), {"N": 5})] == [n for n in GROWING if n <= 4000]


def test_a_grid_that_is_too_small_for_large_sizes_is_refuted() -> None:
    (proof,) = prove(doubled("root_of_programs", root_of_programs))
    assert proof.verdict.value == "REFUTED" and proof.counterexample is not None
    assert proof.counterexample.dims["N"] > 4096


def test_numbers_of_the_reference_are_tried() -> None:
    c = case(x="f32[N]")(zeros)
    c.reference(lambda x: x * (x.shape[0] // 100_000))
    assert 100_000 in numbers(c)
    (proof,) = prove(c)
    assert proof.verdict.value == "REFUTED" and proof.counterexample is not None
    assert proof.counterexample.dims["N"] >= 100_000


@pytest.mark.parametrize("least", [4, 1025])
def test_a_host_function_that_launches_nothing_at_small_sizes(least: int) -> None:
    (proof,) = prove(few_are_torch_s("right", least))
    assert proof.verdict.value == "PROVED" and not [c for c in proof.contract if c.kind == "shape"]
    (proof,) = prove(few_are_torch_s("wrong", least, 3.0))
    assert proof.verdict.value == "REFUTED"
    (proof,) = prove(few_are_torch_s("once", least, 3.0, at=least - 1))
    assert proof.verdict.value == "REFUTED"


def test_another_number_of_results_at_one_size_is_refuted() -> None:
    def fn(x: Any) -> Any:
        y = torch.empty_like(x)
        scale_kernel[(triton.cdiv(x.shape[0], 64),)](x, y, x.shape[0], 2.0, BLOCK=64)
        return (y, y) if x.shape[0] == 777 else y

    (proof,) = prove(doubled("twice_at_777", fn))
    assert proof.counterexample is not None
    assert (
        proof.counterexample.dims == {"N": 777}
        and "the number of tensors returned is 2, expected 1" in proof.counterexample.why
    )


@triton.jit
def times_kernel(x, y, n, s, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n) * s, mask=i < n)


def times(x: Any, s: float) -> Any:
    y = torch.empty_like(x)
    times_kernel[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), s, BLOCK=64)
    return y


above_five = case(x="f32[N]", s="f32")(lambda x, s: times(x, 2.0 if s > 5 else 1.0))
above_five.reference(lambda x, s: x * (2.0 if s >= 6 else 1.0))
never_large = case(x="f32[N]", s="i32 > 0")(lambda x, s: times(x, 1.0))
never_large.reference(lambda x, s: x * (1 + s // 1000003))
never_shifted = case(x="f32[N]", s="i32 > 0")(lambda x, s: times(x, 1.0))
never_shifted.reference(lambda x, s: x * (1 + (s >> 20)))
of_large_scalars = case(x="f32[N]", s="f32", where="s > 17.25")(times)
of_large_scalars.reference(lambda x, s: x * s)


@pytest.mark.parametrize(
    ("wrong", "s"),
    [(above_five, 5.5), (never_large, 1000003), (never_shifted, 1 << 20)],
    ids=("real", "whole", "shift"),
)
def test_scalars_beside_the_numbers_of_the_code_are_tried(wrong: Case, s: float) -> None:
    assert s in [d["s"] for d in likely(wrong, {"N": 7, "s": 1})]
    (proof,) = prove(wrong)
    assert proof.verdict.value == "REFUTED"


def test_scalars_are_drawn_where_the_case_has_them() -> None:
    (proof,) = prove(of_large_scalars)
    assert proof.verdict.value == "PROVED", proof.reason
