"""Tables, pages and words: corpora, the operation table, doctor and explain."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from trilift.reports.base import explanations
from trilift.reports.commands import ops
from trilift.reports.experiments import folders, pages, registry, renderer, summary
from trilift.reports.experiments.corpora import corpus
from trilift.reports.experiments.experiment import Result, tabled
from trilift.reports.experiments.renderer import as_json, as_markdown, as_text
from trilift.reports.experiments.summarise import summarise
from trilift.reports.records import unfinished
from trilift.reports.records.options import Options

OK = {
    **unfinished.empty("c/a.py", "one", "", ""),
    "lift": "ok",
    "errors": [],
    "launches": 2,
    "formula": {"text": "x | y\nz"},
}
BAD = unfinished.empty("c/b.py", "two", "unsupported", "tt.foo")
WRONG = {**OK, "name": "three", "findings": [{"rule": "wrong-result"}]}


@pytest.mark.smoke
def test_a_corpus_is_counted_by_file_and_cause() -> None:
    cases, files, causes = (t.rows for t in corpus.tables([OK, BAD, WRONG]))
    assert [r[:2] for r in cases] == [("a::one", "yes"), ("b::two", "no"), ("a::three", "wrong")]
    assert files[-1][:7] == ("all", "3", "1", "1", "0", "1", "4")
    assert causes == (("1", "unsupported: tt.foo"),)


@pytest.mark.smoke
def test_the_three_forms_of_a_result(golden: Callable[[str, str], None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(renderer, "versions", lambda: {"date": "2000-01-01", "triton": "3.6"})
    result = Result("corpus test", corpus.tables([OK, BAD]), {"cases": [OK, BAD]}, 4)
    golden("corpus.txt", as_text(result) + "\n\n" + as_markdown(result))
    assert json.loads(as_json(result))["versions"]["triton"] == "3.6"


@pytest.mark.smoke
def test_rows_of_an_earlier_run_are_counted() -> None:
    assert corpus.earlier([{"cached": True}, {}]) == (
        "1 of 2 cases are from an earlier run of the same sources and settings.",
    )
    assert corpus.earlier([{}, {}]) == ()


def test_a_corpus_that_is_none_is_a_usage_error() -> None:
    with pytest.raises(click.UsageError, match="operators, packages"):
        registry.corpus("nosuch")
    with pytest.raises(click.UsageError, match="mutation-score"):
        registry.find("nosuch")


@pytest.mark.smoke
@pytest.mark.parametrize("name", registry.REPORTS)
def test_every_row_of_the_registry_is_an_experiment(name: str) -> None:
    found = registry.find(name)
    assert found.name == name and found.columns and all(found.columns.values())
    assert name in registry.CORPORA or not (folders.CORPUS / name).is_dir()


@pytest.mark.smoke
def test_rows_fit_the_columns_that_are_declared() -> None:
    columns = {"a": ("x", "y")}
    assert tabled(columns, {"a": [("1", "2")]})[0].rows == (("1", "2"),)
    with pytest.raises(ValueError, match="does not fit"):
        tabled(columns, {"a": [("1",)]})
    with pytest.raises(KeyError):
        tabled(columns, {"b": []})


@pytest.mark.smoke
def test_the_summary_is_small_and_names_every_page() -> None:
    found = summary.read()
    assert {pages.page(n) for n in found} == {p.name for p in folders.RESULTS.glob("*.md")}
    assert folders.SUMMARY.stat().st_size < 200_000 and set(found) <= set(registry.REPORTS)
    assert all(e["versions"]["commit"] and e["versions"]["date"] for e in found.values())
    assert len(summary.proved("packages")) == found["packages"]["counts"]["PROVED"] > 200


@pytest.mark.smoke
def test_without_a_summary_it_says_what_to_run(tmp_path: Path) -> None:
    with pytest.raises(click.ClickException, match="trilift report packages"):
        summary.proved("packages", tmp_path / "summary.json")


@pytest.mark.smoke
def test_a_summary_is_made_again_from_data(tmp_path: Path) -> None:
    (tmp_path / "operators.json").write_text(json.dumps({"title": "t", "versions": {"date": "d"}, "cases": [OK, BAD]}))
    path = tmp_path / "summary.json"
    assert summarise(tmp_path, path, "abc") == ["operators"]
    found = summary.read(path)["operators"]
    assert found["versions"] == {"commit": "abc", "date": "d"} and found["counts"] == {"UNKNOWN": 2}
    assert found["cases"] == {"c/a.py": {"one": "UNKNOWN"}, "c/b.py": {"two": "UNKNOWN"}}


@pytest.mark.smoke
def test_operations_are_found_by_any_of_their_names() -> None:
    assert all(json.loads(ops.show(n, "json"))[0]["name"] == "exp" for n in ("exp", "math.exp", "__nv_expf"))
    rows = json.loads(ops.show(None, "json"))
    assert len(rows) > 50 and len({r["name"] for r in rows}) == len(rows)


@pytest.mark.smoke
def test_every_word_of_ours_is_explained() -> None:
    listed = explanations.explain(None)
    for page in explanations.PAGES.values():
        for word in page:
            assert word in listed and explanations.explain(word).startswith(word)
    assert all(str(law) in explanations.explain(name) for name, law in explanations.laws().items())


@pytest.mark.smoke
def test_an_unknown_word_is_answered_with_near_ones() -> None:
    with pytest.raises(click.UsageError, match="wrong-result"):
        explanations.explain("wrong-resul")


def test_doctor_lifts_a_kernel() -> None:
    command = [sys.executable, "-m", "trilift", "doctor"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert "ok   a kernel captured, lowered and lifted: 2 * x" in done.stdout, done.stdout + done.stderr
    assert done.returncode == 0


def test_a_corpus_runs_from_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tiny").mkdir()
    from trilift.reports.commands.doctor import KERNEL

    (tmp_path / "tiny" / "a.py").write_text(KERNEL)
    monkeypatch.setattr(corpus, "CORPUS", tmp_path)
    result = corpus.measure("tiny", Options(), quiet=True)
    assert result.code == 0
    assert [c["formula"]["text"] for c in result.data["cases"]] == ["2 * x"]


# ---- verdicts --------------------------------------------------------------------------------------------------------

CONTRACT = [{"text": "N <= 64", "kind": "shape"}, {"text": "N < 2**31", "kind": "nowrap"}]
PROOF = {"verdict": "PROVED", "cause": "", "against": "formula", "contract": CONTRACT}
PROVED = {**OK, "verdict": "PROVED", "contract": ["N <= 64", "N < 2**31"], "proofs": [PROOF], "reason": ""}
OPEN = {**OK, "name": "four", "proofs": [{**PROOF, "verdict": "UNKNOWN", "cause": "step of loop"}], "reason": "why"}
TESTED = {**OK, "name": "five", "verdict": "TESTED", "bound": 1e-9}


@pytest.mark.smoke
def test_verdicts_are_counted_by_file_and_cause() -> None:
    files, causes, cases = (t.rows for t in corpus.proofs([PROVED, BAD, OPEN, TESTED, OPEN], "packages"))
    assert files[-1][:9] == ("all", "5", "1", "1", "0", "3", "8", "2", "25%")
    assert causes == (("2", "step of loop"), ("1", "unsupported: tt.foo"))
    assert [r[-1] for r in cases[:3]] == ["N <= 64; N < 2**31", "unsupported: tt.foo", "why"]
    assert cases[3][-1] == "at most 1.0e-09"


@pytest.mark.smoke
def test_the_papers_operators_are_beside_ours() -> None:
    from trilift.corpus.operators import PAPER
    from trilift.reports.experiments.corpora import paper

    assert set(paper.BY_NAME) == set(PAPER)
    assert [sum(f[k] == "yes" for f in paper.BY_NAME.values()) for k in (0, 1)] == [32, 28]  # its own totals
    rows = paper.table([{**PROVED, "name": "matmul", "blocks": {"BLOCK": 64}}, OPEN])
    assert rows[0] == (
        "matmul", "yes", "no", "3 s", "yes", "PROVED", "formula", "0.00", "0.00", "BLOCK=64")  # fmt: skip
    assert rows[1][:6] == ("all 1", "1", "0", "-", "1", "1 PROVED") and len(rows) == 2


@pytest.mark.smoke
def test_the_time_of_a_proof_is_told_beside_that_of_lifting() -> None:
    from trilift.reports.experiments import bench

    record = {**PROVED, "name": "matmul", "seconds": {**OK["seconds"], "lift": 0.5, "prove": 1.0}}
    rows = bench.proofs([record, {**record, "name": "other", "verdict": "UNKNOWN"}])
    assert rows == [
        ("matmul", "PROVED", "0.500", "1.000", "2.00"),
        ("other", "UNKNOWN", "0.500", "1.000", "2.00"),
        ("the paper's 1", "1 PROVED", "0.500", "1.000", "2.00"),
        ("all 2", "1 PROVED", "1.000", "2.000", "2.00"),
    ]
