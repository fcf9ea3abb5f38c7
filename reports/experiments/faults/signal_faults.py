"""Commands that are ended from outside while a case runs."""

from __future__ import annotations

import signal
from dataclasses import replace
from pathlib import Path

from .case_texts import WAITS, put
from .commands_under_limit import GONE_SECONDS, alive, descendants, started, wait
from .expectations_of_ends import incomplete, refused
from .fault import Ended, Fault, Make

REPORT = "out.json"


def signalled(number: signal.Signals) -> Make:
    """An audit that gets a signal after its first case; its file is its output."""

    def make(folder: Path, seed: int) -> Ended:
        asked = ("audit", put(folder, WAITS), "--format", f"json={REPORT}", "-j", "1")
        with started(folder, *asked) as running:
            running.until("first: PROVED")
            running.process.send_signal(number)
            ended = running.end()
        report = folder / REPORT
        return replace(ended, out=report.read_text() if report.exists() else "")

    return make


def killed(folder: Path, seed: int) -> Ended:
    """A command that is killed, of whose processes none may be left; without an exit code where one is."""
    with started(folder, "prove", put(folder, WAITS), "-j", "2") as running:
        running.until("first: PROVED")
        workers = descendants(running.process.pid)
        running.process.kill()
        gone = wait(lambda: not alive(workers), GONE_SECONDS)
        ended = running.end()
    return ended if gone and workers else replace(ended, code=None)


SIGNALS = (
    Fault("SIGKILL of the command", killed, refused(code=-signal.SIGKILL)),
    Fault("SIGINT of the command", signalled(signal.SIGINT), incomplete(128 + signal.SIGINT)),
    Fault("SIGTERM of the command", signalled(signal.SIGTERM), incomplete(128 + signal.SIGTERM)),
)
