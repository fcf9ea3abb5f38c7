"""`trilift audit`: what it writes where, which findings count, exit codes; with an audit that says what it is told."""

from __future__ import annotations

import json
import sys
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from command import Done, commands

from trilift.lift.errors import CaseError, Place, Unsupported
from trilift.lift.terms import construct as T
from trilift.reports.base import explanations, sources
from trilift.reports.commands import audit
from trilift.reports.records import audit_record, replay_files, unfinished
from trilift.verify.audit.finding import Finding, Step
from trilift.verify.model import verdict as V

SOURCE = """
import torch, triton, triton.language as tl
from trilift import case

@triton.jit
def double_kernel(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, 2 * tl.load(x + i, mask=i < n), mask=i < n)

def run(x):
    y = torch.empty_like(x)
    double_kernel[(triton.cdiv(x.numel(), 16),)](x, y, x.numel(), BLOCK=16)
    return y
"""
NAMES = ("sound", "broken", "risky", "open", "unsure", "refused", "odd", "raising")


@dataclass(frozen=True)
class Audited:
    proofs: tuple[V.Proof, ...] = ()
    findings: tuple[Finding, ...] = ()
    unknown: tuple[str, ...] = ()
    seconds: float = 0.25
    watched: int = 0


def stand_in(case: Any, *, against: str | None = None, progress: Any = None, **_: Any) -> Audited:
    """An audit that says what the case's name asks for."""
    here = Place(str(Path("kernels.py").resolve()), 8, 21)
    claim = V.Claim("out", against or "")
    done = V.proved(claim, (V.Condition("value", frozenset(), T.make("lt", 0, 1), True, "linear", 0.0),), (), ())
    step = Step(Place(here.file, 7, 5), "i reaches 15")
    broken = Finding(
        "out-of-bounds", f"{here}: element 5 of 5", here, {"N": 5, "index": 5}, "mask it", "print(1)\n", (step,)
    )
    again = Finding("out-of-bounds", "another one", Place(here.file, 7), {"N": 6}, replay="print(2)\n")
    risky = Finding("overflow-risk", "exp overflows", here, {"N": 1, "x": float("inf")})
    progress("rules")
    answers: dict[str, Callable[[], Audited]] = {
        "broken": lambda: Audited((V.unknown(claim, "not in bounds", here),), (broken, again)),
        "risky": lambda: Audited((done,), (risky,)),
        "open": lambda: Audited((V.unknown(claim, "no closed form", here),)),
        "unsure": lambda: Audited((done,), (), ("nan-risk: whether a row is empty",)),
        "refused": lambda: Audited((), (), ("not proved: tt.foo is not supported",)),
        "odd": lambda: _raise(CaseError("the case makes no sense")),
        "raising": lambda: _raise(ZeroDivisionError("ours")),
        "stuck": lambda: _raise(Unsupported("tt.foo", here)),
    }
    return answers.get(case.name, lambda: Audited((done,)))()


def _raise(e: Exception) -> Any:
    raise e


def prepare() -> None:
    """The stand-in, in the process that serves."""
    sys.modules["trilift.verify.audit.examination"] = types.ModuleType("trilift.verify.audit.examination")
    sys.modules["trilift.verify.audit.examination"].audit = stand_in  # type: ignore[attr-defined]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("audit")
    cases = {name: f'\n@case(x="f32[N]")\ndef {name}(x):\n    return run(x)\n' for name in NAMES}
    (path / "kernels.py").write_text(SOURCE + "".join(cases.values()))
    (path / "sound.py").write_text(SOURCE + cases["sound"])
    (path / "empty.py").write_text("x = 1\n")
    return path


@pytest.fixture(scope="module")
def trilift(folder: Path) -> Iterator[Callable[..., Done]]:
    """The command, run in the folder."""
    with commands(
        folder, prepare, "audit", "-q", environment={"GITHUB_STEP_SUMMARY": str(folder / "summary.md")}
    ) as run:
        yield run


@pytest.fixture(scope="module")
def everything(trilift: Any, folder: Path) -> tuple[Done, dict[str, dict[str, Any]]]:
    """One run over all cases, written in all formats, and the records of its JSON."""
    files = {"concise": "out.txt", "json": "out.json", "sarif": "out.sarif", "junit": "out.xml", "html": "out.html"}
    given = [w for form, file in files.items() for w in ("--format", f"{form}={file}")]
    done = trilift("kernels.py", "-j", "2", *given, "--format", "github=out.log", "--format", "text")
    return done, {c["name"]: c for c in json.loads((folder / "out.json").read_text())["cases"]}


