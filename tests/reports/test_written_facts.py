"""What the writer of tests asks a small run for."""

from __future__ import annotations

from pathlib import Path

import pytest

from trilift.lift.capture.case_files import load
from trilift.reports.testgen.facts import facts

FILE = str(Path(__file__).parents[1] / "kernels" / "kernels_short_range.py")


@pytest.mark.parametrize(
    ("name", "short"), [("squares_in_f16", True), ("squares_in_f32", False), ("squares_in_bf16", False)]
)
def test_squares_in_a_type_of_short_range(name: str, short: bool) -> None:
    """Inputs of size 0.001 and of size 30 have squares that f16 does not hold, or not with all its digits."""
    (case,) = load(FILE, [name])
    assert facts(case).short is short
