"""What a single call at a few sizes does not show: memory that calls hand on, results of another size, and globals that
change."""

from __future__ import annotations

import kernels_kept as K
import kernels_launch_globals as G
import kernels_launch_libraries as L
import pytest
import triton

from trilift import case
from trilift.lift import lift
from trilift.lift.cases.declaration import Case
from trilift.lift.errors import CaseError, Unsupported
from trilift.reports.base.targets import Named
from trilift.reports.commands.prove import compared
from trilift.reports.records.options import Options
from trilift.verify import equal, prove


@pytest.mark.parametrize("c", K.STATE, ids=lambda c: c.name)
def test_what_hangs_on_earlier_calls_is_neither_proved_nor_tested(c: Case) -> None:
    (proof,) = prove(c)
    assert proof.verdict.value == "UNKNOWN"
    assert "total_kernel finds in a f32 tensor what an earlier call of the host function left there" in proof.reason


@pytest.mark.parametrize("c", K.SHORT, ids=lambda c: c.name)
def test_a_result_of_another_size_is_refuted(c: Case) -> None:
    (proof,) = prove(c)
    assert proof.verdict.value == "REFUTED" and proof.counterexample is not None
    assert "shape" in proof.counterexample.why


@pytest.mark.parametrize("c", K.RIGHT, ids=lambda c: c.name)
def test_right_ones_stay_proved(c: Case) -> None:
    assert [p.verdict.value for p in prove(c)] == ["PROVED"]


def test_new_zeros_are_zeros_in_every_call() -> None:
    assert [p.verdict.value for p in prove(K.added_to_zeros)] == ["PROVED"]


@pytest.mark.parametrize("c", K.MOVED, ids=lambda c: c.name)
def test_an_argument_that_becomes_another_tensor_is_not_followed(c: Case) -> None:
    with pytest.raises(Unsupported, match="the host function makes another tensor of its argument x"):
        prove(c)


def test_a_wrong_lifted_formula_refutes_no_kernel() -> None:
    (proof,) = prove(K.lifted_as_doubled, lifted=lift(K.lifted_as_doubled))
    assert proof.verdict.value == "UNKNOWN" and proof.counterexample is None
    assert proof.reason.startswith("the lifted formula differs from what the kernel computes at N = 17: out is ")
    assert [p.verdict.value for p in prove(K.refuted_as_doubled)] == ["REFUTED"]


def test_both_kernels_of_a_comparison_keep_their_own_conditions() -> None:
    file = K.__file__
    found = compared(Named(file, "of_every_size"), Named(file, "up_to_eight"), Options())
    ours, theirs = found["proofs"]
    assert found["verdict"] == "PROVED" and theirs["output"] == "up_to_eight: out"
    assert "dims" not in ours and theirs["dims"] == ["N"]
    assert [c["text"] for c in theirs["contract"] if c["kind"] == "case"] == ["N <= 8"]
    assert "K <= 8" in [c["text"] for c in ours["contract"]]


def test_inputs_of_two_dtypes_are_no_comparison() -> None:
    wide, narrow = (case(x=f"{d}[N]")(K.tripled_at_17) for d in ("i64", "i32"))
    with pytest.raises(CaseError, match="x of tripled_at_17 is i32 and x of tripled_at_17 is i64"):
        equal(narrow, wide)


@pytest.mark.parametrize("c", [G.FOR_ONCE, G.FORMED, *G.READ, *L.RIGHT], ids=lambda c: c.name)
def test_a_launch_is_of_what_its_kernel_reads_then(c: Case) -> None:
    assert [p.verdict.value for p in prove(c)] == ["PROVED"]


@pytest.mark.parametrize(
    "c",
    [G.WRONG_FOR_ONCE, G.WRONG_WHERE_LONG, G.WRONG_FORMED, *G.READ_LATER, *G.IN_PLACE_LATER, *L.WRONG],
    ids=lambda c: c.name,
)
def test_what_a_kernel_would_read_later_is_refuted(c: Case) -> None:
    (proof,) = prove(c)
    assert proof.verdict.value == "REFUTED" and proof.counterexample is not None


def test_a_kernel_launched_again_with_another_global_is_not_followed() -> None:
    with pytest.raises(Unsupported, match="ALTERNATING, which alternating_kernel reads, is not what it was"):
        prove(G.ALTERNATED)


def test_a_plain_global_that_triton_is_told_to_read_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(triton.knobs.compilation, "allow_non_constexpr_globals", True)
    with pytest.raises(Unsupported, match="PLAIN, which plain_kernel reads, is not what it was"):
        prove(L.TWICE)


def test_a_global_that_is_not_equal_to_its_copy_is_an_error_of_triton() -> None:
    with pytest.raises(Unsupported, match="NOT_A_NUMBER, which nan_kernel reads, is not equal to a copy of itself"):
        prove(L.COPIED)


@pytest.mark.parametrize(
    "c, name", [(G.CHANGED_IN_PLACE, "TABLE, which looked_up"), (G.ARGUMENT, "FACTORS, which argu")]
)
def test_what_is_changed_in_place_after_a_launch_is_not_proved(c: Case, name: str) -> None:
    (proof,) = prove(c)
    assert proof.verdict.value == "TESTED" and proof.reason.startswith(name)
    assert proof.reason.endswith("was changed in place after a launch")


def test_what_is_not_known_exactly_is_not_followed() -> None:
    with pytest.raises(Unsupported, match="launch_numbers, which of_module reads while it is compiled, is not known"):
        prove(G.UNKNOWN)


def test_functions_of_one_source_have_their_own_default_values() -> None:
    assert [p.verdict.value for p in prove(G.DEFAULTS)] == ["PROVED", "PROVED"]
    assert "REFUTED" in [p.verdict.value for p in prove(G.ONE_DEFAULT)]


@pytest.mark.parametrize("c", G.READ_EARLY)
def test_a_global_that_changes_after_triton_read_the_kernel_is_not_followed(c: Case) -> None:
    with pytest.raises(Unsupported, match="EARLY, which early_[a-z]+ reads, is not what it was when Triton read"):
        prove(c)


def test_a_kernel_that_was_a_key_of_a_dictionary_is_proved() -> None:
    key = G.steady_kernel.hash
    assert [p.verdict.value for p in prove(G.READ_STEADY)] == ["PROVED"]
    assert key is not None and G.steady_kernel.hash == key
