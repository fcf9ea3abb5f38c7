"""A file of the user's is imported by the user's code; all other code imports what is installed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CASE = """
import torch, triton, triton.language as tl
from trilift import case

@triton.jit
def double_kernel(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, 2 * tl.load(x + i, mask=i < n), mask=i < n)

@case(x="f32[N]")
def doubled(x):
    y = torch.empty_like(x)
    double_kernel[(triton.cdiv(x.numel(), 16),)](x, y, x.numel(), BLOCK=16)
    return y

doubled.reference(lambda x: 2 * x)
"""
OTHER = "raise SystemExit('the file of the user')"
LOADED = """
import sys
from trilift.lift.capture.case_files import by_file
module = by_file("{file}")
"""


def command(here: Path, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *args], cwd=here, capture_output=True, text=True, check=False)


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A case beside files with the names of what PyTorch and trilift import late."""
    (tmp_path / "cases.py").write_text(CASE)
    for name in ("z3", "sympy", "networkx", "wave", "optree"):
        (tmp_path / f"{name}.py").write_text(OTHER)
    return tmp_path


@pytest.mark.parametrize("args", [("prove", "cases.py"), ("equal", "cases.py::doubled", "cases.py::doubled")])
def test_files_beside_a_case_do_not_stand_in_for_packages(here: Path, args: tuple[str, ...]) -> None:
    done = command(here, "-m", "trilift", *args, "-q")
    assert done.returncode == 0 and "PROVED" in done.stdout, done.stdout + done.stderr


def test_code_that_is_not_the_users_finds_what_is_installed(here: Path) -> None:
    call = "import random; exec(compile('import wave', random.__file__, 'exec')); print(wave.__file__)"
    done = command(here, "-P", "-c", LOADED.format(file="cases.py") + call)
    assert done.stdout.strip().endswith("wave.py") and str(here) not in done.stdout, done.stdout + done.stderr


def test_the_users_code_finds_the_users_file(here: Path) -> None:
    (here / "wave.py").write_text("MINE = 1")
    (here / "late.py").write_text("import importlib\nimport wave\nmine = importlib.import_module('wave').MINE")
    done = command(here, "-P", "-c", LOADED.format(file="late.py") + "print(module.mine)")
    assert done.stdout.strip() == "1", done.stderr


def test_a_file_that_only_the_user_has_is_found_by_all(here: Path) -> None:
    (here / "only_here.py").write_text("MINE = 1")
    call = "import random; exec(compile('import only_here', random.__file__, 'exec')); print(only_here.MINE)"
    done = command(here, "-P", "-c", LOADED.format(file="cases.py") + call)
    assert done.stdout.strip() == "1", done.stderr


def test_a_case_file_with_the_name_of_a_package_does_not_stand_in_for_it(here: Path) -> None:
    (here / "wave.py").write_text(CASE)
    done = command(here, "-P", "-c", LOADED.format(file="wave.py") + "print(module.__name__, 'wave' in sys.modules)")
    assert done.stdout.strip() == "_wave False", done.stderr
