"""Runs that end before their last case: by a signal, by their time, or by their first failure. Results
until then are kept and written, and marked as incomplete.

    with stoppable(seconds):
        for record in records: ...   # raises Stopped
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import click

SIGNALS = (signal.SIGINT, signal.SIGTERM)
UNFINISHED = 4  # exit code of a run whose time is over: what is missing is unknown


class Stopped(BaseException):
    """`why`: what ended the run; `code`: the exit code that it asks for, None for that of the records found."""

    def __init__(self, why: str, code: int | None = None) -> None:
        super().__init__(why)
        self.why, self.code = why, code


class Lost(click.ClickException):
    """A call that no worker can make: the cluster went away, or it is not as we are."""

    exit_code = 2


@contextmanager
def stoppable(seconds: float | None = None) -> Iterator[None]:
    """Context manager: SIGINT, SIGTERM and the end of `seconds` raise Stopped, once; a second signal ends the process
    as usual. Outside the main thread, which alone hears signals, nothing is changed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {s: signal.getsignal(s) for s in (*SIGNALS, signal.SIGALRM)}

    def restore() -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for s, handler in before.items():
            signal.signal(s, handler)

    def stop(number: int, _: FrameType | None) -> None:
        restore()
        raise _stopped(number, seconds)

    for s in before:
        signal.signal(s, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds or 0)
    try:
        yield
    finally:
        restore()


@contextmanager
def interruptible() -> Iterator[None]:
    """Context manager: SIGINT raises Stopped, where a run is not `stoppable` yet too, and after it kills the process:
    what Python does at its end is not to be told in tracebacks. A SIGINT that is ignored stays so."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN:
        yield
        return

    def stop(number: int, _: FrameType | None) -> None:
        raise _stopped(number, None)

    signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def _stopped(number: int, seconds: float | None) -> Stopped:
    if number == signal.SIGALRM:
        return Stopped(f"the run was ended after {seconds:g} s, the --max-time", UNFINISHED)
    return Stopped(f"the run was ended by {signal.Signals(number).name}", 128 + number)
