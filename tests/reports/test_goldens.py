"""Golden texts of the corpora, a sample of them made again; and of what else must stay when code moves: invariants,
SMT-LIB, the page of an audit, emitted Triton."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import audited
import pytest
from click import ClickException

from trilift.lift.capture.case_files import by_file, load
from trilift.lift.runtime.isolate import Outcome, run
from trilift.reports import formats
from trilift.reports.base.targets import resolve
from trilift.reports.experiments import golden, pages
from trilift.reports.experiments.experiment import Result
from trilift.reports.experiments.folders import CORPUS, GOLDENS, ROOT
from trilift.reports.experiments.superoptimizer import mirage
from trilift.reports.experiments.superoptimizer.search_runs import searched
from trilift.reports.records import unfinished
from trilift.reports.records.options import Options, Proving
from trilift.reports.runner import dispatch
from trilift.superopt.jobs import emitted, read
from trilift.superopt.mugraph.json import from_json
from trilift.verify import prove
from trilift.verify.wording.user_terms import words

SAMPLE = 2  # cases of each corpus
LIFTED = [n for n in ("operators", "broken", "sound") if (GOLDENS / f"{n}.txt").is_file()]
OPERATORS = CORPUS / "operators"


def text_of(corpus: str) -> str:
    return (GOLDENS / f"{corpus}.txt").read_text()


# ---- corpora ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("corpus", LIFTED)
def test_a_sample_of_each_golden(corpus: str) -> None:
    """`make goldens-check` makes all of them again."""
    known = golden.cases(text_of(corpus))
    names = random.Random(1).sample([n for n in known if "::" in n], SAMPLE)
    options = Options(proving=Proving(), audit=corpus != "operators", jobs=2)
    found = list(dispatch.records(resolve([str(ROOT / n) for n in names]), options))
    made = golden.cases(golden.text({"title": f"corpus {corpus}", "cases": found}))
    assert {n: made[n] for n in names} == {n: known[n] for n in names}


@pytest.mark.smoke
@pytest.mark.parametrize("corpus", LIFTED)
def test_a_golden_names_every_case_once(corpus: str) -> None:
    names = re.findall(r"^corpus/\S+::\w+", text_of(corpus), re.MULTILINE)
    files = {str(p.relative_to(ROOT)) for p in (CORPUS / corpus).glob("[!_]*.py")}
    assert len(names) == len(set(names)) and {n.partition("::")[0] for n in names} == files


@pytest.mark.smoke
def test_goldens_know_nothing_of_a_machine() -> None:
    for path in GOLDENS.glob("*.txt"):
        assert not re.search(r"(?<![\w.])/(home|work|usr|tmp|Users|root)/", path.read_text()), path


RECORD = {**unfinished.empty(f"{ROOT}/corpus/a.py", "one", "", ""), "lift": "ok", "errors": [], "launches": 1,
          "formula": {"text": "out = x\nmore = y"}, "verdict": "PROVED", "contract": ["N < 2^31"]}  # fmt: skip
EXAMPLE = {"dims": {"N": 3}, "seed": 7, "config": 0, "element": "out[2]", "got": 1.5, "expected": "nan", "why": ""}
WRONG = {**RECORD, "name": "two", "verdict": "REFUTED", "reason": "it differs", "contract": [],
         "proofs": [{"output": "out", "verdict": "REFUTED", "against": "formula", "counterexample": EXAMPLE}],
         "findings": [{"rule": "wrong-result", "file": f"{ROOT}/corpus/a.py", "line": 3, "message": "no",
                       "counterexample": {"N": 3}}]}  # fmt: skip


@pytest.mark.smoke
def test_the_golden_text_of_a_case() -> None:
    said = golden.text({"title": "corpus a", "cases": [RECORD, WRONG]})
    assert (
        said
        == """corpus a

corpus/a.py::one
  formula     out = x
              more = y
  verdict     PROVED against the formula
  contract    N < 2^31

corpus/a.py::two
  formula     out = x
              more = y
  verdict     REFUTED against the formula
  reason      it differs
  wrong at    N = 3, seed 7, configuration 0: out[2] is 1.5, not nan
  finding     wrong-result at corpus/a.py:3: no (at N = 3)
