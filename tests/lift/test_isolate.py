"""Child processes: values, exceptions, signals, timeouts, and that nothing is left running."""

from __future__ import annotations

import faulthandler
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from trilift.lift.runtime import memory_limit
from trilift.lift.runtime.isolate import Outcome, Said, run, run_all, stream


def double(x: int, event: Callable[[Any], None]) -> int:
    event(x)
    return 2 * x


def broken(event: Callable[[Any], None]) -> None:
    print("about to fail")
    raise ValueError("no")


def aborting(event: Callable[[Any], None]) -> None:
    faulthandler.disable()  # pytest's would print to the terminal
    os.abort()


def interrupted(event: Callable[[Any], None]) -> None:
    raise KeyboardInterrupt


class Silent(RuntimeError):
    def __str__(self) -> str:
        raise ValueError("no text")


def speechless(event: Callable[[Any], None]) -> None:
    raise Silent


def settings(event: Callable[[Any], None]) -> tuple[str | None, bool, bool]:
    """Triton's variable, whether SIGINT raises KeyboardInterrupt, and whether it is heard."""
    usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    return os.environ.get("TRITON_INTERPRET"), usual, not signal.pthread_sigmask(signal.SIG_BLOCK, ())


def leaving(event: Callable[[Any], None]) -> None:
    os._exit(3)


def endless(event: Callable[[Any], None]) -> None:
    child = subprocess.Popen(["sleep", "1000"])
    event(child.pid)
    time.sleep(1000)


def talkative(event: Callable[[Any], None]) -> str:
    for k in range(6):
        time.sleep(0.4)
        event(k)
    return "done"


def alive(pid: int) -> bool:
    """Whether a process is there and not a zombie."""
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.smoke
def test_values_and_events_come_back() -> None:
    heard: list[tuple[int, int]] = []
    outcomes = dict(run_all(double, [(k,) for k in range(5)], jobs=2, on_event=lambda i, x: heard.append((i, x))))
    assert {i: o.value for i, o in outcomes.items()} == {k: 2 * k for k in range(5)}
    assert sorted(heard) == [(k, k) for k in range(5)]


@pytest.mark.smoke
def test_an_exception_has_its_traceback_and_what_was_printed() -> None:
    outcome = run(broken)
    assert outcome.failure == "exception"
    assert "ValueError: no" in outcome.log and "about to fail" in outcome.log


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("function", "failure"),
    [(aborting, "SIGABRT"), (leaving, "exit 3"), (interrupted, "KeyboardInterrupt"), (speechless, "exception")],
)
def test_a_child_that_dies_is_told(function: Callable[..., Any], failure: str) -> None:
    assert run(function).failure == failure


@pytest.mark.smoke
def test_a_time_that_the_system_cannot_wait_for_is_waited_for() -> None:
    assert run(double, 4, timeout=1e9).value == 8


def test_children_of_the_fork_server_have_usual_settings(tmp_path: Path) -> None:
    """Also where the command was started with Triton's interpreter, which it leaves as it is."""
    script = tmp_path / "script.py"
    script.write_text("""
import os
from test_isolate import settings
from trilift.lift.runtime import isolate
if __name__ == "__main__":
    isolate.PRELOAD = ()
    print(isolate.run(settings, context="forkserver").value, os.environ["TRITON_INTERPRET"])
""")
    environment = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": str(Path(__file__).parent)}
    heard = partial(signal.signal, signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    command = [sys.executable, script]
    found = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, preexec_fn=heard)
    assert found.stdout == "(None, True, True) 1\n", found.stderr


def test_a_timeout_ends_the_child_and_its_children() -> None:
    pids: list[int] = []
    start = time.monotonic()
    [(_, outcome)] = run_all(endless, [()], timeout=1.0, on_event=lambda i, pid: pids.append(pid))
    assert outcome.failure == "timeout" and time.monotonic() - start < 10
    assert len(pids) == 1
    while alive(pids[0]) and time.monotonic() - start < 20:  # a killed process takes a moment to end
        time.sleep(0.05)
    assert not alive(pids[0])


def test_events_renew_the_time_only_if_asked() -> None:
    def outcome(renew: bool) -> Outcome:
        return next(run_all(talkative, [()], timeout=1.5, renew=renew))[1]

    assert outcome(True).value == "done"
    assert outcome(False).failure == "timeout"


