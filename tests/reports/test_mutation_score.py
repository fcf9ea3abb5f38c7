"""Written tests against mutants: the machine that executes them, tests that are green without one, the score."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from operators import ROOT, cases

from trilift.lift.capture.run import named_outputs
from trilift.lift.errors import OutOfBounds, Unsupported
from trilift.lift.runtime.budget import BUDGETS, OutOfSteps
from trilift.lift.ttir.ir import Module
from trilift.reports.base.targets import Target
from trilift.reports.experiments.mutation import mutant_tests
from trilift.reports.experiments.mutation.mutation_score import EXAMPLES, Done, Kept, result, sweep
from trilift.reports.experiments.mutation.usual_tests import usual
from trilift.reports.experiments.renderer import as_markdown
from trilift.verify.mutation.emulation import emulated
from trilift.verify.mutation.mutants import every

EQUAL = 1e-6  # relative to the largest element: both round to f32, sums in another order
FOLDER = ROOT / "corpus" / "operators"
COMPARED = {"softmax": "softmax2", "scan": "cumsum", "statistics": "group_norm", "choice": "histogram"}

INTERPRETED = """
import os, pickle, sys
os.environ["TRITON_INTERPRET"] = "1"
sys.path[:0] = [{root!r}, *{tests!r}]
from test_mutation_score import COMPARED, outputs, case_of
pickle.dump([outputs(case_of(f, n)) for f, n in COMPARED.items()], open(sys.argv[1], "wb"))
"""

WRITTEN = """
import os
import sys

import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

os.environ["TRITON_INTERPRET"] = "1"
sys.path.insert(0, {root!r})
from trilift.corpus.operators import {file} as kernels  # noqa: E402


def guarded(m, n, seed):
    memory = torch.full((m * n + 64,), float("nan"))
    x = memory[32 : 32 + m * n].view(m, n)
    x.copy_(torch.randn(m, n, generator=torch.Generator().manual_seed(seed)))
    return x


@settings(max_examples=5, deadline=None, derandomize=True)
@given(m=st.integers(1, 4), n=st.sampled_from([1, 3, 4, 33]), seed=st.integers(0, 99))
@example(m=3, n=5, seed=0)
def test_formula(m, n, seed):
    x = guarded(m, n, seed)
    out = kernels.{name}.fn(x)
    expected = {formula}
    assert (out - expected).abs().max() <= 1e-5 * expected.abs().max() + 1e-6
