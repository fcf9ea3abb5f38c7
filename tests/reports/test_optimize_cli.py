"""`trilift optimize` as it is used: Ctrl-C and the same command again, a damaged store, a budget that is too small."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import click
import pytest

from trilift.lift.capture.case_files import load
from trilift.lift.errors import Unsupported
from trilift.lift.runtime.isolate import Outcome
from trilift.reports.base.targets import resolve
from trilift.reports.commands.optimize import Asked, Named, folder_of_several, optimize
from trilift.reports.runner import workers
from trilift.reports.runner.store import NAME
from trilift.reports.runner.workers import Workers
from trilift.superopt.jobs import proved
from trilift.superopt.optimize import Optimised, Question, Searched

ROOT = Path(__file__).parents[2]
CASES = """
import torch
from trilift import case


@case(x="f32[M,N]")
def first(x):
    return 2 * torch.softmax(x, -1)


@case(x="f32[M,N]")
def second(x):
    return 3 * torch.softmax(x, -1)
"""
LIVE = re.compile(r"\d+ states, \d+ candidates, best [\d.]+ us, [\d.]+ times the roofline")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("optimize")
    (made / "cases.py").write_text(CASES)
    os.utime(made / "cases.py", (1e9, 1e9))
    return made


def started(folder: Path, stderr: int, *arguments: str) -> subprocess.Popen[str]:
    env = {**os.environ, "PYTHONPATH": str(ROOT), "TRILIFT_CACHE_DIR": str(folder / "store"), "COLUMNS": "300"}
    command = [sys.executable, "-m", "trilift", "optimize", *arguments]
    return subprocess.Popen(command, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=stderr, text=True)


class Terminal:
    """A terminal, and all that was written to it."""

    def __init__(self) -> None:
        self.master, self.end = pty.openpty()
        self.text = ""
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        while True:
            try:
                self.text += os.read(self.master, 4096).decode(errors="replace")
            except OSError:
                return

    def wait(self, words: str, seconds: float = 60.0) -> bool:
        end = time.monotonic() + seconds
        while words not in self.text and time.monotonic() < end:
            time.sleep(0.02)
        return words in self.text


def children(pid: int) -> list[int]:
    """The processes below a process."""
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True).stdout.split()
    return [int(p) for p in found] + [q for p in found for q in children(int(p))]


def alive(pid: int) -> bool:
    """Whether a process is there and not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_ctrl_c_keeps_what_is_done_and_the_same_command_goes_on(folder: Path) -> None:
    command = ("cases.py", "-o", "fast/", "-j", "1", "--at", "M=64,N=256")
    terminal = Terminal()
    running = started(folder, terminal.end, *command)
    assert running.stdout is not None
    said = next((line for line in running.stdout if "first: accepted" in line), "")
    assert said, terminal.text
    assert terminal.wait("second (accept"), terminal.text
    below = children(running.pid)
    running.send_signal(signal.SIGINT)
    assert running.wait(20) == 130
    assert terminal.wait("interrupted: 1 of 2 cases are written; the same command continues from there"), terminal.text
    assert LIVE.search(terminal.text)
    assert [p.name for p in (folder / "fast").iterdir()] == ["first.py"]
    end = time.monotonic() + 10
    while any(map(alive, below)) and time.monotonic() < end:
        time.sleep(0.05)
    assert below and not any(map(alive, below))

    again = started(folder, subprocess.PIPE, *command)
    out, err = again.communicate(timeout=120)
    assert again.returncode == 0, out + err
    seconds = {n: float(t) for n, t in re.findall(r"::(\w+): accepted in ([\d.]+) s", out)}
    assert 2 * seconds["first"] < seconds["second"], out
    assert sorted(p.name for p in (folder / "fast").iterdir()) == ["first.py", "second.py"]


def test_too_small_a_budget_with_a_damaged_store(folder: Path) -> None:
    (folder / "store").mkdir(exist_ok=True)
    (folder / "store" / NAME).write_bytes(b"this is no database, but it is long enough to be looked at" * 40)
    running = started(
        folder, subprocess.PIPE, "cases.py::first", "-o", "written.py", "--budget", "0.000001", "--anyway"
    )
    out, err = running.communicate(timeout=120)
    assert running.returncode == 0, out + err
    assert "is damaged" in err and (folder / "store" / f"{NAME}.damaged").exists()
    assert "note: no plan was found within the limits: this is the unfused program" in out
    assert "0 plans kept" in out and "proved: PROVED" in out
    (case,) = load(str(folder / "written.py"))
    assert proved(case, 0, 60.0) == "PROVED"
    first, second = load(str(folder / "cases.py"))
    assert proved(case, 0, 60.0, first.fn) == "PROVED" and proved(case, 0, 60.0, second.fn) == "REFUTED"


