"""Verdicts of kernels whose arguments Triton specialises, narrows, or takes for others."""

from __future__ import annotations

from inspect import getsource

import pytest
from triton.runtime import jit

from tests.kernels import kernels_arguments as K
from trilift.lift.cases.declaration import held
from trilift.lift.errors import Unsupported
from trilift.verify.model.verdict import Proof, Verdict
from trilift.verify.pipeline import prove

RIGHT = [
    "right_one_of_two", "right_annotated", "right_annotated_number", "right_flags", "right_truth", "right_one",
    "right_half",
]  # fmt: skip


def proof(name: str) -> Proof:
    return prove(getattr(K, name), fallback=True)[0]


@pytest.mark.parametrize(
    "name",
    [
        "right_one_of_two",
        "right_annotated",
        "right_annotated_number",
        "right_flags",
        "right_truth",
        "right_one",
        "right_half",
    ],
)
def test_what_triton_compiles_is_proved(name: str) -> None:
    found = proof(name)
    assert found.verdict is Verdict.PROVED, found.reason
    assert not [c for c in found.contract if c.kind == "shape" and "s" in c.text.split()]


@pytest.mark.parametrize("name", ["wrong_one_of_two", "wrong_set_by_the_grid", "wrong_half", "wrong_narrowed"])
def test_what_triton_does_not_compile_is_refuted(name: str) -> None:
    assert proof(name).verdict is Verdict.REFUTED


@pytest.mark.parametrize(("name", "clause"), [
    ("wrong_in_a_pair", "s != 1"), ("wrong_nested", "s != 1"), ("wrong_wide_in_a_pair", "s < 2147483648"),
    ("wrong_high", "s < 2147483648"), ("wrong_annotated", "s < 2147483648"),
])  # fmt: skip
def test_an_argument_for_which_another_kernel_is_compiled(name: str, clause: str) -> None:
    found = proof(name)
    assert found.verdict is Verdict.REFUTED or clause in [c.text for c in found.contract if c.kind == "shape"]


@pytest.mark.parametrize("name", ["wrong_factor_by_size", "wrong_flag_by_size", "wrong_hooks"])
def test_calls_of_one_process_share_what_triton_compiled(name: str) -> None:
    assert proof(name).verdict in (Verdict.UNKNOWN, Verdict.TESTED)


def test_a_scalar_of_a_narrow_type_is_tried_at_numbers_of_that_type() -> None:
    assert proof("right_of_half").verdict is Verdict.TESTED


@pytest.mark.parametrize(("dtype", "number"), [("f16", 0.0999755859375), ("bf16", 0.10009765625),
                                               ("f32", 0.10000000149011612), ("f64", 0.10000000149011612)])  # fmt: skip
def test_the_number_of_a_dtype_that_is_nearest(dtype: str, number: float) -> None:
    assert held(0.1, dtype) == number


@pytest.mark.skipif("VAR_POSITIONAL" not in getsource(jit), reason="this version of Triton takes no *xs")
def test_arguments_of_any_number_are_read() -> None:
    assert proof("right_gathered").verdict is Verdict.PROVED
    assert proof("wrong_gathered").verdict is Verdict.REFUTED


def test_a_number_that_does_not_fit_its_annotated_type_is_not_proved() -> None:
    assert proof("wraps_annotated").verdict is Verdict.TESTED


@pytest.mark.parametrize("name", ["two_of_one_bit", "integer_of_one_bit"])
def test_one_bit_of_an_integer_is_left_open(name: str) -> None:
    found = proof(name)
    assert found.verdict is Verdict.UNKNOWN
    assert "f of one_bit_kernel is one bit of an integer" in found.reason


@pytest.mark.parametrize(("name", "why"), [
    ("wrong_equal_flags", "a compile-time argument of flag_kernel is True, and 1 earlier"),
    ("wrong_unordered", "UNORDERED, which unordered reads, is not equal to a copy of itself"),
])  # fmt: skip
def test_what_triton_takes_for_another_is_refused(name: str, why: str) -> None:
    with pytest.raises(Unsupported, match=why):
        proof(name)
