"""`trilift` and `python -m trilift`: the command line."""

from __future__ import annotations

import os
import signal
from types import FrameType


def run() -> None:
    """Runs the command line. Until it has been imported, SIGINT ends the process with one line and exit code 130."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _ended)
    from trilift.reports.cli import run

    run()


def _ended(number: int, _: FrameType | None) -> None:
    os.write(2, f"the run was ended by {signal.Signals(number).name}\n".encode())
    os._exit(128 + number)


if __name__ == "__main__":  # a child process of the fork server imports this file again
    run()
