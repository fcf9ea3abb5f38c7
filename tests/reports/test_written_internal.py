"""`trilift write` where trilift itself fails while it examines a case: it writes what it can, and is not green."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
KERNEL = """import torch, triton, triton.language as tl
from trilift import case

@triton.jit
def double_kernel(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, 2 * tl.load(x + i, mask=i < n), mask=i < n)

@case(x="f32[N]", where="N <= 64")
def double(x):
    y = torch.empty_like(x)
    double_kernel[(triton.cdiv(x.numel(), 16),)](x, y, x.numel(), BLOCK=16)
    return y
"""
COMMAND = """
import importlib
from trilift.reports import cli
module = importlib.import_module("trilift.verify.properties.suite")
whole = module.suite
def suite(case, *, examined=True, **how):
    if examined:
        raise {error}
    return whole(case, examined=examined, **how)
module.suite = suite
cli.main()
"""


def written(folder: Path, error: str) -> tuple[subprocess.CompletedProcess[str], str]:
    """The run in which the examination raises, and the file."""
    (folder / "kernels.py").write_text(KERNEL)
    (folder / "run.py").write_text(COMMAND.format(error=error))
    env = {**os.environ, "_TRILIFT_PRELOADED": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "run.py", "write", "kernels.py", "-o", "test_kernels.py", "--max-examples", "2", "-q"],
        cwd=folder, env=env, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done, (folder / "test_kernels.py").read_text()


@pytest.mark.parametrize("error", ["NameError(\"name 'dense' is not defined\")", "AttributeError('no attribute x')"])
def test_an_error_of_trilift_itself_is_exit_code_2(error: str, tmp_path: Path) -> None:
    done, text = written(tmp_path, error)
    name = error.partition("(")[0]
    assert done.returncode == 2, done.stdout + done.stderr
    assert f"error[internal]: kernels.py::double: trilift itself failed: {name}: " in done.stderr
    assert "wrote test_kernels.py" in done.stdout and "def test_double_" in text
    assert f"it was not examined: trilift itself failed: {name}" in " ".join(text.split())


def test_what_the_case_does_is_no_error_of_trilift(tmp_path: Path) -> None:
    error = "importlib.import_module('trilift.lift.errors').Unsupported('tt.foo')"
    done, text = written(tmp_path, error)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "error[internal]" not in done.stderr and "it was not examined: tt.foo" in " ".join(text.split())
