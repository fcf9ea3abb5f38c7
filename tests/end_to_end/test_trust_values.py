"""Verdicts about values: integers that pass through floats, references that look at their dtype, divisors, layouts.

What kernels and references give at the inputs of the docstrings was run in Triton's interpreter and in PyTorch.
"""

from __future__ import annotations

import kernels_dicts as dicts
import kernels_divisors as divisors
import kernels_dtype_sight as sight
import kernels_sign_of_zero as zeros
import kernels_through_floats as through
import pytest

from trilift.lift.errors import Unsupported
from trilift.verify import prove

UNDER = {
    "int16_through_half": "x[l0_64 + 64 * pid0], 0) < 2048",
    "int32_through_single": "x[l0_64 + 64 * pid0], 0) < 16777216",
    "int64_through_double": "x[l0_64 + 64 * pid0], 0) < 9007199254740992",
    "int16_through_bfloat": "x[l0_64 + 64 * pid0], 0) < 256",
    "int16_narrowed": "x[l0_64 + 64 * pid0], 0) < 2048",
    "compared_in_single": "y[l0_64 + 64 * pid0], 0) < 16777216",
    "product_in_single": "y[l0_64 + 64 * pid0], 0) < 16777216",
    "sum_in_single": " < 16777216",
    "half_between_launches": "x[l0_64 + 64 * pid0], 0) < 2048",
    "host_through_half": "-2048 <= x[i] < 2048",
    "reference_through_single": "-16777216 <= x[n] < 16777216",
    "reference_compares_in_single": "-16777216 <= y[n] < 16777216",
    "count_in_single": " < 16777216",
    "chosen_in_single": " < 16777216",
    "steps_in_single": "N < 2^24",
    "reference_chooses_in_single": "-16777216 <= sum",
    "times_one_passed": "x[l0_64 + 64 * pid0], 0) < 16777216",
    "integer_passed": "n < 2^24",
    "either_in_single": "x[l0_64 + 64 * pid0], 0) < 16777216",
    "either_times_two": " < 16777216",
    "either_above": " < 16777216",
    "either_against": "x[l0_64 + 64 * pid0], 0) < 16777216",
    "either_of_int16": " < 16777728",
    "position_through_single": "64 * ((N + 63) // 64) < 2^24",
}
UNPROVED = (
    "scaled_and_back", "third_by_a_quotient", "ratio_passed", "odd_sum_passed", "narrowed_passed", "quotient_of_passed",
    "reference_narrows", "sign_in_eighths", "sign_of_tiny_product",
)  # fmt: skip
RIGHT = (
    "int8_through_half", "int16_through_single", "int32_through_double", "sign_in_single", "doubled_in_single",
    "sum_of_two_in_single", "real_of_int32", "times_two_passed",
    "sign_of_small_product",
)  # fmt: skip
DIGITS = ("2048", "256", "16777216", "2^24", "9007199254740992")


@pytest.mark.parametrize("name", UNDER)
def test_integers_in_floats_owe_that_they_are_exact(name: str) -> None:
    (proof,) = prove(getattr(through, name))
    assert proof.verdict.value == "PROVED", proof.reason
    assert any(UNDER[name] in c.text for c in proof.contract if c.kind == "nowrap"), proof.contract


@pytest.mark.parametrize("name", UNPROVED)
def test_integers_of_rounded_floats_are_not_proved(name: str) -> None:
    (proof,) = prove(getattr(through, name))
    assert proof.verdict.value == "UNKNOWN", proof.claim


def test_a_reference_that_rounds_is_not_proved_equal() -> None:
    (proof,) = prove(through.reference_scales_and_back)
    assert proof.verdict.value == "UNKNOWN", proof.claim


@pytest.mark.parametrize("name", ["limits_by_sign", "limits_by_floor"])
def test_limits_of_integers_that_no_float_reaches_are_told_apart(name: str) -> None:
    (proof,) = prove(getattr(through, name))
    assert proof.verdict.value == "REFUTED", proof.reason


def test_a_float_that_rounding_takes_beyond_an_integer_is_no_counterexample() -> None:
    (proof,) = prove(through.ratio_passed_of_int32)
    assert proof.verdict.value == "UNKNOWN", proof.counterexample


