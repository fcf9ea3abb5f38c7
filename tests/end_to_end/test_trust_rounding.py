"""No wrong REFUTED where rounding makes a kernel right, no wrong PROVED where a correction exceeds a size."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from trilift.lift import lift
from trilift.lift.cases.declaration import Case
from trilift.verify import prove

sys.path[:0] = [str(Path(__file__).parents[1] / "kernels")]
import kernels_casts as C  # noqa: E402
import kernels_rounding as K  # noqa: E402


def verdict(c: Case) -> str:
    (p,) = prove(c)
    return p.verdict.value


def test_what_is_right_in_its_own_type_is_not_refuted() -> None:
    assert verdict(K.magic_number) == "UNKNOWN"
    assert lift(K.magic_number).mismatches == ()


def test_what_is_wrong_rounded_too_is_refuted() -> None:
    assert verdict(K.magic_number_by_one) == "REFUTED"
    (found,) = lift(K.magic_number_by_one).mismatches
    assert found.output == "out"


def test_a_variance_of_fewer_elements_than_its_correction_is_not_proved() -> None:
    assert verdict(K.variance_of_three) != "PROVED"


@pytest.mark.parametrize("name", ["variance_of_one", "variance_of_more_than_three"])
def test_a_variance_is_proved_where_it_divides_by_a_positive_number(name: str) -> None:
    assert verdict(getattr(K, name)) == "PROVED"


def test_infinite_powers_do_not_end_a_proof() -> None:
    (p,) = prove(K.powers)
    assert p.verdict.value in ("REFUTED", "UNKNOWN") and "internal" not in p.reason


CAST = "no integer, index or truth value depends on the rounding to"


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("equal_of_casts", "f16"), ("difference_of_casts", "f16"), ("cast_on_the_host", "f16"),
        ("copied_on_the_host", "f16"), ("cast_in_the_reference", "f16"), ("floor_of_a_cast", "bf16"),
        ("sum_in_bf16", "bf16"), ("sum_in_the_reference", "bf16"),
        ("sign_of_a_cast", "f16"), ("equal", ""), ("sum_in_f32", ""),
        ("sign_of_a_tf32_product", "tf32"), ("sign_of_an_ieee_product", ""),
    ],
)  # fmt: skip
def test_a_rounding_that_decides_something_is_in_the_contract(name: str, dtype: str) -> None:
    """The twins compare in f32."""
    (p,) = prove(getattr(C, name))
    told = {c.text for c in p.contract if c.kind == "float"}
    assert told == ({f"{CAST} {dtype}"} if dtype else set())
    assert p.verdict.value in ("PROVED", "TESTED")
