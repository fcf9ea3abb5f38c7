"""Numbers that tensors of a narrow type are compared with: PyTorch and Triton round them to that type.

0.7 is 0.69921875 in bfloat16, which is below it: x >= 0.7 is true of that number, and of the same in float32 it is not.
"""

from __future__ import annotations

import pytest
import torch

from tests.kernels import kernels_narrow_comparisons as kernels
from trilift.lift.errors import CaseError
from trilift.lift.replay.reference import values
from trilift.verify import prove

BELOW = torch.tensor([0.69921875, 0.703125, 0.6875], dtype=torch.bfloat16)

HANGS_ON_LAST_DIGITS = ("floor_of_passed", "passed_to_function", "passed_through_reduction", "too_small_for_single")


@pytest.mark.parametrize(
    "name",
    ["both_in_f16", "both_in_bf16", "number_first", "number_in_a_tensor", "both_in_f32", "both_widened", "shrunk"],
)
def test_a_comparison_in_the_same_type_is_proved(name: str) -> None:
    (proof,) = prove(getattr(kernels, name))
    assert proof.verdict.value == "PROVED", proof.reason


@pytest.mark.parametrize("name", ["kernel_widens", "reference_widens", "by_a_difference"])
def test_a_comparison_in_another_type_is_not_proved(name: str) -> None:
    (proof,) = prove(getattr(kernels, name))
    assert proof.verdict.value != "PROVED"


@pytest.mark.parametrize("name", ["both_in_bf16", "number_first", "both_widened"])
def test_a_function_is_run_with_the_numbers_of_its_type(name: str) -> None:
    case = getattr(kernels, name)
    (got,) = values(case, case.reference.fn, {"x": BELOW.double()}).values()
    assert got.tolist() == case.reference.fn(BELOW).tolist()


def test_a_reference_that_raises_in_its_own_type_is_an_error() -> None:
    with pytest.raises(CaseError, match="raises an error in the dtypes of the case.*without overflow"):
        prove(kernels.with_a_number_of_f16)
    (proof,) = prove(kernels.with_a_number_of_f32)
    assert proof.verdict.value == "PROVED", proof.reason


def test_a_scalar_that_pytorch_rounds_is_a_clause() -> None:
    (proof,) = prove(kernels.of_a_scalar)
    assert "no integer, index or truth value depends on the rounding to bf16" in [c.text for c in proof.contract]


@pytest.mark.parametrize("name", ["leaky_in_f16", "leaky_in_bf16"])
def test_a_constant_of_a_narrow_type_is_the_decimal_that_was_written(name: str) -> None:
    (proof,) = prove(getattr(kernels, name))
    assert proof.verdict.value == "PROVED", proof.reason


def test_the_rounding_of_a_constant_refutes_nothing() -> None:
    (proof,) = prove(kernels.leaky_of_a_third)
    assert proof.verdict.value == "UNKNOWN"
    (wrong,) = prove(kernels.leaky_too_steep)
    assert wrong.verdict.value == "REFUTED"


@pytest.mark.parametrize(
    "name", ["times_half", "times_scalar", "times_tenth_in_f32", "limited_at_half", "limited_at_tenth_in_f32"]
)
def test_a_number_that_single_precision_has_is_proved(name: str) -> None:
    (proof,) = prove(getattr(kernels, name))
    assert proof.verdict.value == "PROVED", proof.reason


@pytest.mark.parametrize("name", ["times_tenth", "times_fifth", "times_quotient", "times_wide_scalar"])
def test_a_number_that_triton_rounds_is_not_proved(name: str) -> None:
    (proof,) = prove(getattr(kernels, name), fallback=False)
    assert proof.verdict.value == "UNKNOWN" and "only f64 tells apart" in proof.reason


def test_a_reference_that_differs_by_device_is_an_error() -> None:
    with pytest.raises(CaseError, match="has other results on a GPU than on a CPU"):
        prove(kernels.limited_at_tenth)


@pytest.mark.parametrize("name", ["above_passed_tenth", "above_stored"])
def test_a_number_that_is_passed_is_not_the_one_of_a_comparison_in_f64(name: str) -> None:
    (proof,) = prove(getattr(kernels, name), fallback=False)
    assert proof.verdict.value == "UNKNOWN", proof.claim


@pytest.mark.slow
def test_a_number_that_is_passed_is_compared_as_fp32_has_it() -> None:
    (proof,) = prove(kernels.above_passed_tenth)
    assert proof.verdict.value == "REFUTED", proof.reason


@pytest.mark.parametrize("name", HANGS_ON_LAST_DIGITS)
def test_a_number_that_is_passed_is_rounded_wherever_its_last_digits_decide(name: str) -> None:
    (proof,) = prove(getattr(kernels, name), fallback=False)
    assert proof.verdict.value == "UNKNOWN", proof.contract


@pytest.mark.slow
@pytest.mark.parametrize("name", HANGS_ON_LAST_DIGITS)
def test_a_wrong_kernel_that_hangs_on_the_last_digits_is_refuted(name: str) -> None:
    (proof,) = prove(getattr(kernels, name))
    assert proof.verdict.value == "REFUTED", proof.reason


@pytest.mark.parametrize("name", ["above_passed_tenth_in_f32", "above_scalar", "above_negative_half", "moving_mean"])
def test_a_number_that_both_sides_round_owes_nothing(name: str) -> None:
    (proof,) = prove(getattr(kernels, name))
    assert proof.verdict.value == "PROVED", proof.reason
    assert not [c for c in proof.contract if "rounding" in c.text]


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("above_wide_scalar", "f32"),
        ("above_mean", "f32"),
        ("above_narrowed", "f16"),
        ("floor_of_scalar", "f32"),
    ],
)
def test_a_number_that_is_rounded_and_compared_owes_that_nothing_depends_on_it(name: str, dtype: str) -> None:
    (proof,) = prove(getattr(kernels, name))
    assert proof.verdict.value == "PROVED", proof.reason
    assert [c.text for c in proof.contract if f"rounding to {dtype}" in c.text], proof.contract
