"""From a case to an accepted file, and what `trilift optimize` says where there is none."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from trilift.lift.capture.case_files import load
from trilift.superopt.jobs import proved_same

CASES = """
import torch
from trilift import case


@case(x="f32[M,N]")
def scaled_softmax(x):
    return 2 * torch.softmax(x, -1)


@case(x="f32[M,N]")
def another_factor(x):
    return 3 * torch.softmax(x, -1)


@case(x="f32[M,N]")
def largest(x):
    return x.argmax(-1)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "cases.py").write_text(CASES)
    return tmp_path


def trilift(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    root = str(Path(__file__).parents[2])
    env = {**os.environ, "PYTHONPATH": root, "NO_COLOR": "1", "COLUMNS": "100"}
    command = [sys.executable, "-m", "trilift", *arguments]
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=300)


def test_an_accepted_kernel_is_written_and_proves_again(folder: Path) -> None:
    done = trilift(
        "optimize", "cases.py::scaled_softmax", "--at", "M=64,N=256", "-o", "fast.py", "--format", "json", cwd=folder
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (record,) = json.loads(done.stdout)["cases"]
    found = record["optimize"]
    assert found["verdict"] == "PROVED" and found["kernels"] == 1 and found["emitted"] == "fast.py"
    assert 0 < found["roofline_us"] <= found["model_us"]
    (block,) = found["arrangement"]["kernels"]
    assert 0 < block["barriers"]["all"] <= block["barriers_found"]["all"]
    assert 0 < block["shared"]["bound"] <= block["shared"]["bytes"] <= block["shared"]["best_fit"]
    assert [s["passed"] for s in found["steps"][-1]] == [True] * 5
    written = (folder / "fast.py").read_text()
    assert "@triton.jit" in written and "trilift optimize cases.py::scaled_softmax" in written
    again = trilift("prove", "fast.py", "--no-cache", "-q", cwd=folder)
    assert again.returncode == 0 and "PROVED" in again.stdout, again.stdout + again.stderr
    same, other = load(str(folder / "cases.py"), ["scaled_softmax", "another_factor"])
    assert proved_same(written, same, "function", 0, 60) == "PROVED"
    assert proved_same(written, other, "function", 0, 60) == "REFUTED"


def test_a_case_that_is_no_program(folder: Path) -> None:
    done = trilift("optimize", "cases.py::largest", "-o", "fast.py", "-q", cwd=folder)
    assert done.returncode == 3
    assert "no program to search" in done.stderr and "over an axis" in done.stderr
    assert not (folder / "fast.py").exists()


def test_bad_input(folder: Path) -> None:
    wrong = trilift("optimize", "cases.py", "--at", "M=many", "-o", "fast.py", cwd=folder)
    assert wrong.returncode == 2 and "M=16,K=4096" in wrong.stderr
    unknown = trilift("optimize", "cases.py::scaled_softmax", "--at", "Q=4", "-o", "fast.py", "-q", cwd=folder)
    assert unknown.returncode == 2 and "no case has a size Q" in unknown.stderr
    absent = trilift("optimize", "absent.py", "-o", "fast.py", cwd=folder)
    assert absent.returncode == 2
