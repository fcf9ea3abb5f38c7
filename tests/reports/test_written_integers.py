"""Written tests draw integers of the whole type: a kernel that is wrong only where a sum wraps, or at one number, fails
them; a right one passes, within its contract."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
import torch
from operators import ROOT

from trilift.reports.testgen.helpers import in_turn, with_edges, wrong

HEAD = """
import torch
import triton
import triton.language as tl

from trilift import case


def run(kernel, *tensors, dtype=torch.int32, **more):
    out = torch.empty(tensors[0].shape, dtype=dtype, device=tensors[0].device)
    n = out.numel()
    kernel[(triton.cdiv(n, 64),)](*tensors, out, n, BLOCK=64, **more)
    return out
"""
BODY = """

@triton.jit
def {name}_kernel({pointers}, out, N, BLOCK: tl.constexpr):
    n = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
{loads}
    tl.store(out + n, {value}, mask=n < N)


@case({specs})
def {name}({names}):
    return run({name}_kernel, {names}, dtype=torch.{dtype})
"""
KERNELS = {  # specs; what is stored, as which type; the same with a mistake
    "positive": ({"x": "i8[N]", "y": "i8[N]"}, "tl.where(x + y > 0, 1, 0)", "int32",
                 "tl.where(x.to(tl.int32) + y > 0, 1, 0)"),
    "bits": ({"x": "u8[N]"}, "(x & 7) | 16", "uint8", "tl.where(x == 200, 0, (x & 7) | 16)"),
    "shorts": ({"x": "i16[N]", "y": "i16[N]"}, "(x * y) // 7", "int16", "(x.to(tl.int32) * y // 7).to(tl.int16)"),
    "words": ({"x": "i32[N]"}, "x ^ 5", "int32", "tl.where(x < -1000000, 0, x ^ 5)"),
    "longs": ({"x": "i64[N]"}, "x ^ 1", "int64", "x ^ tl.where(x > 9007199254740992, 0, 1)"),
    "generator": ({"x": "i32[N]"}, "x * 1664525 + 101390", "int32", "x * 1664525 + tl.where(x > 100, 0, 101390)"),
    "quotient": ({"x": "i32[N]", "y": "i32[N]"}, "x // y", "int32", "x // tl.abs(y)"),
    "half": ({"x": "i32[N]"}, "x.to(tl.float32) * 0.5", "float32", "tl.where(x > 9999, 0.0, x.to(tl.float32) * 0.5)"),
    "chosen": ({"ids": "i32[N] < V", "table": "f32[V]"}, "tl.load(table + ids)", "float32", "tl.load(table)"),
}  # fmt: skip
BITS = {"positive": 7, "bits": 8, "shorts": 15, "words": 31, "longs": 63, "generator": 10, "quotient": 30, "half": 24}


def source(mistaken: bool = False) -> str:
    """The file of all kernels, or of all with their mistakes."""
    return HEAD + "".join(written(name, *row, mistaken=mistaken) for name, row in KERNELS.items())


def written(name: str, specs: Mapping[str, str], right: str, dtype: str, mistake: str, mistaken: bool) -> str:
    loaded = [n for n in specs if n != "table"]
    other = {n: 1 if n == "y" else 0 for n in loaded}
    loads = "\n".join(f"    {n} = tl.load({n} + n, mask=n < N, other={other[n]})" for n in loaded)
    value = mistake if mistaken else right
    said = ", ".join(f'{n}="{s}"' for n, s in specs.items())
    return BODY.format(name=name, pointers=", ".join(specs), loads=loads, value=value, specs=said,
                       names=", ".join(specs), dtype=dtype)  # fmt: skip


def in_folder(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Python in a folder of kernels."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TRITON_INTERPRET": "0"}
    return subprocess.run([sys.executable, "-m", *words], cwd=folder, capture_output=True, text=True, env=environment)


@pytest.fixture(scope="module")
def tests(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file that is written for the right kernels, beside them."""
    folder = tmp_path_factory.mktemp("right")
    (folder / "kernels.py").write_text(source())
    done = in_folder(folder, "trilift", "write", "kernels.py", "-o", "test_kernels.py", "-q")
    assert done.returncode == 0, done.stderr
    return folder / "test_kernels.py"


def outcomes(folder: Path) -> dict[str, set[str]]:
    """How the comparisons with formulas end, by case."""
    pytest_ = ("pytest", "-q", "-rA", "--tb=no", "-p", "no:cacheprovider", "-p", "no:trilift", "test_kernels.py")
    done = in_folder(folder, *pytest_)
    found: dict[str, set[str]] = {}
    for how, case, what in re.findall(r"^(PASSED|FAILED|ERROR) \S+::test_([a-z]+)_(\w+)", done.stdout, re.MULTILINE):
        if how != "PASSED" or what == "equals_its_formula":
            found.setdefault(case, set()).add(f"{what} {how}")
    assert set(found) == set(KERNELS), done.stdout + done.stderr
    return found


def test_integers_have_as_many_bits_as_the_contract_leaves(tests: Path) -> None:
    calls = re.findall(r"def (\w+)_arguments.*?make\.integers\(([^)]*\)[^)]*)\)", tests.read_text(), re.DOTALL)
    found = {name: re.search(r"bits=(\d+)", said) for name, said in calls}
    assert {name: int(bits[1]) for name, bits in found.items() if bits is not None} == BITS
    assert re.search(r'"y", \(N,\), torch.int32, -8, 9, bits=30, nonzero=True', tests.read_text())


def test_right_kernels_pass(tests: Path) -> None:
    assert outcomes(tests.parent) == {name: {"equals_its_formula PASSED"} for name in KERNELS}


def test_kernels_that_are_wrong_for_few_integers_fail(tests: Path, tmp_path: Path) -> None:
    (tmp_path / "kernels.py").write_text(source(mistaken=True))
    (tmp_path / "test_kernels.py").write_text(tests.read_text())
    passed = {name for name, found in outcomes(tmp_path).items() if "equals_its_formula FAILED" not in found}
    assert not passed


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def test_all_numbers_of_a_byte_come_in_turn() -> None:
    for number in (1, 2):
        drawn = [in_turn(torch.zeros(13, 10), -128, 127, seed, number, generator()) for seed in range(2)]
        assert drawn[0].shape == (13, 10) and set(torch.cat(drawn).flatten().tolist()) >= set(range(-128, 127 - number))
    first, second = (in_turn(torch.zeros(300), 0, 255, 1, number, generator()) for number in (1, 2))
    assert set(first.tolist()) == set(range(256)) and not first.equal(second)


@pytest.mark.parametrize("bits", [4, 31, 63])
def test_edges_are_those_of_the_bits(bits: int) -> None:
    low, high, small = -(2**bits), 2**bits - 1, torch.full((400,), 3)
    drawn = with_edges(small, low, high, generator())
    assert {low, low + 1, -1, 0, 1, high - 1, high} <= set(drawn.tolist())
    assert bool(((low <= drawn) & (drawn <= high)).all()) and 100 < int((drawn == 3).sum()) < 300


def test_wide_integers_are_compared_bit_by_bit() -> None:
    most, none = torch.tensor([2**63 - 1, 2**62]), torch.zeros(2)
    assert wrong(most - torch.tensor([0, 1]), most, none).tolist() == [False, True]
