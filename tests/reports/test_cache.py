"""The cache of records: what counts as unchanged, what is kept, and that no state of its file does harm."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from click.testing import CliRunner

from trilift.lift.runtime.budget import OutOfSteps, OutOfTime
from trilift.reports.base import fingerprint
from trilift.reports.base.targets import Target
from trilift.reports.cli import main
from trilift.reports.records import unfinished
from trilift.reports.records.options import Options, Proving
from trilift.reports.runner import answers, cache, dispatch, local, seal
from trilift.reports.runner.cache import Cache, Entry
from trilift.reports.runner.store import Figures, Store

Paths = dict[str, Path]
OLD = 1_000_000_000


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """What `runner.run` was asked for; it answers without running: the names of a file are its lines."""
    asked: list[tuple[str, ...]] = []

    def run(
        targets: Sequence[Target],
        options: Options,
        on_event: Callable[[str, str, Any], None],
        on_loaded: Callable[[str, Sequence[str]], None],
    ) -> Iterator[dict[str, Any]]:
        for t in targets:
            names = t.cases or tuple(Path(t.file).read_text().split())
            asked.append((t.file, *names))
            on_event(t.file, "", list(names))
            on_loaded(t.file, [str(p) for p in Path(t.file).parent.glob("helper*.py")])
            yield from (record(t.file, n) for n in names)

    monkeypatch.setattr(local, "run", run)
    return asked


def record(file: str, name: str) -> dict[str, Any]:
    out = unfinished.empty(file, name, *(("timeout", "late") if "late" in name else ("", "")))
    if "late" not in name:
        out |= {"errors": [], "verdict": "PROVED", "reason": "", "place": {"file": file, "line": 3, "column": 0}}
    return out | ({"errors": [{"kind": "unsupported"}], "verdict": "UNKNOWN"} if "odd" in name else {})


@pytest.fixture
def files(tmp_path: Path) -> Paths:
    texts = {"a": "one two", "b": "", "c": "three late odd", "helper": "x = 1"}
    out = {n: tmp_path / f"{n}.py" for n in texts}
    for n, text in texts.items():
        write(out[n], text)
    return out


def write(path: Path, text: str) -> None:
    """The content, written long ago."""
    path.write_text(text)
    os.utime(path, (OLD, OLD))


def records(files: Paths, *names: str, cases: tuple[str, ...] = (), **options: Any) -> list[dict[str, Any]]:
    targets = [Target(str(files[n]), cases) for n in names]
    chosen = Options(proving=Proving(), cache=str(files["a"].parent / "cache"), **options)
    return list(dispatch.records(targets, chosen))


def told(found: list[dict[str, Any]]) -> list[tuple[str, bool]]:
    return [(r["name"], r.get("cached", False)) for r in found]


def test_what_is_decided_comes_back_in_order(files: Paths, ran: list) -> None:
    first = records(files, "a", "b", "c")
    assert told(first) == [(n, False) for n in ("one", "two", "three", "late", "odd")]
    ran.clear()
    second = records(files, "a", "b", "c")
    assert told(second) == [("one", True), ("two", True), ("three", True), ("late", False), ("odd", True)]
    assert ran == [(str(files["b"]),), (str(files["c"]), "late")]
    strip = [{k: v for k, v in r.items() if k != "cached"} for r in second]
    assert strip == first


@pytest.mark.parametrize(
    ("change", "counts"),
    [
        (lambda f: write(f["a"], "one two three"), False),
        (lambda f: write(f["helper"], "x = 2"), False),
        (lambda f: f["helper"].unlink(), False),
        (lambda f: os.utime(f["a"]), True),
        (lambda f: write(f["c"], "other"), True),
    ],
)
def test_a_change_of_any_file_that_was_loaded_counts(files: Paths, ran: list, change: Callable, counts: bool) -> None:
    records(files, "a")
    change(files)
    assert all(c is counts for _, c in told(records(files, "a")))


def test_a_process_that_is_killed_has_kept_what_came_before(
    files: Paths, ran: list, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "KEEP_SECONDS", 0.0)
    target, options = Target(str(files["a"])), Options(proving=Proving(), cache=str(files["a"].parent / "cache"))
    run = dispatch.records([target], options)
    assert next(run)["name"] == "one"  # and no more is heard of it
    ran.clear()
    assert told(records(files, "a")) == [("one", True), ("two", False)]
    assert ran == [(target.file, "two")]
    run.close()


@pytest.mark.parametrize("options", [{"seed": 1}, {"timeout": 7.0}, {"explain": True}])
def test_other_options_are_another_question(files: Paths, ran: list, options: dict[str, Any]) -> None:
    records(files, "a")
    assert not any(c for _, c in told(records(files, "a", **options)))
    assert all(c for _, c in told(records(files, "a", jobs=3)))


def test_ourown_source_is_part_of_the_question(files: Paths, ran: list, monkeypatch: pytest.MonkeyPatch) -> None:
    records(files, "a")
    monkeypatch.setattr(fingerprint, "own_source", lambda: ["another version"])
    fingerprint.environment.cache_clear()
    assert not any(c for _, c in told(records(files, "a")))
    monkeypatch.undo()
    fingerprint.environment.cache_clear()


def test_single_cases_fill_the_entry_of_a_file(files: Paths, ran: list) -> None:
    records(files, "a", cases=("two",))
    assert told(records(files, "a")) == [("one", False), ("two", False)]  # nobody knew what else there is
    assert told(records(files, "a", cases=("two", "one"))) == [("two", True), ("one", True)]


def test_a_file_that_changes_while_it_is_run_is_not_kept(files: Paths, ran: list) -> None:
    found = dispatch.records([Target(str(files["a"]))], Options(cache=str(files["a"].parent / "cache")))
    next(found)
    files["helper"].write_text("x = 3")
    list(found)
    assert not any(c for _, c in told(records(files, "a")))


def test_places_are_told_as_the_file_is_given(files: Paths, ran: list, monkeypatch: pytest.MonkeyPatch) -> None:
    records(files, "a")
    monkeypatch.chdir(files["a"].parent)
    again = records({"a": Path("a.py").absolute(), **files} | {"a": files["a"]}, "a")
    assert all(c for _, c in told(again))
    chosen = Options(proving=Proving(), cache=str(files["a"].parent / "cache"))
    relative = list(dispatch.records([Target("a.py")], chosen))
    assert all(c for _, c in told(relative))
    assert {r["file"] for r in relative} == {r["place"]["file"] for r in relative} == {"a.py"}


@pytest.mark.parametrize(
    ("fields", "settled"),
    [
        ({}, True),
        ({"verdict": "UNKNOWN", "reason": f"equal: {OutOfTime(30.0)}"}, False),
        ({"verdict": "UNKNOWN", "reason": str(OutOfSteps("proof", 10, ""))}, True),
        ({"verdict": "UNKNOWN", "seconds": {"prove": 29.0}}, True),
        ({"verdict": "TESTED", "proofs": [{"reason": "", "cause": "timeout"}]}, False),
        ({"verdict": "PROVED", "undecided": [f"nan-risk: {OutOfTime(30.0)}"]}, False),
        ({"errors": [{"kind": "unsupported"}]}, True),
        ({"errors": [{"kind": "crash"}]}, False),
        ({"errors": [{"kind": "internal"}]}, False),
        ({"errors": [{"kind": "case"}]}, False),
        ({"name": ""}, False),
    ],
)
def test_what_is_settled(fields: dict[str, Any], settled: bool) -> None:
    assert cache.is_settled(record("f.py", "one") | fields, Options(proving=Proving())) is settled


def test_a_run_that_writes_files_is_made(files: Paths) -> None:
    assert not cache.usable(Options(cache="x", proving=Proving(smt_dir="d")))
    assert not cache.usable(Options(cache="x", proving=Proving(replay="d")))
    assert not cache.usable(Options(proving=Proving()))
    assert cache.usable(Options(cache="x", proving=Proving()))


# ---- the file --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "damage", [b"this is no database, but long enough to be looked at" * 40, b"SQLite format 3\0" * 90]
)
def test_a_damaged_cache_is_made_anew(tmp_path: Path, damage: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / cache.NAME).write_bytes(damage)
    store = Cache(tmp_path)
    assert "damaged" in capsys.readouterr().err
    store.put("k", Entry("a.py", records={"one": {"x": 1}}))
    assert Cache(tmp_path).get("k") == store.get("k") != None  # noqa: E711


def test_damage_in_the_middle_is_survived(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = Cache(tmp_path)
    for i in range(200):
        store.put(f"k{i}", Entry("a.py", records={"one": {"x": os.urandom(400).hex()}}))
    store.close()
    data = bytearray((tmp_path / cache.NAME).read_bytes())
    data[4096:] = os.urandom(len(data) - 4096)
    (tmp_path / cache.NAME).write_bytes(data)
    again = Cache(tmp_path)
    assert all(again.get(f"k{i}") is None for i in range(200))
    again.put("k", Entry("a.py"))
    assert again.get("k") == Entry("a.py")


def test_a_row_that_is_no_entry_is_a_miss(tmp_path: Path) -> None:
    store = Cache(tmp_path)
    store.put("k", Entry("a.py"))
    with sqlite3.connect(tmp_path / cache.NAME) as c:
        c.execute("UPDATE entries SET body = ?", (b"nonsense",))
    c.close()
    assert store.get("k") is None


@pytest.mark.parametrize("folder", ["file", "/proc/nothing/here"])
def test_a_folder_that_cannot_be_used(tmp_path: Path, folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    cache.warn.cache_clear()
    (tmp_path / "file").write_text("")
    store = Cache(tmp_path / folder)
    store.put("k", Entry("a.py"))
    assert store.get("k") is None
    assert "no cache" in capsys.readouterr().err


def test_old_entries_go(tmp_path: Path) -> None:
    store = Cache(tmp_path)
    store.put("old", Entry("a.py"))
    with sqlite3.connect(tmp_path / cache.NAME) as c:
        c.execute("UPDATE entries SET made = 0")
    c.close()
    store.put("new", Entry("a.py"))
    assert store.get("old") is None and store.get("new") is not None


def test_a_result_that_somebody_else_put_there_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as other:
        other.setenv(seal.VARIABLE, "of somebody else")
        Cache(tmp_path).put("k", Entry("a.py", records={"one": {"verdict": "PROVED"}}))
        assert Cache(tmp_path).get("k") is not None
    assert Cache(tmp_path).get("k") is None
    Cache(tmp_path).put("k", Entry("a.py"))
    with closing(sqlite3.connect(tmp_path / cache.NAME, isolation_level=None)) as c:
        c.execute("INSERT INTO entries SELECT 'l', made, body FROM entries")  # an entry under the name of another one
    assert Cache(tmp_path).get("k") == Entry("a.py") and Cache(tmp_path).get("l") is None


def test_the_key_of_a_user_is_made_once_and_for_him_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(seal.VARIABLE)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    keys = {seal.key() for _ in range(2)}
    assert len(keys) == 1 and len(keys.pop()) == 64
    assert seal.path().stat().st_mode & 0o777 == 0o600 and [p.name for p in seal.path().parent.iterdir()] == [
        "cache.key"
    ]


def test_a_folder_of_another_user_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cache.warn.cache_clear()
    monkeypatch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid + 1)
    store = Cache(tmp_path)
    store.put("k", Entry("a.py"))
    assert store.get("k") is None and "belongs to another user" in capsys.readouterr().err


def test_an_entry_that_would_fill_the_memory_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Cache(tmp_path)
    store.put("k", Entry("a.py", names=["one"] * 1000))
    monkeypatch.setattr("trilift.reports.runner.store.ENTRY_BYTES", 1000)
    assert store.get("k") is None


def test_a_cache_that_is_too_large_loses_its_oldest_entries(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for k in range(10):
        store.put(f"k{k}", {"x": os.urandom(1000).hex()})
    size = store.figures().used_bytes
    assert store.figures().entries == 10 and store.prune(size_bytes=size) == 0
    assert store.prune(size_bytes=size * 55 // 100) == 6  # four tenths are less than 0.8 of that, and five are more
    assert [store.get(f"k{k}") is not None for k in range(10)] == [False] * 6 + [True] * 4
    assert store.clear() == 4 and store.figures() == Figures(0, 0, None, None)


def test_the_command_tells_what_is_kept_and_clears_it(tmp_path: Path) -> None:
    def run(*args: str) -> str:
        done = CliRunner().invoke(main, ["cache", *args, "--cache-dir", str(tmp_path)], catch_exceptions=False)
        assert done.exit_code == 0
        return done.output

    assert "entries   0," in run("info")
    with closing(Store(tmp_path)) as store:
        store.put("k", {"x": 1})
    assert "entries   1," in run("info") and seal.VARIABLE in run("info")
    assert "0 entries removed, 1 left" in run("prune")
    assert "1 entry removed, 0 left" in run("clear")


def test_two_at_once(tmp_path: Path) -> None:
    def work(k: int) -> None:
        store = Cache(tmp_path)
        for i in range(30):
            store.put(f"{k}-{i}", Entry("a.py", records={"one": {"x": i}}))
        store.close()

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    store = Cache(tmp_path)
    assert all(store.get(f"{k}-{i}") is not None for k in range(4) for i in range(30))


# ---- end to end ------------------------------------------------------------------------------------------------------

HELPER = """
import triton, triton.language as tl

