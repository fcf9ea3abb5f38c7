"""A reference that branches on a remainder of a size: the branch is in the contract, or the case is refuted."""

from __future__ import annotations

from pathlib import Path

import pytest

from trilift.lift.capture.case_files import load
from trilift.verify.pipeline import prove

FILE = Path(__file__).parents[1] / "kernels" / "kernels_remainders.py"
CASES = {c.name: c for c in load(str(FILE))}


@pytest.mark.parametrize(
    ("name", "verdict"),
    [("wrong_below_the_largest_remainder", "REFUTED"), ("wrong_at_the_largest_remainder", "REFUTED"),
     ("right_below_every_remainder", "PROVED"), ("right_at_both", "PROVED")],
)  # fmt: skip
def test_both_sides_of_a_branch_on_a_remainder_are_judged(name: str, verdict: str) -> None:
    (p,) = prove(CASES[name])
    assert p.verdict.value == verdict, p.reason
    assert not any("% 1000" in c.text for c in p.contract)