def burning(seconds: float, event: Callable[[Any], None]) -> str:
    """Uses a processor for some seconds, which all such children share."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass
    return "done"


@pytest.mark.skipif(not os.path.exists("/proc/self/schedstat"), reason="the system does not tell how long one waits")
def test_waiting_for_a_processor_is_not_counted() -> None:
    """Four children with 0.7 s of work each, on one processor: none is done within 1.4 s of the wall clock."""
    delays: list[int] = []
    start = time.monotonic()
    outcomes = [o for _, o in run_all(burning, [(0.7,)] * 4, 4, timeout=1.4, on_delay=lambda: delays.append(1))]
    assert [o.value for o in outcomes] == ["done"] * 4
    assert time.monotonic() - start > 1.4 and delays
    [(_, outcome)] = run_all(burning, [(60.0,)], timeout=1.0)
    assert outcome.failure == "timeout"


def test_the_fork_server_gives_the_same() -> None:
    assert run(double, 4, context="forkserver", timeout=60).value == 8


def test_a_file_with_the_name_of_a_module_does_not_stand_in_for_it(tmp_path: Path) -> None:
    """The fork server is started where the user is, and imports modules there: a queue.py is not the module queue."""
    here, script = tmp_path / "here", tmp_path / "script.py"
    here.mkdir()
    (here / "queue.py").write_text("raise SystemExit('the file of the user')")
    start = "list(run_all(id, [()], 1, 9, 'forkserver', preload=['queue']))"
    script.write_text(f"from trilift.lift.runtime.isolate import run_all\nif __name__ == '__main__': print({start})")
    found = subprocess.run([sys.executable, script], cwd=here, capture_output=True, text=True, check=False)
    assert "Outcome(" in found.stdout and "the file of the user" not in found.stderr


def test_children_end_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    """Neither the child nor what it started runs on after kill -9 of the command."""
    script = tmp_path / "script.py"
    script.write_text(
        "import subprocess, time\n"
        "from trilift.lift.runtime.isolate import run_all\n"
        "def endless(event):\n"
        "    event(subprocess.Popen(['sleep', '1000']).pid)\n"
        "    while True: pass\n"
        "if __name__ == '__main__':\n"
        "    list(run_all(endless, [()], 1, 900, 'forkserver', lambda k, pid: print(pid, flush=True)))\n"
    )
    parent = subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    pid, start = int(parent.stdout.readline()), time.monotonic()
    with open(f"/proc/{pid}/stat") as f:
        child = int(f.read().rsplit(")", 1)[1].split()[1])
    parent.kill()
    parent.wait()
    while (alive(pid) or alive(child)) and time.monotonic() - start < 20:
        time.sleep(0.05)
    assert not alive(pid) and not alive(child)


def greedy(size_bytes: int, event: Callable[[Any], None]) -> int:
    memory_limit.limit(1 << 30)
    return len(bytearray(size_bytes))


def saying(text: str, event: Callable[[Any], None]) -> None:
    faulthandler.disable()
    print(text)
    os.abort()


def raising(text: str, event: Any) -> None:
    raise RuntimeError(text)


def test_more_memory_than_allowed_is_said_and_harms_no_other() -> None:
    assert memory_limit.machine_bytes() >= 1 << 28
    outcomes = dict(run_all(greedy, [(1 << 20,), (1 << 31,), (1 << 20,)], timeout=60))
    assert [outcomes[k].failure for k in range(3)] == [None, "memory", None]
    raised = dict(run_all(raising, [("DefaultCPUAllocator: can't allocate memory",), ("another",)], timeout=60))
    assert [raised[k].failure for k in range(2)] == ["memory", "exception"]
    said = dict(run_all(saying, [("memory allocation of 80 bytes failed",), ("assertion failed",)], timeout=60))
    assert [said[k].failure for k in range(2)] == ["memory", "SIGABRT"]


def test_messages_are_given_before_the_outcome_of_their_task() -> None:
    told = [*stream(double, [(3,)], timeout=60)]
    assert [w.value for _, w in told] == [3, 6] and [type(w) for _, w in told] == [Said, Outcome]
