"""The tables of corpus/broken and corpus/sound, and of triton-viz's sanitizer beside them."""

from __future__ import annotations

import json
import random
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import pytest

from trilift.lift.runtime.isolate import Outcome
from trilift.reports.base.targets import resolve
from trilift.reports.experiments import registry
from trilift.reports.experiments.corpora import expectations
from trilift.reports.experiments.corpora.expectations import Judged, Site
from trilift.reports.experiments.experiment import Result, Table
from trilift.reports.experiments.renderer import as_markdown, as_text
from trilift.reports.experiments.tool_comparison import sanitizer, sanitizer_comparison, sanitizer_script
from trilift.reports.experiments.tool_comparison.sanitizer import Sanitized
from trilift.reports.records import unfinished
from trilift.reports.records.options import Options, Proving

ROOT = Path(__file__).resolve().parents[2] / "corpus"
OOB, RACE = Site("out-of-bounds", 12), Site("write-race", 5)


def record(file: str, *found: tuple[str, int], **fields: Any) -> dict[str, Any]:
    """A record with findings in its own file."""
    base = {**unfinished.empty(file, "c", "", ""), "errors": [], "verdict": "UNKNOWN"}
    return {**base, "findings": [{"rule": r, "line": n, "file": file} for r, n in found], **fields}


def judged(name: str, expected: tuple[Site, ...] = (), found: tuple[Site, ...] = (), **fields: Any) -> Judged:
    return Judged(f"x/{name}.py", expected, found, "UNKNOWN", 1.5, **fields)


# ---- expectations ----------------------------------------------------------------------------------------------------


@pytest.mark.smoke
def test_the_first_lines_say_what_is_expected() -> None:
    text = (
        '# expect: out-of-bounds at line 12\n# expect: write-race at line 5\n"""A."""\n# expect: nan-risk at line 1\n'
    )
    assert expectations.expectations(text) == (OOB, RACE)
    assert expectations.expectations('# sound\n"""A."""\n') == ()
    assert expectations.expectations("# expect: out-of-bounds at line twelve\n") == ()
    assert expectations.expectations("") == ()


@pytest.mark.smoke
def test_every_broken_file_expects_something_and_no_sound_one_does() -> None:
    for name, some in (("broken", True), ("sound", False)):
        files = sorted((ROOT / name).glob("[!_]*.py"))
        assert files and all(bool(expectations.expectations(f.read_text())) is some for f in files)


@pytest.mark.smoke
def test_a_finding_counts_with_its_rule_at_its_line_in_its_file() -> None:
    text = "# expect: out-of-bounds at line 12\n"
    right = expectations.judge(record("a.py", ("out-of-bounds", 12), ("write-race", 5)), text)
    assert (right.caught, right.missed, right.extra) == ((OOB,), (), (RACE,))
    for wrong in (("out-of-bounds", 13), ("write-race", 12)):
        assert expectations.judge(record("a.py", wrong), text).missed == (OOB,)
    elsewhere = record("a.py", findings=[{"rule": "out-of-bounds", "line": 12, "file": "b.py"}])
    assert expectations.judge(elsewhere, text).missed == (OOB,)
    assert str(expectations.judge(elsewhere, text).extra[0]) == "out-of-bounds@b.py:12"


@pytest.mark.smoke
def test_a_file_that_could_not_be_audited_is_neither_silent_nor_caught() -> None:
    failed = expectations.judge(unfinished.empty("a.py", "c", "timeout", "not finished"), "# sound\n")
    assert failed.trouble == "not finished" and not failed.found
    assert expectations.code("sound", [failed]) == expectations.code("broken", [failed]) == 2
    unread = expectations.judge(unfinished.empty("a.py", "c", "unsupported", "tt.foo"), "# sound\n")
    assert expectations.code("sound", [unread]) == 0


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("name", "file", "code"),
    [
        ("broken", judged("a", (OOB,), (OOB,)), 0),
        ("broken", judged("a", (OOB,), (OOB, RACE)), 0),
        ("broken", judged("a", (OOB, RACE), (OOB,)), 1),
        ("sound", judged("a"), 0),
        ("sound", judged("a", (), (RACE,)), 1),
    ],
)
def test_exit_codes(name: str, file: Judged, code: int) -> None:
    assert expectations.code(name, [file]) == code
    assert expectations.code(name, []) == 3