"""
FORMULAS = {
    ("softmax", "softmax1"): "torch.softmax(x.double(), -1)",
    ("scan", "suffix_sum"): "x.double().flip(-1).cumsum(-1).flip(-1)",
}


def case_of(file: str, name: str):
    return next(c for c in cases(FOLDER / f"{file}.py") if c.name == name)


def outputs(case) -> dict[str, np.ndarray]:
    from trilift.lift.cases.shapes import choose

    args = case.sample(choose(case, 2)[1], np.random.default_rng(0))
    return {n: x.double().numpy() for n, x in named_outputs(case.fn(**args)).items()}


def by_hand(file: str, name: str, seed: int, path: str) -> None:
    """Tests that a person wrote, in place of those that are written from a proof."""
    stem = Path(file).stem
    text = WRITTEN.format(root=str(ROOT), file=stem, name=name, formula=FORMULAS[stem, name])
    Path(path).write_text(text)


def failing(file: str, name: str, seed: int, path: str) -> None:
    by_hand(file, name, seed, path)
    Path(path).write_text(Path(path).read_text().replace("torch.softmax(x.double(), -1)", "x.double()"))


def careless(file: str, name: str, seed: int, path: str) -> None:
    """Tests that call the kernel and accept everything."""
    by_hand(file, name, seed, path)
    text = Path(path).read_text()
    Path(path).write_text(text[: text.index("    assert ")] + "    assert out.shape == expected.shape\n")


def broken(file: str, name: str, seed: int, path: str) -> None:
    Path(path).write_text("import nothing_of_that_name\n")


# ---- the machine -----------------------------------------------------------------------------------------------------


def test_launches_give_what_the_interpreter_gives(tmp_path: Path) -> None:
    script, answer = tmp_path / "interpreted.py", tmp_path / "answer"
    script.write_text(
        INTERPRETED.format(root=str(ROOT), tests=[str(Path(__file__).parent), str(ROOT / "tests" / "helpers")])
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, str(script), str(answer)], check=True, env=env, capture_output=True, timeout=120)
    interpreted = pickle.loads(answer.read_bytes())
    for (file, name), theirs in zip(COMPARED.items(), interpreted, strict=True):
        with emulated():
            mine = outputs(case_of(file, name))
        assert mine.keys() == theirs.keys()
        for n, x in mine.items():
            scale = np.abs(theirs[n]).max()
            assert scale > 0 and np.abs(x - theirs[n]).max() <= EQUAL * scale, (name, n)


def test_a_store_beyond_a_tensor_is_seen_in_its_storage_and_beyond_that_it_raises() -> None:
    """exp of 6 elements, with a mutant that stores one more."""
    case = case_of("unary", "exp")
    memory = torch.zeros(2, 16)
    with emulated(case.fn) as emulation:
        x = torch.randn(1, 6)
        right = case.fn(x)
        module = _module(case, x)
        twice = next(m for m in every(module) if m.kind == "stored twice")
        emulation.mutate(0, twice)
        with pytest.raises(OutOfBounds, match=r"element \d+ of .*, which has"):
            case.fn(x)
        assert emulation.changed == 1 and not emulation.trouble
        with _given(memory[0, 4:10].view(1, 6)):
            case.fn(x)
    assert torch.equal(memory[0, 4], right[0, 0]) and memory[0, 10] == right[0, 5]
    assert not memory[0, :4].any() and not memory[0, 11:].any() and not memory[1].any()


def test_only_the_launch_of_that_number_of_each_call_is_mutated() -> None:
    case = case_of("matmul", "matmul_split_k")
    from trilift.lift.cases.shapes import choose

    args = case.sample(choose(case, 1)[0], np.random.default_rng(0))
    with emulated(case.fn) as emulation:
        case.fn(**args)
        emulation.mutate(0, _same)
        case.fn(**args)
        assert emulation.changed == 0, "the module is the original itself"
        seen: list[Module] = []
        emulation.mutate(0, lambda module: seen.append(module) or _absent(module))
        case.fn(**args)
        case.fn(**args)
        assert len(seen) == 1 and emulation.changed == 0, "what cannot be changed stays, and is asked for once"
        emulation.mutate(7, lambda module: seen.append(module) or module)
        case.fn(**args)
        assert len(seen) == 1, "there is no launch of that number"


def test_a_launch_that_does_not_end_and_one_that_cannot_be_executed_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    case = case_of("softmax", "softmax1")
    with emulated(case.fn) as emulation:
        emulation.mutate(0, _failing)
        with pytest.raises(ValueError, match="not this one"):
            case.fn(torch.zeros(1, 4))
        assert emulation.trouble == "ValueError: not this one" and not emulation.late
        emulation.mutation = None
        budgets = replace(BUDGETS, run=replace(BUDGETS.run, emulated_steps=100))
        monkeypatch.setattr("trilift.verify.mutation.emulation.BUDGETS", budgets)
        with pytest.raises(OutOfSteps):
            case.fn(torch.zeros(20_000, 4))
        assert emulation.late


def _failing(module: Module) -> Module:
    raise ValueError("not this one")


def _same(module: Module) -> Module:
    return module


def _absent(module: Module) -> Module:
    raise Unsupported("no such place")


def _module(case, x: torch.Tensor) -> Module:
    from trilift.lift.capture.run import capture
    from trilift.lift.cases.shapes import choose

    return capture(case, choose(case, 1)[0]).launches[0].module()


class _given:
    """torch.empty_like gives this tensor."""

    def __init__(self, out: torch.Tensor) -> None:
        self.out = out

    def __enter__(self) -> None:
        self.before = torch.empty_like, torch.empty
        torch.empty_like = torch.empty = lambda *args, **kwargs: self.out  # type: ignore[assignment]

    def __exit__(self, *_: object) -> None:
        torch.empty_like, torch.empty = self.before


# ---- tests and mutants -----------------------------------------------------------------------------------------------


def test_tests_written_by_hand_are_green_and_kill_mutants_of_two_operators() -> None:
    targets = [Target(str(FOLDER / f"{f}.py"), (n,)) for f, n in FORMULAS]
    rows = sweep(targets, 8, write=by_hand)
    originals, mutants = _split(rows)
    assert [r.outcome for r in originals] == ["green", "green"] and all(r.passed == 1 for r in originals)
    told = [r for r in mutants if r.counts]
    assert len(mutants) == 8 and len(told) >= 5
    assert {r.written for r in told} == {"killed"}, [(r.text, r.written, r.by) for r in told]
    assert all(r.by.startswith("test_formula: ") for r in told)
    assert all(r.written == "" and r.allclose is None for r in mutants if not r.counts)
    assert any(r.allclose for r in told) and any(r.fixed for r in told)
    page = result(rows, "mutation score")
    assert page.code == 0 and "100.0 %" in as_markdown(page) and "not killed" not in as_markdown(page)


def test_tests_that_accept_everything_kill_nothing_that_stays_in_memory() -> None:
    rows = sweep([Target(str(FOLDER / "softmax.py"), ("softmax1",))], 5, write=careless)
    _, mutants = _split(rows)
    alive = [r for r in mutants if r.written == "survived"]
    assert alive and all(r.fixed for r in alive), "the usual tests see what these do not"
    assert "not killed" in as_markdown(result(rows, "mutation score"))


@pytest.mark.parametrize(("write", "why"), [(failing, "test_formula"), (broken, "nothing_of_that_name")])
def test_tests_that_are_not_green_on_the_kernel_say_nothing(write, why: str) -> None:
    rows = sweep([Target(str(FOLDER / "softmax.py"), ("softmax1",))], 4, write=write)
    [original], mutants = _split(rows)
    assert not original.green and why in original.outcome and mutants == []
    assert result(rows, "mutation score").code == 3


def test_the_usual_ways_accept_the_kernel_and_see_a_wrong_one() -> None:
    case = case_of("softmax", "softmax1")
    with emulated(case.fn) as emulation:
        ways = usual(case)
        assert len(ways.one) == 1 and ways.one[0].dims == {"M": 128, "N": 128} and len(ways.several) == 5
        assert not ways.allclose() and not ways.fixed()
        exp2 = next(m for m in every(_module(case, torch.zeros(1))) if m.text.endswith("becomes exp2"))
        emulation.mutate(0, exp2)
        assert ways.allclose() and ways.fixed()


def _split(rows) -> tuple[list[mutant_tests.Original], list[mutant_tests.Tested]]:
    return [r for r in rows if isinstance(r, mutant_tests.Original)], [
        r for r in rows if isinstance(r, mutant_tests.Tested)
    ]


def test_a_case_that_was_done_is_not_done_again(tmp_path: Path) -> None:
    target = Target(str(FOLDER / "rope.py"))
    kept = Kept(tmp_path, [3, 0, EXAMPLES])
    mutant = mutant_tests.Tested(target.file, "rope", 0, "kernel", 1, "kind", "text", "identifier", "killed", "why")
    rows = [mutant_tests.Original(target.file, "rope", "green", 4), mutant]
    tests = kept.tests(target.file, "rope")
    tests.write_text("def test_one() -> None:\n    pass\n")
    kept.write(Done(target.file, "rope"), rows)
    assert [r for _, found in kept.read() for r in found] == rows
    assert not list(Kept(tmp_path, [3, 1, EXAMPLES]).read())
    tests.write_text("def test_one() -> None:\n    assert True\n")
    assert not list(kept.read())


def test_kernels_with_libdevice_are_compiled_whatever_stands_in_for_it() -> None:
    from triton.language.extra import libdevice

    case = next(c for c in cases(FOLDER / "gated.py") if c.name == "gelu_mul")
    with mutant_tests.compiling():
        libdevice.tanh = np.tanh
        assert _module(case, torch.zeros(1)).entry is not None
    assert libdevice.tanh is not np.tanh
