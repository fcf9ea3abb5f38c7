"""Written tests of kernels whose language Triton's interpreter leaves out: they pass, and fail on changed kernels."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from lift import term as T
from lift.case import Case
from lift.load import load
from lift.spec import Formula
from lift.term import Axis
from reports.written import complete, printed
from reports.written.facts import facts
from verify.suite import Output, Sizes, Suite, Tolerance

KERNELS = """
import torch
import triton
import triton.language as tl

from lift import case


@triton.jit
def least(dtype):
    dtype_ = dtype.value
    if dtype_.is_floating():
        value: tl.constexpr = float("-inf")
        return value
    if dtype_.is_int_unsigned():
        value: tl.constexpr = 0
        return value


@triton.autotune(configs=[triton.Config({"BLOCK": 16}), triton.Config({"BLOCK": 4})], key=[])
@triton.jit
def kernel(out, x, M, N, BLOCK: tl.constexpr):
    tl.static_assert(BLOCK <= 8)
    m = 2 * tl.program_id(0) + tl.arange(0, 2)[:, None]
    for start in range(0, N, BLOCK):
        n = start.to(tl.int64) + tl.arange(0, BLOCK)[None, :]
        mask = m < M and not (n >= N)
        y = tl.load(x + m * N + n, mask=mask, other=least(x.dtype.element_ty))
        tl.store(out + m * N + n, 2 * y, mask=mask & (tl.program_id(0) < M))


@triton.jit
def wide_kernel(out, x, N, BLOCK: tl.constexpr):
    n = tl.arange(0, BLOCK)
    row = tl.program_id(0) * N
    y = tl.load(x + row + n, mask=n < N or n < 0, other=0.0)
    tl.store(out + row + n, 2 * y, mask=n < N)


@case(x="f32[M,N]", where="N <= 32")
def twice(x):
    out = torch.empty_like(x)
    if x.shape[1] > 16:
        wide_kernel[(x.shape[0],)](out, x, x.shape[1], BLOCK=32)
    else:
        kernel[(-(-x.shape[0] // 2),)](out, x, *x.shape)
    return out
"""
CHANGES = {
    "rows beyond the tensor": ("m < M and not (n >= N)", "m <= M and not (n >= N)"),
    "either is enough": ("m < M and not (n >= N)", "m < M or not (n >= N)"),
    "not what it should be": ("not (n >= N)", "not (n >= N - 1)"),
    "nothing beside the rows": ("n < N or n < 0", "n < 0 or n < 0"),
    "half of the programs": ("(tl.program_id(0) < M)", "(2 * tl.program_id(0) < M - 2)"),
    "no configuration compiles": ("BLOCK <= 8", "BLOCK <= 2"),
}


def suite_of(case: Case) -> Suite:
    """As the stages before the printer find it, without laws."""
    m, n = Axis("m", T.size("M")), Axis("n", T.size("N"))
    x = T.read("x", (T.axis(m), T.axis(n)))
    formula = Formula("out", (m, n), 2 * x, "f32")
    magnitude = replace(formula, term=T.make("abs", x))
    first = {"M": 1, "N": 1}, {"M": 3, "N": 7}, {"M": 4, "N": 16}, {"M": 2, "N": 17}
    sizes = Sizes({"M": (1, 2, 3), "N": (1, 4, 7, 17)}, {}, "", first)
    return Suite(case, (Output("out", formula, Tolerance(magnitude, T.const(2), 2.0**-24)),), sizes)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("language")


@pytest.fixture(scope="module")
def text(folder: Path) -> str:
    target = folder / "twice.py"
    target.write_text(KERNELS)
    [case] = load(str(target))
    suite = suite_of(case)
    found = facts(case, 0, suite.sizes.first)
    assert found.configs == 2 and found.uses == ("not", "and", "attribute", "truth")
    return complete([printed(suite, found)], str(target), str(folder / "test_twice.py"), "trilift write", "0.1.0", 3)


@pytest.fixture(scope="module")
def results(folder: Path, text: str) -> dict[str, list[tuple[str, str]]]:
    """The tests that fail of each file, with what they say; all are run."""
    sources = {"original": KERNELS}
    for k, (old, new) in enumerate(CHANGES.values()):
        assert KERNELS.count(old) == 1
        sources[f"changed{k}"] = KERNELS.replace(old, new)
    for name, source in sources.items():
        (folder / f"{name}.py").write_text(source)
        (folder / f"test_{name}.py").write_text(text.replace('import_module("twice")', f'import_module("{name}")'))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:trilift", "--tb=line",
               "--junitxml=results.xml", *(f"test_{n}.py" for n in sources)]  # fmt: skip
    subprocess.run(command, cwd=folder, capture_output=True, env={**os.environ, "TRITON_INTERPRET": "0"})
    found: dict[str, list[tuple[str, str]]] = {n: [] for n in sources}
    for test in ElementTree.parse(folder / "results.xml").iter("testcase"):
        assert test.find("skipped") is None
        for failure in test.findall("failure"):
            name = str(test.get("classname")).removeprefix("test_")
            found[name].append((str(test.get("name")), f"{failure.get('message')} {failure.text}"))
    return found


def test_what_the_interpreter_leaves_out_is_supplied(text: str, results: dict[str, Any]) -> None:
    assert "visit_BoolOp = connected_tensors" in text and "visit_Attribute = attributes_of_numbers" in text
    assert results["original"] == []


@pytest.mark.parametrize("name", CHANGES)
def test_changed_kernels_fail(name: str, results: dict[str, Any]) -> None:
    assert any("equals_its_formula" in test for test, _ in results[f"changed{list(CHANGES).index(name)}"])


def test_that_no_configuration_compiles_is_said(results: dict[str, Any]) -> None:
    said = results[f"changed{list(CHANGES).index('no configuration compiles')}"]
    assert all("AssertionError" in what for _, what in said) and len(said) >= 2
