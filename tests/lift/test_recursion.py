"""Room for deep recursion, and an end to recursion without one."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest

from trilift.lift.runtime.recursion import LEVELS, deep

ENDLESS = """
from trilift.lift.runtime.recursion import deep

class Endless:
    def __iter__(self):
        return iter(())

    def __len__(self):
        return len(list(self))  # list() asks for the length

with deep():
    try:
        len(Endless())
    except RecursionError:
        print("an error")
"""
CALLS_BY_PYTHON, CALLS_BY_C = LEVELS // 2, LEVELS // 10


def down(n: int) -> int:
    return n and 1 + down(n - 1)


def down_by_c(n: int) -> int:
    return n and 1 + sum(down_by_c(k) for k in (n - 1,))


def test_recursion_without_an_end_is_an_error_and_no_crash():
    done = subprocess.run([sys.executable, "-c", ENDLESS], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "an error\n"), done.stderr[-1000:]


def test_recursion_may_go_as_deep_as_the_terms():
    with deep():
        assert down(CALLS_BY_PYTHON) == CALLS_BY_PYTHON
        assert down_by_c(CALLS_BY_C) == CALLS_BY_C


def test_the_limit_is_restored():
    before = sys.getrecursionlimit()
    with pytest.raises(ZeroDivisionError), deep():
        assert sys.getrecursionlimit() > before
        1 / 0  # noqa: B018
    assert sys.getrecursionlimit() == before


def test_a_thread_and_its_child_have_the_stack_that_they_were_made_with():
    """Only the first thread's stack grows: within another and in a child that was forked there the limit is lower."""
    limits: list[int] = []

    def limit() -> int:
        with deep():
            return sys.getrecursionlimit()

    def work() -> None:
        limits.append(limit())
        reader, writer = os.pipe()
        if not (child := os.fork()):
            os.write(writer, str(limit()).encode())
            os._exit(0)
        os.waitpid(child, 0)
        limits.append(int(os.read(reader, 99)))

    first = limit()
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert limits[0] == limits[1] < first == LEVELS
