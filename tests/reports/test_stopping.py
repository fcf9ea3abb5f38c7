"""Runs that are ended before their last case: what was found is written and kept, and is said to be incomplete."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

import pytest

from trilift.lift.runtime.isolate import Outcome
from trilift.reports.base import written_files
from trilift.reports.base.progress import Progress
from trilift.reports.base.targets import Target
from trilift.reports.commands.gathering import FAIL_FAST, Limits, gather
from trilift.reports.filters import choice
from trilift.reports.records.unfinished import failed
from trilift.reports.runner import local
from trilift.reports.runner.stopping import UNFINISHED, Stopped, interruptible, stoppable

SOURCE = """
import os, time, torch, triton, triton.language as tl
from trilift import case

@triton.jit
def double_kernel(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, 2 * tl.load(x + i, mask=i < n), mask=i < n)

def run(x):
    y = torch.empty_like(x)
    double_kernel[(triton.cdiv(x.numel(), 16),)](x, y, x.numel(), BLOCK=16)
    return y

@case(x="f32[N]")
def first(x):
    return run(x)

@case(x="f32[N]")
def endless(x):
    while not os.path.exists("go"):
        time.sleep(0.1)
    return run(x)

@case(x="f32[N]")
def last(x):
    return run(x)
"""
NAME = "cases.py"
SECONDS = re.compile(r"[\d.]+ s$", re.MULTILINE)


def record(name: str, verdict: str = "PROVED") -> dict[str, object]:
    return {**failed(NAME, name, Outcome(failure="timeout")), "verdict": verdict}


def code(r: dict[str, object]) -> int:
    return {"REFUTED": 1, "UNKNOWN": 4}.get(str(r["verdict"]), 0)


# ---- what is gathered ------------------------------------------------------------------------------------------------


def test_the_first_failure_ends_a_run_that_asks_for_it() -> None:
    rows = [record("a"), record("b", "UNKNOWN"), record("c", "REFUTED"), record("d")]
    run = gather(iter(rows), Limits(fail_fast=True), Progress(quiet=True), code)  # type: ignore[arg-type]
    assert [r["name"] for r in run.records] == ["a", "b", "c"] and run.incomplete == FAIL_FAST
    assert run.exit_code(1) == 1
    whole = gather(iter(rows), Limits(), Progress(quiet=True), code)  # type: ignore[arg-type]
    assert len(whole.records) == 4 and not whole.incomplete and whole.exit_code(4) == 4


@pytest.mark.parametrize(("found", "expected"), [(0, UNFINISHED), (4, UNFINISHED), (1, 1), (2, 2), (3, UNFINISHED)])
def test_a_run_whose_time_is_over_leaves_cases_unknown(found: int, expected: int) -> None:
    def slow() -> Iterator[dict[str, object]]:
        yield record("a")
        time.sleep(30)

    began = time.monotonic()
    run = gather(slow(), Limits(seconds=0.2), Progress(quiet=True), code)  # type: ignore[arg-type]
    assert time.monotonic() - began < 20 and [r["name"] for r in run.records] == ["a"]
    assert "0.2 s" in run.incomplete and run.exit_code(found) == expected


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_is_an_exit_code_and_handlers_are_as_before(number: signal.Signals) -> None:
    before = [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)]
    with pytest.raises(Stopped) as stopped, stoppable(60):
        os.kill(os.getpid(), number)
        time.sleep(30)
    assert stopped.value.code == 128 + number and number.name in stopped.value.why
    assert [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)] == before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


@pytest.fixture
def usual() -> Iterator[None]:
    """SIGINT raises KeyboardInterrupt, as in any process that nobody has changed."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("usual")
def test_a_second_signal_ends_the_process_as_usual() -> None:
    with pytest.raises(KeyboardInterrupt), stoppable():
        try:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(30)
        except Stopped:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(30)


def test_outside_the_main_thread_nothing_is_changed() -> None:
    before, within = signal.getsignal(signal.SIGINT), []

    def enter() -> None:
        with stoppable(60):
            within.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert within == [before]


def test_records_come_in_the_order_of_the_file_as_soon_as_none_before_them_is_missing() -> None:
    file = local._File(Target(NAME), order=["a", "b", "c"])
    file.found = [record("b")]  # type: ignore[list-item]
    assert not [*file.ready()]
    file.found += [record("a")]  # type: ignore[list-item]
    assert [r["name"] for r in file.ready()] == ["a", "b"]
    file.found, file.outcome = [record("c")], Outcome(failure="SIGKILL")  # type: ignore[list-item]
    assert [r["name"] for r in file.rest()] == ["c", ""]


def test_an_incomplete_run_calls_no_comment_unused_and_writes_no_baseline(capsys: pytest.CaptureFixture[str]) -> None:
    asked = choice.Choice(whole=(NAME,), kept="known.json")
    assert choice.incomplete(asked) == choice.Choice()
    assert "known.json was not written" in capsys.readouterr().err


# ---- whole commands --------------------------------------------------------------------------------------------------


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    (tmp_path / NAME).write_text(SOURCE)
    running: list[subprocess.Popen[str]] = []

    def run(*args: str) -> subprocess.Popen[str]:
        command = (sys.executable, "-m", "trilift", *args, "-j", "1")
        pipe = subprocess.PIPE
        running.append(subprocess.Popen(command, cwd=tmp_path, stdout=pipe, stderr=pipe, text=True))
        return running[-1]

    yield run
    for process in running:
        process.kill()
        process.communicate()


def until(process: subprocess.Popen[str], text: str) -> None:
    assert process.stderr is not None
    assert any(text in line for line in process.stderr), process.wait()


