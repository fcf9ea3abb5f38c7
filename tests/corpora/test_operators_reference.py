"""Every operator of the corpus, run by Triton's interpreter, equals its reference at shapes not used for lifting."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path[:0] = [str(Path(__file__).parents[1] / folder) for folder in ("helpers", "kernels")]
from interpreted import Configs  # noqa: E402
from operators import FILES, ROOT, SHAPES, cases, dims_of, names, tensors  # noqa: E402

GROUPS = 4  # child processes, because the interpreter is chosen before triton is imported
LIBDEVICE = "the interpreter has no libdevice"
NOT_INTERPRETED = {
    "tanh": LIBDEVICE,
    "gelu_mul": LIBDEVICE,
    "quantise_rows": LIBDEVICE,
    "cosine_similarity": LIBDEVICE,
}


def run_file(path: Path) -> list[dict[str, Any]]:
    """In the child: for every case, shape and autotune configuration, the largest deviation or the error."""
    return [r for c in cases(path) for shape in SHAPES for r in run_case(c, dims_of(c, shape))]


def run_case(c: Any, dims: dict[str, int | float]) -> list[dict[str, Any]]:
    """One record per configuration; how many there are is known after the first."""
    out: list[dict[str, Any]] = []
    Configs.count = 1
    while len(out) < Configs.count:
        Configs.chosen = len(out)
        out.append({"case": c.name, "dims": dims, "config": len(out), **outcome(c, dims)})
    return out


def outcome(c: Any, dims: dict[str, int | float]) -> dict[str, Any]:
    """{"deviation": d}, or {"error": message}."""
    import numpy as np

    try:
        args = c.sample(dims, np.random.default_rng(0))
        expected = tensors(c.reference.fn(**clones(args)))
        got = tensors(c.fn(**clones(args)))
        return {"deviation": max(deviation(a, b) for a, b in zip(got, expected, strict=True))}
    except Exception as e:
        return {"error": f"{type(e).__name__}: {e}"[:400]}


def clones(args: dict[str, Any]) -> dict[str, Any]:
    """Tensors of the same strides in buffers of their own, because kernels may write their inputs."""
    import torch

    def one(x: Any) -> Any:
        if not isinstance(x, torch.Tensor):
            return x
        return torch.empty_strided(x.shape, x.stride(), dtype=x.dtype).copy_(x)

    return {n: one(x) for n, x in args.items()}


def deviation(got: Any, expected: Any) -> float:
    """Largest |got - expected| / (1 + |expected|), in units of the tolerance of the result's dtype."""
    import torch

    if got.shape != expected.shape:
        raise AssertionError(f"shape {tuple(got.shape)}, expected {tuple(expected.shape)}")
    tolerance = {torch.float16: 4e-3, torch.bfloat16: 3e-2}.get(got.dtype, 1e-4)
    a, b = got.double(), expected.double()
    worst = ((a - b).abs() / (1 + b.abs())).nan_to_num(nan=float("inf")).max().item()
    return worst / tolerance


@pytest.mark.parametrize("group", range(GROUPS))
def test_interpreter_equals_reference(group: int) -> None:
    """Every case at every shape and configuration, or the reason why the interpreter cannot, which is checked too."""
    files = FILES[group::GROUPS]
    env = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, __file__, *map(str, files)]
    child = subprocess.run(command, env=env, capture_output=True, text=True, timeout=200)
    assert child.returncode == 0, child.stderr[-2000:]
    records = json.loads(child.stdout.splitlines()[-1])
    assert {r["case"] for r in records} == {n for f in files for n in names(f)}
    for r in records:
        if r["case"] in NOT_INTERPRETED:
            assert "error" in r, f"{r['case']} runs in the interpreter now: take it off the list"
        else:
            assert "error" not in r and r["deviation"] < 1, r


def test_the_papers_operators_are_all_here() -> None:
    from trilift.corpus.operators import PAPER

    ours = [n for f in FILES if f.parent.name == "operators" for n in names(f)]
    assert len(PAPER) == len(set(PAPER)) == 33
    assert len(ours) == len(set(ours))
    assert set(PAPER) <= set(ours)
    assert len(set(ours) - set(PAPER)) >= 24


if __name__ == "__main__":
    Configs.install()
    print(json.dumps([r for f in sys.argv[1:] for r in run_file(Path(f))]))