@pytest.mark.smoke
def test_the_table_of_broken_files() -> None:
    files = [judged("a", (OOB, RACE), (OOB,)), judged("b", (OOB,), (OOB, Site("nan-risk", 1))), judged("c", (RACE,))]
    totals, by_file = (t.rows for t in expectations.tables("broken", files))
    assert totals == (
        ("out-of-bounds", "2", "2", "0", "1", "3.0"),
        ("write-race", "2", "0", "2", "0", "1.5"),
        ("all", "4", "2", "2", "1", "4.5"),
    )
    assert [r[3:5] for r in by_file] == [("1 of 2", "-"), ("yes", "nan-risk@1"), ("no", "-")]
    assert by_file[0][1:3] == ("out-of-bounds@12, write-race@5", "out-of-bounds@12")


@pytest.mark.smoke
def test_the_table_of_sound_files() -> None:
    totals, by_file = (t.rows for t in expectations.tables("sound", [judged("a", (), (OOB,)), judged("b")]))
    assert totals == (("2", "1", "1", "0", "0", "3.0"),)
    assert [r[:2] for r in by_file] == [("a", "out-of-bounds@12"), ("b", "-")]


def test_a_sample_of_both_corpora_is_audited() -> None:
    """Different files as the corpora grow; each must be caught or silent."""
    draw = random.Random(4)
    for name, count in (("broken", 3), ("sound", 2)):
        files = draw.sample(sorted((ROOT / name).glob("[!_]*.py")), count)
        options = Options(jobs=2)
        found, records = expectations.judged(resolve([str(f) for f in files]), options, quiet=True)
        assert [f.path for f in found] == [str(f) for f in files] and len(records) == count
        assert expectations.code(name, found) == 0, found


# ---- the sanitizer ---------------------------------------------------------------------------------------------------

SAID = (
    "\x1b[1m\x1b[91m🚨 ILLEGAL MEMORY ACCESS DETECTED 🚨\x1b[0m\n"
    "  \x1b[95mFile:\x1b[0m a.py\n  \x1b[95mLine 12:\x1b[0m\n"
)
VERSIONS = {"versions": {"triton-viz": "3.0"}}
RETURNED = {"dims": {"N": 3}, "state": "returned", "why": "", "seconds": 0.5}
RAISED = {**RETURNED, "state": "raised", "why": "ValueError: strides"}
STOPPED = {**RETURNED, "state": "stopped"}


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("said", "log", "late", "outcome", "line", "ran"),
    [
        (SAID, [RETURNED, STOPPED], 0.0, "report", 12, 2),
        (SAID, [RAISED, STOPPED], 0.0, "report", 12, 1),
        ("", [RETURNED, RETURNED], 0.0, "silent", 0, 2),
        ("", [RAISED, RETURNED], 0.0, "silent", 0, 1),
        ("", [RETURNED], 60.0, "silent", 0, 1),
        ("", [RAISED, RAISED], 0.0, "unsupported", 0, 0),
        ("", [], 60.0, "timeout", 0, 0),
        ("", [], 0.0, "crash", 0, 0),
    ],
)
def test_what_the_sanitizer_says_is_read(
    said: str, log: list[Any], late: float, outcome: str, line: int, ran: int
) -> None:
    got = sanitizer.told(said, [VERSIONS, *log], 2, late, "ImportError: no")
    assert (got.outcome, got.line, got.ran) == (outcome, line, ran)
    assert got.versions == VERSIONS["versions"]
    assert (got.why == "ImportError: no") == (outcome == "crash")


@pytest.mark.smoke
def test_without_the_sanitizer_the_page_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sanitizer, "command", lambda: "")
    with pytest.raises(FileNotFoundError, match="make sanitizer-comparison"):
        sanitizer.sanitize([], 1, 0)
    notes, heard = sanitizer_comparison.sanitized({"broken": []}, Options(), quiet=True)
    assert not heard and "triton-viz is not installed" in notes[0]


@pytest.mark.smoke
def test_a_tool_that_fails_is_no_silence(tmp_path: Path) -> None:
    program = tmp_path / "triton-sanitizer"
    program.write_text(f"#!{sys.executable}\nraise SystemExit('no such thing')\n")
    program.chmod(0o755)
    got = sanitizer.run(str(program), "a.py", [{"N": 3}], 0)
    assert (got.outcome, got.why) == ("crash", "no such thing")
    program.write_text(f"#!{sys.executable}\nimport time\ntime.sleep(60)\n")
    assert sanitizer.run(str(program), "a.py", [{"N": 3}], 0, timeout=0.5).outcome == "timeout"


HOST = """
from trilift import case

@case(x="f32[N]")
def host(x):
    if len(x) == 3:
        raise SystemExit(1)
    if len(x) == 5:
        raise ValueError("five")
    return x
"""


