"""What eager PyTorch does for a function, and a file that is no faster."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.superopt.test_optimize import trilift
from trilift.lift.capture.case_files import load
from trilift.superopt.mugraph.cost import H200, eager_seconds, suited
from trilift.superopt.program.eager import EagerOperator, eager_operators

CASES = """
import torch
from trilift import case


@case(x="f16[M,N]")
def doubled(x):
    return 2 * x


@case(x="f16[M,K]", w="f16[N,K]")
def gated(x, w):
    return torch.relu(x @ w.T)


@case(q="f16[1,2,M,N]", w="f16[N]")
def attended(q, w):
    q = torch.nn.functional.rms_norm(q, (q.shape[-1],), w, 1e-6)
    return torch.nn.functional.scaled_dot_product_attention(q, q, q)


@case(xs=["f32[M,N]", "f32[M,N]"], s="f32")
def summed(xs, s):
    return (xs[0] + xs[1].expand(1, *xs[1].shape)[0] * s).sum(-1)


@case(x="f32[M]")
def looks(x):
    return x if float(x[0]) > 0 else -x
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    (tmp_path / "cases.py").write_text(CASES)
    return str(tmp_path / "cases.py")


def operators(file: str, name: str, **dims: int | float) -> list[tuple[str, int, int]]:
    (case,) = load(file, [name])
    return [(o.name, o.moved, o.flops) for o in eager_operators(case, case.fn, dims)]


def test_views_move_nothing_and_products_count_their_flops(file: str) -> None:
    assert operators(file, "doubled", M=8, N=4) == [("aten.mul", 2 * 8 * 4 * 2, 0)]
    product, relu = operators(file, "gated", M=8, N=4, K=16)
    assert product == ("aten.mm", 2 * (8 * 16 + 4 * 16 + 8 * 4), 2 * 8 * 4 * 16)
    assert relu == ("aten.relu", 2 * 2 * 8 * 4, 0)
    assert [name for name, *_ in operators(file, "summed", M=8, N=4, s=2.0)] == ["aten.mul", "aten.add", "aten.sum"]


def test_what_a_gpu_has_one_kernel_for_is_one_operator(file: str) -> None:
    norm, attention = operators(file, "attended", M=64, N=8)
    assert norm == ("rms_norm", 2 * (2 * 2 * 64 * 8 + 8), 0)
    assert attention == ("scaled_dot_product_attention", 2 * 2 * (2 * 64 * 8), 2 * 2 * 2 * 64 * 64 * 8)


def test_a_function_that_looks_at_elements_is_not_known(file: str) -> None:
    with pytest.raises(Exception, match=r"item|local_scalar|data-dependent|fake"):
        operators(file, "looks", M=4)


def test_the_least_of_eager_time() -> None:
    moves, computes = EagerOperator("a", 43 * 10**8, 0), EagerOperator("b", 0, 79 * 10**12)
    assert eager_seconds([moves, computes], H200) == pytest.approx(2 * H200.launch + 1e-3 + 0.1)


def test_products_of_32_bits_are_no_work_for_tensor_cores(file: str) -> None:
    from trilift.superopt.jobs import program_of, read

    half, single = (program_of(read(file, n, {}, 0, print)["program"]) for n in ("gated", "summed"))
    assert suited(H200, half).flops == H200.flops and suited(H200, single).flops == H200.single


@pytest.mark.slow
def test_a_file_that_is_no_faster_is_written_on_request_only(file: str, tmp_path: Path) -> None:
    asked = ["optimize", "cases.py::doubled", "--at", "M=64,N=256", "-o", "fast.py", "--format", "json"]
    done = trilift(*asked, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (kept,) = json.loads(done.stdout)["cases"]
    assert kept["optimize"]["keep_yours"] and kept["optimize"]["emitted"] is None
    assert kept["optimize"]["eager_us"] <= kept["optimize"]["model_us"] and not (tmp_path / "fast.py").exists()
    again = trilift(*asked[:-2], "--anyway", cwd=tmp_path)
    assert again.returncode == 0 and "keep yours" in again.stdout and (tmp_path / "fast.py").exists()