@pytest.mark.parametrize("name", RIGHT)
def test_integers_that_fit_the_digits_owe_nothing(name: str) -> None:
    (proof,) = prove(getattr(through, name))
    assert proof.verdict.value == "PROVED", proof.reason
    assert not [c for c in proof.contract if any(d in c.text for d in DIGITS)], proof.contract


@pytest.mark.parametrize("name", ("element_size", "element_size4", "is_half", "finfo", "to_same", "result_type"))
def test_references_that_look_at_their_dtype_are_run_in_it(name: str) -> None:
    (proof,) = prove(getattr(sight, name))
    assert proof.verdict.value == "PROVED", proof.reason


@pytest.mark.parametrize("name", ("wrong_half", "wrong_finfo"))
def test_what_a_reference_does_in_its_dtype_counts(name: str) -> None:
    (proof,) = prove(getattr(sight, name))
    assert proof.verdict.value == "REFUTED", proof.reason


def test_bits_of_a_real_are_refused_in_plain_words() -> None:
    with pytest.raises(Unsupported, match="view with dtype"):
        prove(sight.bits_of)


@pytest.mark.parametrize(
    "name", ("truncates_against_floor", "c_remainder_against_python", "scalar_truncates", "lanes_divide_by_zero")
)
def test_wrong_quotients_are_not_proved(name: str) -> None:
    (proof,) = prove(getattr(divisors, name))
    assert proof.verdict.value != "PROVED", proof.contract


@pytest.mark.parametrize(
    ("name", "clause"),
    (("truncated_quotient", "y[n] != 0"), ("remainder_of_c", "y[n] != 0"), ("quotient_by_scalar", "s != 0")),
)
def test_a_divisor_owes_that_it_is_not_zero(name: str, clause: str) -> None:
    (proof,) = prove(getattr(divisors, name))
    assert proof.verdict.value == "PROVED", proof.reason
    assert clause in [c.text for c in proof.contract]


@pytest.mark.parametrize("name", ("quotient_by_positive_scalar", "floor_of_positives", "guarded_quotient"))
def test_a_divisor_that_is_never_zero_owes_nothing(name: str) -> None:
    (proof,) = prove(getattr(divisors, name))
    assert proof.verdict.value == "PROVED", proof.reason
    assert not [c for c in proof.contract if c.text.endswith("!= 0")], proof.contract


def test_the_least_integer_by_minus_one_is_a_clause() -> None:
    (proof,) = prove(divisors.truncated_quotient)
    assert "-2147483648 <= truncdiv(x[n], y[n]) < 2147483648" in [c.text for c in proof.contract]


@pytest.mark.parametrize("name", ("keys_in_another_order", "input_among_the_keys"))
def test_outputs_are_matched_by_their_keys(name: str) -> None:
    proofs = prove(getattr(dicts, name))
    assert [p.verdict.value for p in proofs] == ["PROVED", "PROVED"], [p.reason for p in proofs]
    assert not [c for p in proofs for c in p.contract if c.kind == "memory"]


def test_exchanged_keys_are_refuted() -> None:
    assert [p.verdict.value for p in prove(dicts.keys_exchanged)] == ["REFUTED", "REFUTED"]


def test_an_alias_under_a_key_is_a_clause() -> None:
    proofs = {p.claim.output: p for p in prove(dicts.input_under_another_key)}
    assert [c.text for c in proofs["same"].contract if c.kind == "memory"] == ["same shares its memory with x"]


@pytest.mark.parametrize("name", ["bit_for_comparison", "comparison_for_copysign"])
def test_the_sign_bit_of_a_zero_is_not_a_comparison(name: str) -> None:
    (proof,) = prove(getattr(zeros, name))
    assert proof.verdict.value == "UNKNOWN", proof.reason


@pytest.mark.parametrize("name", ["bit_for_signbit", "copysign_for_copysign"])
def test_sign_bits_are_compared_with_sign_bits(name: str) -> None:
    (proof,) = prove(getattr(zeros, name))
    assert proof.verdict.value == "PROVED", proof.reason


def test_a_sign_bit_owes_that_its_operand_is_a_number() -> None:
    (proof,) = prove(zeros.bit_of_a_quotient)
    assert any(c.kind == "value" and "!= 0" in c.text for c in proof.contract), proof.contract
