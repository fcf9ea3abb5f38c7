"""tl.assume: a condition that must hold wherever it is reached, else a clause over the sizes, else no proof."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import triton
import triton.language as tl

from trilift import case
from trilift.verify import prove


@triton.jit
def double_kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr, WHAT: tl.constexpr):
    pid = tl.program_id(0)
    if WHAT == "range":
        tl.assume(pid >= 0)
        tl.assume((pid <= N) & (N > 0))
    if WHAT == "first":
        tl.assume(pid <= 0)
    if WHAT == "sizes":
        tl.assume(N % 16 == 0)
    if WHAT == "few":
        tl.assume(pid * BLOCK < 1000)
    if WHAT == "never":
        tl.assume(N < 0)
    if WHAT == "branch" and pid > 0:
        tl.assume(N > BLOCK)
    if WHAT == "other branch" and pid == 0:
        tl.assume(N > BLOCK * 2)
        tl.assume(N < BLOCK * 2)
    at = pid * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < N)
    if WHAT == "data":
        tl.assume(tl.sum(tl.where(at < N, x, 0.0), 0) > 0.0)
    for k in range(N):
        if WHAT == "iteration":
            tl.assume(k < N)
        if WHAT == "other iteration":
            tl.assume(k > 0)
    tl.device_assert(pid < 0, "compiled away")
    tl.store(out_ptr + at, x + x, mask=at < N)


def doubled(x: Any, what: str) -> Any:
    out = torch.empty_like(x)
    double_kernel[(triton.cdiv(x.shape[0], 32),)](x, out, x.shape[0], BLOCK=32, WHAT=what)
    return out


def proof(what: str) -> Any:
    @case(x="f32[N]")
    def assuming(x):
        return doubled(x, what)

    (found,) = prove(assuming, other=lambda x: 2 * x, fallback=False)
    return found


@pytest.mark.parametrize("what", ["range", "branch", "iteration"])
def test_what_holds_is_proved(what: str) -> None:
    found = proof(what)
    assert found.verdict.value == "PROVED", found.reason
    assert not [c for c in found.contract if c.kind == "assume"]
    assert [c for c in found.conditions if "tl.assume" in c.what and c.holds]


@pytest.mark.parametrize(("what", "clause"), [("sizes", "16"), ("few", "1032"), ("first", "N")])
def test_what_speaks_of_sizes_is_in_the_contract(what: str, clause: str) -> None:
    found = proof(what)
    assert found.verdict.value == "PROVED", found.reason
    (needed,) = [c for c in found.contract if c.kind == "assume"]
    assert clause in needed.text and "N" in needed.text


@pytest.mark.parametrize("what", ["never", "other branch", "data", "other iteration"])
def test_what_may_be_false_is_not_proved(what: str) -> None:
    found = proof(what)
    assert found.verdict.value == "UNKNOWN" and "tl.assume" in found.reason
