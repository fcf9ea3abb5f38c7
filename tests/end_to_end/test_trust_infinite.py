"""Infinities and NaN: in inputs that may hold them, and where a quotient leaves the numbers; pointers of the host."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.kernels import kernels_infinite as kernels
from trilift import case
from trilift.lift.capture.run import capture
from trilift.lift.errors import CaseError
from trilift.lift.pytorch.read import read
from trilift.lift.replay.check import right_where_rounded, run_kernel
from trilift.lift.terms import construct as T
from trilift.verify import equal, prove
from trilift.verify.refutation.infinite_inputs import differs


@pytest.mark.parametrize("name", ["affine", "without_nan", "gated", "row_sum"])
def test_what_agrees_at_infinities_too_is_proved(name: str) -> None:
    (proof,) = prove(getattr(kernels, name))
    assert proof.verdict.value == "PROVED", proof.reason


@pytest.mark.parametrize("name", ["restored", "relu", "without_infinities", "zero", "masked_by_product"])
def test_what_agrees_at_finite_numbers_alone_is_refuted(name: str) -> None:
    """x + y - x at infinity; tl.maximum passes NaN by; NaN is one thing and infinity another; 0 * inf is NaN."""
    (proof,) = prove(getattr(kernels, name))
    found = proof.counterexample
    assert proof.verdict.value == "REFUTED" and found is not None, proof.reason
    assert not (np.isfinite(found.got) and np.isfinite(found.expected))
    assert "ARGUMENTS = {" in found.replay and "inputs with infinities and NaN" in found.replay


def test_clamp_returns_nan_where_it_is_asked_to() -> None:
    (right,), (wrong,) = prove(kernels.clamped_with_nan), prove(kernels.clamped_without_nan)
    assert right.verdict.value in ("PROVED", "UNKNOWN"), right.reason
    assert wrong.verdict.value == "REFUTED", wrong.reason


def test_two_kernels_on_such_inputs_are_compared() -> None:
    assert [p.verdict.value for p in equal(kernels.affine, kernels.affine)] == ["PROVED", "PROVED"]
    assert "UNKNOWN" in [p.verdict.value for p in equal(kernels.restored, kernels.second_of_two)]
    assert "REFUTED" not in [p.verdict.value for p in equal(kernels.relu, kernels.relu)]


@pytest.mark.parametrize("name", ["nan_changed_far", "infinity_changed_far"])
def test_a_load_of_any_number_is_not_taken_for_a_finite_one(name: str) -> None:
    """Comparisons with a load are not decided before it is known what it loads: no run has the element that differs."""
    (proof,) = prove(getattr(kernels, name), fallback=False)
    assert proof.verdict.value == "UNKNOWN", proof.contract
    (right,) = prove(kernels.finite_not_changed, fallback=False)
    assert right.verdict.value == "PROVED", right.reason


@pytest.mark.parametrize("name", ["nan_of_memory_changed_far", "infinity_of_memory_changed_far"])
def test_a_load_of_what_was_computed_is_not_taken_for_a_finite_number(name: str) -> None:
    """log(x), through memory, is NaN or -inf where x <= 0: either that is not so, or there is no proof."""
    (proof,) = prove(getattr(kernels, name), fallback=False)
    assert proof.verdict.value == "UNKNOWN" or any(c.text.startswith("0 < x[") for c in proof.contract), proof.contract


@pytest.mark.parametrize("name", ["log_and_no_least_number", "log_and_no_largest_number"])
def test_a_maximum_with_no_bound_passes_nan_by(name: str) -> None:
    """tl.maximum(NaN, -inf) is -inf: it is its other operand only where that is a number."""
    (proof,) = prove(getattr(kernels, name), fallback=False)
    assert proof.verdict.value == "PROVED", proof.reason
    assert any(c.text.startswith("0 < x[") for c in proof.contract), proof.contract


def test_what_is_made_of_sizes_alone_is_a_number() -> None:
    n, infinity = T.size("N"), T.const(-np.inf)
    assert T.make("max", T.make("recip", T.make("sqrt", n)), infinity).op == "recip"
    for x in (T.size("stride(x,0)"), T.scalar("s", T.INT)):
        assert T.make("max", T.make("recip", x), infinity).op == "max"


def test_without_any_inputs_are_finite() -> None:
    (proof,) = prove(kernels.restored_finite)
    assert proof.verdict.value == "PROVED", proof.reason
    assert not T.UNBOUNDED


def test_a_proof_for_finite_numbers_alone_is_none() -> None:
    """Without a run that shows the difference it is open, and says for what it holds."""
    (proof,) = prove(kernels.relu, fallback=False)
    assert proof.verdict.value == "UNKNOWN"
    assert proof.reason.startswith("PROVED where x holds finite numbers; with infinities and NaN:")


def test_a_product_over_a_sum_owes_the_divisor() -> None:
    """x / d * (y - z) is infinite and x * y / d - x * z / d is NaN where d is 0."""
    (proof,) = prove(kernels.factored)
    assert proof.verdict.value == "PROVED", proof.reason
    assert [c.kind for c in proof.contract if c.text.startswith("d[") and c.text.endswith("!= 0")] == ["value"]
    (same,) = prove(kernels.reordered)
    assert same.verdict.value == "PROVED" and not [c for c in same.contract if c.kind == "value"]


@pytest.mark.parametrize("spec", ["i32[N] any", "f32[N] > 0 any", "f32[N] in (0, 1) any", "f32 any", "bool[N] any"])
def test_any_is_for_tensors_of_floats_without_limits(spec: str) -> None:
    with pytest.raises(CaseError, match='"any" is for tensors of floats without other limits'):
        case(x=spec)(lambda x: x)


def test_any_goes_with_strides() -> None:
    found = case(x="bf16[M,N] strided any")(lambda x: x)
    assert found.tensors["x"].unbounded and found.tensors["x"].strided


def test_an_element_of_such_an_input_is_read_once_as_given() -> None:
    with T.unbounded(["x"]):
        x, y = T.read("x", [0]), T.read("y", [0])
        assert (x.op, y.op) == ("given", "read")
        assert T.make("given", x) is x
        assert T.mul(0, x) is not T.const(0) and T.mul(0, y) is T.const(0)
    assert T.read("x", [0]).op == "read"


def test_infinities_and_nan_are_compared_as_they_are() -> None:
    inf, nan = np.inf, np.nan
    got = np.array([1.0, nan, inf, inf, nan, 1.0, -inf, inf])
    expected = np.array([1.0, nan, inf, -inf, 1.0, nan, 1.0, 1.7e308])
    assert differs(got, expected, 1e-6).tolist() == [False, False, False, True, True, True, True, False]


@pytest.mark.parametrize(("dtype", "largest"), [("f16", 65504.0), ("f32", 3.4028234663852886e38)])
def test_nan_to_num_has_the_ends_of_its_dtype(dtype: str, largest: float) -> None:
    shape = (T.size("N"),)
    (found,) = read(lambda x, y: torch.nan_to_num(x / y), {"x": (dtype, shape), "y": (dtype, shape)})
    numbers = {s.attr for s in found.term.walk() if s.is_const}
    assert {largest, -largest} <= numbers


def test_a_loop_of_launches_is_read_to_its_first_rounds() -> None:
    """Sizes at which the host function launches more kernels are excluded by a clause, not looked for without end."""
    (proof,) = prove(kernels.in_parts)
    assert proof.verdict.value == "PROVED", proof.reason
    assert "N <= 16777216" in [c.text for c in proof.contract]


@pytest.mark.parametrize("name", ["shifted_in_place", "halo_in_place"])
def test_an_order_of_programs_is_looked_for_where_there_are_several(name: str) -> None:
    (proof,) = prove(getattr(kernels, name))
    assert proof.verdict.value in ("UNKNOWN", "REFUTED"), proof.reason


def test_none_in_place_of_a_tensor_is_a_difference() -> None:
    (wrong,), (right,) = prove(kernels.second_is_none), prove(kernels.second_is_none_too)
    assert wrong.verdict.value == "UNKNOWN" and "result 0 of the reference is None" in wrong.reason
    assert right.verdict.value == "PROVED", right.reason


def test_pointers_of_the_host_are_followed() -> None:
    for name in ("through_pointers", "past_the_first"):
        (proof,) = prove(getattr(kernels, name))
        assert proof.verdict.value == "PROVED", proof.reason
    (wrong,) = prove(kernels.at_the_first)
    assert wrong.verdict.value == "REFUTED", wrong.reason


@pytest.mark.parametrize("name, right", [("share", True), ("no_share", False)])
@pytest.mark.parametrize("number", [-10001.0, 10001.0])
def test_nan_of_numbers_that_float64_does_not_have_is_no_difference(name: str, right: bool, number: float) -> None:
    trace = capture(getattr(kernels, name), {"N": 1})
    inputs = {"x": np.array([number])}
    got = run_kernel(trace, inputs).values["out"]
    assert np.isnan(got).all()
    assert right_where_rounded(trace, inputs, "out", np.ones(1), np.full(1, np.inf)).all() == right