@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, 2 * tl.load(x + i, mask=i < n), mask=i < n)
"""
CASES = """
import torch, triton
from trilift import case

@case(x="f32[N]")
def double(x):
    from own_kernels import kernel
    y = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 16),)](x, y, x.numel(), BLOCK=16)
    return y

@double.reference
def _(x):
    return x + x
"""


def test_a_second_run_imports_nothing_of_the_user(tmp_path: Path) -> None:
    write(tmp_path / "cases.py", CASES)
    write(tmp_path / "own_kernels.py", HELPER)

    def prove() -> dict[str, Any]:
        command = [sys.executable, "-m", "trilift", "prove", "-q", "cases.py", "--format", "json", "-j", "1"]
        env = {**os.environ, "TRILIFT_CACHE_DIR": str(tmp_path / "c"), "TRITON_DEFAULT_FP_FUSION": "1"}
        done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120)
        return json.loads(done.stdout)["cases"][0]

    first, second = prove(), prove()
    assert (first["verdict"], first.get("cached"), second["cached"]) == ("PROVED", None, True)
    write(tmp_path / "own_kernels.py", HELPER.replace("2 *", "3 *"))  # imported by the host function only when it runs
    third = prove()
    assert (third["verdict"], third.get("cached")) == ("REFUTED", None)


READS = """
import os, pathlib
import torch, triton
from own_kernels import kernel
from trilift import case

