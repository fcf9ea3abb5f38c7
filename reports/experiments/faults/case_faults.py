"""Cases that end their process, never end, or take more than there is."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

from .case_texts import put, text
from .commands_under_limit import run
from .expectations_of_ends import rows
from .fault import Ended, Fault, Make

lifted_rows = partial(rows, word="lift")
ESCAPE = "\x1b]"  # an operating system command of a terminal
LIFT = ("--format", "json", "-j", "1")
SHORT = ("--timeout", "5")


def lifted(body: str, *more: str) -> Make:
    """Lifts the cases of a file, one of which does something first."""
    return lambda folder, seed: run(folder, "lift", put(folder, body), *LIFT, *more)


def endless_import(folder: Path, seed: int) -> Ended:
    """Lifts a file that never ends to be imported, and a good one."""
    (folder / "aa.py").write_text(text() + "\nwhile True: pass\n")
    return run(folder, "lift", "aa.py", put(folder), *LIFT, *SHORT)


def escaping(folder: Path, seed: int) -> Ended:
    """Prints a message that has an escape sequence as text; where the sequence comes out, there is no result."""
    name = put(folder, r"raise ValueError('\x1b]0;owned\x07' + 'of the user')")
    shown = run(folder, "lift", name, "-j", "1")
    ended = run(folder, "lift", name, *LIFT)
    return replace(ended, out="" if ESCAPE in shown.out + shown.err + ended.err else ended.out, err=shown.err)


CASES = (
    Fault("a case calls os._exit", lifted("os._exit(3)"), lifted_rows("crash")),
    Fault("a case has a segmentation fault", lifted("ctypes.string_at(0)"), lifted_rows("crash")),
    Fault("a case calls sys.exit", lifted("sys.exit(3)"), lifted_rows("case", "crash")),
    Fault("a case allocates 1 TB", lifted("bytearray(1 << 40)"), lifted_rows("memory", "case")),
    Fault("a case prints 2 MB", lifted("print('x' * 2_000_000)"), lifted_rows(cases=("first", "bad", "last"))),
    Fault("a case raises with an escape sequence of the terminal", escaping, lifted_rows("case")),
    Fault("a case loops for ever", lifted("while True: pass", *SHORT), lifted_rows("timeout")),
    Fault("a file loops for ever as it is imported", endless_import, lifted_rows("timeout", at="")),
)
