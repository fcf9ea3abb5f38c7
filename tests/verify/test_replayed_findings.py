"""The replay scripts of findings: of every rule that offers one it runs and shows what the finding says."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import islice
from pathlib import Path

import kernels_audit as A
import kernels_values as V
import pytest

from trilift.lift import Case
from trilift.verify.audit.evidence import Evidence
from trilift.verify.audit.examination import _findings, _runs
from trilift.verify.audit.finding import Finding
from trilift.verify.audit.rules import ORDER, nan_risk, overflow_risk, precision_loss
from trilift.verify.refutation.replayed_memory import faults
from trilift.verify.runs.goals import targets

ROOT = Path(__file__).parents[2]
RUNS = 8
OFFERED = [
    (A.tail_not_masked, "out-of-bounds", "access out of bounds"),
    (A.index_of_no_row, "out-of-bounds", "access out of bounds"),
    (A.sum_stored_by_all, "write-race", "where they run backwards"),
    (A.stored_twice, "write-race", "is stored as"),
    (A.gradient_not_added, "write-race", "where they run backwards"),
    (A.neighbours_in_place, "read-write-race", "is loaded by program"),
    (A.grid_rounded_down, "unwritten-output", "is never written"),
    (A.masked_lanes_added, "undefined-value", "is nan: "),
    (A.scratch_not_written, "undefined-value", "is nan: "),
    (A.offsets_in_32_bits, "int32-overflow", "and in 32 bits"),
    (A.strides_ignored, "broken-contract", ""),
    (A.added_to_nothing, "broken-contract", "plus the previous contents of memory"),
    (A.tuned_with_the_grid_of_one, "broken-contract", ""),
    (A.last_column_left_out, "wrong-result", "the reference gives"),
    (V.softmax_naive, "overflow-risk", "the reference gives"),
    (V.masked_softmax_nan, "nan-risk", "is nan"),
    (V.gelu_rough, "precision-loss", "the reference gives"),
]
SILENT = (A.work_is_not_divided, A.released_too_early, A.rows_along_y, A.tuned_in_place)  # no single run shows these
WITHOUT = {"missing-barrier"}  # rules that offer no script


def findings(case: Case) -> list[Finding]:
    """Of the rules on watched runs, or on samples, without a proof."""
    if hasattr(V, case.name):
        return [f for rule in (overflow_risk, nan_risk, precision_loss) for f in rule.check(_known(case))]
    return list(_findings(_known(case), lambda stage: None))


def _known(case: Case) -> Evidence:
    goal = targets(case) if case.reference and not hasattr(V, case.name) else None
    return Evidence(case, None, goal, (), (), tuple(islice(_runs(case, (), 0), RUNS)), 0)


def shown(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    (folder / "again.py").write_text(script)
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "again.py"], cwd=folder, env=env, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(("case", "rule", "says"), OFFERED, ids=[c.name for c, *_ in OFFERED])
def test_the_script_of_a_finding_shows_it(case: Case, rule: str, says: str, tmp_path: Path) -> None:
    found = next(f for f in findings(case) if f.rule == rule)
    done = shown(found.replay, tmp_path)
    assert done.returncode == 1 and "Traceback" not in done.stderr, done.stdout + done.stderr
    assert says in done.stdout and (case.name in done.stdout or rule == "int32-overflow"), done.stdout


@pytest.mark.parametrize("case", SILENT, ids=lambda c: c.name)
def test_what_no_run_shows_has_no_script(case: Case) -> None:
    assert [f.replay for f in findings(case)] == [""]


def test_every_rule_is_here() -> None:
    assert {rule for _, rule, _ in OFFERED} | WITHOUT == set(ORDER)


@pytest.mark.parametrize(
    ("sound", "dims"),
    [(A.sum_added_by_all, {"N": 70}), (A.stored_twice_with_barrier, {"M": 3, "N": 5}), (A.neighbours, {"N": 70})],
    ids=lambda x: getattr(x, "name", ""),
)
def test_nothing_is_shown_of_a_sound_kernel(sound: Case, dims: dict[str, int]) -> None:
    assert faults(sound, dims, 0, 0) == []


def test_a_script_that_cannot_run_says_so(tmp_path: Path) -> None:
    """It is neither the finding nor its absence: the exit code is 2."""
    found = next(f for f in findings(A.sum_stored_by_all) if f.rule == "write-race")
    done = shown(found.replay.replace("'sum_stored_by_all'", "'gone'"), tmp_path)
    assert done.returncode == 2 and "cannot be run" in done.stdout, done.stdout + done.stderr
