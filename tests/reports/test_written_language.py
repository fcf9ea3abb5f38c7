"""Written tests of kernels whose language Triton's interpreter leaves out: they pass, and fail on changed kernels."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import torch

from trilift.lift.capture.case_files import load
from trilift.lift.cases.declaration import Case
from trilift.lift.errors import CaseError
from trilift.lift.terms import construct as T
from trilift.lift.terms.spec import Formula
from trilift.lift.terms.term import Axis
from trilift.reports.testgen.case_section import Names, check_names
from trilift.reports.testgen.facts import Facts, facts
from trilift.reports.testgen.file import complete, printed
from trilift.reports.testgen.helpers import Call, Expected, Kernel, Maker, Memory, assert_rejects_controls
from trilift.reports.testgen.library import defined
from trilift.reports.testgen.stand_ins import lacking
from trilift.verify.properties.records import Output, Sizes, Suite, Tolerance
from trilift.verify.properties.suite import suite

pytestmark = [
    pytest.mark.filterwarnings("ignore:Logical operators"),
    pytest.mark.filterwarnings("ignore:builtin min on non-scalar"),
]
KERNELS = """
import torch
import triton
import triton.language as tl

from trilift import case


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
    for start in range(0, min(N, 64), BLOCK):
        n = start.to(tl.int64) + tl.arange(0, BLOCK)[None, :]
        mask = m < M and not (n >= N)
        y = tl.load(x + m * N + n, mask=mask, other=least(x.dtype.element_ty))
        tl.store(out + m * N + n, min(2 * y, y + y), mask=mask & (tl.program_id(0) < M))


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
    "the least of others": ("min(2 * y, y + y)", "min(2 * y, y + 1)"),
    "half of the programs": ("(tl.program_id(0) < M)", "(2 * tl.program_id(0) < M - 2)"),
    "no configuration compiles": ("BLOCK <= 8", "BLOCK <= 2"),
}
REWRITTEN = """
import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def once(out, x, N, BLOCK: tl.constexpr):
    at = tl.program_id(0) * N + tl.arange(0, BLOCK)
    inside = tl.arange(0, BLOCK) < N
    tl.store(out + at, 1 * tl.load(x + at, mask=inside), mask=inside)


doubled = triton.JITFunction(once.fn)
doubled._unsafe_update_src(once.src.replace("1 * tl", "2 * tl"))


@case(x="f32[M,N]", where="N <= 32")
def running(x):
    assert x.is_cuda
    half, out = torch.empty_like(x), torch.empty_like(x)
    once[(x.shape[0],)](half, x, x.shape[1], BLOCK=32)
    doubled[(x.shape[0],)](out, half, x.shape[1], BLOCK=32)
    return out
"""

SPREAD = """
import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def kernel(out, x, M, N, EACH, BLOCK: tl.constexpr):
    n = tl.arange(0, BLOCK)
    for k in range(EACH):
        m = tl.program_id(0) * EACH + k
        inside = (n < N) & (m < M)
        tl.store(out + m * N + n, 2 * tl.load(x + m * N + n, mask=inside), mask=inside)


@case(x="f32[M,N]", where="N <= 32")
def twice(x):
    out = torch.empty_like(x)
    programs = torch.cuda.get_device_properties(x.device).multi_processor_count if x.is_cuda else 1
    kernel[(programs,)](out, x, *x.shape, triton.cdiv(x.shape[0], programs), BLOCK=32)
    return out
"""


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


def written(folder: Path, name: str, source: str) -> tuple[str, Facts]:
    """The text of the tests of the case."""
    target = folder / f"{name}.py"
    target.write_text(source)
    [case] = load(str(target))
    known = suite_of(case)
    of = facts(case, 0, known.sizes.first)
    where = str(target), str(folder / f"test_{name}.py")
    return complete([printed(known, of)], *where, "trilift write", "0.1.0", 3), of


@pytest.fixture(scope="module")
def text(folder: Path) -> str:
    found, of = written(folder, "original", KERNELS)
    assert not of.counts and of.configs == 2 and of.uses == ("not", "and", "attribute", "truth", "least")
    return found


