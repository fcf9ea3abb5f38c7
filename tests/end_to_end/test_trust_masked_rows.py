"""No wrong PROVED where a row or a tile of an online softmax has no element: maxima over nothing, NaN, infinities.

Right kernels of both conventions, zeros and NaN, are proved for all inputs.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from trilift.verify import prove

sys.path[:0] = [str(Path(__file__).parents[1] / "kernels")]
import kernels_masked_rows as K  # noqa: E402
import kernels_quotients as Q  # noqa: E402


@pytest.mark.parametrize("name", K.RIGHT)
def test_a_right_kernel_is_proved_for_all_values(name: str) -> None:
    (p,) = prove(K.RIGHT[name], fallback=False)
    assert p.verdict.value == "PROVED" and not [c for c in p.contract if c.kind == "value"]


@pytest.mark.parametrize("name", K.WRONG)
def test_a_wrong_kernel_is_not_proved(name: str) -> None:
    (p,) = prove(K.WRONG[name], fallback=False)
    assert p.verdict.value != "PROVED"


@pytest.mark.parametrize("name", Q.RIGHT)
def test_a_guarded_quotient_is_proved(name: str) -> None:
    (p,) = prove(Q.RIGHT[name], fallback=False)
    clauses = [c.text for c in p.contract if c.kind == "value"]
    assert p.verdict.value == "PROVED" and (clauses == []) == (name not in Q.WITH_A_CLAUSE)


@pytest.mark.parametrize("name", Q.WRONG)
def test_a_quotient_with_another_guard_is_not_proved(name: str) -> None:
    (p,) = prove(Q.WRONG[name], fallback=False)
    assert p.verdict.value != "PROVED"
