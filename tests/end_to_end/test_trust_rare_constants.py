"""A constant that is another one at few sizes: the sizes are found and run, or a clause excludes them."""

from __future__ import annotations

import pytest

from tests.kernels import kernels_rare_constants as kernels
from trilift.verify import prove


@pytest.mark.parametrize(("name", "least", "most"), [("one_size", 5003, 5003), ("large_sizes", 5001, 10_000)])
def test_the_size_with_another_constant_is_run(name: str, least: int, most: int) -> None:
    (proof,) = prove(getattr(kernels, name))
    assert proof.verdict.value == "REFUTED" and proof.counterexample is not None, proof.reason
    assert least <= proof.counterexample.dims["N"] <= most


def test_an_address_with_another_constant_is_excluded() -> None:
    (proof,) = prove(kernels.address)
    assert proof.verdict.value != "PROVED" or "address(x) % 32 != 16" in [c.text for c in proof.contract]
    assert "internal" not in proof.reason
