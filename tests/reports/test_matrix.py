"""The matrix of versions: outcomes in words, and that `trilift doctor` names what its page shows."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from trilift.reports.base import tested_versions
from trilift.reports.base.tested_versions import TESTED, Versions, span
from trilift.reports.commands import doctor
from trilift.reports.experiments import matrix
from trilift.reports.experiments.matrix import AS_GOLDEN, Trial, outcome
from trilift.reports.records.options import Options

PAGE = Path(__file__).parents[2] / "reports" / "results" / "matrix.md"
GOOD = Trial("3.11.7", "2.13.0+cpu", "3.9.0", AS_GOLDEN, 61.4)
WRONG = Trial("3.12.1", "2.13.0+cpu", "3.6.0", "differs: -a: PROVED", 60.0)
MISSING = Trial("3.13", "", "3.6", "not installed: no wheel", 2.0)
IN_CI = Versions("3.11", "2.13", "3.9")
ROW = re.compile(r"^\| (\S+) \| (\S*) \| (\S+) \| (.+?) \| *\d+ \|$", re.MULTILINE)


def test_only_what_was_tried_is_in_the_table() -> None:
    """The rows of the page, once `make matrix` has written it, and the versions with which the tests run in CI."""
    rows = ROW.findall(PAGE.read_text()) if PAGE.exists() else []
    tried = {Trial(*row, 0.0).tested for row in rows if row[3] == AS_GOLDEN} | {IN_CI}
    assert set(TESTED) == tried


@pytest.mark.parametrize(
    ("trials", "code"), [([GOOD], 0), ([GOOD, MISSING], 0), ([GOOD, WRONG], 1), ([MISSING], 2), ([], 2)]
)
def test_what_differs_is_in_the_exit_code(trials: list[Trial], code: int) -> None:
    assert matrix.result("matrix", trials).code == code


def test_an_outcome_is_the_first_line_that_differs() -> None:
    difference = "--- golden\n+++ now\n@@ -1 +1 @@\n-softmax: PROVED\n+softmax: UNKNOWN\n"
    assert outcome(0, "", "") == AS_GOLDEN
    assert outcome(1, difference, "") == "differs: -softmax: PROVED"
    assert outcome(2, "", "Traceback\nImportError: no triton\n") == "fails: ImportError: no triton"
    assert outcome(2, "", "") == "fails: no reason was given"


def test_an_environment_that_cannot_be_made_says_why(tmp_path: Path) -> None:
    uv = tmp_path / "uv"
    uv.write_text("#!/bin/sh\necho '  x No solution found' >&2\necho '  ╰─▶ Because there is no triton' >&2\nexit 1\n")
    uv.chmod(0o755)
    found = matrix.trial(str(uv), "3.13", "3.6", tmp_path, 1)
    assert (found.outcome, found.good) == ("not installed: Because there is no triton", False)


def test_without_uv_there_is_no_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matrix.shutil, "which", lambda *a, **k: None)
    with pytest.raises(click.UsageError, match="make matrix"):
        matrix.measure("matrix", Options(), quiet=True)


def test_versions_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    assert span(["3.9"]) == "3.9" and span(["3.9", "3.10", "3.6"]) == "3.6 to 3.10"
    monkeypatch.setattr(tested_versions, "TESTED", (Versions("3.11", "2.13", "3.6"), Versions("3.11", "2.13", "3.9")))
    assert tested_versions.words() == "python 3.11, torch 2.13, triton 3.6 to 3.9"
    assert tested_versions.tested("3.11.7", "2.13.0+cpu", "3.9.1")
    assert not tested_versions.tested("3.11.7", "2.13.0+cpu", "3.7.0")


def test_doctor_says_where_versions_were_not_tried(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tested_versions, "TESTED", (Versions("2.7", "0.1", "0.2"),))
    assert doctor._tested()  # they may work all the same
    assert "were not tested together  (tested: python 2.7, torch 0.1, triton 0.2)" in capsys.readouterr().out