HERE = pathlib.Path(__file__).parent
LEFT_OUT = {}

@case(x="f32[N]")
def double(x):
    y = torch.zeros_like(x)
    kernel[(triton.cdiv(x.numel(), 16),)](x, y, x.numel() - LEFT_OUT, BLOCK=16)
    return y

double.reference(lambda x: x + x)
"""
OUTSIDE = {
    "a file": ('int((HERE / "number.inc").read_text())', lambda folder: write(folder / "number.inc", "1"), {}),
    "a folder": ('len([*HERE.glob("*.inc")]) - 1', lambda folder: write(folder / "another.inc", ""), {}),
    "a variable": ('int(os.environ.get("LEFT_OUT", 0))', lambda folder: None, {"LEFT_OUT": "1"}),
    "getenv": ('int(os.getenv("LEFT_OUT") or 0)', lambda folder: None, {"LEFT_OUT": "1"}),
}


@pytest.mark.parametrize(
    "what", ["a file", *(pytest.param(w, marks=pytest.mark.slow) for w in OUTSIDE if w != "a file")]
)
def test_what_a_file_reads_when_it_is_imported_counts(tmp_path: Path, what: str) -> None:
    text, change, variables = OUTSIDE[what]
    write(tmp_path / "cases.py", READS.replace("{}", text))
    write(tmp_path / "own_kernels.py", HELPER)
    write(tmp_path / "number.inc", "0")

    def prove(**more: str) -> tuple[str, object]:
        command = [sys.executable, "-B", "-m", "trilift", "prove", "-q", "cases.py", "--format", "json", "-j", "1"]
        env = {**os.environ, "TRILIFT_CACHE_DIR": str(tmp_path / "c"), **more}
        done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120)
        found = json.loads(done.stdout)["cases"][0]
        return found["verdict"], found.get("cached")

    assert [prove(), prove()] == [("PROVED", None), ("PROVED", True)]
    change(tmp_path)
    assert [prove(**variables), prove(**variables)] == [("REFUTED", None), ("REFUTED", True)]


def test_the_steps_of_each_stage_are_told_and_not_kept(files: Paths, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    made = {**record("f.py", "one"), "steps": ["proof: 10 steps in 1 of 1,000"]}
    monkeypatch.setattr(dispatch, "run", lambda targets, options, on_event: iter([made]))
    options = Options(proving=Proving(), cache=str(files["a"].parent / "cache"), debug=True)
    assert list(dispatch.records([Target(str(files["a"]))], options)) == [made]
    assert capsys.readouterr().err == "one: steps spent\n  proof: 10 steps in 1 of 1,000\n"
    assert not cache.usable(options)


def test_what_is_not_there_was_not_written(tmp_path: Path) -> None:
    """Absent files and variables of the environment are among what an answer rests on: it is kept all the same."""
    old, new = tmp_path / "old.py", tmp_path / "new.py"
    for path in (old, new):
        path.write_text("")
    os.utime(old, (1, 1))
    since = 2 * OLD
    assert not fingerprint.changed_since([str(old), str(tmp_path / "torch.py"), "$FX_GRAPH_SHOW_META"], since)
    assert fingerprint.changed_since([str(old), str(new)], since)


def test_an_answer_that_rests_on_absent_files_is_kept(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    made = answers.Answers(cast(Any, None), store)
    unit = cast(Any, SimpleNamespace(kind="check", file="", arguments=()))
    made.keep(unit, 2 * OLD, cast(Any, {"n": 1}), {str(tmp_path / "torch.py"): None, "$ABSENT": None})
    assert made.known(unit) == {"n": 1}
    (tmp_path / "torch.py").write_text("")
    assert made.known(unit) is None
