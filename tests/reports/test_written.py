"""Written tests: the text is golden, clean, the same twice; it passes on the kernel and fails on changed ones."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from operators import ROOT

from trilift.lift.capture.case_files import load
from trilift.lift.cases.declaration import Case
from trilift.lift.terms import construct as T
from trilift.lift.terms.spec import Formula
from trilift.lift.terms.term import Axis
from trilift.reports.commands.write import Asked, parts_of
from trilift.reports.testgen.facts import Facts, facts, identifier
from trilift.reports.testgen.file import assembled, complete, printed, written
from trilift.reports.testgen.formatting import at_width, formatted
from trilift.reports.testgen.library import helpers, needed
from trilift.reports.testgen.plain_tests import uneven
from trilift.verify.model.verdict import Claim, Clause, Counterexample, refuted
from trilift.verify.properties.records import Output, Property, Refusal, Sizes, Suite, Tolerance

ROWS = """
import torch
import triton
import triton.language as tl

from trilift import case


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
    "a read beyond the tensor, of no consequence": ("N + n, mask=n < N, other=0.0)", "N + n)"),
    "lanes without a value": ("other=0.0)", ")\n    x += 0 * tl.sum(x)"),
}
KILLED = {  # what the failures say
    "a store beyond the row": r"wrote elements \[.*outside the tensor",
    "an element that is not written": r"is nan, not",
    "another factor": r"elements are wrong",
    "another row": r"elements are wrong",
    "no check of the contract": r"DID NOT RAISE",
    "a read beyond the tensor, of no consequence": r"reads elements \[.*outside the tensor",
    "lanes without a value": r"is nan, not",
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


Results = dict[str, dict[str, tuple[str, str]]]  # by file and test: the outcome of pytest, and what it says


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("written")
    (found / "rows.py").write_text(ROWS)
    return found


@pytest.fixture(scope="module")
def rows(folder: Path) -> Case:
    return load(str(folder / "rows.py"))[0]


@pytest.fixture(scope="module")
def text(rows: Case, folder: Path) -> str:
    return text_of(suite_of(rows), folder)


def text_of(found: Suite, folder: Path, examples: int = 3) -> str:
    of, target, output = Facts({"out": "f32", "x": "f32"}), str(folder / "rows.py"), str(folder / "test_rows.py")
    return written([(found, of)], target, output, "trilift write rows.py -o test_rows.py", "0.1.0", examples)


def put(folder: Path, name: str, source: str, text: str) -> None:
    """Kernels with their tests, under a name of their own."""
    (folder / f"{name}.py").write_text(source)
    (folder / f"test_{name}.py").write_text(text.replace('import_module("rows")', f'import_module("{name}")'))


# ---- one run of pytest over all files --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def results(rows: Case, folder: Path, text: str, absent: str, bad: str, exps: str, whole: str) -> Results:
    """The outcomes of every file, in one process."""
    put(folder, "original", ROWS, text)
    for k, (old, new) in enumerate(MUTANTS.values()):
        assert ROWS.count(old) == 1
        put(folder, f"mutant{k}", ROWS.replace(old, new), text)
    known = buggy(suite_of(rows))
    for name, source in (("bug", ROWS.replace("2 * x", "1.5 * x")), ("corner", CORNER)):
        tests = completed(known, folder, source)
        put(folder, name, source, tests)
        put(folder, f"{name}_repaired", ROWS, tests)
        put(folder, f"{name}_changed", source.replace("2.0)", "1.999)"), tests)
    put(folder, "unsafe", DYING, text_of(unsafe(suite_of(rows)), folder, examples=1))
    put(folder, "absent", ABSENT, absent)
    put(folder, "bad", BAD, bad)
    put(folder, "returns", BAD.replace('raise ValueError("no such mode")', "return x"), bad)
    put(folder, "exps", EXPS, exps)
    put(folder, "cut", EXPS.replace("n, tl.exp(x),", "n, tl.where(x > -9e9, tl.exp(x), 1.0),"), exps)
    put(folder, "whole", ROWS, whole)
    known_wrong = [f"{n}{more}" for n in ("bug", "corner") for more in ENDS]
    names = ("original", *(f"mutant{k}" for k in range(len(MUTANTS))), *known_wrong, "unsafe", "absent", "bad",
             "returns", "exps", "cut", "whole")  # fmt: skip
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:trilift", "--tb=line",
               "--junitxml=results.xml", *(f"test_{n}.py" for n in names)]  # fmt: skip
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, env={**os.environ, "TRITON_INTERPRET": "0"}
    )
    assert done.returncode == 1, done.stdout + done.stderr
    found: Results = {n: {} for n in names}
    for test in ElementTree.parse(folder / "results.xml").iter("testcase"):
        name = str(test.get("classname")).removeprefix("test_")
        found[name][str(test.get("name"))] = outcome(test)
    return found