def test_a_process_that_takes_too_much_memory_is_told(folder: Path) -> None:
    running = started(folder, subprocess.PIPE, "cases.py::first", "-o", "small.py", "--memory", "300M", "--no-cache")
    out, err = running.communicate(timeout=120)
    assert running.returncode == 4, out + err
    assert "it took more memory than it may; --memory SIZE allows more" in err
    assert not (folder / "small.py").exists()


# ---- in this process -------------------------------------------------------------------------------------------------


class Inline(Workers):
    """Calls made at once, here, with the memory of this process."""

    def submit(self, function: Any, *task: Any, **how: Any) -> Future[Outcome]:
        memory, *rest = task
        assert memory is None or memory > 1 << 28
        out: Future[Outcome] = Future()
        out.set_result(Outcome((function(None, *rest, how["hear"]), {})))
        return out

    def stop(self) -> None:
        pass


in_process = pytest.mark.usefixtures("inline")
pytestmark = pytest.mark.filterwarnings(
    "ignore:Exception ignored in:pytest.PytestUnraisableExceptionWarning"
)  # egglog's


@pytest.fixture
def inline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "local", lambda jobs: nullcontext(Inline(ThreadPoolExecutor(1))))


def code(folder: Path, target: str, **how: Any) -> int:
    usual = {"sizes": {}, "budget": 10.0, "kernels": 5, "operators": 11, "seed": 0, "timeout": 30.0, "form": "text"}
    return optimize(resolve([str(folder / target)]), f"{folder / 'none'}/", Asked(**{**usual, **how}), True)


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch, inline: None) -> dict[str, Any]:
    """What is found for each case, set by a test; a number is seconds to wait before there is no program."""
    by_name: dict[str, Any] = {}

    def optimised(question: Question, *_: Any) -> Optimised:
        what = by_name[question.name]
        if isinstance(what, Optimised):
            return what
        time.sleep(what)
        raise Unsupported("no program")

    monkeypatch.setattr("trilift.superopt.optimize.optimised", optimised)
    return by_name


def test_nothing_is_accepted(folder: Path, found: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    searched = Searched(5, 3, 2, 0.1, None, 1e-6, None, 0, "H200")
    found["first"] = Optimised("first", "function", "", {"M": 4}, searched, notes=["no tiles fit"])
    assert code(folder, "cases.py::first") == 4
    said = capsys.readouterr().out
    assert "first: nothing accepted in" in said and "note: no tiles fit" in said
    assert not [*(folder / "none").glob("*")]


def test_several_cases_at_a_time_are_told_in_their_order(
    folder: Path, found: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    found |= {"first": 0.2, "second": 0.0}
    assert code(folder, "cases.py", jobs=2) == 3
    first, second = capsys.readouterr().err.splitlines()
    assert "::first: no program to search" in first and "::second: no program to search" in second


@in_process
@pytest.mark.parametrize(
    ("text", "expected", "said"),
    [
        ("x = 1", 3, "nothing to optimize: no case"),
        ("raise ValueError('mine')", 2, "mine"),
        (CASES.replace("2 * torch", "unknown * torch"), 2, "unknown"),
    ],
)
def test_what_cannot_be_searched(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, expected: int, said: str
) -> None:
    (tmp_path / "wrong.py").write_text(text)
    target = "wrong.py::first" if "first" in text else "wrong.py"
    assert code(tmp_path, target) == expected
    assert said in capsys.readouterr().err
    assert not [*(tmp_path / "none").glob("*")]


def test_several_cases_are_not_written_into_one_file(tmp_path: Path) -> None:
    """A name that is not there is a folder for them; one file is an error before anything is searched."""
    several = [Named("a.py", "first"), Named("a.py", "second")]
    new = str(tmp_path / "new")
    assert folder_of_several(new, several) == new + os.sep
    assert folder_of_several(new, several[:1]) == new
    assert folder_of_several(str(tmp_path), several) == str(tmp_path)
    (tmp_path / "old").write_text("")
    for one in (tmp_path / "old", tmp_path / "new.py"):
        with pytest.raises(click.UsageError, match="there are 2 cases: name a folder"):
            folder_of_several(str(one), several)
