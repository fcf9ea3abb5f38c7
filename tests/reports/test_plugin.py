"""The pytest plugin, in runs of pytest of its own: cases as tests, what each verdict becomes, and `assert_proved`."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from trilift import plugin

HEAD = """
import torch, triton, triton.language as tl
from trilift import case

@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, 2 * tl.load(x + i, mask=i < n), mask=i < n)

@triton.jit
def asm_kernel(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    v = tl.inline_asm_elementwise("frob.b32 $0, $1;", "=r,r", [v], dtype=tl.float32, is_pure=True, pack=1)
    tl.store(y + i, v, mask=i < n)

def run(kernel, x):
    y = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 16),)](x, y, x.numel(), BLOCK=16)
    return y
"""
CASES = (
    HEAD
    + """
@case(x="f32[N]")
def double(x):
    return run(kernel, x)

@double.reference
def _(x):
    return x + x

@case(x="f32[N]")
def wrong(x):
    return run(kernel, x)

@wrong.reference
def _(x):
    return 3 * x

@case(x="f32[N]")
def strange(x):
    return run(asm_kernel, x)

@case(x="f32[N]")
def raising(x):
    raise ValueError("no")
"""
)
TEST = """
import pytest
from own_cases import double, strange, wrong
from trilift.plugin import assert_proved

def test_good():
    assert assert_proved(double)["verdict"] == "PROVED"

def test_wrong():
    with pytest.raises(AssertionError, match="wrong-result|the reference gives"):
        assert_proved(wrong)

def test_unknown():
    with pytest.raises(AssertionError, match="inline"):
        assert_proved(strange)

def test_no_case():
    with pytest.raises(TypeError, match="decorate it"):
        assert_proved(len)
"""
INSTALLED = any(e.name == "trilift" for e in entry_points(group="pytest11"))
LOADED = () if INSTALLED else ("-p", "trilift.plugin")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("plugin")
    (path / "kernels").mkdir()
    (path / "kernels" / "own_cases.py").write_text(CASES)
    (path / "kernels" / "broken.py").write_text("from trilift import case\n@case(\n")
    (path / "tests").mkdir()
    (path / "tests" / "test_own.py").write_text("def test_plain():\n    pass\n")
    (path / "assertions").mkdir()
    (path / "assertions" / "test_assertions.py").write_text(TEST)
    return path


def run(project: Path, *args: str, ini: str = "") -> subprocess.CompletedProcess[str]:
    (project / "pytest.ini").write_text(f"[pytest]\n{ini}")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist", *LOADED, *args]
    env = {**os.environ, "PYTHONPATH": f"{Path(__file__).parents[2]}:{project / 'kernels'}", "COLUMNS": "120"}
    env.pop("PYTEST_ADDOPTS", None)
    return subprocess.run(command, cwd=project, env=env, capture_output=True, text=True, timeout=150)


INI = "trilift_files = kernels/own_*.py\ntestpaths = tests kernels\n"


@pytest.fixture(scope="module")
def first(project: Path) -> subprocess.CompletedProcess[str]:
    return run(project, "-v", ini=INI)


def test_each_case_is_a_test(first: subprocess.CompletedProcess[str]) -> None:
    said = [line.split()[:2] for line in first.stdout.splitlines() if "::" in line and "%]" in line]
    assert said == [
        ["tests/test_own.py::test_plain", "PASSED"],
        ["kernels/own_cases.py::double", "PASSED"],
        ["kernels/own_cases.py::wrong", "FAILED"],
        ["kernels/own_cases.py::strange", "XFAIL"],
        ["kernels/own_cases.py::raising", "FAILED"],
    ], first.stdout + first.stderr
    assert first.returncode == 1


def test_a_failure_says_what_is_wrong(first: subprocess.CompletedProcess[str]) -> None:
    assert "own_cases.py::wrong: REFUTED" in first.stdout
    assert "the reference gives" in first.stdout
    assert "wrapper raised at N=" in first.stdout and "ValueError: no" in first.stdout
    assert "Traceback" not in first.stdout + first.stderr


def test_unknown_is_what_the_ini_says(project: Path, first: object) -> None:
    select = "kernels/own_cases.py::strange"
    assert run(project, select, ini=INI + "trilift_unknown = pass\n").returncode == 0
    failed = run(project, select, ini=INI + "trilift_unknown = fail\n")
    assert failed.returncode == 1 and "inline assembly" in failed.stdout
    odd = run(project, select, ini=INI + "trilift_unknown = maybe\n")
    assert odd.returncode == 4 and "trilift_unknown is one of xfail, fail, pass" in odd.stderr


def test_findings_that_are_not_grave_are_warnings(project: Path, first: object) -> None:
    """Of 2^31 elements and more an index in 32 bits wraps."""
    select = "kernels/own_cases.py::double"
    mild = run(project, select, ini=INI)
    assert mild.returncode == 0 and "own_cases.py:7: PytestWarning: int32-overflow: " in mild.stdout
    strict = run(project, select, ini=INI + "trilift_level = warning\n")
    assert strict.returncode == 1 and "warning[int32-overflow]: " in strict.stdout


def test_files_are_given_on_the_command_line_too(project: Path, first: object) -> None:
    found = run(project, "--trilift", "kernels/own_*.py", "--collect-only", "-q", "tests")
    assert [line for line in found.stdout.splitlines() if "::" in line] == [
        "tests/test_own.py::test_plain",
        *(f"kernels/own_cases.py::{n}" for n in ("double", "wrong", "strange", "raising")),
    ]
    none = run(project, "--trilift", "nosuch/*.py")
    assert none.returncode == 4 and "--trilift: no Python or .ttir file is called nosuch/*.py" in none.stderr


def test_a_file_that_cannot_be_loaded_is_a_collection_error(project: Path) -> None:
    done = run(project, "--trilift", "kernels/broken.py", "tests")
    assert done.returncode == 2
    assert "loading the file raised SyntaxError" in done.stdout and "Traceback" not in done.stdout


def test_a_second_run_needs_no_torch(project: Path, first: object) -> None:
    said = "print('HEAVY', [m for m in ('torch', 'triton') if m in sys.modules])"
    (project / "tests" / "conftest.py").write_text(f"import sys\ndef pytest_sessionfinish():\n    {said}\n")
    done = run(project, "-s", "kernels/own_cases.py::double", "tests", ini=INI)
    (project / "tests" / "conftest.py").unlink()
    assert "HEAVY []" in done.stdout and "2 passed" in done.stdout, done.stdout


def test_the_assertion(project: Path) -> None:
    done = run(project, "assertions", "-q")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.smoke
@pytest.mark.parametrize("text", ["inf", "nan", "0", "-3", "1e10", "soon"])
def test_a_time_is_a_finite_number_above_0(text: str) -> None:
    config: Any = SimpleNamespace(getini=lambda name: text)
    with pytest.raises(pytest.UsageError, match="trilift_timeout is a number of seconds above 0"):
        plugin._seconds(config)


def test_it_is_declared() -> None:
    import tomllib

    declared = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    assert declared["project"]["entry-points"]["pytest11"] == {"trilift": "trilift.plugin"}


@pytest.mark.smoke
def test_it_imports_nothing_heavy() -> None:
    code = "import sys, trilift.plugin; print([m for m in ('torch', 'triton', 'numpy', 'lift') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