def outcome(test: ElementTree.Element) -> tuple[str, str]:
    for what in ("failure", "error", "skipped"):
        if (found := test.find(what)) is not None:
            kind = "xfailed" if found.get("type") == "pytest.xfail" else what
            return kind, f"{found.get('message')} {found.text}"
    return "passed", ""


def counted(found: dict[str, tuple[str, str]]) -> dict[str, int]:
    return dict(Counter(what for what, _ in found.values()))


def failures(found: dict[str, tuple[str, str]]) -> str:
    return "\n".join(said for what, said in found.values() if what in ("failure", "error"))


# ---- the text --------------------------------------------------------------------------------------------------------


def test_the_file_is_golden(rows: Case, folder: Path, text: str, golden: Callable[[str, str], None]) -> None:
    assert text == text_of(suite_of(rows), folder)
    golden("written/rows.py.txt", text)


def test_the_file_is_clean(folder: Path, text: str) -> None:
    (folder / "test_rows.py").write_text(text)
    for options in (["--isolated"], ["--config", str(ROOT / "pyproject.toml")]):
        command = [sys.executable, "-m", "ruff", "check", *options, "test_rows.py"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout
    assert "lift." not in re.sub(r"trilift|\"lift\"", "", text)


def test_the_text_is_clean_at_every_length(text: str) -> None:
    assert all(at_width(text, width) == text for width in (88, 100, 120))
    long = "x = (first_of_some_names + second_of_some_names) * (third_of_some_names + fourth_of_some_names)\n"
    call = "f(first_of_some_names, second_of_some_names, third_of_some_names, fourth, and_the_last_one)"
    found = formatted(f"{long}{call}\n")
    assert found.endswith("    and_the_last_one,\n)\n") and "# fmt: skip" in found
    assert all(at_width(found, width) == found for width in (88, 100, 120))


def test_long_strings_are_said_in_parts() -> None:
    said = "the host function accepts calls without " + "this condition or " * 8 + "that one"
    source = f"import pytest\n\n\ndef test_a() -> None:\n    f(1)\n    pytest.xfail({said!r})\n"
    found = formatted(source)
    assert max(map(len, found.splitlines())) <= 88 and ast.dump(ast.parse(found)) == ast.dump(ast.parse(source))
    assert all(at_width(found, width) == found for width in (88, 100, 120))


def test_formatting_refuses_what_is_no_python() -> None:
    with pytest.raises(RuntimeError, match="ruff"):
        formatted("def :")


# ---- kernels and their tests -----------------------------------------------------------------------------------------


def test_it_passes_on_the_kernel(results: Results) -> None:
    assert counted(results["original"]) == {"passed": 6, "xfailed": 2}, failures(results["original"])


@pytest.mark.parametrize("name", MUTANTS)
def test_it_fails_on_a_changed_kernel(name: str, results: Results) -> None:
    found = results[f"mutant{list(MUTANTS).index(name)}"]
    assert counted(found)["failure"] >= 1 and re.search(KILLED[name], failures(found)), failures(found)


def buggy(known: Suite) -> Suite:
    """With a counterexample, and nothing else but its formula."""
    found = Counterexample({"M": 1, "N": 2}, 0, 0, "out", (0, 1), 1.0, 2.0)
    output = replace(known.outputs[0], proof=refuted(Claim("out", "reference"), found))
    return replace(known, outputs=(output,), failures=(found,), properties=(), refusals=())


ENDS = ("", "_repaired", "_changed")
CORNER = ROWS.replace("2 * x", "x * tl.where(N == 2, 1.5, 2.0)")


def completed(known: Suite, folder: Path, source: str) -> str:
    """The tests of kernels, which were run once."""
    target, output = folder / "rows.py", str(folder / "test_rows.py")
    target.write_text(source)
    parts = [printed(known, Facts({"out": "f32", "x": "f32"}))]
    text = complete(parts, str(target), output, "trilift write rows.py", "0.1.0", 3)
    target.write_text(ROWS)
    return text


@pytest.mark.parametrize(("name", "test"), [("bug", "test_twice_equals_its_formula"),
                                            ("corner", "test_twice_equals_its_formula_where_it_failed")])  # fmt: skip
def test_a_bug_is_expected_and_its_end_is_noticed(name: str, test: str, folder: Path, results: Results) -> None:
    assert 'given={"x": [[' in (folder / f"test_{name}.py").read_text()
    shown, over = results[name], results[f"{name}_repaired"]
    assert shown[test][0] == "xfailed" and "failure" not in counted(shown)
    what, said = over[test]
    assert what == "failure" and "XPASS(strict)" in said and counted(over)["failure"] == 1, failures(over)


def test_a_kernel_that_is_wrong_in_a_corner_is_tested_elsewhere(results: Results) -> None:
    name = "test_twice_equals_its_formula"
    assert results["corner"][name][0] == "passed" and results["corner_changed"][name][0] == "failure"
    assert results["bug_changed"][name][0] == "xfailed"


DYING = ROWS.replace("    out = torch.empty_like(x)", "    import os\n    os.abort()\n    out = torch.empty_like(x)")


def unsafe(known: Suite) -> Suite:
    """Of which one test runs the kernel, at one shape."""
    sizes = replace(known.sizes, first=({"M": 1, "N": 1},))
    return replace(known, sizes=sizes, unsafe=True, deterministic=False, properties=(), refusals=())


def test_an_unsafe_call_ends_only_its_own_process(results: Results) -> None:
    found = results["unsafe"]
    assert counted(found) == {"failure": 1, "passed": 1} and "the call ended its process" in failures(found)


def test_without_a_formula_there_are_tests_left(rows: Case, folder: Path) -> None:
    known = replace(
        suite_of(rows), outputs=(Output("out", None, why="no formula was found"),), properties=(), refusals=()
    )
    text = text_of(known, folder)
    assert "no formula was found" in text
    assert "def test_twice_writes_everything_and_repeats" in text
    assert "equals_its_formula" not in text
    random = text_of(replace(known, deterministic=False), folder)
    assert "def test_twice_stays_within_its_tensors" in random


# ---- cases that cannot be called, and those that ask for a GPU -------------------------------------------------------

BAD = """
import os

from trilift import case


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
ABSENT = ROWS.replace("    assert x.shape[1] <= 8\n", "    assert x.shape[1] <= 8 and x.is_cuda\n")
ABSENT += ABSENT[ABSENT.index("\n@case") :].replace("def twice", "def nameless").replace("8 and", "8 and NAME and")


# ---- minus infinity --------------------------------------------------------------------------------------------------

EXPS = ROWS.replace("2 * x", "tl.exp(x)").replace("def twice", "def exps")
CUT = EXPS[EXPS.index("@triton.jit") :].replace("tl.exp(x)", "tl.where(x > -9e9, tl.exp(x), 1.0)")
EXPS += "\n\n" + CUT.replace("def exps", "def cut").replace("kernel", "cut_kernel")


@pytest.fixture(scope="module")
def exps(folder: Path) -> str:
    target, output = str(folder / "rows.py"), str(folder / "test_rows.py")
    Path(target).write_text(EXPS)
    m, n = Axis("m", T.size("M")), Axis("n", T.size("N"))
    exp = T.make("exp", T.read("x", (T.axis(m), T.axis(n))))
    bound = formula(exp * (1 + T.make("abs", T.read("x", (T.axis(m), T.axis(n))))), m, n)
    out = Output("out", formula(exp, m, n), Tolerance(bound, T.const(4), 2.0**-24))
    known = [replace(suite_of(c), outputs=(out,), properties=(), refusals=()) for c in load(target)]
    parts = [printed(s, Facts({"out": "f32", "x": "f32"})) for s in known]
    assert [p.tried for p in parts] == ["test_exps_takes_minus_infinity", "test_cut_takes_minus_infinity"]
    text = complete(parts, target, output, "trilift write rows.py", "0.1.0", 3)
    Path(target).write_text(ROWS)
    return text


def test_minus_infinity_is_drawn_where_the_kernel_is_known_to_take_it(exps: str, results: Results) -> None:
    assert set(re.findall(r"def (test_\w+_infinity)", exps)) == {"test_exps_takes_minus_infinity"}
    assert counted(results["exps"]) == {"passed": 7}, failures(results["exps"])
    changed = {n: what for n, (what, _) in results["cut"].items() if what != "passed"}
    assert changed == {"test_exps_takes_minus_infinity": "failure"}


def test_minus_infinity_is_left_out_where_the_formula_is_no_number(rows: Case) -> None:
    assert printed(suite_of(rows), Facts({"out": "f32", "x": "f32"})).tried == ""


@pytest.fixture(scope="module")
def told() -> dict[str, str]:
    """The stages of BAD's cases that were heard of last."""
    return {}


@pytest.fixture(scope="module")
def bad(told: dict[str, str], folder: Path) -> str:
    (folder / "rows.py").write_text(BAD)
    file, asked = str(folder / "rows.py"), Asked(0, 3, 5.0)
    parts = parts_of(load(file), file, asked, 1, lambda e: told.update({e[1]: e[2]}))
    text = assembled(parts, file, str(folder / "test_rows.py"), "trilift write rows.py", "0.1.0", 3)
    (folder / "rows.py").write_text(ROWS)
    return text


@pytest.fixture(scope="module")
def absent(folder: Path) -> str:
    target, output = str(folder / "rows.py"), str(folder / "test_rows.py")
    Path(target).write_text(ABSENT)
    known = [replace(suite_of(c), properties=()) for c in load(target)]
    parts = [printed(s, Facts({"out": "f32", "x": "f32"})) for s in known]
    text = complete(parts, target, output, "trilift write rows.py", "0.1.0", 3)
    Path(target).write_text(ROWS)
    return text


def test_bad_cases_have_tests_that_say_so(bad: str, told: dict[str, str], results: Results) -> None:
    assert "ends: nothing can be tested: the process ended with exit 3" in bad
    assert "nowhere: nothing can be tested: case nowhere" in bad
    assert re.search(r"by_data: no formula was found:\s+host code reads", bad)
    assert told["refuses"] == "ok" and told["ends"] == "the process ended with exit 3"
    assert counted(results["bad"]) == {"passed": 1, "skipped": 2, "xfailed": 1}
    assert counted(results["returns"])["failure"] == 1 and "XPASS(strict)" in failures(results["returns"])


def test_what_does_not_run_without_a_gpu_says_so(absent: str, results: Results) -> None:
    assert "def without_gpu" in absent
    runs, not_ = ([r for n, r in results["absent"].items() if f"_{c}_" in n] for c in ("twice", "nameless"))
    assert Counter(what for what, _ in runs) == {"passed": 4, "xfailed": 2}, failures(results["absent"])
    assert {what for what, _ in not_} == {"skipped"} and len(not_) == 6
    assert all("it does not run in Triton's interpreter: NameError" in said for _, said in not_)


# ---- every row of values ---------------------------------------------------------------------------------------------


MAXIMA = """
import torch, triton, triton.language as tl
from trilift import case


@triton.jit
def kernel(out, x, N, BLOCK: tl.constexpr):
    row, n = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x + row * N + n, mask=n < N, other=-float("inf"))
    tl.store(out + row, tl.max(x, 0))


@case(x="f32[M,N]", where="N <= 8")
def largest(x):
    out = torch.empty(x.shape[0])
    kernel[(x.shape[0],)](out, x, x.shape[1], BLOCK=8)
    return out
"""
REDUCTIONS = {  # what padded lanes hold, and what they are taken for
    "amax": ("tl.max(x, 0)", '-float("inf")'), "amin": ("tl.min(x, 0)", 'float("inf")'),
    "argmax": ("tl.argmax(x, 0)", '-float("inf")'), "argmin": ("tl.argmin(x, 0)", 'float("inf")'),
}  # fmt: skip


def test_a_padded_lane_that_wins_is_noticed(tmp_path: Path) -> None:
    """Of numbers of one sign 0 is the largest or smallest: the calls that are always made have such rows."""
    for name, (reduced, neutral) in REDUCTIONS.items():
        right = MAXIMA.replace("tl.max(x, 0)", reduced).replace('-float("inf")', neutral)
        (tmp_path / "rows.py").write_text(right)
        text = text_of(reduction(load(str(tmp_path / "rows.py"))[0], name), tmp_path, examples=1)
        put(tmp_path, f"{name}_right", right, text)
        put(tmp_path, f"{name}_wrong", right.replace(neutral, "0.0"), text)
    command = [sys.executable, "-m", "pytest", "-q", "-rA", "--tb=no", "-p", "no:cacheprovider", "-p", "no:trilift"]
    done = subprocess.run(
        [*command, "-k", "equals_its_formula", *sorted(p.name for p in tmp_path.glob("test_*.py"))],
        cwd=tmp_path, capture_output=True, text=True, check=False, env={**os.environ, "TRITON_INTERPRET": "0"},
    )  # fmt: skip
    found = set(re.findall(r"^(PASSED|FAILED) test_(\w+)\.py", done.stdout, re.MULTILINE))
    right, wrong = (
        {(how, f"{n}_{kind}") for n in REDUCTIONS} for how, kind in (("PASSED", "right"), ("FAILED", "wrong"))
    )
    assert found == right | wrong, done.stdout + done.stderr


def reduction(case: Case, name: str) -> Suite:
    """A suite of a reduction of the rows, at a size that is a block and at one that is not."""
    m, n = Axis("m", T.size("M")), Axis("n", T.size("N"))
    body = T.fold(name, n, T.read("x", (T.axis(m), T.axis(n))))
    sizes = Sizes({"M": (3,), "N": (7, 8)}, {}, "N <= 8", ({"M": 3, "N": 8}, {"M": 3, "N": 7}))
    return Suite(case, (Output("out", Formula("out", (m,), body, "f32"), Tolerance(None, T.const(0), 0.0)),), sizes)


@pytest.mark.parametrize(
    ("first", "chosen"),
    [
        (({"M": 0, "N": 5}, {"M": 1, "N": 1}, {"M": 3, "N": 4}, {"M": 3, "N": 5}, {"M": 3, "N": 17}), {"M": 3, "N": 5}),
        (({"M": 2, "N": 64}, {"M": 2, "N": 48}, {"M": 1, "N": 16}), {"M": 2, "N": 48}),
        (({"M": 0, "N": 5},), None),
    ],
)
def test_the_shape_of_all_values_is_one_that_no_block_divides(
    first: tuple[dict[str, int], ...], chosen: dict[str, int] | None, rows: Case
) -> None:
    assert uneven(replace(suite_of(rows), sizes=Sizes({}, {}, "", first))) == chosen


# ---- the whole way ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def twin(folder: Path) -> Path:
    """What the command writes, in a process with another order of sets."""
    return command(folder, 2)


@pytest.fixture(scope="module")
def whole(folder: Path) -> str:
    return command(folder, 1).read_text()


def command(folder: Path, seed: int) -> Path:
    """Runs the command with that seed of Python's hashes."""
    (folder / str(seed)).mkdir()
    (folder / str(seed) / "rows.py").write_text(ROWS)
    done = subprocess.run(
        [sys.executable, "-m", "trilift", "write", "rows.py", "-o", "test_rows.py", "--max-examples", "3", "-q"],
        cwd=folder / str(seed), capture_output=True, text=True,
        env={**os.environ, "PYTHONHASHSEED": str(seed), "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder / str(seed) / "test_rows.py"


def test_two_processes_write_the_same_bytes(whole: str, twin: Path) -> None:
    assert twin.read_text() == whole
    assert "def test_twice_equals_its_formula" in whole


def test_what_the_command_writes_passes(results: Results) -> None:
    found = results["whole"]
    assert counted(found)["passed"] >= 8 and not failures(found), failures(found)
    assert {"test_twice_equals_its_formula", "test_twice_rejects_wrong_results",
            "test_twice_writes_everything_and_repeats", "test_twice_is_additive_in_x"} <= set(found)  # fmt: skip


# ---- parts -----------------------------------------------------------------------------------------------------------


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
