"""Calls of our own functions on texts that may be malformed: each ends with a value or an error of ours."""

from __future__ import annotations

import os
import signal
import traceback
from collections.abc import Callable

import click

from trilift.lift.errors import TriliftError

CALL_SECONDS = 60  # a call without an end by then hangs
HUNG = "hung"
Action = Callable[[], object]


def ends_well(action: Action) -> str:
    """The traceback of an error that is not one of ours; "" where there is none."""
    try:
        action()
    except TriliftError as error:
        assert error.what
    except click.UsageError as error:
        assert error.message
    except Exception as error:
        return "".join(traceback.format_exception(error))
    return ""


def ends_in_child(action: Action) -> str:
    """The same in a child, which MLIR may end: it overruns its stack in brackets without end. `HUNG` where the child
    had to be ended."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(CALL_SECONDS)
        os.close(reading)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        os.write(writing, ends_well(action).encode()[-60_000:])
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as f:
        said = f.read()
    _, status = os.waitpid(child, 0)
    return HUNG if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGALRM else said
