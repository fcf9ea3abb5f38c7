"""Written tests that are run: what is green, red or skipped, what is kept of a run that was interrupted, tables."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from operators import ROOT

from trilift.reports.base.targets import Target
from trilift.reports.experiments.mutation import test_suites
from trilift.reports.experiments.mutation.test_suites import How, Ran, pytest_of, result, sweep, verdict

ROPE = str(ROOT / "corpus" / "operators" / "rope.py")
TESTS = {
    "green": "def test_one() -> None:\n    assert True\n",
    "red": "def test_one() -> None:\n    assert [] == [0]\n",
    "skipped": 'import pytest\n\n\ndef test_one() -> None:\n    pytest.skip("it has no GPU")\n',
}


@pytest.mark.parametrize("outcome", TESTS)
def test_a_file_is_run(outcome: str, tmp_path: Path) -> None:
    path = tmp_path / "test_rope.py"
    path.write_text(TESTS[outcome])
    found = pytest_of(ROPE, "rope", path)
    assert found.outcome == outcome and found.clean and found.seconds > 0 and found.processor > 0
    assert found.failed == (("test_one",) if outcome == "red" else ())
    said = {"red": "test_one: ", "skipped": "test_one: it has no GPU"}
    assert found.why.startswith(said.get(outcome, ""))


def test_a_file_without_tests_is_red(tmp_path: Path) -> None:
    path = tmp_path / "test_rope.py"
    path.write_text("import nothing_of_that_name\n")
    found = pytest_of(ROPE, "rope", path)
    assert found.outcome == "red" and "nothing_of_that_name" in found.why and not found.clean


def test_what_does_not_end_is_late_and_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "test_rope.py"
    path.write_text("import time\n\n\ndef test_one() -> None:\n    time.sleep(99)\n")
    monkeypatch.setattr(test_suites, "RUNNING", 0.2)
    found = pytest_of(ROPE, "rope", path)
    assert found.outcome == "late" and "no end" in found.why and result([found], "written").code == 1
    monkeypatch.setattr(
        test_suites, "run_all", lambda _, tasks, jobs, patience, where, hear, *more: hear(0, found) or []
    )
    assert sweep([Target(ROPE)], How(keep=str(tmp_path))) == [found]
    assert not (tmp_path / "rows.jsonl").exists()


def test_the_weakest_verdict_counts() -> None:
    text = "rope, PROVED: q[i] = x[i]\nrope, TESTED: k[i] = x[i]\nrope_pairs, PROVED: q[i] = x[i]\n"
    assert verdict(text, "rope") == "TESTED" and verdict(text, "rope_pairs") == "PROVED"
    assert verdict(text, "softmax") == "not proved"


def test_what_is_kept_is_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    how = How(seed=3, keep=str(tmp_path))
    rows = [Ran(ROPE, name, "green", passed=2, failed=()) for name in ("rope", "rope_pairs", "rope_backward")]
    monkeypatch.setattr(test_suites, "run_all", lambda function, tasks, *more: [print(t[4]) for t in tasks][:0])
    log = tmp_path / "rows.jsonl"
    log.write_text("".join(json.dumps([how.key, test_suites.asdict(r)]) + "\n" for r in rows))
    assert sweep([Target(ROPE)], how) == rows
    assert sweep([Target(ROPE)], How(seed=4, keep=str(tmp_path))) == []


def test_what_is_not_green_is_named_first() -> None:
    rows = [Ran("a.py", "one", "green", verdict="PROVED", passed=5, clean=True, seconds=9.0, processor=4.0),
            Ran("a.py", "two", "red", "test_two: no", "PROVED", 4, failed=("test_two",), seconds=30.0, processor=26.0),
            Ran("b.py", "three", "not written", "timeout")]  # fmt: skip
    found = result(rows, "written")
    tables = {t.heading: t for t in found.tables}
    assert found.code == 1 and result(rows[:1], "written").code == 0 and result([], "written").code == 3
    assert [row[:2] for row in tables["not green"].rows] == [("a::two", "red"), ("b::three", "not written")]
    assert tables["more than 20 s of processor"].rows == (("a::two", "26.0"),)
    everything = dict(zip(tables["by file"].columns, tables["by file"].rows[-1], strict=True))
    assert everything["cases"] == "3" and everything["green"] == "1" and everything["median s"] == "19.5"
    assert everything["PROVED"] == "2" and everything["PROVED and green"] == "1"