def ended(command: tuple[str, ...], folder: Path, until: Callable[[int], bool]) -> tuple[int, str]:
    """The exit code and stderr of a command, to the processes of which SIGINT is sent, as by Ctrl-C on a terminal."""
    process = subprocess.Popen(
        command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    end = time.monotonic() + 60
    while not until(process.pid) and process.poll() is None and time.monotonic() < end:
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=60)
    return process.returncode, err


def serves(command: int, library: str) -> bool:
    """Whether a command has a fork server, which has loaded a library with this name; any, where it is empty."""
    for children in Path(f"/proc/{command}/task").glob("*/children"):
        for child in children.read_text().split():
            try:
                server = "forkserver" in Path(f"/proc/{child}/cmdline").read_text()
                if server and library in Path(f"/proc/{child}/maps").read_text():
                    return True
            except OSError:
                continue
    return False


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="the system does not tell what a process has loaded")
@pytest.mark.parametrize("library", ["", "libtorch_python", "libtriton"])
def test_ctrl_c_while_the_workers_start_is_our_own_line_only(tmp_path: Path, library: str) -> None:
    (tmp_path / NAME).write_text(SOURCE)
    command = (sys.executable, "-m", "trilift", "prove", "-q", NAME, "--no-cache")
    code, err = ended(command, tmp_path, lambda pid: serves(pid, library))
    assert (code, err) == (130, "the run was ended by SIGINT; the cases that had not ended are missing\n")


EARLY = """
import os, signal, sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder())
sys.argv[1:] = ["lift", "absent.py"]
from trilift.__main__ import run
run()
"""


@pytest.mark.parametrize("module", ["click", "tomllib", "trilift.reports.commands.lift"])
def test_ctrl_c_while_the_command_is_imported_is_one_line(module: str) -> None:
    command = [sys.executable, "-c", EARLY.format(module=module)]
    heard = partial(signal.signal, signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, preexec_fn=heard)
    assert (done.returncode, done.stderr) == (130, "the run was ended by SIGINT\n")


def test_a_sigint_that_is_ignored_stays_so() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with interruptible():
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_sigint_writes_every_report_and_the_next_run_goes_on(
    start: Callable[..., subprocess.Popen[str]], tmp_path: Path
) -> None:
    forms = ("json", "jsonl", "sarif", "junit", "html", "concise", "github")
    asked = [x for f in forms for x in ("--format", f"{f}=out.{f}")]
    audit = ("audit", NAME, "--cache-dir", "kept", "--write-baseline", "known.json", "--format", "text", *asked)
    process = start(*audit)
    until(process, "first: PROVED")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "first: PROVED" in out and "the run was ended by SIGINT; cases are missing" in out
    assert "Traceback" not in err and not (tmp_path / "known.json").exists()
    read = {f: (tmp_path / f"out.{f}").read_text() for f in forms}
    assert json.loads(read["json"])["incomplete"] and len(json.loads(read["json"])["cases"]) == 1
    assert "incomplete" in json.loads(read["jsonl"].splitlines()[-1])
    assert not json.loads(read["sarif"])["runs"][0]["invocations"][0]["executionSuccessful"]
    assert [e.get("type") for e in ElementTree.fromstring(read["junit"]).iter("error")] == ["incomplete"]
    assert all("ended by SIGINT" in text for text in read.values())

    (tmp_path / "go").touch()
    again = start("audit", NAME, "--cache-dir", "kept", "--format", "jsonl")
    out, err = again.communicate(timeout=120)
    assert again.returncode in (0, 1), err  # with a finding: what the host function does depends on a file
    rows = [json.loads(row) for row in out.splitlines()]
    assert [(r["name"], r.get("cached", False)) for r in rows] == [("first", True), ("endless", False), ("last", False)]


def test_an_audit_shows_each_case_when_it_has_ended_and_the_bytes_of_a_file(
    start: Callable[..., subprocess.Popen[str]], tmp_path: Path
) -> None:
    source = SOURCE.replace("while not", "# trilift: ignore[write-race] not there\n    while not")
    (tmp_path / NAME).write_text(source)
    process = start("audit", NAME, "--cache-dir", "kept")
    assert process.stdout is not None
    early = next(line for line in process.stdout if "first" in line)
    assert process.poll() is None  # it waits for the second
    (tmp_path / "go").touch()
    rest = process.stdout.read()
    assert "PROVED" in early and "which finds nothing here" in rest
    start("audit", NAME, "--cache-dir", "kept", "--format", "text=out").communicate(timeout=120)
    shown, kept = (SECONDS.sub("", text) for text in (early + rest, (tmp_path / "out").read_text()))
    assert kept == shown + written_files.LAST_LINES["text"], "but for the seconds of a case that is not kept"


def test_written_tests_that_are_ended_early_hold_the_cases_that_had(
    start: Callable[..., subprocess.Popen[str]], tmp_path: Path
) -> None:
    process = start("write", NAME, "-o", "test_cases.py")
    until(process, "first: ok")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert out == "wrote test_cases.py with 1 of 3 cases\n" and "Traceback" not in err
    text = (tmp_path / "test_cases.py").read_text()
    assert "def test_first_equals_its_formula" in text
    assert text.count('pytest.skip("nothing can be tested: the run was ended by SIGINT")') == 2


@pytest.mark.slow  # 30 s
def test_a_loop_on_import_ends_with_its_time(start: Callable[..., subprocess.Popen[str]], tmp_path: Path) -> None:
    (tmp_path / NAME).write_text("while True:\n    pass\n")
    process = start("write", NAME, "-o", "test_cases.py", "--timeout", "1")
    out, err = process.communicate(timeout=120)
    assert process.returncode == 2 and "timeout" in err and not (tmp_path / "test_cases.py").exists()
