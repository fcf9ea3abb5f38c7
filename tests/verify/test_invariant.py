"""Closed forms of loop variables: each kernel is proved for all shapes, and its wrong twin is not."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from trilift import verify
from trilift.lift.cases.declaration import Case
from trilift.reports.records.conditions import invariant

sys.path[:0] = [str(Path(__file__).parents[1] / folder) for folder in ("helpers", "kernels")]
import kernels_invariant as kernels  # noqa: E402

PROVED = [
    "argmax_first", "argmin_first", "argmax_each", "argmax_each_last", "welford", "product", "decay", "gated",
    "linear_attention", "while_sum", "previous", "nested", "triangle",
]  # fmt: skip
WRONG = {  # and the outputs that are
    "argmax_late": ["out"], "argmax_ties": ["out"], "welford_broken": ["out1"], "product_broken": ["out"],
    "decay_other": ["out"], "gated_broken": ["out"], "linear_attention_broken": ["out"], "while_sum_broken": ["out"],
    "previous_broken": ["out"], "nested_broken": ["out"], "triangle_broken": ["out"], "chunked_broken": ["out1"],
}  # fmt: skip


def open_outputs(name: str) -> list[str]:
    """The outputs that are not proved."""
    c = getattr(kernels, name)
    assert isinstance(c, Case)
    return [p.claim.output for p in verify.prove(c, fallback=False) if p.verdict.value != "PROVED"]


@pytest.mark.parametrize("name", PROVED)
def test_loop_is_proved(name: str) -> None:
    assert open_outputs(name) == []


@pytest.mark.parametrize("name", WRONG)
def test_twin_is_not(name: str) -> None:
    assert set(WRONG[name]) <= set(open_outputs(name))


def test_invariants_are_readable() -> None:
    """Bound variables are axes with ranges, not guards of unlimited ones."""
    (proof,) = verify.prove(kernels.while_sum, fallback=False)
    texts = [invariant(i) for i in proof.invariants]
    assert any("total" in t and "sum(" in t for t in texts)
    assert not any("%" in t or "*)" in t for t in texts)
