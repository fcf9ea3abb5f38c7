"""What a single call at a few sizes does not show: memory that calls hand on, and results of another size."""

from __future__ import annotations

import kernels_kept as K
import pytest

from trilift.lift.cases.declaration import Case
from trilift.lift.errors import Unsupported
from trilift.verify import prove


@pytest.mark.parametrize("c", K.STATE, ids=lambda c: c.name)
def test_what_hangs_on_earlier_calls_is_neither_proved_nor_tested(c: Case) -> None:
    (proof,) = prove(c)
    assert proof.verdict.value == "UNKNOWN"
    assert "total_kernel finds in a f32 tensor what an earlier call of the host function left there" in proof.reason


@pytest.mark.parametrize("c", K.SHORT, ids=lambda c: c.name)
def test_a_result_of_another_size_is_refuted(c: Case) -> None:
    (proof,) = prove(c)
    assert proof.verdict.value == "REFUTED" and proof.counterexample is not None
    assert "shape" in proof.counterexample.why


@pytest.mark.parametrize("c", K.RIGHT, ids=lambda c: c.name)
def test_right_ones_stay_proved(c: Case) -> None:
    assert [p.verdict.value for p in prove(c)] == ["PROVED"]


def test_new_zeros_are_zeros_in_every_call() -> None:
    assert [p.verdict.value for p in prove(K.added_to_zeros)] == ["PROVED"]


@pytest.mark.parametrize("c", K.MOVED, ids=lambda c: c.name)
def test_an_argument_that_becomes_another_tensor_is_not_followed(c: Case) -> None:
    with pytest.raises(Unsupported, match="the host function makes another tensor of its argument x"):
        prove(c)
