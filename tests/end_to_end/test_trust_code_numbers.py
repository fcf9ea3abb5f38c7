"""What a run at random numbers does not meet: integers and sizes that the code names, limits of one case alone."""

from __future__ import annotations

import pytest

from tests.kernels import kernels_code_numbers as kernels
from trilift.lift.capture.case_files import load
from trilift.lift.errors import CaseError
from trilift.verify import equal, prove

WRONG = ["picked", "never_picked", "above", "above_real", "added_on_a_curve", "added_at_a_product"]


@pytest.mark.parametrize("name", WRONG)
def test_elements_and_sizes_beside_the_numbers_of_the_code_are_run(name: str) -> None:
    (proof,) = prove(getattr(kernels, name))
    assert proof.verdict.value == "REFUTED", proof.reason


def test_kernels_that_are_called_with_other_values_are_not_compared() -> None:
    with pytest.raises(CaseError, match="may have values that x of as_it_is_below_five may not"):
        equal(kernels.as_it_is, kernels.as_it_is_below_five)
    with pytest.raises(CaseError, match="is i32, that of the as_real is f32"):
        equal(kernels.as_it_is, kernels.as_real)


def test_a_contract_that_does_not_hold_is_not_told() -> None:
    (proof,) = prove(kernels.one_further)
    assert proof.verdict.value == "REFUTED" and not proof.contract


def test_a_constant_of_another_single_is_another_number() -> None:
    (proof,) = prove(kernels.scaled_a_little, fallback=False)
    assert proof.verdict.value != "PROVED"


def test_a_reference_that_raises_at_a_size_leaves_it_out() -> None:
    (proof,) = prove(kernels.raises_at_100, fallback=False)
    assert proof.verdict.value == "PROVED" and "N != 100" in [c.text for c in proof.contract]


def test_a_size_that_only_where_names_is_found() -> None:
    (proof,) = prove(kernels.at_one_size, fallback=False)
    assert proof.verdict.value == "PROVED", proof.reason


def test_two_cases_of_one_name_are_an_error(tmp_path) -> None:
    text = "from trilift import case\n" + 2 * "@case(x='f32[N]')\ndef f(x):\n    return x\n"
    file = tmp_path / "two.py"
    file.write_text(text)
    with pytest.raises(CaseError, match="two cases are named f, at lines 3 and 6"):
        load(str(file))


def test_a_case_in_a_class_is_an_error(tmp_path) -> None:
    file = tmp_path / "inside.py"
    file.write_text("from trilift import case\nclass K:\n    @case(x='f32[N]')\n    def f(x):\n        return x\n")
    with pytest.raises(CaseError, match="the case f stands in a class"):
        load(str(file))


@pytest.mark.parametrize(
    "second", ["@f.reference\ndef f(x):\n    return x\n", "f = 3\n", "class f:\n    pass\n", "f = g = f\n"]
)
def test_a_case_whose_name_is_taken_is_an_error(tmp_path, second: str) -> None:
    file = tmp_path / "taken.py"
    file.write_text(f"from trilift import case\n@case(x='f32[N]')\ndef f(x):\n    return x\n{second}")
    with pytest.raises(CaseError, match="the name of case f of line 3 is given to something else") as raised:
        load(str(file))
    assert raised.value.place is not None and raised.value.place.line in (5, 6)
