"""Written tests: the text is golden, clean, the same twice; it passes on the kernel and fails on changed ones."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from lift import term as T
from lift.case import Case
from lift.load import load
from lift.spec import Formula
from lift.term import Axis
from reports.targets import Target
from reports.writing import Asked, _part
from reports.written import assembled, complete, printed, written
from reports.written.facts import Facts, facts, identifier
from reports.written.formatting import at_width, formatted
from reports.written.library import helpers, needed
from verify.suite import Output, Property, Refusal, Sizes, Suite, Tolerance
from verify.verdict import Claim, Clause, Counterexample, refuted

ROWS = """
import torch
import triton
import triton.language as tl

from lift import case


@triton.jit
def kernel(out, x, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    n = tl.arange(0, BLOCK)
    x = tl.load(x + row * N + n, mask=n < N, other=0.0)
    tl.store(out + row * N + n, 2 * x, mask=n < N)


@case(x="f32[M,N]", where="N <= 8")
def twice(x):
    assert x.shape[1] <= 8
    out = torch.empty_like(x)
    kernel[(x.shape[0],)](out, x, x.shape[1], BLOCK=8)
    return out
"""
MUTANTS = {
    "a store beyond the row": ("2 * x, mask=n < N", "2 * x, mask=n <= N"),
    "an element that is not written": ("2 * x, mask=n < N", "2 * x, mask=n < N - 1"),
    "another factor": ("2 * x", "1.999 * x"),
    "another row": ("tl.load(x + row * N", "tl.load(x + 0 * N"),
    "no check of the contract": ("    assert x.shape[1] <= 8\n", ""),
}


def formula(term: T.Term, m: Axis, n: Axis) -> Formula:
    return Formula("out", (m, n), term, "f32")


def suite_of(case: Case) -> Suite:
    """What the stages before the printer find out of ROWS."""
    m, n = Axis("m", T.size("M")), Axis("n", T.size("N"))
    x = T.read("x", (T.axis(m), T.axis(n)))
    tolerance = Tolerance(formula(T.make("abs", x), m, n), T.const(2), 2.0**-24, derivation=("one product",))
    sizes = Sizes({"M": (1, 2, 3), "N": (1, 7, 8)}, {"N": "BLOCK = 8"}, "N <= 8", ({"M": 3, "N": 7},))
    bound = T.make("le", T.size("N"), 8)
    laws = (Property("odd", "out", "twice(-x) = -twice(x)", ("x",)),
            Property("equivariant", "out", "twice(x[p]) = twice(x)[p]", ("x",), {"x": 0, "out": 0}))  # fmt: skip
    refusals = (Refusal(Clause("shape", bound, "N <= 8"), {"M": 3, "N": 9}, raises="AssertionError"),
                Refusal(Clause("layout", None, "x is contiguous"), {"M": 3, "N": 7}, {"x": "strided"}),
                Refusal(Clause("value", None, "odd"), {"M": 3, "N": 7}, safe=False))  # fmt: skip
    return Suite(case, (Output("out", formula(2 * x, m, n), tolerance),), sizes, laws, refusals)


@pytest.fixture
def rows(tmp_path: Path) -> Case:
    (tmp_path / "rows.py").write_text(ROWS)
    return load(str(tmp_path / "rows.py"))[0]


def text_of(found: Suite, folder: Path, of: Facts | None = None, examples: int = 3) -> str:
    of = of or Facts({"out": "f32", "x": "f32"})
    target, output = str(folder / "rows.py"), str(folder / "test_rows.py")
    return written([(found, of)], target, output, "trilift write rows.py -o test_rows.py", "0.1.0", examples)


def outcome(folder: Path, text: str, source: str = ROWS) -> tuple[str, str]:
    """The summary line of pytest in a process of its own, and all that it prints."""
    (folder / "rows.py").write_text(source)
    (folder / "test_rows.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:trilift", "test_rows.py"]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, env={**os.environ, "TRITON_INTERPRET": "0"}
    )
    return done.stdout.strip().splitlines()[-1], done.stdout


def test_the_file_is_golden(rows: Case, tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    text = text_of(suite_of(rows), tmp_path)
    assert text == text_of(suite_of(rows), tmp_path)
    golden("written/rows.py.txt", text)


def test_the_file_is_clean(rows: Case, tmp_path: Path) -> None:
    (tmp_path / "test_rows.py").write_text(text_of(suite_of(rows), tmp_path))
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "test_rows.py"]
    assert subprocess.run(command, cwd=tmp_path, capture_output=True).returncode == 0
    assert "lift." not in re.sub(r"trilift|\"lift\"", "", (tmp_path / "test_rows.py").read_text())


def test_it_passes_on_the_kernel(rows: Case, tmp_path: Path) -> None:
    line, said = outcome(tmp_path, text_of(suite_of(rows), tmp_path))
    assert re.match(r"6 passed, 2 xfailed", line), said


@pytest.mark.parametrize("name", MUTANTS)
def test_it_fails_on_a_changed_kernel(name: str, rows: Case, tmp_path: Path) -> None:
    old, new = MUTANTS[name]
    assert old in ROWS
    line, said = outcome(tmp_path, text_of(suite_of(rows), tmp_path), ROWS.replace(old, new))
    assert "1 failed" in line, said


def test_a_bug_is_expected_and_its_end_is_noticed(rows: Case, tmp_path: Path) -> None:
    found = Counterexample({"M": 1, "N": 2}, 0, 0, "out", (0, 1), 1.0, 2.0)
    known = suite_of(rows)
    output = replace(known.outputs[0], proof=refuted(Claim("out", "reference"), found))
    text = text_of(replace(known, outputs=(output,), failures=(found,), properties=(), refusals=()), tmp_path)
    assert 'given={"x": [[' in text
    line, said = outcome(tmp_path, text, ROWS.replace("2 * x", "1.5 * x"))
    assert re.search(r"1 xfailed", line) and "failed" not in line.replace("xfailed", ""), said
    line, said = outcome(tmp_path, text)
    assert "1 failed" in line and "XPASS(strict)" in said, said


def test_an_unsafe_call_ends_only_its_own_process(rows: Case, tmp_path: Path) -> None:
    known = replace(suite_of(rows), unsafe=True, properties=(), refusals=())
    known = replace(known, sizes=replace(known.sizes, first=({"M": 1, "N": 1},)))
    dying = ROWS.replace(
        "    out = torch.empty_like(x)", "    import os\n    os.abort()\n    out = torch.empty_like(x)"
    )
    line, said = outcome(tmp_path, text_of(known, tmp_path, examples=1), dying)
    assert "1 failed" in line and "the call ended its process" in said, said


def test_without_a_formula_there_are_tests_left(rows: Case, tmp_path: Path) -> None:
    known = replace(
        suite_of(rows), outputs=(Output("out", None, why="no formula was found"),), properties=(), refusals=()
    )
    text = text_of(known, tmp_path)
    assert "no formula was found" in text
    assert "def test_twice_writes_everything_and_repeats" in text
    assert "equals_its_formula" not in text
    random = text_of(replace(known, deterministic=False), tmp_path)
    assert "def test_twice_stays_within_its_tensors" in random


BAD = """
import os

from lift import case


@case(x="f32[N]")
def refuses(x):
    raise ValueError("no such mode")


@case(x="f32[N]")
def ends(x):
    os._exit(3)


@case(x="f32[N]", where="N > 3 and N < 3")
def nowhere(x):
    return x


@case(x="f32[N]")
def by_data(x):
    return x + 1 if x.sum() > 0 else x + 2
"""


def test_bad_cases_have_tests_that_say_so(tmp_path: Path) -> None:
    (tmp_path / "rows.py").write_text(BAD)
    target, asked = Target(str(tmp_path / "rows.py")), Asked(0, 3, 5.0, "")
    told: dict[str, str] = {}
    parts = [_part(c, target, asked, lambda e: told.update([e])) for c in load(target.file)]
    text = assembled(parts, target.file, str(tmp_path / "test_rows.py"), "trilift write rows.py", "0.1.0", 3)
    assert "ends: nothing can be tested: exit 3" in text and "nowhere: nothing can be tested: case nowhere" in text
    assert re.search(r"by_data: no formula was found:\s+host code reads", text)
    assert told["refuses"] == "ok" and told["ends"] == "exit 3"
    line, said = outcome(tmp_path, text, BAD)
    assert re.match(r"1 passed, 2 skipped, 1 xfailed", line), said
    line, said = outcome(tmp_path, text, BAD.replace('raise ValueError("no such mode")', "return x"))
    assert "1 failed" in line and "XPASS(strict)" in said, said


def test_what_does_not_run_without_a_gpu_says_so(rows: Case, tmp_path: Path) -> None:
    asks = "    assert x.shape[1] <= 8\n", "    assert x.shape[1] <= 8 and x.is_cuda\n"
    target, output = str(tmp_path / "rows.py"), str(tmp_path / "test_rows.py")
    parts, more = [printed(suite_of(rows), Facts({"out": "f32", "x": "f32"}))], ("trilift write rows.py", "0.1.0", 3)
    source = ROWS.replace(*asks)
    (tmp_path / "rows.py").write_text(source)
    text = complete(parts, target, output, *more)
    assert "def without_gpu" in text and "NameError" not in text
    line, said = outcome(tmp_path, text, source)
    assert re.match(r"6 passed, 2 xfailed", line), said
    (tmp_path / "rows.py").write_text(source.replace("8 and", "8 and N and"))
    assert "it does not run in Triton's interpreter: NameError" in complete(parts, target, output, *more)


def test_the_text_is_clean_at_every_length(rows: Case, tmp_path: Path) -> None:
    text = text_of(suite_of(rows), tmp_path)
    assert all(at_width(text, width) == text for width in (88, 100, 120))
    long = "x = (first_of_some_names + second_of_some_names) * (third_of_some_names + fourth_of_some_names)\n"
    found = formatted(f"{long}f(first_of_some_names, second_of_some_names, third_of_some_names, and_the_last_one)\n")
    assert found.endswith("    and_the_last_one,\n)\n") and "# fmt: skip" in found
    assert all(at_width(found, width) == found for width in (88, 100, 120))


def test_what_a_run_shows() -> None:
    of = {c.name: facts(c) for c in load("corpus/operators/unary.py", ["tanh", "abs"])}
    assert of["tanh"].libdevice == ("tanh",)
    assert of["abs"].libdevice == () and of["abs"].dtypes["out"] == "f16"
    [silu] = load("corpus/operators/activations.py", ["silu"])
    assert facts(silu).narrow and not facts(silu).raw
    [matmul] = load("corpus/operators/matmul.py", ["matmul"])
    assert facts(matmul).configs == 4
    [add] = load("corpus/operators/rms_norm.py", ["add_rms_norm"])
    assert set(facts(add).written) == {"x", "residual"}


def test_helpers_come_with_what_they_need() -> None:
    names = [h.name for h in needed("assert_law(seen(K, call, 'out'), x)")]
    assert {"Seen", "run", "Memory", "Poisoned", "EMPTY"} <= set(names)
    assert "run_in_child" not in names
    assert names == [h.name for h in helpers() if h.name in names]


def test_identifiers() -> None:
    assert [identifier(n) for n in ("x", "class", "1x", "a-b")] == ["x", "class_", "1x_", "a_b"]


def test_formatting_refuses_what_is_no_python() -> None:
    with pytest.raises(RuntimeError, match="ruff"):
        formatted("def :")
