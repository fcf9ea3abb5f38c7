"""Verdicts about integers: what a kernel, its host function and its reference compute in other widths is not the same.

What kernels and references give at the inputs of the docstrings was run in Triton's interpreter and in PyTorch.
"""

from __future__ import annotations

import kernels_dtype_sight as dtypes
import kernels_integers as kernels
import kernels_narrowed_floats as narrowed
import pytest

from trilift.lift import lift
from trilift.verify import equal, prove

WRONG = (
    "square_of_int16", "three_times_uint8", "product_and_sum_of_int8", "shift_of_int16", "complement_of_uint8",
    "comparison_with_a_number_that_wraps", "half_of_int8", "dot_of_int8", "scan_of_int8", "host_multiplies_int16",
    "host_takes_the_size_of_int8",
)  # fmt: skip
UNDER = {
    "negation_of_int32": "-2147483648 <= -x[n] < 2147483648",
    "positions_squared": "< 2^31",
    "host_totals_in_int32": "-2147483648 <= ",
    "host_bytes_in_int32": "8190 * B < 2^31",
    "host_makes_uint8": "0 <= trunc(x[i]) < 256",
}
RIGHT = (
    "sum_in_int8", "average_of_uint8", "exclusive_or_of_int32", "wide_sum_of_int8", "host_adds_int16",
    "steps_of_a_generator", "negation_in_int8",
)  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_wraps_on_one_side_only_is_refuted(name: str) -> None:
    (proof,) = prove(getattr(kernels, name))
    assert proof.verdict.value == "REFUTED", proof.reason


@pytest.mark.parametrize("name", UNDER)
def test_wide_integers_owe_that_they_fit(name: str) -> None:
    (proof,) = prove(getattr(kernels, name))
    assert proof.verdict.value == "PROVED", proof.reason
    assert any(UNDER[name] in c.text for c in proof.contract if c.kind == "nowrap"), proof.contract


@pytest.mark.parametrize("name", RIGHT)
def test_what_wraps_on_both_sides_is_proved(name: str) -> None:
    (proof,) = prove(getattr(kernels, name))
    assert proof.verdict.value == "PROVED", proof.reason


def test_another_width_of_the_output_is_a_difference() -> None:
    (proof,) = prove(kernels.int32_for_int8)
    assert proof.verdict.value == "REFUTED" and proof.counterexample is not None
    assert proof.counterexample.why == "out is int32, the reference's int8"


def test_two_kernels_of_other_dtypes_are_told_apart() -> None:
    proof = equal(dtypes.doubled_int32, dtypes.doubled_int64)[0]
    assert proof.verdict.value == "REFUTED" and proof.counterexample is not None
    assert proof.counterexample.why == "out is int32, doubled_int64's int64"
    proof = equal(dtypes.doubled, dtypes.doubled_in_bfloat16)[0]
    assert proof.verdict.value == "PROVED"
    assert any(c.text.startswith("out is float32, doubled_in_bfloat16's bfloat16") for c in proof.contract)
    proof = equal(dtypes.doubled, dtypes.doubled)[0]
    assert not any("bfloat16" in c.text for c in proof.contract)


SIGNED, UNSIGNED = "-128 <= trunc(x[n]) < 128", "0 <= trunc(x[n]) < 256"
FLOATS = {"to_int8": SIGNED, "to_uint8": UNSIGNED, "int8_times_three": SIGNED, "uint8_times_three": UNSIGNED}


@pytest.mark.parametrize("name", FLOATS)
def test_a_float_that_becomes_narrow_owes_that_it_fits(name: str) -> None:
    (proof,) = prove(getattr(narrowed, name), fallback=False)
    assert proof.verdict.value == "PROVED", proof.reason
    assert FLOATS[name] in [c.text for c in proof.contract if c.kind == "nowrap"]


@pytest.mark.parametrize("name", ["product_in_uint8", "int8_in_uint8"])
def test_what_a_narrow_float_becomes_is_told_apart(name: str) -> None:
    (proof,) = prove(getattr(narrowed, name), fallback=False)
    assert proof.verdict.value != "PROVED"


def test_a_float_that_does_not_fit_is_no_difference() -> None:
    """Negative numbers as uint8: PyTorch's conversion wraps here, the kernel's gives 0."""
    lifted = lift(narrowed.to_uint8)
    assert not lifted.mismatches and lifted.outputs[0].error is None
