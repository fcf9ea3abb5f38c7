"""The command line as a process that is ended after some time, with all that it started."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from trilift.lift.runtime.isolate import PRELOADED

from ...base.fingerprint import ROOT
from .fault import Ended

WALL_SECONDS = 240.0  # a command without an end by then hangs
GONE_SECONDS = 10.0  # for the processes of a command that was killed
POLL_SECONDS = 0.05
Limit = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Running:
    """A command that runs in `folder`, beside which its output lies."""

    process: subprocess.Popen[bytes]
    folder: Path

    def text(self, name: str) -> str:
        return output(self.folder, name).read_text(errors="replace")

    def until(self, words: str, seconds: float = WALL_SECONDS) -> bool:
        """Waits for words on stderr, or the end of the command; whether they came."""
        return wait(lambda: words in self.text("err") or self.process.poll() is not None, seconds) and (
            words in self.text("err")
        )

    def end(self, seconds: float = WALL_SECONDS) -> Ended:
        """The end of the command; without an exit code where it hangs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(seconds)
        return Ended(self.process.poll(), self.text("out"), self.text("err"))


def run(folder: Path, *args: str, limit: Limit | None = None) -> Ended:
    """`trilift ARGS` in a folder; `limit` is called in its process before it begins."""
    with started(folder, *args, limit=limit) as running:
        return running.end()


@contextmanager
def started(folder: Path, *args: str, limit: Limit | None = None) -> Iterator[Running]:
    """Context manager: a running `trilift ARGS`, of which no process is left afterwards."""
    with open(output(folder, "out"), "wb") as out, open(output(folder, "err"), "wb") as err:
        process = subprocess.Popen(
            [sys.executable, "-m", "trilift", *args], cwd=folder, env=environment(folder), stdout=out, stderr=err,
            stdin=subprocess.DEVNULL, preexec_fn=limit,
        )  # fmt: skip
        try:
            yield Running(process, folder)
        finally:
            kill([process.pid, *descendants(process.pid)])
            process.wait()


def output(folder: Path, name: str) -> Path:
    return folder.with_name(f"{folder.name}.{name}")


def environment(folder: Path, root: Path = ROOT) -> dict[str, str]:
    """Of a process that imports trilift from `root`, keeps results beside the folder and asks no daemon."""
    out = {k: v for k, v in os.environ.items() if k not in ("_TRILIFT_GROUP", PRELOADED)}
    kept = str(output(folder, "kept"))
    return out | {"PYTHONPATH": str(root), "TRILIFT_CACHE_DIR": kept, "TRILIFT_DAEMON": "0"}


def wait(holds: Callable[[], bool], seconds: float) -> bool:
    """Waits until something holds; False where it does not in that time."""
    end = time.monotonic() + seconds
    while not (found := holds()) and time.monotonic() < end:
        time.sleep(POLL_SECONDS)
    return found


# ---- processes -------------------------------------------------------------------------------------------------------


def descendants(pid: int) -> list[int]:
    """The processes that a process started, and those that they did."""
    children = dict[int, list[int]]()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (parent := _parent(int(entry.name))) is not None:
            children.setdefault(parent, []).append(int(entry.name))
    found = list(children.get(pid, ()))
    for child in found:
        found += children.get(child, ())
    return found


def alive(pids: Iterable[int]) -> list[int]:
    return [p for p in pids if _parent(p) is not None]


def kill(pids: Iterable[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _parent(pid: int) -> int | None:
    """The parent of a process that runs, None for one that has ended."""
    try:
        state, parent = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[:2]
    except (OSError, IndexError):
        return None
    return None if state in "ZX" else int(parent)