"""
    )


@pytest.mark.smoke
def test_seconds_and_places_of_a_machine_change_no_golden() -> None:
    moved = {**RECORD, "file": "/elsewhere/corpus/a.py", "seconds": {**RECORD["seconds"], "prove": 9.0}}
    assert list(golden.paragraphs({"cases": [moved]})) == list(golden.paragraphs({"cases": [RECORD]}))
    assert golden.portable("at /x/lib/site-packages/liger_kernel/a.py:3 of /tmp/trilift-ab1/b.py") == (
        "at liger_kernel/a.py:3 of b.py"
    )
    assert golden.portable(f"at {Path.home()}/.flaggems/k.py:9") == "at ~/.flaggems/k.py:9"
    assert golden.portable("/x/env.src/trilift/lift/terms/fit.py:59: warning") == "lift/terms/fit.py:59: warning"


@pytest.mark.smoke
def test_a_long_line_is_shortened_and_its_end_still_counts() -> None:
    def of(clause: str) -> str:
        return "\n".join(golden.lines({**RECORD, "contract": [clause]}))

    whole, long = "x" * golden.LONGEST_CHARACTERS, "x " * 50_000
    assert whole in of(whole) and len(of(long)) < len(of(whole)) and "(100001 characters, sha256" in of(long + "y")
    assert of(long + "y") != of(long + "z")


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"verdict": "TESTED", "bound": 1e-9, "reason": "time"}, "+   verdict     TESTED against the formula, wrong"),
        ({"formula": None, "lift": "unsupported: tt.foo"}, "+   formula     none: unsupported: tt.foo"),
        ({"contract": []}, "-   contract    N < 2^31"),
        ({"findings": WRONG["findings"]}, "+   finding     wrong-result at corpus/a.py:3"),
    ],
)
def test_a_difference_is_shown_with_its_case(change: dict[str, Any], line: str) -> None:
    old, new = (golden.text({"title": "t", "cases": [r]}) for r in (RECORD, RECORD | change))
    assert golden.differences(old, old) == ""
    found = golden.differences(old, new).splitlines()
    assert found[0] == "corpus/a.py::one" and any(x.startswith(line) for x in found), found


@pytest.mark.smoke
def test_a_case_that_is_gone_is_a_difference() -> None:
    both, one = (golden.text({"title": "t", "cases": c}) for c in ([RECORD, WRONG], [RECORD]))
    assert golden.differences(both, one).startswith("corpus/a.py::two\n-   formula")


@pytest.mark.smoke
def test_a_result_is_checked_against_its_golden(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = Result("t", (), {"cases": [RECORD]}, 0)
    with pytest.raises(ClickException, match="--format golden"):
        pages.differs("a", result, tmp_path)
    (tmp_path / "a.txt").write_text(golden.text({"title": "t", "cases": [RECORD]}))
    assert pages.differs("a", result, tmp_path) == 0
    assert pages.differs("a", Result("t", (), {"cases": [WRONG]}, 0), tmp_path) == 1
    assert "corpus/a.py::two" in capsys.readouterr().out


@pytest.mark.smoke
def test_two_files_of_data_are_compared(tmp_path: Path) -> None:
    for name, record in (("old", RECORD), ("new", RECORD | {"verdict": "UNKNOWN"})):
        (tmp_path / f"{name}.json").write_text(json.dumps({"title": "t", "cases": [record]}))
    old, new = (golden.read(tmp_path / f"{n}.json") for n in ("old", "new"))
    assert golden.differences(old, old) == "" != golden.differences(old, new)


# ---- Mirage's programs -----------------------------------------------------------------------------------------------

FILES = {c.name: str(f) for f in sorted((CORPUS / "mirage").glob("[a-z]*.py")) for c in load(str(f))}
QUICK = ("lora", "gated_mlp")


@cache
def search(name: str) -> tuple[mirage.Program, dict[str, Any]]:
    sizes = by_file(FILES[name]).sizes(mirage.EMITTED)
    data = str(read(FILES[name], name, sizes, 0, lambda said: None)["program"])
    return mirage.Program(FILES[name], name, mirage.EMITTED, sizes, data), searched(data, 60.0, 0, lambda said: None)


@pytest.mark.parametrize("name", QUICK)
def test_a_search_of_the_golden(name: str) -> None:
    made = mirage._case(*search(name), None)
    known = golden.cases(text_of("mirage"))[golden.name(made)]
    assert list(golden.lines(made)) == known[: len(list(golden.lines(made)))]


def emitted_text(name: str, event: Any) -> str:
    """The file emitted for a program of Mirage, made in a fresh process: factors are sorted by age, of terms too."""
    program, found = search(name)
    parameters = list(load(program.file, [name])[0].tensors)
    return str(emitted(from_json(found["plans"][0]["graph"]), name, parameters, 0)[1])


@pytest.mark.parametrize("name", FILES)
def test_emitted_triton(name: str, golden: Callable[[str, str], None]) -> None:
    made = run(emitted_text, name, timeout=300, context="forkserver")
    assert made.failure is None, made.log
    golden(f"emitted/{name}.py.txt", made.value)


# ---- proofs and pages ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("file", "name"), [("matmul", "matmul"), ("attention", "attention"), ("softmax", "softmax2")])
def test_invariants(file: str, name: str, golden: Callable[[str, str], None]) -> None:
    (case,) = load(str(OPERATORS / f"{file}.py"), [name])
    (proof,) = prove(case, timeout=120)
    assert proof.invariants
    said = (f"line {i.place and i.place.line}: {i.variable}({i.counter}) = {words(i.term)}" for i in proof.invariants)
    golden(f"invariants/{name}.txt", "\n".join(said) + "\n")


def test_smt_lib(tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    """In a process of its own: the order of literals is that in which their terms were made."""
    command = ("prove", str(OPERATORS / "softmax.py::softmax1"), "--smt-dir", str(tmp_path), "--no-cache", "-q")
    subprocess.run([sys.executable, "-m", "trilift", *command], check=True, capture_output=True, timeout=300)
    files = sorted(tmp_path.rglob("*.smt2"))
    assert files
    golden("smt/softmax1.txt", "".join(f"; {f.name}\n{named(f.read_text())}\n" for f in files))


def named(smt: str) -> str:
    """The text with its names numbered in the order in which they occur: variables have the numbers of terms, and what
    z3 calls $x7 or ?x7 that of its expressions, which depends on what it was asked before."""
    for name, short in ((r"\bi\d+\b", "v"), (r"\$x\d+\b", "$x"), (r"\?x\d+\b", "?x")):
        order = {v: f"{short}{k}" for k, v in enumerate(dict.fromkeys(re.findall(name, smt)))}
        smt = re.sub(name, lambda m, order=order: order[m[0]], smt)  # type: ignore[misc]
    return smt


class Skeleton(HTMLParser):
    """The elements of a page with their classes, indented; mathematics, texts and styles left out."""

    EMPTY = ("meta", "link", "br", "hr", "img", "input")

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.depth = self.inside = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "math" or self.inside:
            self.inside += 1
        if self.inside <= (tag == "math"):
            marks = "".join(f" {k}={v}" for k, v in attrs if k in ("class", "id", "href"))
            self.lines.append("  " * self.depth + tag + marks)
        self.depth += tag not in self.EMPTY

    def handle_endtag(self, tag: str) -> None:
        self.depth -= tag not in self.EMPTY
        self.inside -= bool(self.inside)


@pytest.mark.smoke
def test_the_skeleton_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, golden: Callable[..., None]) -> None:
    audited.kernels(tmp_path)
    monkeypatch.chdir(tmp_path)
    skeleton = Skeleton()
    skeleton.feed(formats.FORMATS["html"](audited.document()))
    golden("page.txt", "\n".join(skeleton.lines) + "\n")


@pytest.mark.smoke
def test_the_log_of_a_process_that_ended_is_no_part_of_a_golden() -> None:
    late = unfinished.failed("a.py", "one", Outcome(failure="timeout", log="E1128 01:30:46 in line 7"))
    wrong = {**late, "errors": [{**late["errors"][0], "kind": "unsupported", "why": "of the rank"}]}
    assert "01:30" not in golden.text({"title": "corpus a", "cases": [late]})
    assert "given: of the rank" in golden.text({"title": "corpus a", "cases": [wrong]})