@pytest.fixture(scope="module")
def results(folder: Path, text: str) -> dict[str, list[tuple[str, str]]]:
    """The tests that fail of each file, with what they say; all are run."""
    sources = {"original": (KERNELS, text), "rewritten": (REWRITTEN, written(folder, "rewritten", REWRITTEN)[0])}
    for k, (old, new) in enumerate(CHANGES.values()):
        assert KERNELS.count(old) == 1
        sources[f"changed{k}"] = KERNELS.replace(old, new), text.replace('"original"', f'"changed{k}"')
    spread = written(folder, "spread", SPREAD)[0]
    alone = SPREAD.replace("tl.program_id(0)", "tl.program_id(1)"), spread.replace('"spread"', '"alone"')
    sources |= {"spread": (SPREAD, spread), "alone": alone}
    other = sources["rewritten"][1].replace('"rewritten"', '"tripled"')
    sources["tripled"] = REWRITTEN.replace('"2 * tl', '"3 * tl'), other
    for name, (source, tests) in sources.items():
        (folder / f"{name}.py").write_text(source)
        (folder / f"test_{name}.py").write_text(tests)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:trilift", "--tb=line",
               "--junitxml=results.xml", *(f"test_{n}.py" for n in sources)]  # fmt: skip
    subprocess.run(command, cwd=folder, capture_output=True, env={**os.environ, "TRITON_INTERPRET": "0"})
    found: dict[str, list[tuple[str, str]]] = {n: [] for n in sources}
    for test in ElementTree.parse(folder / "results.xml").iter("testcase"):
        assert test.find("skipped") is None and test.find("error") is None
        for failure in test.findall("failure"):
            name = str(test.get("classname")).removeprefix("test_")
            found[name].append((str(test.get("name")), f"{failure.get('message')} {failure.text}"))
    return found


def test_what_the_interpreter_leaves_out_is_supplied(text: str, results: dict[str, Any]) -> None:
    assert "visit_BoolOp = connected_tensors" in text and "visit_Attribute = attributes_of_numbers" in text
    assert "visit_Call = least_of_blocks" in text
    assert results["original"] == []


@pytest.mark.parametrize("name", CHANGES)
def test_changed_kernels_fail(name: str, results: dict[str, Any]) -> None:
    assert any("equals_its_formula" in test for test, _ in results[f"changed{list(CHANGES).index(name)}"])


def test_that_no_configuration_compiles_is_said(results: dict[str, Any]) -> None:
    said = results[f"changed{list(CHANGES).index('no configuration compiles')}"]
    assert all("AssertionError" in what for _, what in said) and len(said) >= 2


def test_what_stands_for_a_kernel_is_called_like_nothing_else() -> None:
    cases = "twice", "running", "gpu", "relu", "Relu", "RELU", "_", "test_it"
    names = [Names(c).kernel for c in cases]
    assert len(set(names)) == len(cases) and not defined().intersection(names) and names[0] == "TWICE"
    assert {"RUNNING", "GPU"} <= defined()
    assert not any(name.startswith("test") for c in cases for name in (Names(c).arguments, Names(c).calls))


def test_programs_are_several_where_their_number_is_asked(folder: Path, results: dict[str, Any]) -> None:
    """One program for each multiprocessor, and one where there is no GPU: that its number matters would not be seen."""
    text, of = written(folder, "spread", SPREAD)
    assert of.counts and "without_gpu(kernels.twice.fn)" in text
    assert results["spread"] == [] and any("equals_its_formula" in test for test, _ in results["alone"])


def test_kernels_with_another_source_are_run_by_it(results: dict[str, Any]) -> None:
    assert results["rewritten"] == [] and any("elements are wrong" in said for _, said in results["tripled"])


MADE = """
import importlib.util
import sys
from pathlib import Path

import torch

from trilift import case

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
spec = importlib.util.spec_from_file_location("made", HERE / "made_kernel.py")
made = importlib.util.module_from_spec(spec)
spec.loader.exec_module(made)


@case(x="f32[N]", where="N <= 32")
def same(x):
    out = torch.empty_like(x)
    made.kernel[(1,)](out, x, x.shape[0], BLOCK=32)
    return out
"""
MADE_KERNEL = """
import triton
import triton.language as tl
from {0} import same


@triton.jit
def kernel(out, x, N, BLOCK: tl.constexpr):
    n = tl.arange(0, BLOCK)  # {0}: modules are kept by their text
    tl.store(out + n, same(tl.load(x + n, mask=n < N)), mask=n < N)
"""
SAME = """
import triton


@triton.jit
def same(x):
    return x
"""


@pytest.mark.parametrize(("name", "more", "expected"), [("bare", "", ("unnamed",)),
                                                        ("named", "import triton.language as tl", ())])  # fmt: skip
def test_a_function_without_operations_is_found(
    name: str, more: str, expected: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / f"{name}_functions.py").write_text(more + SAME)
    (tmp_path / "made_kernel.py").write_text(MADE_KERNEL.format(f"{name}_functions"))
    (tmp_path / f"{name}.py").write_text(MADE)
    [case] = load(str(tmp_path / f"{name}.py"))
    assert facts(case).uses == expected


