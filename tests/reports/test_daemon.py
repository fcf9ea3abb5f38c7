"""`trilift start`: commands that run in forks of a process with everything imported, as they would run alone."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from trilift.reports.runner import daemon_client

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
def double(x):
    return run(x)
"""
ENDLESS = """
@case(x="f32[N]")
def endless(x):
    open("pid", "w").write(str(os.getpid()))
    while True:
        time.sleep(0.1)
"""
SECONDS = re.compile(r"[\d.]+ s\b|seconds: .*|PROVED of 1.*")
Run = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """Starts commands, with a daemon that is running."""
    folder, runtime = tmp_path_factory.mktemp("kernels"), tmp_path_factory.mktemp("runtime")
    (folder / "cases.py").write_text(SOURCE)
    (folder / "endless.py").write_text(SOURCE + ENDLESS)
    environment = os.environ | {"XDG_RUNTIME_DIR": str(runtime), daemon_client.OFF: "1"}

    def run(*args: str, **more: str) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        command = (sys.executable, "-m", "trilift", *args)
        return subprocess.Popen(command, cwd=folder, env=environment | more, stdout=pipe, stderr=pipe, text=True)

    out, err = run("start").communicate(timeout=120)
    assert out.startswith("started"), err
    assert (runtime / "trilift").stat().st_mode & 0o777 == 0o700
    yield run
    assert run("stop").communicate(timeout=60)[0] == "stopped\n"
    assert run("status").wait(60) == 3


def finished(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def pid_of(folder: Path) -> int:
    """The process of the endless case, when it runs."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if (folder / "pid").exists() and (text := (folder / "pid").read_text()):
            return int(text)
        time.sleep(0.05)
    raise AssertionError("the case did not start")


def test_a_command_says_what_it_says_without_a_daemon(started: Run) -> None:
    command = ("prove", "cases.py", "--no-cache")
    quick, alone = finished(started(*command)), finished(started(*command, TRILIFT_DAEMON="0"))
    assert quick[0] == alone[0] == 0 and "double: PROVED" in quick[1]
    assert [SECONDS.sub("", x) for x in quick[1:]] == [SECONDS.sub("", x) for x in alone[1:]]


def test_exit_codes_and_errors_come_through(started: Run) -> None:
    assert finished(started("prove", "absent.py"))[0] == 2
    code, _, err = finished(started("prove", "cases.py", "--against", "3 * x", "--no-cache"))
    assert code in (1, 4) and "Traceback" not in err


@pytest.mark.parametrize("variable", ["TRITON_ALWAYS_COMPILE", "PYTHONPATH"])
def test_other_settings_are_not_those_of_the_daemon(started: Run, variable: str) -> None:
    code, out, err = finished(started("lift", "cases.py", **{variable: "0"}))
    assert f"another {variable}" in err and code == 0 and "2 * x" in out


def test_the_interpreter_of_triton_is_no_setting_of_the_daemon(started: Run) -> None:
    code, out, err = finished(started("lift", "cases.py", TRITON_INTERPRET="1"))
    assert "another" not in err and code == 0 and "2 * x" in out


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_what_ends_the_client_ends_the_command(started: Run, number: signal.Signals) -> None:
    process = started("prove", "endless.py::endless", "--no-cache")
    where = Path(os.readlink(f"/proc/{process.pid}/cwd"))
    (where / "pid").unlink(missing_ok=True)
    child = pid_of(where)
    process.send_signal(number)
    code, _, err = finished(process)
    assert code == (130 if number == signal.SIGINT else -signal.SIGKILL), err
    end = time.monotonic() + 20
    while alive(child) and time.monotonic() < end:
        time.sleep(0.05)
    assert not alive(child)


def test_a_socket_in_a_folder_of_others_is_not_asked(tmp_path: Path) -> None:
    import socket

    folder = tmp_path / "trilift"
    folder.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(folder / "daemon.sock"))
        assert daemon_client.is_safe(folder / "daemon.sock")
        folder.chmod(0o777)
        assert not daemon_client.is_safe(folder / "daemon.sock")
    assert not daemon_client.is_safe(tmp_path / "absent")
