"""Kernels that are undefined somewhere are PROVED only beside a clause that says where not, and never TESTED."""

from __future__ import annotations

import pytest

from tests.kernels import kernels_undefined as kernels
from trilift.lift.errors import CaseError, TriliftError
from trilift.verify import prove


def clauses(name: str) -> tuple[str, list[str]]:
    (proof,) = prove(getattr(kernels, name))
    return proof.verdict.value, [c.text for c in proof.contract]


@pytest.mark.parametrize("name", ["crossed", "infinity", "other"])
def test_a_kernel_that_is_undefined_everywhere_is_neither_proved_nor_tested(name: str) -> None:
    assert clauses(name)[0] not in ("PROVED", "TESTED")


@pytest.mark.parametrize(("name", "clause"), [("clamped", "in order"), ("asserting", "device_assert")])
def test_where_a_kernel_is_defined_is_said(name: str, clause: str) -> None:
    verdict, texts = clauses(name)
    assert verdict == "PROVED" and any(clause in t for t in texts), texts


@pytest.mark.parametrize("name", ["ordered", "small_other"])
def test_a_kernel_that_is_defined_everywhere_needs_no_clause(name: str) -> None:
    verdict, texts = clauses(name)
    assert verdict == "PROVED" and not any("clamp" in t or "false" in t for t in texts), texts


@pytest.mark.parametrize("name", ["at_one", "at_minus_one", "one_element", "below_two"])
def test_a_branch_of_the_reference_at_one_is_seen(name: str) -> None:
    verdict, texts = clauses(name)
    assert verdict == "REFUTED" or "s != 1" in texts, texts


def test_a_branch_at_one_that_does_the_same_is_proved() -> None:
    verdict, texts = clauses("more_than_one")
    assert verdict == "PROVED" and "0 < N" not in texts


def test_a_reference_that_asks_for_strides_is_not_read() -> None:
    with pytest.raises(TriliftError, match="raised Unsupported|may have any strides"):
        prove(kernels.by_stride)


def test_a_grid_of_a_fraction_is_refused_as_by_triton() -> None:
    with pytest.raises(CaseError, match="raised"):
        prove(kernels.fraction_of_a_grid)
