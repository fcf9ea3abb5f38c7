"""Every operator of the corpus, run by Triton's interpreter, equals its reference at shapes not used for lifting."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FILES = sorted(f for d in ("operators", "strangers") for f in (ROOT / "corpus" / d).glob("[!_]*.py"))
SHAPES = (  # partial blocks, long in another direction, several blocks
    {"B": 3, "H": 2, "G": 2, "M": 37, "N": 67, "K": 23, "D": 19, "V": 29},
    {"B": 1, "H": 3, "G": 5, "M": 13, "N": 131, "K": 71, "D": 5, "V": 17},
    {"B": 2, "H": 1, "G": 1, "M": 20, "N": 1031, "K": 39, "D": 17, "V": 1093, "L": 150, "T": 90},
)

LIBDEVICE = "the interpreter has no libdevice"
NOT_INTERPRETED = {
    "tanh": LIBDEVICE,
    "gelu_mul": LIBDEVICE,
    "quantise_rows": LIBDEVICE,
    "cosine_similarity": LIBDEVICE,
}


def run_file(path: Path) -> list[dict[str, object]]:
    """In the child: for every case and shape, and every autotune configuration, the largest deviation or the error."""
    import numpy as np

    from lift.case import Case
    from lift.errors import CaseError

    sys.path.insert(0, str(ROOT))
    module = __import__(f"corpus.{path.parent.name}.{path.stem}", fromlist=["x"])
    out: list[dict[str, object]] = []
    for c in [v for v in vars(module).values() if isinstance(v, Case)]:
        for shape in SHAPES:
            dims: dict[str, int | float] = {n: shape.get(n, 9 + k) for k, n in enumerate(c.names)}
            dims |= dict.fromkeys(c.scalars, 0.5)
            dims |= {n: 7 for n, s in c.scalars.items() if not s.is_float}
            if not c.holds(dims):
                raise CaseError(f"{c.name} does not hold at {dims}")
            for config in range(Configs.most(c, dims)):
                record = {"case": c.name, "dims": dims, "config": config}
                try:
                    args = c.sample(dims, np.random.default_rng(0))
                    expected = c.reference.fn(**clones(args))
                    Configs.chosen = config
                    got = c.fn(**clones(args))
                    pairs = zip(tensors(got), tensors(expected), strict=True)
                    record["deviation"] = max(deviation(a, b) for a, b in pairs)
                except Exception as e:  # noqa: BLE001 - reported to the parent, which asserts on it
                    record["error"] = f"{type(e).__name__}: {e}"[:400]
                out.append(record)
    return out


class Configs:
    """Takes the place of Autotuner.run: the chosen configuration, without timing; counts how many there are."""

    chosen, seen = 0, 1

    @classmethod
    def install(cls) -> None:
        from triton.runtime.autotuner import Autotuner

        def run(tuner, *args, **kwargs):
            cls.seen = max(cls.seen, len(tuner.configs))
            tuner.nargs = dict(zip(tuner.arg_names, args, strict=False))
            chosen = tuner.configs[cls.chosen % len(tuner.configs)]
            keep = ("num_warps", "num_stages", "num_ctas", "maxnreg", "ir_override")
            return tuner.fn.run(*args, **kwargs, **{k: v for k, v in chosen.all_kwargs().items() if k not in keep})

        Autotuner.run = run

    @classmethod
    def most(cls, c, dims) -> int:
        """The number of configurations: found by a first run, whose failure the measured run will report."""
        import numpy as np

        cls.seen, cls.chosen = 1, 0
        if "autotune" in Path(c.place.file).read_text():
            c.fn(**clones(c.sample(dims, np.random.default_rng(0))))
        return cls.seen


def clones(args: dict[str, object]) -> dict[str, object]:
    """Tensors of the same strides in buffers of their own, because kernels may write their inputs."""
    import torch

    def one(x):
        if not isinstance(x, torch.Tensor):
            return x
        return torch.empty_strided(x.shape, x.stride(), dtype=x.dtype).copy_(x)

    return {n: one(x) for n, x in args.items()}


def tensors(result) -> list:
    import torch

    if isinstance(result, torch.Tensor):
        return [result]
    return list(result.values()) if isinstance(result, dict) else list(result)


def deviation(got, expected) -> float:
    """Largest |got - expected| / (1 + |expected|), in units of the tolerance of the narrower dtype."""
    import torch

    if got.shape != expected.shape:
        raise AssertionError(f"shape {tuple(got.shape)}, expected {tuple(expected.shape)}")
    tolerance = {torch.float16: 4e-3, torch.bfloat16: 3e-2}.get(got.dtype, 1e-4)
    a, b = got.double(), expected.double()
    worst = ((a - b).abs() / (1 + b.abs())).nan_to_num(nan=float("inf")).max().item()
    return worst / tolerance


@cache
def results() -> dict[str, list[dict[str, object]]]:
    """All records by file; two child processes, because the interpreter is chosen before triton is imported."""
    env = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    halves = [FILES[0::2], FILES[1::2]]
    command = [sys.executable, __file__]
    children = [subprocess.Popen([*command, *map(str, h)], env=env, stdout=subprocess.PIPE, text=True) for h in halves]
    out: dict[str, list[dict[str, object]]] = {}
    for child in children:
        text, _ = child.communicate(timeout=100)
        assert child.returncode == 0
        out |= json.loads(text.splitlines()[-1])
    return out


@pytest.mark.parametrize("path", FILES, ids=lambda f: f"{f.parent.name}-{f.stem}")
def test_interpreter_equals_reference(path: Path) -> None:
    """Every case at every shape and configuration, or the reason why the interpreter cannot, which is checked too."""
    records = results()[str(path)]
    assert records
    for r in records:
        if r["case"] in NOT_INTERPRETED:
            assert "error" in r, f"{r['case']} runs in the interpreter now: take it off the list"
        else:
            assert "error" not in r, r
            assert r["deviation"] < 1, r


def test_the_papers_operators_are_all_here() -> None:
    from corpus.operators import PAPER

    names = {r["case"] for f, rs in results().items() for r in rs if "operators" in f}
    assert len(PAPER) == len(set(PAPER)) == 33
    assert set(PAPER) <= names
    assert len(names - set(PAPER)) >= 24


if __name__ == "__main__":
    Configs.install()
    print(json.dumps({f: run_file(Path(f)) for f in sys.argv[1:]}))
