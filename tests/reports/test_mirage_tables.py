"""The programs of Mirage as cases, their tables, and files and µGraphs that are changed."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from trilift.lift.capture.case_files import by_file, load
from trilift.reports.experiments import pages, registry, summary
from trilift.reports.experiments.experiment import Experiment, Result
from trilift.reports.experiments.folders import ROOT
from trilift.reports.experiments.mutation import mugraph_mutants
from trilift.reports.experiments.superoptimizer import legacy, mirage, published
from trilift.reports.experiments.superoptimizer.accepted_files import Accepted, kernel
from trilift.reports.experiments.superoptimizer.search_runs import PRUNING, enumerated, searched
from trilift.reports.experiments.superoptimizer.structures import BEST
from trilift.reports.records.options import Options
from trilift.superopt.accept.mutants import Mutant, graph_mutants, text_mutants
from trilift.superopt.jobs import emitted, program_of, proved_same, read
from trilift.superopt.mugraph.graph import MuGraph
from trilift.superopt.mugraph.json import from_json

CORPUS = Path(__file__).parents[2] / "corpus"
EMITTED = Path(__file__).parents[1] / "goldens" / "emitted"
FILES = {c.name: str(f) for f in sorted((CORPUS / "mirage").glob("[a-z]*.py")) for c in load(str(f))}
QUICK = ("lora", "gated_mlp", "rms_norm_linear_script", "rms_norm_linear_paper", "n_trans_paper", "attention")
SILENT: Callable[[Any], None] = lambda said: None  # noqa: E731


@cache
def program(name: str, batch: int = 8) -> str:
    sizes = by_file(FILES[name]).sizes(batch)
    return str(read(FILES[name], name, sizes, 0, SILENT)["program"])


@cache
def plans(name: str, batch: int = 8) -> dict[str, Any]:
    return searched(program(name, batch), 60.0, 0, SILENT)


def best(name: str) -> MuGraph:
    return from_json(plans(name)["plans"][0]["graph"])


def test_every_program_has_a_structure_and_figures() -> None:
    assert {*FILES} == {*BEST} == {*published.FIGURES}


def test_sizes_are_those_of_the_benchmark() -> None:
    assert program_of(program("attention")).sizes.items() >= {"g": 16, "m": 256, "d": 64, "n": 4096}.items()
    assert program_of(program("rms_norm_linear_script", 1)).sizes == {"m": 2, "k": 4096, "n": 6144}


@pytest.mark.parametrize("name", QUICK)
def test_the_search_finds_what_the_paper_found(name: str) -> None:
    found = plans(name)
    assert mirage.place(name, found["plans"]) == "the best"
    assert found["equal"] and found["bound"] < 1e-9 and 0 < found["roofline"] <= found["plans"][0]["seconds"]
    row = mirage.searched_row(mirage.Program("", name, 8, {}, ""), found)
    assert len(row) == len(mirage.SEARCHED) and row[-2] == "the best"


def renamed(g: MuGraph, op: str, new: str, inside: bool | None = None) -> MuGraph:
    """The graph with every operator of a name called otherwise, or moved into the loop."""
    change = lambda o: replace(o, op=new, inside=o.inside if inside is None else inside) if o.op == op else o  # noqa: E731
    return replace(g, kernels=tuple(replace(k, operators=tuple(map(change, k.operators))) for k in g.kernels))


def looped(g: MuGraph, axis: str) -> MuGraph:
    return replace(g, kernels=tuple(replace(k, modes={**k.modes, axis: "loop"}) for k in g.kernels))


TWINS: dict[str, Callable[[MuGraph], MuGraph]] = {
    "attention": lambda g: renamed(g, "sum", "max"),
    "normed_attention_paper": lambda g: replace(g, kernels=g.kernels[:1]),
    "rms_norm_linear_script": lambda g: renamed(g, "div", "div", True),
    "rms_norm_linear_paper": lambda g: renamed(g, "sqr", "exp"),
    "lora": lambda g: renamed(g, "dot", "mul"),
    "gated_mlp": lambda g: renamed(g, "mul", "add"),
    "n_trans_paper": lambda g: looped(g, "k"),
}


@pytest.mark.parametrize("name", TWINS)
def test_a_graph_without_the_structure(name: str) -> None:
    g = best(name)
    assert BEST[name].holds(g) and not BEST[name].holds(TWINS[name](g))
    if len(g.kernels) == 1:
        assert not BEST[name].holds(replace(g, kernels=(*g.kernels, *g.kernels)))


def test_norms_in_a_kernel_of_their_own() -> None:
    """The keys are in parts, and the norm of the queries goes through memory."""
    found = [from_json(x["graph"]) for x in plans("normed_attention_paper")["plans"]]
    first = [(g, {o.op for o in g.kernels[0].operators}) for g in found]
    apart = [g for g, ops in first if "sqrt" in ops and "exp" not in ops]
    assert any(BEST["attention"].holds(g) for g in apart)
    assert not any(BEST["normed_attention_paper"].holds(g) for g in apart)


def test_another_plan_is_not_the_structure() -> None:
    found = plans("gated_mlp")["plans"]
    several = [x for x in found if len(from_json(x["graph"]).kernels) > 1]
    assert several and mirage.place("gated_mlp", several) == "not found"
    assert mirage.place("gated_mlp", [*several[:1], *found]).startswith("plan 2, ")


def test_algorithm_1_beside_the_search() -> None:
    exact, printed, none = (enumerated(program("lora"), how, 30.0, 0, SILENT) for how in PRUNING)
    assert exact["found"] == printed["found"] == none["found"] == 3 and none["complete"]
    assert exact["states"] < printed["states"] < none["states"]
    cut = enumerated(program("gated_mlp"), "none", 0.2, 0, SILENT)
    assert not cut["complete"]


def test_without_saved_graphs_there_is_no_row(tmp_path: Path) -> None:
    assert published.judged(tmp_path) == []


# ---- emitted files ---------------------------------------------------------------------------------------------------


def test_golden_files_are_proved() -> None:
    """One of them; all are Python."""
    written = {p.name.removesuffix(".py.txt"): p.read_text() for p in EMITTED.iterdir()}
    assert {*written} == {*FILES} and all(map(ast.parse, written.values()))
    file, name = FILES["lora"], "lora"
    text = written[name]
    assert proved_same(text, load(file, [name])[0], "function", 0, 60) == "PROVED"
    wrong = text.replace("v0 + v2", "v0 - v2") if "v0 + v2" in text else text.replace("tl.dot(x", "-tl.dot(x", 1)
    assert wrong != text and proved_same(wrong, load(file, [name])[0], "function", 0, 60) == "REFUTED"


def test_the_comment_of_a_file() -> None:
    a = Accepted("f", "corpus/f.py", {"M": 8}, "PROVED", "TESTED", against="function", kernels=2, source="x = 1\n")
    text = kernel(a, 3)
    assert "trilift optimize corpus/f.py::f --at M=8 --seed 3 -o f.py" in text
    assert "PROVED against its reference below, and where its asserts hold TESTED against the function of" in text
    assert text.endswith("x = 1\n") and "torch " in text and "triton " in text


def test_no_division_by_the_zeros_beyond_a_tensor() -> None:
    g = from_json(searched(program("normed_attention_paper"), 60.0, 0, SILENT)["plans"][0]["graph"])
    text = emitted(g, "normed", [], 0)[1]
    assert text.count("_or_1 = tl.where(") == 2 and text.count("_or_1[") == 2


# ---- mutants ---------------------------------------------------------------------------------------------------------


def test_changed_files_are_rejected() -> None:
    """A sample: none is accepted, but for what is equivalent."""
    source = emitted(best("rms_norm_linear_script"), "norm", [], 0)[1]
    every = list(text_mutants(source))
    assert len(every) >= 20 and len({m.what for m, _ in every}) >= 8
    for m, text in mugraph_mutants.in_turn(every, 6, 0):
        outcome, said = mugraph_mutants.judge_file(text, 0)
        assert outcome in ("execution", "prover") and said, (m, said)


def test_the_file_as_it_is_counts_as_equivalent() -> None:
    source = emitted(best("lora"), "low_rank", [], 0)[1]
    assert mugraph_mutants.judge_file(source, 0) == ("equivalent", "proved")


def test_a_file_that_differs_and_was_proved_would_be_wrong() -> None:
    """The execution that tells equivalent mutants from wrong ones."""
    source = emitted(best("lora"), "low_rank", [], 0)[1]
    assert mugraph_mutants.judge_execution(source, 0)[0] == "equivalent"
    _, wrong = next((m, t) for m, t in text_mutants(source) if m.what == "dropped accumulator")
    assert mugraph_mutants.judge_execution(wrong, 0)[0] == "wrong"


def test_mutants_differ_from_the_graph_and_from_each_other() -> None:
    g = best("attention")
    every = list(graph_mutants(g))
    assert len(every) >= 30 and all(x != g for _, x in every)
    assert {m.what for m, _ in every} >= {"accumulator dropped", "operands swapped", "another tensor"}


def test_one_of_each_change_before_the_second_of_any() -> None:
    mutants = [(Mutant(what, str(k)), what) for k in range(3) for what in "aab"]
    assert {t for _, t in mugraph_mutants.in_turn(mutants, 2, 0)} == {"a", "b"}


# ---- legacy ----------------------------------------------------------------------------------------------------------


def test_what_a_legacy_case_launches() -> None:
    file = str(CORPUS / "legacy" / "rms_norm_linear.py")
    found = legacy._before(file, "rms_norm_linear", 0, {"M": 8, "K": 16, "N": 4}, SILENT)
    assert found.kernels == ("rms_norm_kernel",) and found.torch == 1
    moved = 4 * (2 * 8 * 16) + 4 * (8 * 16 + 16 * 4 + 8 * 4)
    assert found.seconds == pytest.approx(2 * 2.2e-6 + moved / 4.3e12)


def test_cases_of_packages_launch_several_kernels() -> None:
    if find_spec("liger_kernel") is None or find_spec("flag_gems") is None:
        pytest.skip("liger-kernel or flag-gems is not installed")
    file = str(CORPUS / "legacy" / "packaged_gate.py")
    assert len(legacy._before(file, "packaged_gate", 0, {"M": 8, "N": 16}, SILENT).kernels) == 3


# ---- pages -----------------------------------------------------------------------------------------------------------


def test_files_are_written_beside_the_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = f"# {ROOT}/corpus\n"
    cases = [{"file": f"{ROOT}/corpus/a.py", "name": "a", "verdict": "PROVED"}]
    made = Result("a title", (), {"cases": cases}, 0, (), (("kernels/a.py", text),))
    monkeypatch.setattr(registry, "find", lambda name: Experiment(name, lambda *_: made, {}, ("A note.",)))
    assert pages.regenerate(("a-b",), Options(), True, tmp_path, tmp_path / "raw") == 0
    assert "A note." in (tmp_path / "a_b.md").read_text() and (tmp_path / "raw" / "a-b.json").exists()
    assert (tmp_path / "raw" / "kernels" / "a.py").read_text() == "# corpus\n"
    assert {p.name for p in tmp_path.iterdir()} == {"a_b.md", "summary.json", "raw"}
    assert summary.proved("a-b", tmp_path / "summary.json") == ["corpus/a.py::a"]


def test_a_case_that_is_not_accepted_is_a_row_with_the_reason() -> None:
    a = Accepted("f", "f.py", {}, notes=("no plan",), seconds=1.0)
    assert mirage._file_row(a)[-1] == "no plan" and len(mirage._file_row(a)) == len(mirage.FILES)
    row = legacy._row(legacy.Row(legacy.Before(("k", "l"), 1, 5e-6), a))
    assert row[-1] == "no plan" and row[1:3] == ("2", "1") and len(row) == len(legacy.HEAD)
    found = mirage.searched_row(mirage.Program("f.py", "f", 1, {}, ""), {"failed": "timeout"})
    assert found[-1] == "timeout" and len(found) == len(mirage.SEARCHED)
    assert mirage._case(mirage.Program("f.py", "f", 1, {}, ""), {}, a)["optimize"]["verdict"] == "UNKNOWN"
