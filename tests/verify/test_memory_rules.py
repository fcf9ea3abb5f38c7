"""The rules about memory, integers and calls: each fires on its kernel, at its line, and is silent on right ones."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import kernels_audit as K
import pytest

from trilift.lift import Case
from trilift.verify import prove
from trilift.verify.audit.evidence import Evidence
from trilift.verify.audit.examination import _findings, _runs, audit
from trilift.verify.audit.finding import Finding
from trilift.verify.audit.rules import ORDER, page, rules
from trilift.verify.model.verdict import Verdict
from trilift.verify.runs.goals import targets

SOURCE = Path(K.__file__).read_text().splitlines()
HEADINGS = ("What it does", "Why it is bad", "Example", "Instead")
RUNS = 8


def findings(case: Case) -> list[Finding]:
    """Of every rule on watched runs, without a proof."""
    goal = targets(case) if case.reference else None
    runs = tuple(islice(_runs(case, (), 0), RUNS))
    assert runs, f"{case.name} was never run"
    evidence = Evidence(case, None, goal, (), (), runs, 0)
    found = list(_findings(evidence, lambda stage: None))
    assert evidence.unknown == []
    return found


WRONG = [
    (K.tail_not_masked, "out-of-bounds", "# loads the tail"),
    (K.before_the_first, "out-of-bounds", "# loads what is before the first"),
    (K.index_of_no_row, "out-of-bounds", "# loads any row"),
    (K.sum_stored_by_all, "write-race", "# each program its own sum"),
    (K.work_is_not_divided, "write-race", "# every program stores all"),
    (K.stored_twice, "write-race", "# over the zeros"),
    (K.gradient_not_added, "write-race", "# where the index says"),
    (K.neighbours_in_place, "read-write-race", "# what the program before loads"),
    (K.released_too_early, "read-write-race", "# not all threads have stored"),
    (K.grid_rounded_down, "unwritten-output", "# the tail is not written"),
    (K.upper_triangle_left_out, "unwritten-output", "# half of it is written"),
    (K.masked_lanes_added, "undefined-value", "# lanes beyond the row are added"),
    (K.masked_lanes_times_zero, "undefined-value", "# 0 times undefined"),
    (K.scratch_not_written, "undefined-value", "# nobody wrote it"),
    (K.offsets_in_32_bits, "int32-overflow", "# 32 bits"),
    (K.long_row_in_32_bits, "int32-overflow", "# wraps"),
    (K.strides_ignored, "broken-contract", "# launched here"),
    (K.rows_along_y, "broken-contract", "# rows along y"),
    (K.added_to_nothing, "broken-contract", "# without contents"),
    (K.tuned_in_place, "broken-contract", "# runs several times"),
    (K.tuned_with_the_grid_of_one, "broken-contract", "# for blocks of 32"),
    (K.last_column_left_out, "wrong-result", "# the sum"),
]
RIGHT = [
    K.pointer_is_clamped, K.mask_on_both_ends, K.sizes_are_multiples, K.index_of_a_row, K.index_that_is_checked,
    K.sum_added_by_all, K.count_stored_by_all, K.sum_stored_by_one, K.work_is_divided, K.stored_twice_with_barrier,
    K.stored_twice_by_one_thread, K.scattered, K.scattered_as_torch_does,
    K.mean_stored_by_every_head, K.neighbours, K.doubled_in_place,
    K.added_by_its_own_program, K.released_after_the_barrier, K.grid_rounded_down_on_zeros, K.grid_without_a_rest,
    K.padded_and_cut, K.upper_triangle_of_zeros, K.masked_lanes_are_zero, K.masked_lanes_replaced,
    K.masked_lanes_not_stored, K.scratch_written_before, K.offsets_in_64_bits, K.large_tensors_excluded,
    K.large_tensors_refused, K.long_row_in_64_bits, K.strides_used, K.made_contiguous, K.row_no_longer_than_the_block,
    K.rows_along_x, K.added_to_zeros, K.tuned_in_place_and_restored, K.tuned_sum_set_to_zero, K.tuned_with_its_own_grid,
    K.all_columns,
]  # fmt: skip


@pytest.mark.parametrize(("case", "rule", "mark"), WRONG, ids=[c.name for c, *_ in WRONG])
def test_is_found_at_its_line(case: Case, rule: str, mark: str) -> None:
    found = findings(case)
    assert [(f.rule, SOURCE[f.place.line - 1].count(mark) if f.place else 0) for f in found] == [(rule, 1)]
    assert found[0].message and found[0].hint and found[0].steps


@pytest.mark.parametrize("case", RIGHT, ids=[c.name for c in RIGHT])
def test_is_silent(case: Case) -> None:
    assert findings(case) == []


def test_a_row_longer_than_the_block_is_the_wrappers_mistake() -> None:
    found = audit(K.row_longer_than_the_block)
    assert [p.verdict for p in found.proofs] == [Verdict.REFUTED]
    [f] = found.findings
    assert f.rule == "broken-contract" and "N <= 16" in f.message
    assert f.place is not None and "# launched here" in SOURCE[f.place.line - 1]


def test_zero_times_infinity_is_not_zero() -> None:
    verdicts = [[p.verdict for p in prove(c)] for c in (K.zero_times_a_number, K.zero_times_infinity)]
    assert verdicts[0] == [Verdict.PROVED] and Verdict.PROVED not in verdicts[1]


@pytest.mark.parametrize("rule", ORDER)
def test_every_rule_has_a_page(rule: str) -> None:
    text = page(rule)
    assert text.startswith(f"# {rule}\n") and rules()[rule].summary
    assert [line[3:] for line in text.splitlines() if line.startswith("## ")] == list(HEADINGS)
    assert max(len(line) for line in text.splitlines()) <= 130
