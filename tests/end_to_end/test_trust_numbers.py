"""No wrong PROVED where operands leave the numbers: 0 / 0, roots and logarithms of negative numbers, powers.

Whoever compares, folds a maximum or cancels owes the domain of the operands. It is proved, or it is a clause of the
contract that keeps the bad input out.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from trilift.verify import prove
from trilift.verify.model.verdict import Clause
from trilift.verify.refutation.zeros import contradiction
from trilift.verify.runs.goals import targets

sys.path[:0] = [str(Path(__file__).parents[1] / "kernels")]
import kernels_numbers as K  # noqa: E402


def clauses(name: str, found: dict[str, object]) -> tuple[str, list[Clause]]:
    """The verdict of a case, and the clauses about values."""
    (p,) = prove(found[name], fallback=False)
    return p.verdict.value, [c for c in p.contract if c.kind == "value"]


@pytest.mark.parametrize("name", K.WRONG)
def test_a_wrong_kernel_is_not_proved_where_it_is_wrong(name: str) -> None:
    verdict, kept_out = clauses(name, K.WRONG)
    assert verdict != "PROVED" or any(" < " in c.text or " <= " in c.text or " != " in c.text for c in kept_out)


@pytest.mark.parametrize("name", K.RIGHT)
def test_a_right_kernel_is_proved_for_all_values(name: str) -> None:
    assert clauses(name, K.RIGHT) == ("PROVED", [])


@pytest.mark.parametrize("name", ["difference", "nan_to_num", "relu", "guard of the numerator", "masked mean"])
def test_a_run_on_zeros_contradicts(name: str) -> None:
    found = contradiction(K.WRONG[name], targets(K.WRONG[name]), "out")
    assert "where some elements of inputs are 0" in found


@pytest.mark.parametrize("name", ["guarded quotient", "quotient", "guarded mean", "softplus"])
def test_a_run_on_zeros_agrees(name: str) -> None:
    assert contradiction(K.RIGHT[name], targets(K.RIGHT[name]), "out") == ""


@pytest.mark.parametrize("name", ["isfinite", "rsqrt equals itself"])
def test_fields_do_not_pass_what_differs_at_zeros(name: str) -> None:
    """No field has 0 / 0, so that a test in one cannot see it."""
    (p,) = prove(K.WRONG[name])
    assert p.verdict.value in ("UNKNOWN", "REFUTED")