@pytest.mark.smoke
def test_the_script_logs_every_shape_until_the_sanitizer_exits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "host.py").write_text(HOST)
    monkeypatch.setattr(sanitizer_script, "VERSIONED", ("numpy",))
    shapes = json.dumps([{"N": n} for n in (4, 5, 3, 6)])
    with pytest.raises(SystemExit):
        sanitizer_script.main(str(tmp_path / "host.py"), shapes, str(tmp_path / "log"), "0")
    versions, *runs = map(json.loads, (tmp_path / "log").read_text().splitlines())
    assert set(versions["versions"]) == {"numpy"}
    assert [(r["dims"]["N"], r["state"]) for r in runs] == [(4, "returned"), (5, "raised"), (3, "stopped")]
    assert runs[1]["why"] == "ValueError: five"


def test_shapes_are_small_then_larger_then_at_the_edges_of_blocks() -> None:
    file = str(ROOT / "broken" / "16_element_before_the_first.py")
    chosen = sanitizer.shapes([file, str(ROOT / "none.py")], 1, 0)
    assert isinstance(chosen[0], list) and len({d["N"] for d in chosen[0]}) == sanitizer.CHOSEN + sanitizer.EDGES
    assert chosen[0][0]["N"] < 20 < 100 < chosen[0][2]["N"]
    assert isinstance(chosen[1], Outcome)
    assert sanitizer.run("", file, chosen[1], 0).outcome == "crash"


@pytest.mark.skipif(not sanitizer.command(), reason=sanitizer.INSTALL)
def test_the_sanitizer_reports_a_broken_file_and_not_its_twin() -> None:
    name = "16_element_before_the_first.py"
    report, silence = sanitizer.sanitize([str(ROOT / d / name) for d in ("broken", "sound")], 1, 0)
    expected = expectations.expectations((ROOT / "broken" / name).read_text())
    assert (report.outcome, report.line) == ("report", expected[0].line)
    assert (silence.outcome, silence.ran) == ("silent", silence.shapes)


BROKEN = [
    (judged("a", (OOB,), (OOB,)), Sanitized("report", 12, 1, 5, "", 0.5)),
    (judged("b", (OOB,)), Sanitized("report", 3, 2, 5, "", 0.5)),
    (judged("c", (RACE,), (RACE,)), Sanitized("silent", 0, 5, 5, "", 0.5)),
    (judged("d", (RACE,), (OOB,)), Sanitized("unsupported", 0, 0, 5, "ValueError: |", 0.5)),
]
SOUND = [
    (judged("a"), Sanitized("silent", 0, 5, 5, "", 0.5)),
    (judged("b", (), (RACE,)), Sanitized("timeout", 0, 0, 5, "", 60.0)),
    (judged("c", trouble="not finished"), Sanitized("report", 1, 1, 5, "", 0.5)),
]


@pytest.mark.smoke
def test_both_tools_are_counted_alike() -> None:
    files = {"broken": [f for f, _ in BROKEN], "sound": [f for f, _ in SOUND]}
    heard = {"broken": [s for _, s in BROKEN], "sound": [s for _, s in SOUND]}
    by_rule, alarms, each = (t.rows for t in sanitizer_comparison.compared(files, heard))
    assert by_rule == (
        ("out-of-bounds", "2", "1", "1", "1", "2", "0", "0", "3.0", "1.0"),
        ("write-race", "2", "1", "2", "0", "0", "1", "1", "3.0", "1.0"),
        ("all", "4", "2", "3", "1", "2", "1", "1", "6.0", "2.0"),
    )
    assert [r[:5] for r in alarms] == [("trilift", "3", "1", "1", "1"), ("triton-sanitizer", "3", "1", "1", "1")]
    assert len(each) == 7 and each[0][2:4] == ("report at 12", "1 of 5")
    assert len(sanitizer_comparison.plain(files, heard)) == 7


@pytest.mark.smoke
def test_notes_stand_before_the_tables() -> None:
    result = Result("t", (Table("h", ("a",), (("b",),)),), {}, 0, ("A note.",))
    assert as_text(result).startswith("A note.\n\nh\n")
    assert "\n\nA note.\n\n## h\n" in as_markdown(result)
    assert "A note." not in as_text(replace(result, notes=()))


@pytest.mark.smoke
def test_the_folders_are_corpora(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expectations, "judged", lambda targets, options, quiet: ([judged("a", (OOB,), (OOB,))], []))
    proving = Options(proving=Proving())
    assert registry.corpus("broken").run(proving, quiet=True).code == 0
    assert registry.corpus("sound").run(proving, quiet=True).code == 1
    with pytest.raises(click.UsageError, match="broken"):
        registry.corpus("nosuch")
