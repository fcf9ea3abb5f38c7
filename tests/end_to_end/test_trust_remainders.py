"""A reference that branches on a remainder of a size: the branch is in the contract, or the case is refuted."""

from __future__ import annotations

from pathlib import Path

import pytest

from trilift.lift.capture.case_files import load
from trilift.verify.pipeline import prove

FILE = Path(__file__).parents[1] / "kernels" / "kernels_remainders.py"
CASES = {c.name: c for c in load(str(FILE))}


@pytest.mark.parametrize(
    ("name", "clause"),
    [("wrong_below_the_largest_remainder", True), ("wrong_at_the_largest_remainder", False),
     ("right_below_every_remainder", False), ("right_at_both", True)],
)  # fmt: skip
def test_a_branch_on_a_remainder_is_a_clause(name: str, clause: bool) -> None:
    (p,) = prove(CASES[name])
    told = [c.text for c in p.contract]
    if name == "wrong_at_the_largest_remainder":
        assert p.verdict.value == "REFUTED"
    else:
        assert p.verdict.value == "PROVED", p.reason
        assert ("N % 1000 < 999" in told) == clause, told
