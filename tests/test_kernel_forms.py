"""Kernels written as libraries write them, proved; each with a twin that does something else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import triton
import triton.language as tl

from lift import case
from verify import prove


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


FORMS: dict[str, tuple[Callable[[int], Any], Callable[..., Any]]] = {
    "the last block apart": (tail, lambda x: (x * x).sum(-1)),
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
