"""Verdicts of kernels that rest on what the compiler is told, or on how Triton compiles some arguments."""

from __future__ import annotations

from functools import cache

import pytest

from tests.kernels import kernels_compiler as K
from trilift.verify.model.verdict import Proof, Verdict
from trilift.verify.pipeline import prove


@cache
def proof(name: str, fallback: bool = False) -> Proof:
    return prove(getattr(K, name), fallback=fallback)[0]


def clauses(name: str, kind: str) -> list[str]:
    return [c.text for c in proof(name).contract if c.kind == kind]


@pytest.mark.parametrize("name", ["wrong_mask", "wrong_wrapped"])
def test_a_hint_that_is_not_shown_is_in_the_contract(name: str) -> None:
    found = proof(name)
    assert found.verdict is not Verdict.PROVED or clauses(name, "hint")


@pytest.mark.parametrize("name", ["wrong_reversed", "wrong_at_every_size"])
def test_nothing_is_proved_for_no_size_at_all(name: str) -> None:
    found = proof(name, fallback=True)
    assert found.verdict is Verdict.UNKNOWN and "the first program shows it false" in found.reason


def test_nothing_is_proved_with_a_hint_that_a_constant_makes_false() -> None:
    found = proof("wrong_offset")
    assert found.verdict is Verdict.UNKNOWN and "it is false, whatever the sizes are" in found.reason


def test_a_hint_of_a_pointer_is_in_the_contract() -> None:
    assert proof("unknown_pointer").verdict is Verdict.PROVED
    assert clauses("unknown_pointer", "hint")


@pytest.mark.parametrize("name", ["right_contiguous", "right_multiple", "right_mask", "right_wrapped"])
def test_a_hint_that_holds_is_shown(name: str) -> None:
    assert proof(name).verdict is Verdict.PROVED, proof(name).reason
    assert clauses(name, "hint") == []


@pytest.mark.parametrize(("name", "why"), [
    ("wrong_assume", "which is false at"), ("wrong_scope", "atomic within one program"), ("wrong_cat", "in an order"),
    ("wrong_pipeline", "pipelined"),
])  # fmt: skip
def test_what_means_nothing_is_not_tested(name: str, why: str) -> None:
    found = proof(name, fallback=True)
    assert found.verdict is Verdict.UNKNOWN and why in found.reason


@pytest.mark.parametrize("name", ["right_scope", "right_cat", "right_pipeline"])
def test_what_is_promised_is_proved(name: str) -> None:
    assert proof(name).verdict is Verdict.PROVED, proof(name).reason


@pytest.mark.parametrize(("name", "clause"), [
    ("wrong_one_i8", "s != 1"), ("wrong_one_of_a_size", "N != 1"), ("wrong_one_quotient", "s != 1"),
    ("wrong_two_of_three", "(s != 1) | (t != 1)"), ("wrong_two_in_a_branch", "(s != 1) | (t != 1)"),
    ("wrong_two_of_many", "s != 1"),
])  # fmt: skip
def test_an_argument_that_is_one_is_another_kernel(name: str, clause: str) -> None:
    assert proof(name).verdict is not Verdict.PROVED or clause in clauses(name, "shape")


@pytest.mark.parametrize("name", ["right_annotated", "right_not_specialised", "right_one"])
def test_an_argument_that_may_be_one(name: str) -> None:
    assert proof(name).verdict is Verdict.PROVED, proof(name).reason
    assert not [c for c in clauses(name, "shape") if "!= 1" in c]


def test_a_grid_has_at_most_65535_programs_along_y() -> None:
    for name, expected in (("rows_along_y", True), ("few_rows_along_y", False)):
        assert proof(name).verdict is Verdict.PROVED, proof(name).reason
        assert ("M <= 65535" in clauses(name, "shape")) is expected


@pytest.mark.parametrize("name", ["right_always_one", "right_one_and_two"])
def test_an_argument_that_is_always_one_is_a_constant(name: str) -> None:
    assert proof(name).verdict is Verdict.PROVED, proof(name).reason


@pytest.mark.parametrize("name", ["wrong_always_one", "wrong_one_until_5000"])
def test_a_wrong_constant_is_refuted(name: str) -> None:
    assert proof(name, fallback=True).verdict is Verdict.REFUTED


def test_an_argument_that_is_one_in_some_launches_of_a_line_is_left_open() -> None:
    found = proof("right_one_and_two_in_turn", fallback=True)
    assert found.verdict is Verdict.UNKNOWN and "which makes it another kernel" in found.reason


def test_an_argument_that_needs_64_bits_is_another_kernel() -> None:
    assert proof("wrong_wide").verdict is not Verdict.PROVED or "s < 2147483648" in clauses("wrong_wide", "shape")
    assert proof("right_narrow").verdict is Verdict.PROVED, proof("right_narrow").reason
    assert not [c for c in clauses("right_narrow", "shape") if c.startswith("s < ")]


def test_each_argument_alone_may_need_64_bits() -> None:
    assert proof("wrong_one_wide").verdict is not Verdict.PROVED or {"s < 2147483648", "t < 2147483648"} <= {
        *clauses("wrong_one_wide", "shape")
    }
