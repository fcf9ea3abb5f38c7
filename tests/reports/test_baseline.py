"""Fingerprints of findings: what they survive, what they tell apart; and the file that holds them."""

from __future__ import annotations

import json
import linecache
from pathlib import Path
from typing import Any

import click
import pytest

from trilift.reports.filters import baseline
from trilift.reports.records import unfinished

pytestmark = pytest.mark.smoke
SOURCE = "x = 1\n    tl.store(p + i,  v)\ny = 2\n    tl.store(p + i, v)  # again\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").write_text("")
    path = tmp_path / "src" / "k.py"
    path.parent.mkdir()
    path.write_text(SOURCE)
    linecache.clearcache()
    return path


def finding(file: Path, line: int = 2, rule: str = "out-of-bounds", message: str = "y[17] is outside") -> dict:
    return {"rule": rule, "message": message, "file": str(file), "line": line, "counterexample": {}, "replay": None}


def record(*found: dict[str, Any]) -> dict[str, Any]:
    return {**unfinished.empty("f.py", "case", "", ""), "findings": list(found)}


def prints(*found: dict[str, Any]) -> list[str]:
    return baseline.Prints().of(record(*found))


def test_lines_that_move_and_numbers_that_change_are_survived(file: Path) -> None:
    before = prints(finding(file))
    file.write_text("# new\n# lines\n" + SOURCE.replace("+ i,  v", "+ i, v"))
    linecache.clearcache()
    assert prints(finding(file, 4, message="y[-3.5e+2] is outside")) == before


def test_it_is_the_same_in_another_checkout(file: Path, tmp_path: Path) -> None:
    other = tmp_path / "elsewhere" / "src" / "k.py"
    other.parent.mkdir(parents=True)
    (other.parent.parent / "setup.py").write_text("")
    other.write_text(SOURCE)
    assert prints(finding(other)) == prints(finding(file))


@pytest.mark.parametrize("change", [{"line": 1}, {"rule": "write-race"}, {"message": "z[17] is outside"}])
def test_what_differs_is_told_apart(file: Path, change: dict[str, Any]) -> None:
    assert prints(finding(file, **change)) != prints(finding(file))


def test_likes_are_counted(file: Path) -> None:
    first, second = prints(finding(file, 2), finding(file, 4))
    assert first != second
    assert prints(finding(file, 4)) == [first]


def test_known_findings_are_accepted_new_ones_stay(file: Path, tmp_path: Path) -> None:
    path = str(tmp_path / "b.json")
    assert baseline.write(path, [record(finding(file)), record()]) == 1
    known = baseline.read(path)
    fresh = finding(file, rule="write-race")
    out = baseline.Known(known, path).applied(record(finding(file), fresh))
    assert out["findings"] == [fresh]
    assert out["suppressed"][0]["suppression"] == {"kind": "external", "justification": f"known: {path}"}
    out = baseline.Known(known, path, new_only=True).applied(record(finding(file), fresh))
    assert (out["findings"], out["suppressed"]) == ([fresh], [])
    again = baseline.Known(known, path).applied(record(finding(file, 2), finding(file, 4)))
    assert [f["line"] for f in again["findings"]] == [4], "a second one of a kind is new"


def test_the_file_is_stable_and_can_be_read_by_people(file: Path, tmp_path: Path) -> None:
    one, two = tmp_path / "1.json", tmp_path / "2.json"
    a, b = finding(file), finding(file, 4, "write-race")
    baseline.write(str(one), [record(a), record(b)])
    baseline.write(str(two), [record(b), record(a)])
    assert one.read_text() == two.read_text()
    rows = json.loads(one.read_text())["findings"]
    assert [(r["rule"], r["file"], r["line"]) for r in rows] == [
        ("out-of-bounds", "src/k.py", 2),
        ("write-race", "src/k.py", 4),
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is not JSON"),
        ("\x00\x01", "is not JSON"),
        ("[]", "is not a baseline of schema 1"),
        ('{"schema": 2, "findings": []}', "is not a baseline of schema 1"),
        ('{"schema": 1, "findings": {}}', "is not a baseline of schema 1"),
        ('{"schema": 1, "findings": [{}]}', "has no fingerprint"),
        ('{"schema": 1, "findings": [{"fingerprint": 3}]}', "has no fingerprint"),
        ('{"schema": 1, "findings": ["x"]}', "has no fingerprint"),
    ],
)
def test_a_damaged_file_is_a_usage_error(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "b.json"
    path.write_text(text)
    with pytest.raises(click.UsageError, match=said):
        baseline.read(str(path))


def test_files_that_cannot_be_read_or_written(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    for path in (tmp_path / "none.json", tmp_path, tmp_path / "binary"):
        with pytest.raises(click.UsageError, match="--baseline: "):
            baseline.read(str(path))
    with pytest.raises(click.UsageError, match="--write-baseline: cannot write"):
        baseline.write(str(tmp_path / "no" / "such" / "b.json"), [])


def test_paths_of_installed_packages(tmp_path: Path) -> None:
    path = tmp_path / "lib" / "site-packages" / "pkg" / "k.py"
    assert baseline.portable(str(path)) == "pkg/k.py"
