"""overflow-risk, nan-risk and precision-loss: each fires on its kernel, at its line, and is silent on right ones."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import kernels_values as K
import numpy as np
import pytest
import torch

from trilift.lift import Case
from trilift.lift.errors import Place
from trilift.lift.replay.rounded import Rounded
from trilift.lift.replay.rounding import FORMATS, nearest
from trilift.verify.audit.evidence import Evidence
from trilift.verify.audit.faults import Fault, faults
from trilift.verify.audit.finding import Finding
from trilift.verify.audit.numerics import numerics
from trilift.verify.audit.rules import nan_risk, overflow_risk, page, precision_loss
from trilift.verify.runs.input_table import ROWS, Inputs

SOURCE = Path(K.__file__).read_text().splitlines()
RULES = (overflow_risk, nan_risk, precision_loss)


def evidence(case: Case, goal: Any = None) -> Evidence:
    return Evidence(case, None, goal, [], [], [])


def findings(case: Case) -> list[Finding]:
    known = evidence(case)
    return [f for rule in RULES for f in rule.check(known)]


WRONG = [
    (K.softmax_naive, "overflow-risk", "# overflow"),
    (K.softmax_naive_alone, "overflow-risk", "# overflow"),
    (K.logsumexp_naive, "overflow-risk", "# overflow"),
    (K.sigmoid_naive, "overflow-risk", "# overflow"),
    (K.softplus_naive_alone, "overflow-risk", "# overflow"),
    (K.rms_norm_narrow, "overflow-risk", "# overflow"),
    (K.masked_softmax_nan, "nan-risk", "# NaN"),
    (K.attention_nan, "nan-risk", "# NaN"),
    (K.attention_nan_alone, "nan-risk", "# NaN"),
    (K.rms_norm_without_eps, "nan-risk", "tl.rsqrt(mean + EPS)"),
    (K.matmul_narrow, "precision-loss", "# narrow"),
    (K.row_sum_narrow, "precision-loss", "# narrow"),
    (K.row_sum_narrow_alone, "precision-loss", "# narrow"),
    (K.column_sum_narrow, "precision-loss", "# narrow"),
    (K.pairs_narrow, "precision-loss", "# narrow"),
    (K.variance_of_squares, "precision-loss", "# cancellation"),
    (K.variance_of_squares_alone, "precision-loss", "# cancellation"),
    (K.layer_norm_of_squares, "precision-loss", "# cancellation"),
    (K.gelu_rough, "precision-loss", "# truncated"),
]
RIGHT = [
    K.softmax, K.logsumexp, K.online_softmax, K.exp, K.exp_alone, K.square, K.inverse, K.inverse_alone, K.sigmoid,
    K.softplus, K.gelu, K.rms_norm, K.masked_softmax, K.masked_softmax_nan_too, K.attention,
    K.attention_where_keys_suffice, K.undefined_sum, K.matmul, K.row_sum, K.pairs, K.variance, K.welford, K.layer_norm,
    K.difference,
]  # fmt: skip


@pytest.mark.parametrize(("case", "rule", "mark"), WRONG, ids=[c.name for c, *_ in WRONG])
def test_is_found_at_its_line(case: Case, rule: str, mark: str) -> None:
    found = findings(case)
    assert [f.rule for f in found] == [rule]
    place = found[0].place
    assert place is not None and mark in SOURCE[place.line - 1]
    assert found[0].hint and found[0].steps and found[0].example["element"]


@pytest.mark.parametrize("case", RIGHT, ids=[c.name for c in RIGHT])
def test_is_silent(case: Case) -> None:
    assert findings(case) == []


@pytest.mark.parametrize("case", [K.row_sum_narrow])
def test_a_replay_shows_it_again(case: Case, tmp_path: Path) -> None:
    [found] = findings(case)
    script = tmp_path / "replay.py"
    script.write_text(found.replay)
    shown = subprocess.run([sys.executable, script], capture_output=True, text=True, cwd=Path(K.__file__).parents[2])
    assert shown.returncode == 1, shown.stdout + shown.stderr
    assert case.name in shown.stdout


def test_a_replay_of_a_mended_kernel_fails(tmp_path: Path) -> None:
    [found] = findings(K.softmax_naive)
    text = Path(K.__file__).read_text().replace("STABLE=False", "STABLE=True")
    (tmp_path / "mended.py").write_text(text)
    script = tmp_path / "replay.py"
    script.write_text(found.replay.replace(repr(str(Path(K.__file__).resolve())), repr(str(tmp_path / "mended.py"))))
    shown = subprocess.run([sys.executable, script], capture_output=True, text=True, cwd=Path(K.__file__).parents[2])
    assert shown.returncode == 0, shown.stdout + shown.stderr


def test_twice_is_the_same() -> None:
    assert [repr(f) for f in findings(K.softmax_naive)] == [repr(f) for f in findings(K.softmax_naive)]


def test_every_rule_has_a_page() -> None:
    for rule in RULES:
        text = page(rule.RULE.name)
        assert all(part in text for part in ("## What it does", "## Why it is bad", "## Example", "## Instead"))


# ---- rounding --------------------------------------------------------------------------------------------------------

TORCH = {
    "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16, "f8e4m3fn": torch.float8_e4m3fn,
    "f8e5m2": torch.float8_e5m2,
}  # fmt: skip


@pytest.mark.parametrize("element", TORCH)
def test_rounding_is_torchs(element: str) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal(4000) * 10.0 ** rng.integers(-6, 3, 4000)
    x = np.clip(x, -FORMATS[element].largest, FORMATS[element].largest).astype(np.float32).astype(np.float64)
    want = torch.from_numpy(x).float().to(TORCH[element]).double().numpy()
    assert np.array_equal(nearest(x, element), want)


@pytest.mark.parametrize("element", TORCH)
def test_units_and_limits(element: str) -> None:
    f = FORMATS[element]
    info = torch.finfo(TORCH[element])
    assert f.largest == info.max and f.ulp(1.0) == info.eps
    beyond = nearest(np.array([4 * f.largest, -4 * f.largest, np.nan]), element)
    limit = f.largest if element.startswith("f8") else np.inf
    assert beyond[0] == limit and beyond[1] == -limit and np.isnan(beyond[2])


def test_a_rounded_run_is_what_torch_computes() -> None:
    case = K.square
    sample = numerics(evidence(case), 10.0).sample({"N": 40}, ROWS["normal"], 0)
    assert sample is not None and sample.typed_reference is not None and sample.rounded is not None
    assert np.array_equal(sample.rounded["out"], sample.typed_reference["out"])
    assert sample.exact is not None and not np.array_equal(sample.rounded["out"], sample.exact["out"])


def test_narrow_sums_can_be_widened() -> None:
    sample = numerics(evidence(K.matmul_narrow), 10.0).sample({"M": 2, "K": 600, "N": 2}, ROWS["normal"], 0)
    assert sample is not None and sample.exact is not None and sample.rounded is not None
    dots = frozenset(op for op in sample.operations() if op.name == "tt.dot")
    wide = sample.run(Rounded(wide=dots))
    assert dots and wide is not None
    error = [float(np.abs(v["c" if "c" in v else "out"] - sample.exact["out"]).max()) for v in (sample.rounded, wide)]
    assert error[0] > 4 * error[1]


def test_a_fault_is_told_once_and_at_its_smallest_shape() -> None:
    place, kind = Place("kernels.py", 7), ROWS["normal"]
    asked: list[int] = []

    def find(runs: Any, dims: Any, kind: Inputs) -> Iterator[Fault]:
        asked.append(dims["N"])
        if dims["N"] > 2:
            event = SimpleNamespace(op=SimpleNamespace(place=place), program=(0, 0, 0))
            sample = SimpleNamespace(dims=dims, kind=kind)
            yield Fault(sample, "out", (dims["N"],), 1.0, float("nan"), event)  # type: ignore[arg-type]

    runs: Any = SimpleNamespace(evidence=SimpleNamespace(case=SimpleNamespace(names=("N",))))
    (found,) = faults(runs, [{"N": 1}, {"N": 8}, {"N": 9}], (kind,), find)
    assert asked == [1, 8, 1, 2, 3, 9] and (found.element, found.known) == ("out[3]", False)
    assert found.example == {"N": 3, "program": (0, 0, 0), "element": "out[3]", "inputs": kind.words, "got": 1.0}
