"""Room for deep recursion: terms refer to terms, as deep as the longest chain of operations.

CPython counts calls, not bytes. Calls through C (`list(x)` that asks x for its length) take the thread's stack, and a
limit that the stack cannot carry ends the process instead of in RecursionError.
"""

from __future__ import annotations

import os
import resource
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

LEVELS = 50_000  # calls within each other
LEVEL_BYTES = 2_400  # of the stack for a call; measured: 600 for `len` that calls `list` that calls `len`
STACK_BYTES = LEVELS * LEVEL_BYTES  # Linux keeps 128 MiB below the first thread's stack free of anything else

_SOFT = resource.getrlimit(resource.RLIMIT_STACK)[0]
THREAD_BYTES = (
    2 << 20 if _SOFT == resource.RLIM_INFINITY else _SOFT
)  # of another thread's stack, as the C library has it


class _Stack(threading.local):
    """`grows`: it is that of a process's first thread, as large as the system lets it become. A child of a fork has
    the stack of the thread that forked it, whichever that was."""

    def __init__(self) -> None:
        self.grows = threading.current_thread() is threading.main_thread()


_STACK = _Stack()
os.register_at_fork(before=lambda: _STACK.grows)  # asked before, as every thread is the first one after


@contextmanager
def deep() -> Iterator[None]:
    """As many calls within each other as the stack carries, at most LEVELS; more of them raise RecursionError."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, min(LEVELS, _stack_bytes() // LEVEL_BYTES)))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def _stack_bytes() -> int:
    """The bytes that this thread's stack may take."""
    soft, hard = resource.getrlimit(resource.RLIMIT_STACK)
    if not _STACK.grows:
        return THREAD_BYTES
    if soft >= STACK_BYTES or soft == resource.RLIM_INFINITY:
        return STACK_BYTES
    wanted = STACK_BYTES if hard == resource.RLIM_INFINITY else min(STACK_BYTES, hard)
    try:
        resource.setrlimit(resource.RLIMIT_STACK, (wanted, hard))
    except (OSError, ValueError):
        return soft
    return wanted
