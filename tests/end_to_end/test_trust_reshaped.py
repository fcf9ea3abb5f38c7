"""A tensor whose shape is changed in place is a view of the same memory: neither right nor wrong ones are mistaken."""

from __future__ import annotations

import pytest

from tests.kernels import kernels_reshaped as K
from trilift.verify import prove
from trilift.verify.model.verdict import Verdict


@pytest.mark.parametrize("form", K.RIGHT)
def test_tensors_of_another_shape_are_proved(form: str) -> None:
    for p in prove(K.RIGHT[form], timeout=60):
        assert p.verdict is Verdict.PROVED, p.reason


@pytest.mark.parametrize("form", K.WRONG)
def test_wrong_ones_are_refuted(form: str) -> None:
    assert Verdict.REFUTED in {p.verdict for p in prove(K.WRONG[form], timeout=60)}


@pytest.mark.slow
def test_a_tensor_whose_memory_may_change_is_refused_at_its_line() -> None:
    (p,) = prove(K.resized, timeout=20)
    assert p.verdict is Verdict.UNKNOWN and "aten.resize_" in p.reason
    assert p.place is not None and p.place.line == K.resized.fn.__code__.co_firstlineno + 3
