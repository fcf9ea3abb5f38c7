"""References that PyTorch computes by the type of their input, or does not determine, and formulas with a scalar that
data is compared with."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

from trilift.lift import lift
from trilift.lift.cases.declaration import Case
from trilift.lift.errors import CaseError, Unsupported
from trilift.verify import prove
from trilift.verify.model.verdict import Proof, Verdict

sys.path[:0] = [str(Path(__file__).parents[1] / "kernels")]
import kernels_references as K  # noqa: E402


def proofs(c: Case) -> tuple[Proof, ...]:
    return prove(c, timeout=60)


def verdicts(c: Case) -> set[Verdict]:
    return {p.verdict for p in proofs(c)}


def test_eps_that_is_left_out_is_that_of_the_type_computed_in() -> None:
    assert verdicts(K.eps_of_f32) == {Verdict.PROVED}
    assert verdicts(K.eps_of_f16) == {Verdict.REFUTED}


def test_the_ends_of_nan_to_num_are_those_of_the_type() -> None:
    for right in (K.ends_of_f16, K.ends_of_f32):
        assert Verdict.REFUTED not in verdicts(right)
    assert verdicts(K.other_ends) == {Verdict.REFUTED}


@pytest.mark.parametrize("c", [K.put_and_added, K.put_one_number], ids=lambda c: c.name)
def test_writes_in_any_order(c: Case) -> None:
    (proof,) = proofs(c)
    assert proof.verdict is Verdict.PROVED and not any("twice" in x.text for x in proof.contract)


def test_the_last_of_several_writes_is_a_clause() -> None:
    (proof,) = proofs(K.put)
    assert proof.verdict is Verdict.PROVED
    said = [c.text for c in proof.contract if "twice" in c.text]
    assert said == ["index_put writes no element twice", "scatter writes no element twice"]


def test_dicts_are_compared_by_their_keys() -> None:
    assert verdicts(K.by_key) == {Verdict.PROVED} and not lift(K.by_key).mismatches
    assert verdicts(K.by_key_wrong) == {Verdict.REFUTED} and lift(K.by_key_wrong).mismatches


def test_a_formula_is_run_where_the_data_meets_a_scalar() -> None:
    """A padding index is among the indices only where it is small; the formula that was found knew one of them."""
    (out,) = lift(K.padded_rows).outputs
    assert out.formula is None and "differs from what the kernel computes" in str(out.error)


@pytest.mark.parametrize("name", [n for n in K.ASKING if n.startswith("asks")])
def test_what_a_reference_asks_of_the_world_outside_is_said(name: str) -> None:
    (proof,) = prove(K.ASKING[name], fallback=False)
    assert proof.verdict is Verdict.PROVED, proof.reason
    said = {"asks_variable": "TRILIFT_TEST_ASKED is not set", "asks_threads": "torch.get_num_threads() is "}[name]
    assert any(said in c.text for c in proof.contract if c.kind == "config")


@pytest.mark.parametrize("name", [n for n in K.ASKING if n.startswith("loses")])
def test_what_another_call_gets_otherwise_proves_nothing(name: str) -> None:
    (proof,) = prove(K.ASKING[name], fallback=False)
    assert proof.verdict is Verdict.UNKNOWN and "the reference computes with" in proof.reason


def test_each_branch_of_a_reference_keeps_its_condition() -> None:
    (proof,) = prove(K.two_branches, fallback=False)
    assert proof.verdict is Verdict.PROVED, proof.reason
    assert not [c.text for c in proof.contract if c.kind == "shape" and "s" in c.text.split()]


@pytest.mark.parametrize("name", K.ON_GPU)
def test_a_reference_that_asks_where_its_inputs_lie_finds_them_on_the_gpu(name: str) -> None:
    assert verdicts(K.told_on_gpu[name]) == {Verdict.PROVED}
    assert verdicts(K.told_on_cpu[name]) == {Verdict.REFUTED}


@pytest.mark.slow
def test_an_element_that_is_rounded_as_its_dtype_has_it_refutes_nothing() -> None:
    """Where a kernel takes a number for its bits, these are of the rounded number, and the reference's are not."""
    for right in (K.bits_rounded, K.bits_widened):
        assert verdicts(right) <= {Verdict.UNKNOWN, Verdict.TESTED}
    (found,) = proofs(K.bits_cut)
    assert found.verdict is Verdict.REFUTED and found.counterexample is not None
    kernel, usual = found.counterexample.got, found.counterexample.expected
    assert float(torch.tensor(usual).to(torch.bfloat16)) != kernel


def test_numbers_and_texts_beside_tensors_are_not_compared() -> None:
    assert verdicts(K.number_beside) == {Verdict.PROVED}
    assert verdicts(K.wrong_beside_a_number) == {Verdict.REFUTED}


def test_a_parameter_may_have_the_name_of_an_output() -> None:
    assert [(p.claim.output, p.verdict) for p in proofs(K.written_and_returned)] == [
        ("out_", Verdict.PROVED),
        ("out", Verdict.PROVED),
    ]
    assert {p.claim.output: p.verdict for p in proofs(K.spoilt_beside)}["out"] is Verdict.REFUTED


def test_a_result_may_be_written_where_the_caller_says() -> None:
    (p,) = proofs(K.right_destination)
    assert p.verdict is Verdict.PROVED and "out shares its memory with y" in {c.text for c in p.contract}
    assert verdicts(K.wrong_destination) == {Verdict.REFUTED}
    assert {p.claim.output: p.verdict for p in proofs(K.returned_while_small)}["y"] is Verdict.REFUTED
    assert {p.claim.output: p.verdict for p in proofs(K.read_by_the_reference)}["y"] is Verdict.REFUTED


def test_a_reference_that_exits_is_an_error_of_the_case() -> None:
    with pytest.raises(CaseError, match="raised SystemExit"):
        proofs(K.that_exits)


def test_a_clause_about_data_says_which_sign_a_scalar_has_in_it() -> None:
    (p,) = proofs(K.least_minus)
    (wraps,) = [c.text for c in p.contract if c.kind == "nowrap" and "x[" in c.text]
    assert p.verdict is Verdict.PROVED and "min(-s, 0)" in wraps
    assert wraps.endswith(", with -s in place of s, where s < 0")


@pytest.mark.parametrize(
    "c",
    [K.fraction_of_a_size, K.fraction_by_divmod, K.fraction_of_a_scalar],
    ids=("size", "divmod", "scalar"),
)
def test_a_remainder_of_floats_is_no_integer(c: Case) -> None:
    assert Verdict.PROVED not in verdicts(c)


def test_a_remainder_of_floats_is_a_number_that_is_compared() -> None:
    with pytest.raises(Unsupported, match="a comparison of rounded numbers"):
        verdicts(K.fraction_as_a_condition)


def test_a_right_remainder_of_floats_is_not_refuted() -> None:
    assert Verdict.REFUTED not in verdicts(K.half_of_the_parity)
