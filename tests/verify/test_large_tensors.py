"""Shapes at which the host function takes another way may be huge: nothing there is computed that nobody looks at."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from trilift import case
from trilift.lift.capture.recorder import LARGE_ELEMENTS
from trilift.lift.capture.run import capture
from trilift.lift.capture.trace import TorchOp
from trilift.verify.configurations.launches import configurations

CALLED: list[int] = []  # elements that the reference computed, 0 for a tensor without contents


@triton.jit
def outer_kernel(x, y, out, m, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < m * n
    tl.store(out + i, tl.load(x + i // n, mask=inside) * tl.load(y + i % n, mask=inside), mask=inside)


@case(x="f32[M]", y="f32[N]")
def outer(x, y):
    m, n = len(x), len(y)
    out = x.new_empty(m, n)
    block = 64 if m < 40_000 and n < 40_000 else 128
    outer_kernel[(triton.cdiv(m * n, block),)](x, y, out, m, n, BLOCK=block)
    return out


@outer.reference
def products(x, y):
    out = torch.outer(x, y)
    CALLED.append(out.numel() if type(out) is torch.Tensor else 0)
    return out


def test_the_reference_is_not_computed_where_tensors_are_large() -> None:
    CALLED.clear()
    seen = [d for c in configurations(outer) for d in c.runs]
    assert any(d["M"] >= 40_000 for d in seen), "the other side of the test"
    assert 0 < max(CALLED) <= LARGE_ELEMENTS and 0 in CALLED


def test_memory_that_nobody_looks_at_is_not_touched() -> None:
    trace = capture(outer, {"M": 39_000, "N": 39_000})
    (made,) = (e for e in trace.events if isinstance(e, TorchOp) and e.values)
    assert made.values[0].shape == (39_000, 39_000)
    assert made.values[0].untyped_storage().nbytes() < 100
    assert not capture(outer, {"M": 3, "N": 5}).events[0].values[0].any()  # type: ignore[union-attr]
