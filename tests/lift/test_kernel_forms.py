"""Kernels written as libraries write them, proved; each with a twin that does something else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import triton
import triton.language as tl

from trilift import case
from trilift.verify import prove


@triton.jit
def tail_kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr, WRONG: tl.constexpr):
    """Full blocks without a mask, then the last one with a mask."""
    row, steps = tl.program_id(0), tl.cdiv(N, BLOCK)
    acc = tl.zeros((BLOCK,), tl.float32)
    for step in range(steps - 1):
        x = tl.load(x_ptr + row * N + step * BLOCK + tl.arange(0, BLOCK))
        acc += x * x
    at = (steps - 1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + at, mask=at < N - WRONG, other=0.0)
    acc += x * x
    tl.store(out_ptr + row, tl.sum(acc))


def tail(wrong: int) -> Any:
    @case(x="f32[M,N]")
    def squares(x):
        out = torch.empty(x.shape[0])
        tail_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=64, WRONG=wrong)
        return out

    return squares


@triton.jit
def parts_kernel(x_ptr, mid_ptr, total, BLOCK: tl.constexpr, MAX: tl.constexpr, WRONG: tl.constexpr):
    """The sum, or the maximum, of each block of all elements in a row."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if MAX:
        x = tl.load(x_ptr + at, mask=at < total - WRONG, other=-float("inf"))
        tl.store(mid_ptr + tl.program_id(0), tl.max(x, axis=0))
    else:
        x = tl.load(x_ptr + at, mask=at < total - WRONG, other=0.0)
        tl.store(mid_ptr + tl.program_id(0), tl.sum(x, axis=0))


@triton.jit
def whole_kernel(mid_ptr, out_ptr, parts, BLOCK: tl.constexpr, MAX: tl.constexpr):
    at = tl.arange(0, BLOCK)
    if MAX:
        tl.store(out_ptr, tl.max(tl.load(mid_ptr + at, mask=at < parts, other=-float("inf")), axis=0))
    else:
        tl.store(out_ptr, tl.sum(tl.load(mid_ptr + at, mask=at < parts, other=0.0), axis=0))


def two_stages(maximum: bool) -> Callable[[int], Any]:
    def made(wrong: int) -> Any:
        @case(x="f32[M,N]", where="M * N >= 2")
        def reduced(x):
            parts = triton.cdiv(x.numel(), 64)
            mid, out = torch.empty(parts), torch.empty([])
            parts_kernel[(parts,)](x, mid, x.numel(), BLOCK=64, MAX=maximum, WRONG=wrong)
            whole_kernel[(1,)](mid, out, parts, BLOCK=triton.next_power_of_2(parts), MAX=maximum)
            return out

        return reduced

    return made


@triton.jit
def groups_kernel(x_ptr, out_ptr, S, BLOCK: tl.constexpr, WRONG: tl.constexpr):
    """The sum of the 2 S elements of two channels, which lie behind one another."""
    group, acc = tl.program_id(0), 0.0
    for start in range(0, 2 * S, BLOCK):
        at = start + tl.arange(0, BLOCK)
        acc += tl.sum(tl.load(x_ptr + group * 2 * S + at, mask=at < 2 * S - WRONG, other=0.0))
    for start in range(0, 2 * S, BLOCK):
        at = start + tl.arange(0, BLOCK)
        tl.store(out_ptr + group * 2 * S + at, acc, mask=at < 2 * S)


def groups(wrong: int) -> Any:
    @case(x="f32[B,6,S]")
    def summed(x):
        out = torch.empty_like(x)
        groups_kernel[(x.shape[0] * 3,)](x, out, x.shape[2], BLOCK=64, WRONG=wrong)
        return out

    return summed


def group_sums(x: Any) -> Any:
    sums = x.reshape(x.shape[0], 3, 2, x.shape[2]).sum((2, 3))
    return sums[:, :, None, None].expand(-1, -1, 2, x.shape[2]).reshape(x.shape)


@triton.jit
def optional_kernel(x_ptr, more_ptr, out_ptr, N, BLOCK: tl.constexpr, WRONG: tl.constexpr):
    """An argument that is there for other calls."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < N)
    if WRONG:
        x += 0 * tl.load(more_ptr)
    tl.store(out_ptr + at, x + x, mask=at < N)


def optional(wrong: int) -> Any:
    @case(x="f32[N]")
    def doubled(x):
        out = torch.empty_like(x)
        optional_kernel[(triton.cdiv(x.shape[0], 64),)](x, torch.empty(0), out, x.shape[0], BLOCK=64, WRONG=wrong)
        return out

    return doubled


@triton.jit
def tile_kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr, WRONG: tl.constexpr):
    """The sum of all elements of a tile of four rows."""
    rows, columns = tl.program_id(0) * 4 + tl.arange(0, 4), tl.arange(0, BLOCK)
    at = rows[:, None] * N + columns[None, :]
    x = tl.load(x_ptr + at, mask=columns[None, :] < N - WRONG, other=0.0)
    tl.store(out_ptr + tl.program_id(0), tl.sum(x * x))


def tiles(wrong: int) -> Any:
    @case(x="f32[4*M,N]", where="N >= 2")
    def squared(x):
        out = torch.empty(x.shape[0] // 4)
        block = triton.next_power_of_2(x.shape[1])
        tile_kernel[(x.shape[0] // 4,)](x, out, x.shape[1], BLOCK=block, WRONG=wrong)
        return out

    return squared


FORMS: dict[str, tuple[Callable[[int], Any], Callable[..., Any]]] = {
    "the last block apart": (tail, lambda x: (x * x).sum(-1)),
    "a tensor without elements": (optional, lambda x: 2 * x),
    "the sum of a tile": (tiles, lambda x: (x * x).reshape(x.shape[0] // 4, 4, x.shape[1]).sum((1, 2))),
    "sums of groups": (groups, group_sums),
    "the sum of a matrix in a row": (two_stages(False), lambda x: x.sum()),
    "the maximum of a matrix in a row": (two_stages(True), lambda x: x.max()),
}


def verdict(name: str, wrong: int) -> tuple[str, str]:
    make, reference = FORMS[name]
    (proof,) = prove(make(wrong), other=reference, fallback=False)
    return proof.verdict.value, proof.reason


@pytest.mark.parametrize("name", FORMS)
def test_the_right_kernel_is_proved(name: str) -> None:
    assert verdict(name, 0) == ("PROVED", "")


@pytest.mark.parametrize("name", FORMS)
def test_the_wrong_kernel_is_not(name: str) -> None:
    assert verdict(name, 1)[0] != "PROVED"
