"""Kernels found by their source, and those that no case launches: what is told of them and of broken files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from trilift.reports.base import targets
from trilift.reports.discovery import scan
from trilift.reports.discovery.source import Kernel
from trilift.reports.records import unfinished
from trilift.reports.records.options import Options

KERNELS = """
import triton as tr
import triton.language as tl
from triton import jit
from other import outside

@tr.autotune(configs=[], key=[])
@tr.jit
def tuned(x):
    tl.store(x, helper(tl.load(x)))

@jit(do_not_specialize=["n"])
def plain(x, n):
    tl.store(x, n)
    written(x)
    outside(x)
    tl.reduce(x, 0, combine)

@tr.jit
def helper(v):
    return v + 1

@tr.jit
def written(x):
    tl.store(x, 0)

@tr.jit
def combine(a, b):
    return a

def host(x):
    plain[(1,)](x)
    tuned(x)

@other.jit
def foreign(x):
    tl.store(x, 0)

class A:
    @staticmethod
    @tr.jit
    def sum(x):
        tl.store(x, tl.sum(x))
"""
UNLAUNCHED = """
import triton
import triton.language as tl

@triton.jit
def rows(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + tl.program_id(0), tl.sum(tl.load(x_ptr + i, mask=i < N)))

@triton.jit
def wrong(x_ptr):
    tl.store(x_ptr, tl.no_such_thing(1))

def factory():
    @triton.jit
    def inner(x_ptr):
        tl.store(x_ptr, 0.0)
    return inner
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "k.py").write_text(KERNELS)
    (tmp_path / "other.py").write_text("import triton\n@triton.jit\ndef outside(x):\n    pass\n")
    (tmp_path / "sub" / "tests").mkdir(parents=True)
    (tmp_path / "sub" / "tests" / "t.py").write_text(KERNELS)
    (tmp_path / "sub" / "broken.py").write_text("import triton\n@triton.jit\ndef f(:\n")
    (tmp_path / "sub" / "binary.py").write_bytes(b"jit\x00\xff")
    return tmp_path


@pytest.mark.smoke
def test_kernels_are_found_without_running_anything(folder: Path) -> None:
    found, errors = scan.kernels([str(folder)])
    assert [(Path(k.file).name, k.name) for k in found] == [("k.py", "tuned"), ("k.py", "plain"), ("k.py", "sum")]
    assert (found[0].first, found[0].line, found[0].last) == (7, 9, 10)
    assert sorted((Path(e["file"]).name, e["kind"]) for e in errors) == [("binary.py", "case"), ("broken.py", "case")]
    assert [e["line"] for e in errors if e["file"].endswith("broken.py")] == [3]


@pytest.mark.smoke
def test_targets_are_folders_files_and_packages(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "own_pkg").mkdir()
    (folder / "own_pkg" / "__init__.py").write_text("raise RuntimeError('is not imported')")
    (folder / "own_pkg" / "k.py").write_text(KERNELS)
    monkeypatch.syspath_prepend(str(folder))
    assert len(scan.kernels(["own_pkg"])[0]) == 3
    assert len(scan.kernels([str(folder / "k.py")])[0]) == 3
    assert targets.sources("no_such_package_at_all") == targets.sources("not a name") == []
    assert "own_pkg" not in sys.modules


def record(name: str, file: Path, line: int) -> dict[str, Any]:
    kernels = [{"name": "k", "file": str(file), "line": line}]
    return {**unfinished.empty("c.py", name, "", ""), "kernels": kernels}


@pytest.mark.smoke
def test_a_kernel_that_a_case_launched_has_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "scanned", lambda found, options, on_event: [])
    found, _ = scan.kernels([str(folder / "k.py")])
    rows = scan.rows(found, [record("a", folder / "k.py", 8), record("b", folder / "k.py", 10)], Options())
    assert [(r["name"], r["cases"], r["read"]) for r in rows] == [
        ("tuned", ["c.py::a", "c.py::b"], "ok"),
        ("plain", [], "not looked at"),
        ("sum", [], "not looked at"),
    ]


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Kernel], list[dict[str, Any]], Path]:
    """A package whose root needs no import of ours, and a file outside of it that cannot be imported."""
    path = tmp_path_factory.mktemp("scan")
    (path / "own_scanned").mkdir()
    (path / "own_scanned" / "__init__.py").write_text("")
    (path / "own_scanned" / "kernels.py").write_text("from . import shared\n" + UNLAUNCHED)
    (path / "own_scanned" / "shared.py").write_text("VALUE = 1\n")
    (path / "raising.py").write_text("import triton\nraise ValueError('no')\n@triton.jit\ndef f(x):\n    pass\n")
    found, _ = scan.kernels([str(path)])
    return found, scan.rows(found, [], Options(jobs=2, cache=str(path / "cache"))), path


def test_what_is_told_of_each(rows: tuple[list[Kernel], list[dict[str, Any]], Path]) -> None:
    told = {r["name"]: r for r in rows[1]}
    assert list(told) == ["rows", "wrong", "inner", "f"]
    assert "ValueError" in told["f"]["read"] and told["f"]["errors"][0]["kind"] == "case"
    assert told["rows"]["read"] == "ok"
    assert told["rows"]["assumes"] == "x_ptr: *fp32, out_ptr: *fp32, N: i32, BLOCK = 16"
    assert "no_such_thing" in told["wrong"]["read"]
    assert told["inner"]["read"] == "its module does not name it"
    assert all(r["verdict"] == "UNKNOWN" and r["cases"] == [] for r in rows[1])


def test_a_finding_is_a_note_with_its_assumptions(rows: tuple[list[Kernel], list[dict[str, Any]], Path]) -> None:
    (finding,) = [f for r in rows[1] for f in r["findings"]]
    assert (finding["rule"], finding["level"]) == ("undefined-value", "note")
    assert Path(finding["file"]).name == "kernels.py" and finding["line"] == 9
    assert finding["counterexample"]["N"] < 16
    assert finding["steps"][-1]["text"].startswith("no case launches it; assumed: x_ptr: *fp32")


def test_a_second_time_nothing_is_run(
    rows: tuple[list[Kernel], list[dict[str, Any]], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    found, first, path = rows
    ran: list[str] = []

    def run(wanted: dict[str, Any], *rest: Any) -> Any:
        ran.extend(k.name for ks in wanted.values() for k in ks)
        return iter(())

    monkeypatch.setattr(scan, "_run", run)
    again = {r["name"]: r for r in scan.rows(found, [], Options(jobs=2, cache=str(path / "cache")))}
    assert ran == ["f"], "what could not be imported is tried again"
    told = {r["name"]: r for r in first}
    assert again["rows"] == {**told["rows"], "cached": True}


@pytest.mark.smoke
@pytest.mark.parametrize("narrow", [True, False])
def test_narrow_sums_count_only_where_no_type_was_guessed_narrow(narrow: bool) -> None:
    signature = {"x": "*fp16" if narrow else "*fp32", "N": "i32", "B": "constexpr"}
    text = scan.assumption(signature, {"B": 16})
    assert text == f"x: *{'fp16' if narrow else 'fp32'}, N: i32, B = 16"
    assert any(word in text for word in scan.NARROW) is narrow
