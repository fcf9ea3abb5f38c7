"""A host function that raises for some scalars: the contract leaves these out."""

from __future__ import annotations

import pytest

from tests.kernels import kernels_host_math as K
from trilift.lift.cases.declaration import Case
from trilift.verify.model.verdict import Verdict
from trilift.verify.pipeline import prove


def of_scalar(case: Case) -> set[str]:
    (p,) = prove(case)
    assert p.verdict is Verdict.PROVED, p.reason
    return {c.text for c in p.contract if c.term is not None and " s" in f" {c.text}"}


@pytest.mark.parametrize("clause", K.CASES)
def test_a_number_at_which_python_raises_is_left_out(clause: str) -> None:
    assert of_scalar(K.CASES[clause]) == ({clause} if clause else set())


def test_a_root_that_is_complex_is_left_out() -> None:
    assert of_scalar(K.POWER) == {"0 <= s"}
