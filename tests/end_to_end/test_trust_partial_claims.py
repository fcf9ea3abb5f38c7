"""Of two kernels that differ, the sizes at which they are equal are told only where that is proved of both."""

from __future__ import annotations

import pytest

from tests.kernels import kernels_partial as K
from trilift.reports.base.targets import Named
from trilift.reports.commands.prove import compared
from trilift.reports.records import verdict_text
from trilift.reports.records.options import Options, Proving
from trilift.reports.records.record import record
from trilift.verify import equal, prove
from trilift.verify.model.verdict import Proof, Verdict

EVEN, HEAD = "N % 32 == 0", "in real numbers it holds for all"


def clauses(p: Proof) -> list[str]:
    assert p.verdict is Verdict.REFUTED
    return [c.text for c in p.contract]


@pytest.mark.slow
def test_a_kernel_that_is_read_by_a_wrong_formula_has_no_partial_claim() -> None:
    found, *theirs = equal(K.all_tiles, K.some_tiles, timeout=12)
    assert not clauses(found)
    assert "PROVED" not in {p.verdict.value for p in theirs}


def test_a_kernel_that_is_proved_to_compute_its_formula_has_one() -> None:
    found, theirs = equal(K.sums_with_ones, K.sums, timeout=60)
    assert theirs.verdict is Verdict.PROVED
    assert {EVEN, "32 * ((N + 31) // 32) < 2^31"} <= {*clauses(found)}


def test_a_reference_of_pytorch_has_one() -> None:
    (found,) = prove(K.sums_with_ones, timeout=60)
    assert EVEN in clauses(found)


def test_conditions_in_other_names_are_not_taken_for_the_same() -> None:
    assert not clauses(equal(K.sums_with_ones, K.sums_of_other_names, timeout=60)[0])


def test_the_text_has_the_claims_of_the_record() -> None:
    first, second = (Named(K.__file__, n) for n in ("sums_with_ones", "sums"))
    told = compared(first, second, Options(timeout=90, proving=Proving(timeout=60)))
    assert HEAD in verdict_text.case(told) and EVEN in told["contract"]


def test_the_path_for_which_it_was_shown_is_told() -> None:
    found = record(K.wrong_where_contiguous, Options(proving=Proving()), lambda event: None)
    text = verdict_text.case(found)
    assert HEAD in text and "x is not contiguous" in text.partition(HEAD)[2]
