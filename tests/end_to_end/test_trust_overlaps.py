"""Elements that share memory are not proved: of an output, of an input that PyTorch lays out another tensor by."""

from pathlib import Path

import pytest

from trilift.lift.capture.case_files import load
from trilift.verify.model.verdict import Proof, Verdict
from trilift.verify.pipeline import prove

CASES = {c.name: c for c in load(str(Path(__file__).parents[1] / "kernels" / "kernels_overlaps.py"))}
APART = "no two elements of x share memory"


def proved(name: str) -> Proof:
    (p,) = prove(CASES[name])
    return p


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(n for n in CASES if n.startswith("wrong_")))
def test_an_output_whose_rows_overlap_is_refuted(name: str) -> None:
    p = proved(name)
    assert p.verdict is Verdict.REFUTED and p.counterexample is not None, p.reason
    assert p.counterexample.dims["N"] > 1000


@pytest.mark.parametrize("name", sorted(n for n in CASES if n.startswith("right_")))
def test_rows_that_lie_apart_are_proved(name: str) -> None:
    p = proved(name)
    assert p.verdict is Verdict.PROVED, p.reason
    assert APART not in [c.text for c in p.contract]


@pytest.mark.parametrize("name", sorted(n for n in CASES if n.startswith("clause_")))
def test_an_input_by_which_another_tensor_lies_must_not_overlap(name: str) -> None:
    p = proved(name)
    assert p.verdict is Verdict.PROVED, p.reason
    assert APART in [c.text for c in p.contract]


def test_a_copy_that_is_written_is_one_only_as_the_input_lies() -> None:
    found = {n: [p for p in prove(CASES[n]) if p.claim.output == "out"] for n in ("copy_or_not", "copy_always")}
    copies = {n: [c.text for p in ps for c in p.contract if "copies" in c.text] for n, ps in found.items()}
    assert copies == {"copy_or_not": ["`contiguous` copies x"], "copy_always": []}
    assert all(p.verdict is Verdict.PROVED for ps in found.values() for p in ps)


def test_an_offset_from_the_start_of_the_storage_is_named() -> None:
    p = proved("seen_from_the_start")
    assert p.verdict is Verdict.PROVED, p.reason
    assert "the storage offset of x is 0" in [c.text for c in p.contract]


def test_a_tensor_that_is_given_other_memory_is_refused() -> None:
    p = proved("other_memory")
    assert p.verdict is Verdict.UNKNOWN and "aten.set_" in p.reason