# ---- the type that is stored -----------------------------------------------------------------------------------------

COPY = """
import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def kernel(out, x, N, BLOCK: tl.constexpr):
    n = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + n, tl.load(x + n, mask=n < N), mask=n < N)


@case(x="f32[N]")
def copy(x):
    out = torch.empty_like(x, dtype=torch.float16)
    kernel[(-(-x.shape[0] // 32),)](out, x, x.shape[0], BLOCK=32)
    return out


@copy.reference
def _(x):
    return x
"""


@pytest.mark.parametrize(("name", "dtype", "exact"), [("float16", "f16", False), ("float32", "f32", True)])
def test_what_is_stored_is_rounded_to_its_type(name: str, dtype: str, exact: bool, tmp_path: Path) -> None:
    """A copy into fewer bits is no exact one, whatever its reference returns."""
    (tmp_path / f"copy_{name}.py").write_text(COPY.replace("float16", name))
    [case] = load(str(tmp_path / f"copy_{name}.py"))
    [out] = suite(case).outputs
    assert out.formula is not None and out.tolerance is not None and out.formula.dtype == dtype
    assert (out.tolerance.magnitude is None) == exact


# ---- controls --------------------------------------------------------------------------------------------------------


def kernel_of(formula: Callable[[torch.Tensor], torch.Tensor], error: Callable[[int], float]) -> Kernel:
    """A kernel that is never called; its tolerance by the number of elements."""

    def arguments(call: Call, memory: Memory) -> dict[str, Any]:
        return {"x": Maker(call, memory).reals("x", (call.sizes["N"],), torch.float32)}

    def expected(call: Call) -> dict[str, Expected]:
        return {
            "out": Expected(formula(arguments(call, Memory())["x"].double()), error(call.sizes["N"]), torch.float32)
        }

    return Kernel(lambda: lambda x: x, arguments, expected)


def test_controls_are_tried_at_a_small_shape_where_none_differs() -> None:
    product = kernel_of(torch.prod, lambda n: 1e-6)
    with pytest.raises(AssertionError, match="no wrong result differs"):
        assert_rejects_controls(product, {"N": 4000})
    assert_rejects_controls(product, {"N": 4000}, {"N": 4})
    with pytest.raises(AssertionError, match="would pass"):
        assert_rejects_controls(kernel_of(torch.prod, lambda n: 1e9), {"N": 4000}, {"N": 4})


def test_a_small_shape_does_not_excuse_a_tolerance_that_grows() -> None:
    total = kernel_of(torch.sum, lambda n: 1e9 if n > 4 else 1e-6)
    assert_rejects_controls(total, {"N": 4})
    with pytest.raises(AssertionError, match="would pass"):
        assert_rejects_controls(total, {"N": 4000}, {"N": 4})


# ---- libdevice -------------------------------------------------------------------------------------------------------

ROUNDED = COPY.replace("\n\n\n@triton.jit", "\nfrom triton.language.extra import libdevice\n\n\n@triton.jit").replace(
    "tl.load(x + n, mask=n < N)", "libdevice.div_rn(tl.load(x + n, mask=n < N), 2.0)"
)


def test_functions_that_round_are_found_by_their_names(tmp_path: Path) -> None:
    (tmp_path / "rounded.py").write_text(ROUNDED.replace("return x\n", "return x / 2\n"))
    [case] = load(str(tmp_path / "rounded.py"))
    of = facts(case)
    assert of.libdevice == ("div_rn",) and lacking(of) == ""
    assert lacking(replace(of, libdevice=("div_rz",))) == "Triton's interpreter has no libdevice.div_rz"


# ---- names of a case -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["memory", "st", "given"])
def test_a_dim_that_a_function_has_otherwise_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / f"named_{name}.py").write_text(COPY.replace("f32[N]", f"f32[{name}]"))
    [case] = load(str(tmp_path / f"named_{name}.py"))
    with pytest.raises(CaseError, match=f"{name} is a name that its tests use for something else"):
        check_names(case)


@pytest.mark.parametrize("names", [("x", "N"), ("memory", "n"), ("call", "seed")])
def test_other_names_are_free(names: tuple[str, str], tmp_path: Path) -> None:
    tensor, dim = names
    text = f'@case({tensor}="f32[{dim}]")\ndef copy({tensor}):\n    return {tensor}\n'
    (tmp_path / f"free_{tensor}.py").write_text("from trilift import case\n\n\n" + text)
    [case] = load(str(tmp_path / f"free_{tensor}.py"))
    check_names(case)
