"""Arguments of acceptance: large, small and uneven while outputs stay numbers; what narrows too early fails."""

import numpy as np
import pytest
import torch

from trilift.lift.capture.case_files import load
from trilift.superopt.accept import accept
from trilift.superopt.accept.trial_inputs import CHANGES, SMALLEST_OUTPUT, converted, results, trial_inputs

FILE = """
import torch, triton, triton.language as tl
from trilift import case

@triton.jit
def kernel(X, G, O, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * N
    i = tl.arange(0, BLOCK)
    m = i < N
    x = tl.load(X + row + i, mask=m, other=0.0).to(tl.float32)
    g = tl.load(G + i, mask=m, other=0.0).to(tl.float32)
    norm = tl.sqrt(tl.sum(x * x))
    y = PRODUCT
    tl.store(O + row + i, y.to(tl.float16), mask=m)

@case(x="f16[M,N]", g="f16[N]")
def normed(x, g):
    o = torch.empty_like(x)
    kernel[(x.shape[0],)](x, g, o, x.shape[1], BLOCK=1 << (x.shape[1] - 1).bit_length())
    return o

@normed.reference
def _(x, g):
    return x * g / (x * x).sum(1, keepdim=True).sqrt()
"""
RIGHT = ("(x / norm) * g", "(x / norm).to(tl.float16) * g", "(x * g) / norm")
WRONG = ("(x * g).to(tl.float16) / norm", "x * g / norm.to(tl.float16)")


@pytest.mark.parametrize("product", RIGHT)
def test_what_is_narrowed_late_holds_up(product: str) -> None:
    step = accept(FILE.replace("PRODUCT", product), only=("rounded",)).steps[-1]
    assert step.passed, step.text


@pytest.mark.parametrize("product", WRONG)
def test_what_is_narrowed_early_does_not(product: str) -> None:
    step = accept(FILE.replace("PRODUCT", product), only=("rounded",)).steps[-1]
    assert step.name == "rounded" and not step.passed


def test_inputs_are_numbers_and_so_are_the_outputs(tmp_path) -> None:
    path = tmp_path / "normed.py"
    path.write_text(FILE.replace("PRODUCT", RIGHT[0]))
    case = load(str(path))[0]
    seen = {}
    for name, args in trial_inputs(case, {"M": 3, "N": 9}, 0):
        (out,), _ = results(case, case.reference.fn, converted(args, torch.float64))
        assert all(torch.isfinite(x).all() for x in args.values())
        seen.setdefault(name, []).append((args, float(out.abs().max())))
    largest = torch.finfo(torch.float16).max
    assert {"random", "tiny", "equal", "zero", "large"} | {c.name for c in CHANGES} == set(seen)
    assert all(top <= largest for name in ("large", "largest", "outlier") for _, top in seen[name])
    assert all(top >= SMALLEST_OUTPUT for _, top in seen["smallest"])
    assert max(float(a["x"].abs().max()) for a, _ in seen["largest"]) > 4096  # the norm divides by it


def test_outliers_are_some_of_the_elements() -> None:
    (outlier,) = (c for c in CHANGES if c.uneven)
    factors = outlier.applied(torch.ones(40, 40), 5, np.random.default_rng(0))
    assert set(factors.unique().tolist()) == {1.0, 32.0} and 0 < (factors == 32).sum() < 800