def test_several_formats_of_one_run(everything: Any, folder: Path) -> None:
    done, cases = everything
    assert done.exit_code == 2 and list(cases) == list(NAMES)
    assert "error[out-of-bounds]: kernels.py:8:21: element 5 of 5\n  --> kernels.py:8:21\n" in done.stdout
    lines = (folder / "out.txt").read_text().splitlines()
    assert lines[1] == "kernels.py:8:21: out-of-bounds kernels.py:8:21: element 5 of 5"
    results = json.loads((folder / "out.sarif").read_text())["runs"][0]["results"]
    assert [r["ruleId"] for r in results] == ["out-of-bounds", "out-of-bounds", "overflow-risk"]
    assert (folder / "out.xml").read_text().count("<failure") == 2
    assert (folder / "out.html").read_text().startswith("<!doctype html>")
    assert "::error file=kernels.py,line=8,col=21,title=out-of-bounds::" in (folder / "out.log").read_text()


def test_the_summary_of_a_step(everything: Any, folder: Path) -> None:
    page = (folder / "summary.md").read_text()
    assert page.startswith("## trilift audit") and "`out-of-bounds`" in page


def test_records_have_the_findings(everything: Any) -> None:
    cases = everything[1]
    first = cases["broken"]["findings"][0]
    assert (first["file"], first["line"], first["column"], first["level"]) == ("kernels.py", 8, 21, "error")
    assert first["counterexample"] == {"N": 5, "index": 5} and first["hint"] == "mask it"
    assert first["steps"] == [{"file": "kernels.py", "line": 7, "column": 5, "text": "i reaches 15"}]
    assert cases["risky"]["verdict"] == "PROVED" and cases["risky"]["findings"][0]["counterexample"]["x"] == "inf"
    assert cases["unsure"]["undecided"] == ["nan-risk: whether a row is empty"]
    assert cases["refused"]["reason"] == "not proved: tt.foo is not supported"
    assert cases["sound"]["seconds"]["audit"] == 0.25


def test_replay_scripts_are_written(everything: Any, folder: Path) -> None:
    paths = [f["replay"] for f in everything[1]["broken"]["findings"]]
    assert paths == [f".trilift/replay/kernels-broken-out-of-bounds{n}.py" for n in ("", "-2")]
    assert [(folder / p).read_text() for p in paths] == ["print(1)\n", "print(2)\n"]
    assert everything[1]["risky"]["findings"][0]["replay"] is None
    assert (folder / ".trilift" / ".gitignore").read_text() == "*\n"


def test_a_folder_for_replay_scripts(trilift: Any, folder: Path) -> None:
    trilift("kernels.py::broken", "--replay", "scripts")
    assert (folder / "scripts" / "kernels-broken-out-of-bounds.py").exists()
    trilift("sound.py", "--replay", "made")
    assert (folder / "made").is_dir() and not list((folder / "made").iterdir())


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (["sound.py"], 0, "no findings; 1 PROVED"),
        (["kernels.py::broken"], 1, "error[out-of-bounds]"),
        (["kernels.py::risky"], 1, "overflow-risk"),
        (["kernels.py::risky", "--ignore", "overflow-risk"], 0, "no findings; 1 PROVED"),
        (["kernels.py::risky", "--select", "out-of-bounds,write-race"], 0, "no findings"),
        (["kernels.py::risky", "--select", "overflow-risk"], 1, "overflow-risk"),
        (["kernels.py::broken", "--ignore", "out-of-bounds"], 4, "not in bounds"),
        (["kernels.py::open"], 4, "no closed form"),
        (["kernels.py::open", "--allow-unknown"], 0, "no closed form"),
        (["kernels.py::unsure"], 4, "note[undecided]: nan-risk: whether a row is empty"),
        (["kernels.py::unsure", "--allow-unknown"], 0, "undecided"),
        (["kernels.py::refused"], 4, "tt.foo is not supported"),
        (["kernels.py::odd"], 2, "the case makes no sense"),
        (["kernels.py::raising"], 2, "ZeroDivisionError: ours"),
        (["kernels.py::raising", "--debug"], 2, "Traceback (most recent call last)"),
        (["kernels.py::broken", "kernels.py::open"], 1, "no closed form"),
        (["empty.py"], 3, "nothing to check"),
        (["nosuch.py"], 2, "no such file"),
        ([], 2, "no TARGET given"),
        (["sound.py", "--select", "out-of-bound"], 2, "no rule is called out-of-bound; did you mean out-of-bounds?"),
        (["sound.py", "--ignore", "zzz"], 2, "no rule is called zzz; there are out-of-bounds"),
        (["sound.py", "--format", "sarfi"], 2, "no format is called sarfi; did you mean sarif?"),
        (["sound.py", "--format", "sarif="], 2, "names no file"),
        (["sound.py", "--format", "json", "--format", "text"], 2, "only one format can go to stdout"),
        (["sound.py", "--format", "json=a", "--format", "html=./a"], 2, "given twice"),
        (["sound.py", "--format", "json=no/such/file"], 2, "cannot write no/such/file: No such file or directory"),
        (["sound.py", "--format", "json=."], 2, "cannot write .: Is a directory"),
        (["sound.py", "--replay", "/dev/null/no"], 2, "--replay: cannot make the folder"),
    ],
)
def test_exit_codes_and_messages(trilift: Any, args: list[str], code: int, said: str) -> None:
    done = trilift(*args)
    assert (done.exit_code, said in done.output) == (code, True), done.output


