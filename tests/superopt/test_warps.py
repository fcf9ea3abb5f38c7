"""Warps by the tiles of a kernel, registers as the assembler counts them, and more warps where they do not suffice."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.helpers import mugraphs
from trilift.lift.errors import Unsupported
from trilift.superopt.accept.acceptance import Acceptance, Compiled, Step, accept, registers
from trilift.superopt.arrange import arrange
from trilift.superopt.jobs import _mended
from trilift.superopt.mugraph.graph import MuGraph
from trilift.superopt.mugraph.warps import warps, wider

ROWS = """
import torch
import triton
import triton.language as tl
from trilift import case


@triton.jit
def normed(x_ptr, out_ptr, M, N, BLOCK: tl.constexpr):
    m = tl.program_id(0) * 16 + tl.arange(0, 16)
    n = tl.arange(0, BLOCK)
    at = m[:, None] * N + n[None, :]
    x = tl.load(x_ptr + at, mask=(m[:, None] < M) & (n[None, :] < N), other=0.0)
    power = tl.exp(x - tl.max(x, 1)[:, None])
    share = power / tl.sum(power, 1)[:, None]
    tl.store(out_ptr + at, x * share + power * tl.sum(share * x, 1)[:, None], mask=(m[:, None] < M) & (n[None, :] < N))


@case(x="f32[M,N]")
def rows(x):
    M, N = x.shape
    out = torch.empty_like(x)
    normed[(triton.cdiv(M, 16),)](x, out, M, N, BLOCK=triton.next_power_of_2(N), num_warps=WARPS)
    return out


@rows.reference
def _(x):
    return x
"""


def with_warps(n: int) -> Step:
    text = ROWS.replace("WARPS", str(n))
    return accept(text, only=("compiled",), sizes={"M": 64, "N": 1024}).steps[-1]


def test_values_that_registers_do_not_hold_reject() -> None:
    few, enough = with_warps(4), with_warps(16)
    assert not few.passed and "normed spills" in few.text and "with 4 warps" in few.text
    assert enough.passed and "registers" in enough.text


def test_the_log_of_the_assembler() -> None:
    log = """ptxas info    : Function properties for kernel
    608 bytes stack frame, 40 bytes spill stores, 44 bytes spill loads
ptxas info    : Used 255 registers, 416 bytes cmem[0]"""
    assert registers(log) == (255, 40)
    with pytest.raises(Unsupported, match="how many registers"):
        registers("")


def tiled(g: MuGraph, **tiles: int) -> MuGraph:
    return replace(g, kernels=tuple(replace(k, tiles=k.tiles | tiles) for k in g.kernels))


def test_large_tiles_have_more_warps_as_far_as_there_are_rows() -> None:
    (k,) = mugraphs.rms_norm_matmul().kernels
    names = {d.axis for o in k.operators if o.op == "dot" for d in o.dims}
    at = lambda rows, columns: replace(k, tiles=k.tiles | dict(zip(sorted(names), (rows, columns), strict=True)))  # noqa: E731
    assert warps(at(16, 16)) == 4
    assert warps(at(128, 256)) == 8
    assert warps(at(64, 256)) == 4  # four warps of 16 rows


def test_what_is_spilled_has_twice_the_warps_up_to_the_most() -> None:
    g = mugraphs.rms_norm_matmul()
    arranged = arrange(g).graph
    (k,) = arranged.kernels
    two = wider(g, arranged, {k.name})
    assert (
        two is not None and two.kernels[0].warps == 2 * k.warps and arrange(two).graph.kernels[0].warps == 2 * k.warps
    )
    assert wider(g, arranged, {"another"}) is None
    assert wider(g, replace(arranged, kernels=(replace(k, warps=16),)), {k.name}) is None


@pytest.mark.parametrize(
    ("last", "spilled", "more"), [("compiled", 8, True), ("compiled", 0, False), ("proved", 0, False)]
)
def test_only_a_rejection_for_registers_asks_for_warps(last: str, spilled: int, more: bool) -> None:
    g = mugraphs.rms_norm_matmul()
    arranged = arrange(g).graph
    compiled = (Compiled(arranged.kernels[0].name, 0, 0, 4, 255, spilled),)
    judged = Acceptance((Step(last, False, "", 0.0),), compiled=compiled)
    assert (_mended(g, arranged, judged) is not None) is more
