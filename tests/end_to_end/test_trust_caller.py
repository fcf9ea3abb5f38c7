"""The memory of the caller: a clause says that written elements are apart, and what autotuning zeroes is not PROVED."""

from pathlib import Path

import pytest

from trilift.lift import lift
from trilift.lift.capture.case_files import load
from trilift.reports.records.record import undefined
from trilift.verify.model.verdict import Verdict
from trilift.verify.pipeline import equal, prove

CASES = {c.name: c for c in load(str(Path(__file__).parents[1] / "kernels" / "kernels_caller.py"))}
WRONG = sorted(n for n in CASES if n.startswith("wrong_"))
RIGHT = sorted(n for n in CASES if n.startswith("right_"))
APART = "no two elements of x share memory"


def test_elements_of_a_written_strided_input_are_apart():
    for p in prove(CASES["fill_strided"]):
        assert p.verdict is Verdict.PROVED, p.reason
        assert APART in [c.text for c in p.contract if c.kind == "layout"]


def test_an_input_that_is_only_read_may_overlap():
    (p,) = prove(CASES["copy_strided"])
    assert p.verdict is Verdict.PROVED and APART not in [c.text for c in p.contract]


@pytest.mark.parametrize("name", WRONG)
def test_contents_that_autotuning_changes_are_not_proved(name):
    for p in prove(CASES[name]):
        assert p.verdict is Verdict.UNKNOWN and "before the first launch" in p.reason


@pytest.mark.parametrize("name", RIGHT)
def test_contents_that_it_restores_or_that_are_zeros_are_proved(name):
    assert all(p.verdict is Verdict.PROVED for p in prove(CASES[name]))


@pytest.mark.parametrize("names", [("sum_in_place", "sum_of_a_copy"), ("sum_of_a_copy", "sum_in_place")])
def test_a_kernel_that_changes_its_input_does_not_equal_one_that_returns_the_same(names):
    found = {p.claim.output: p for p in equal(*(CASES[n] for n in names))}
    assert found["out"].verdict is Verdict.PROVED, found["out"].reason
    assert found["x"].verdict is Verdict.REFUTED, found["x"].reason


def test_two_kernels_that_change_the_same_input_are_equal():
    assert {p.verdict for p in equal(CASES["sum_in_place"], CASES["sum_in_place"])} == {Verdict.PROVED}


def test_an_input_of_which_a_view_is_returned_holds_what_was_written():
    found = {p.claim.output: p.verdict for p in prove(CASES["view_of_what_it_changes"])}
    assert found == {"out": Verdict.PROVED, "x": Verdict.PROVED}


def test_an_input_that_is_changed_where_the_host_function_cannot_be_followed_is_a_difference():
    found = {p.claim.output: p.verdict for p in prove(CASES["part_of_another_input"])}
    assert found["y"] is Verdict.REFUTED


def test_nan_that_is_written_is_no_element_that_is_not():
    assert undefined(lift(CASES["nan_on_purpose"])) == []
