"""Integers of 8 and 16 bits are known up to multiples of 2^bits; an address takes the signed number."""

from __future__ import annotations

import pytest

from tests.kernels import kernels_narrow_offsets as kernels
from trilift.verify import prove


@pytest.mark.parametrize(("name", "clause"), [("rows", "16 * K < 2^15"), ("loop", "16 * N < 2^15")])
def test_narrow_offsets_owe_that_they_do_not_wrap(name: str, clause: str) -> None:
    (proof,) = prove(getattr(kernels, name))
    assert proof.verdict.value == "PROVED" and clause in [c.text for c in proof.contract], proof.contract


def test_no_contract_that_nothing_meets() -> None:
    (proof,) = prove(kernels.always, fallback=False)
    assert proof.verdict.value == "UNKNOWN" and "no input meets all clauses" in proof.reason
    (proof,) = prove(kernels.always)
    assert proof.verdict.value == "REFUTED"


@pytest.mark.parametrize("name", ["gathered", "table"])
def test_remainders_that_are_the_index_are_proved(name: str) -> None:
    (proof,) = prove(getattr(kernels, name))
    assert proof.verdict.value == "PROVED", proof.reason
    assert not [c for c in proof.contract if "2^15" in c.text or "2^7" in c.text]
