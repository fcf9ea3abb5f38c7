"""Verdicts where lanes exchange elements, where a function leaves more than its result, and of tensor descriptors."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from tests.kernels import kernels_lanes as K
from trilift.verify.audit.examination import audit
from trilift.verify.model.verdict import Proof, Verdict
from trilift.verify.pipeline import Examined, examine


@cache
def found(name: str, fallback: bool = False) -> Examined:
    return examine(getattr(K, name), fallback=fallback)


def proofs(name: str) -> dict[str, Proof]:
    return {p.claim.output: p for p in found(name).proofs}


def texts(p: Proof, kind: str) -> list[str]:
    return [c.text for c in p.contract if c.kind == kind]


MISSING = [
    "wrong_no_barrier", "wrong_barrier_before", "wrong_barrier_in_one_branch", "wrong_transpose", "wrong_shift",
    "wrong_other_tile", "wrong_scalar", "wrong_roll_in_place",
]  # fmt: skip
ORDERED = [
    "right_barrier", "right_barrier_in_both_branches", "right_two_launches", "right_transpose", "right_other_tile",
    "right_scalar", "right_softmax_in_place", "right_own_lane",
]  # fmt: skip


@pytest.mark.parametrize("name", MISSING)
def test_lanes_that_meet_without_a_barrier_are_not_proved(name: str) -> None:
    open_ = [p for p in found(name).proofs if p.verdict is not Verdict.PROVED]
    assert open_
    assert any("put tl.debug_barrier() between" in c.why for x in found(name).provings for c in x.conditions)


@pytest.mark.parametrize("name", ORDERED)
def test_lanes_with_a_barrier_between_are_proved(name: str) -> None:
    for p in found(name).proofs:
        assert p.verdict is Verdict.PROVED, p.reason


def test_a_shift_in_place_has_a_barrier_for_its_tiles_but_not_for_its_iterations() -> None:
    """The load of the next iteration is of elements that no store of this one touches."""
    assert not any(c.kind == "order of lanes" for x in found("right_shift").provings for c in x.conditions)


def test_the_reason_names_both_lines() -> None:
    reason = proofs("wrong_no_barrier")["out"].reason
    assert "the store of" in reason and "comes before the load of" in reason and reason.count(" line ") == 4


def test_a_lane_that_loads_what_it_stored_rests_on_its_thread() -> None:
    (clause,) = texts(proofs("right_own_lane")["out"], "lanes")
    assert clause.startswith("one thread ") and "stores (line " in clause and "loads (line " in clause
    assert not texts(proofs("right_softmax_in_place")["out"], "lanes")
    assert not texts(proofs("right_barrier")["out"], "lanes")


def test_nothing_is_tested_while_lanes_may_meet() -> None:
    (p,) = found("wrong_no_barrier", fallback=True).proofs
    assert p.verdict is Verdict.UNKNOWN


@pytest.mark.parametrize("name", ["wrong_no_barrier", "wrong_roll_in_place", "wrong_transpose"])
def test_the_audit_finds_lanes_that_meet(name: str) -> None:
    rules = {f.rule: f for f in audit(getattr(K, name), found=found(name)).findings}
    assert "lanes of one program meet at one element" in rules["missing-barrier"].message


def test_the_audit_is_silent_with_a_barrier() -> None:
    rules = {f.rule for f in audit(K.right_barrier, found=found("right_barrier")).findings}
    assert "missing-barrier" not in rules


# ---- the memory of the caller ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("wrong_in_place", "out lies in the memory of x, the reference returns a new tensor"),
        ("wrong_changes_its_input_too", "the reference leaves x alone"),
        ("wrong_zeroes_its_input", "the reference leaves x alone"),
    ],
)
def test_an_input_that_the_reference_leaves_alone_is_refuted(name: str, why: str) -> None:
    p = {p.claim.output: p for p in found(name, fallback=True).proofs}["x"]
    assert p.verdict is Verdict.REFUTED
    assert p.counterexample is not None and why in p.counterexample.why


def test_a_buffer_that_is_kept_is_no_result() -> None:
    p = proofs("wrong_buffer_is_kept")["out"]
    assert p.verdict is Verdict.UNKNOWN and "the next may overwrite it" in p.reason


def test_shared_memory_is_told() -> None:
    shared = proofs("shares_its_outputs")
    assert texts(shared["out1"], "memory") == ["out1 shares its memory with out0"]
    assert not texts(shared["out0"], "memory")


def test_what_the_reference_does_in_place_may_be_done_in_place() -> None:
    both = proofs("right_in_place")
    assert {n: p.verdict for n, p in both.items()} == {"out": Verdict.PROVED, "x": Verdict.PROVED}
    assert not texts(both["out"], "memory")


def test_autotuning_in_place_is_not_proved() -> None:
    for p in proofs("wrong_tuned_in_place").values():
        assert p.verdict is Verdict.UNKNOWN and "broken-contract: autotuning runs doubled several times" in p.reason
    assert all(p.verdict is Verdict.PROVED for p in proofs("right_tuned_and_restored").values())


# ---- tensor descriptors ----------------------------------------------------------------------------------------------


def test_strides_of_descriptors_are_multiples_of_16_bytes() -> None:
    p = proofs("any_width")["out"]
    assert p.verdict is not Verdict.PROVED or "4 * N % 16 == 0" in texts(p, "descriptor")
    assert p.verdict is Verdict.PROVED, p.reason
    assert "4 * N % 16 == 0" not in texts(proofs("right_width")["out"], "descriptor")


def test_the_base_of_a_descriptor_is_at_a_multiple_of_16_bytes() -> None:
    p = proofs("any_width_from_the_second_row")["out"]
    assert "4 * N % 16 == 0" in texts(p, "descriptor")
    assert "the memory of x starts at a multiple of 16 bytes" in texts(p, "descriptor")


# ---- what Triton does ------------------------------------------------------------------------------------------------


def compiled(how: str) -> Any:
    """The PTX of the kernel for sm_90; skips where this Triton cannot make it."""
    triton = pytest.importorskip("triton")
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    names = ("x_ptr", "t_ptr", "out_ptr")
    signature = {**dict.fromkeys(names, "*fp32"), "BLOCK": "constexpr", "HOW": "constexpr"}
    source = ASTSource(K.through_scratch, signature, {"BLOCK": 256, "HOW": how}, {})
    try:
        return triton.compile(source, target=GPUTarget("cuda", 90, 32)).asm["ptx"]
    except (RuntimeError, KeyError) as error:
        pytest.skip(f"no PTX: {error}")


def test_triton_puts_a_barrier_where_the_kernel_has_one() -> None:
    between = [line for line in compiled("between").splitlines() if "bar.sync" in line or ".global." in line]
    without = compiled("none")
    assert "bar.sync" not in without and "st.global" in without
    kinds = ["bar" if "bar.sync" in x else "st" if "st.global" in x else "ld" for x in between if "visible" not in x]
    assert kinds.index("bar") > kinds.index("st") and "ld" in kinds[kinds.index("bar") :]


def test_barriers_of_shared_memory_alone_order_nothing() -> None:
    from trilift.lift.ttir.ir import Op
    from trilift.verify.model.barriers import joins_global_memory

    assert joins_global_memory(Op("gpu.barrier", [], [], {}))
    assert joins_global_memory(Op("ttg.barrier", [], [], {"addrSpace": 31}))
    assert not joins_global_memory(Op("ttg.barrier", [], [], {"addrSpace": 1}))


@pytest.mark.parametrize(
    "name", ["doubled_by_two_lanes", "counted_by_sixteen_lanes", "doubled_in_two_columns", "doubled_at_the_last"]
)
def test_an_element_that_two_lanes_change_is_left_open(name: str) -> None:
    """A store waits for the load of its own lane, and another lane may load after it."""
    every = found(name, fallback=True).proofs
    assert {p.verdict for p in every} == {Verdict.UNKNOWN}
    assert all("two lanes load and change one element" in p.reason for p in every)


def test_an_element_that_its_lane_changes_is_proved() -> None:
    assert {p.verdict for p in found("doubled_by_one_lane").proofs} == {Verdict.PROVED}


def test_loads_before_a_store_of_which_it_needs_the_last_rest_on_their_thread() -> None:
    """The store waits for one of three loads of its element; that the others come before it is of one thread."""
    for p in found("summed_before_it_is_stored").proofs:
        assert p.verdict is Verdict.PROVED and texts(p, "lanes")