def test_an_output_is_checked_before_anything_is_run_and_not_made(trilift: Any, folder: Path) -> None:
    done = trilift("sound.py", "--format", "json=new.json", "--format", "html=no/such")
    assert done.exit_code == 2 and not (folder / "new.json").exists()


def test_the_same_run_gives_the_same_bytes(trilift: Any, folder: Path) -> None:
    """Of formats that tell no times."""
    texts = []
    for _ in range(2):
        trilift("kernels.py::broken", "kernels.py::sound", "--format", "sarif=a.sarif", "--format", "github=a.log")
        texts.append((folder / "a.sarif").read_bytes() + (folder / "a.log").read_bytes())
    assert texts[0] == texts[1]


# ---- parts that need no process --------------------------------------------------------------------------------------


def record(**fields: Any) -> dict[str, Any]:
    return {**unfinished.empty("f.py", "c", "", ""), "errors": [], "verdict": "PROVED", **fields}


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({}, 0),
        ({"findings": [{"rule": "nan-risk"}]}, 1),
        ({"suppressed": [{"rule": "nan-risk"}]}, 0),
        ({"verdict": "REFUTED"}, 1),
        ({"verdict": "REFUTED", "suppressed": [{"rule": "wrong-result"}]}, 0),
        ({"verdict": "REFUTED", "suppressed": [{"rule": "wrong-result"}], "findings": [{"rule": "nan-risk"}]}, 1),
        ({"verdict": "UNKNOWN", "suppressed": [{"rule": "wrong-result"}]}, 4),
        ({"undecided": ["x"]}, 4),
        ({"undecided": ["x"], "findings": [{"rule": "nan-risk"}]}, 1),
        ({"errors": [{"kind": "case"}]}, 2),
    ],
)
def test_code_of_a_record(fields: dict[str, Any], code: int) -> None:
    assert audit.code(record(**fields)) == code


@pytest.mark.smoke
def test_a_rule_replaces_what_lifting_says_of_it() -> None:
    def old(rule: str) -> dict[str, Any]:
        return {"rule": rule, "message": "old", "file": "", "line": 0, "counterexample": {}, "replay": None}

    found = Audited(findings=(Finding("wrong-result", "new", None),), unknown=("u",))
    told = audit_record.told(record(findings=[old("wrong-result"), old("out-of-bounds")]), found)  # type: ignore[arg-type]
    assert [(f["rule"], f["message"]) for f in told["findings"]] == [("wrong-result", "new"), ("out-of-bounds", "old")]
    assert told["undecided"] == ["u"] and told["seconds"]["audit"] == 0.25


@pytest.mark.smoke
def test_texts_are_without_the_folder_but_for_scripts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    here = f"{tmp_path}/k.py"
    assert sources.local({"a": [f"at {here}:3", 1, None], "script": here}) == {
        "a": ["at k.py:3", 1, None],
        "script": here,
    }


@pytest.mark.smoke
def test_a_folder_that_cannot_be_written_harms_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".trilift").write_text("a file")
    finding = {
        "rule": "nan-risk",
        "message": "m",
        "file": "",
        "line": 0,
        "counterexample": {},
        "script": "x",
        "level": "note",
    }
    told = replay_files.Scripts("").written(record(findings=[finding]))
    assert told["findings"][0]["replay"] is None and "cannot write" in capsys.readouterr().err


@pytest.mark.smoke
def test_rules_are_named_once() -> None:
    assert explanations.chosen(" out-of-bounds, write-race ,", "--select") == {"out-of-bounds", "write-race"}
    assert explanations.chosen(None, "--select") == frozenset()


@pytest.mark.smoke
def test_a_name_that_is_no_rule_is_described_by_itself() -> None:
    assert explanations.described("no-such").summary == "no-such"
