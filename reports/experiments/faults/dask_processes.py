"""A Dask scheduler and workers on this machine, as processes that can be killed and started again."""

from __future__ import annotations

import os
import random
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from ...base.fingerprint import ROOT
from .commands_under_limit import descendants, environment, kill, output, wait

START_SECONDS = 60.0
WORKERS = 3
Process = subprocess.Popen[bytes]


@dataclass(slots=True)
class Machines:
    """`folder`: where their logs go; `root`: of the trilift that workers import; `memory`: that Dask gives to each."""

    folder: Path
    root: Path = ROOT
    memory: str = "auto"
    port: int = field(default_factory=lambda: _free())
    scheduler: Process | None = None
    nannies: list[Process] = field(default_factory=list)

    @property
    def address(self) -> str:
        return f"tcp://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Starts the scheduler, waits for it, and starts the workers."""
        self.scheduler = self._dask("scheduler", "--host", "127.0.0.1", "--port", str(self.port), "--no-dashboard")
        if not wait(self._answers, START_SECONDS):
            raise TimeoutError(f"no Dask scheduler after {START_SECONDS:g} s")
        asked = ("--nthreads", "1", "--memory-limit", self.memory, "--no-dashboard")
        self.nannies = [self._dask("worker", self.address, *asked) for _ in range(WORKERS)]

    def stop(self) -> None:
        """Kills all of them, without a word to anybody."""
        for process in (*self.nannies, *filter(None, [self.scheduler])):
            kill([process.pid, *descendants(process.pid)])
            process.wait()
        self.nannies, self.scheduler = [], None

    def workers(self) -> list[int]:
        """The processes of workers that have run a case: they have started others. A nanny whose worker dies before
        that ends too."""
        below = (c for n in self.nannies for c in descendants(n.pid))
        return [c for c in below if "spawn_main" in _spelled(c) and descendants(c)]

    def _dask(self, *args: str) -> Process:
        with open(output(self.folder, "dask"), "ab") as log:
            command = [sys.executable, "-m", "dask", *args]
            # A worker writes its files to its folder.
            return subprocess.Popen(
                command, cwd=self.folder.parent, env=environment(self.folder, self.root), stdout=log, stderr=log
            )

    def _answers(self) -> bool:
        with socket.socket() as s:
            return s.connect_ex(("127.0.0.1", self.port)) == 0


@contextmanager
def machines(folder: Path, root: Path = ROOT, memory: str = "auto") -> Iterator[Machines]:
    """Context manager: a scheduler and workers, which are killed at its end."""
    made = Machines(folder, root, memory)
    try:
        made.start()
        yield made
    finally:
        made.stop()


@contextmanager
def killing(made: Machines, seed: int, kills: int, seconds: float) -> Iterator[list[int]]:
    """Context manager: meanwhile so many workers are killed at random, at most so many seconds apart; gives
    those that were killed."""
    over, rng, killed = threading.Event(), random.Random(seed), list[int]()

    def kill_some() -> None:
        while len(killed) < kills and not over.wait(rng.uniform(0, seconds)):
            if found := made.workers():
                killed.append(rng.choice(found))
                kill(killed[-1:])

    thread = threading.Thread(target=kill_some)
    thread.start()
    try:
        yield killed
    finally:
        over.set()
        thread.join()


def _spelled(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def _free() -> int:
    """A port that nobody uses now."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def copied(folder: Path) -> Path:
    """A copy of our source in the folder, with a line more in one of its files."""
    import shutil

    for name in ("lift", "verify", "superopt", "reports"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("results", "__pycache__"))
    shutil.copytree(ROOT / "trilift", folder / "trilift", symlinks=True)
    with (folder / "reports" / "base" / "version.py").open("a") as f:
        f.write(f"# another version, of process {os.getpid()}\n")
    return folder
