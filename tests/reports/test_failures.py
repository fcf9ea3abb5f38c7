"""Counterexamples are kept by file and case, and come back as they were."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from trilift.reports.records import unfinished
from trilift.reports.records.proof_record import counterexample
from trilift.reports.runner import failures
from trilift.verify.model.verdict import Counterexample

FOUND = Counterexample({"M": 3, "eps": 0.5}, 7, 1, "out", (2, 4), 1.5, 2.5)


def record(file: Path, *found: Counterexample) -> dict[str, Any]:
    proofs = [{"counterexample": counterexample(c, None)} for c in found] or [{"counterexample": None}]
    return unfinished.empty(str(file), "one", "", "") | {"proofs": proofs}


def test_what_is_kept_comes_back(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    failures.keep([record(file, FOUND)], tmp_path)
    failures.keep([record(file, FOUND)], tmp_path)
    assert failures.known(str(file), "one", tmp_path) == [FOUND]
    assert failures.known(str(file), "two", tmp_path) == []


def test_an_access_out_of_bounds_has_no_numbers(tmp_path: Path) -> None:
    found = Counterexample({"M": 3}, 0, 0, "", (), math.nan, math.nan, why="out of bounds")
    failures.keep([record(tmp_path / "a.py", found)], tmp_path)
    [again] = failures.known(str(tmp_path / "a.py"), "one", tmp_path)
    assert math.isnan(again.got) and math.isnan(again.expected) and again.why == "out of bounds"


def test_the_newest_come_first_and_not_all(tmp_path: Path) -> None:
    many = [Counterexample({"M": m}, 0, 0, "out", (0,), 0.0, 1.0) for m in range(failures.KEPT_FAILURES + 3)]
    failures.keep([record(tmp_path / "a.py", *many)], tmp_path)
    got = [c.dims["M"] for c in failures.known(str(tmp_path / "a.py"), "one", tmp_path)]
    assert got == list(range(failures.KEPT_FAILURES + 2, 2, -1))


def test_a_damaged_store_is_told_and_made_anew(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / failures.NAME).write_text("no database" * 200)
    failures.keep([record(tmp_path / "a.py", FOUND)], tmp_path)
    assert "counterexamples" in capsys.readouterr().err
    assert len(failures.known(str(tmp_path / "a.py"), "one", tmp_path)) == 1 == failures.count(tmp_path)
    assert (tmp_path / f"{failures.NAME}.damaged").exists()


def test_nothing_is_made_where_nothing_failed(tmp_path: Path) -> None:
    failures.keep([record(tmp_path / "a.py")], tmp_path)
    assert not (tmp_path / failures.NAME).exists()
    assert failures.known("a.py", "one", tmp_path / "absent") == []
