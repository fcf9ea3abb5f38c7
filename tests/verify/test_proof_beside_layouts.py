"""Host functions that test strides: a way that the contract leaves out is run too, and a wrong one is REFUTED."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.kernels import kernels_layouts as K
from trilift.lift.cases.declaration import Case
from trilift.lift.cases.shapes import choose
from trilift.verify import prove
from trilift.verify.runs.layouts import OTHERWISE, otherwise, strides

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("c", K.WRONG, ids=lambda c: c.name)
def test_wrong_in_one_layout_is_refuted_there(c: Case) -> None:
    (proof,) = prove(c)
    assert proof.verdict.value == "REFUTED" and proof.counterexample is not None
    dims, placed = proof.counterexample.dims, proof.counterexample.strides
    assert 1 in placed.values() or set(dims.values()) == {1}  # one element is contiguous in any case


def test_a_last_stride_that_nobody_asks_for_is_tried() -> None:
    (proof,) = prove(K.flat_where_rows_follow)
    assert proof.verdict.value == "REFUTED" and proof.counterexample is not None
    m, n = (proof.counterexample.dims[d] for d in "MN")
    assert proof.counterexample.strides == {"stride(x,0)": n, "stride(x,1)": m * n}


@pytest.mark.parametrize("c", K.RIGHT, ids=lambda c: c.name)
def test_right_in_every_layout_is_proved(c: Case) -> None:
    assert [p.verdict.value for p in prove(c, fallback=False)] == ["PROVED"]


def test_the_script_lays_the_tensor_out_so(tmp_path: Path) -> None:
    (proof,) = prove(K.rows_without_pads)
    assert proof.counterexample is not None
    script = tmp_path / "again.py"
    script.write_text(proof.counterexample.replay)
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 1 and f"'strides': {tuple(proof.counterexample.strides.values())}" in script.read_text()


def test_layouts_that_no_case_draws() -> None:
    dims = choose(K.dense_where_gaps, 1, 0)[0]
    m, n = dims["M"], dims["N"]
    seen = [strides(c, dims, 0)["x"] for c in otherwise(K.dense_where_gaps)]
    rows = {"transposed": (1, m), "padded": (n + 3, 1), "contiguous": (n, 1), "last apart": (n, m * n)}
    assert dict(zip(OTHERWISE, seen, strict=True)) == rows
