"""A counterexample keeps its arguments: a case beside the user's draws others with the same seed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from trilift.lift.capture.case_files import load
from trilift.verify import prove
from trilift.verify.model.verdict import Counterexample
from trilift.verify.refutation.search import once
from trilift.verify.runs.adversary import arguments
from trilift.verify.runs.given_arguments import given

SOURCE = """
import torch, triton, triton.language as tl
from trilift import case

@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, (tl.load(x + i, mask=i < n, other=0) == 77777).to(tl.int32), mask=i < n)

@case(x="i32[N]")
def is_it(x):
    y = torch.empty_like(x)
    kernel[(triton.cdiv(x.shape[0], 64),)](x, y, x.shape[0], BLOCK=64)
    return y

@is_it.reference
def _(x):
    return (x == 77778).to(torch.int32)
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Counterexample]:
    """The file, and the counterexample, whose elements are those that the code names."""
    path = tmp_path_factory.mktemp("given") / "is_it.py"
    path.write_text(SOURCE)
    (c,) = load(str(path))
    (proof,) = prove(c)
    assert proof.counterexample is not None
    return str(path), proof.counterexample


def test_a_counterexample_is_made_again_from_its_arguments(found: tuple[str, Counterexample]) -> None:
    path, seen = found
    (c,) = load(path)
    at = (seen.dims, seen.seed, seen.config, seen.output, seen.index)
    assert once(given(c, seen.arguments), *at) == seen.got
    drawn = arguments(c, seen.dims, seen.seed)["x"][seen.index]
    assert int(drawn) not in (77777, 77778)  # by the seed alone, another element


def test_the_script_runs_them_without_the_interpreter_too(found: tuple[str, Counterexample], tmp_path: Path) -> None:
    script = tmp_path / "again.py"
    script.write_text(found[1].replay)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    for how in ([], ["--float64"]):
        ran = subprocess.run([sys.executable, str(script), *how], env=env, capture_output=True, text=True)
        assert ran.returncode == 1, ran.stdout + ran.stderr


def test_arguments_keep_their_strides(found: tuple[str, Counterexample]) -> None:
    (c,) = load(found[0])
    wide = torch.arange(12).reshape(3, 4)
    laid = {"a": wide.T, "b": wide[:, ::2], "c": torch.ones(1).expand(5), "d": torch.empty(0, 3), "e": [wide[1:]]}
    drawn = given(c, laid).sample({}, np.random.default_rng(0))
    for name, x in {**laid, "e": laid["e"][0]}.items():
        got = drawn[name][0] if name == "e" else drawn[name]
        assert got.stride() == x.stride() and torch.equal(got, x)
        assert not got.numel() or got.data_ptr() != x.data_ptr()
