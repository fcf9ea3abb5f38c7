"""Cases that end their process, never end, or take more than there is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from .case_texts import put, text
from .commands_under_limit import run
from .expectations_of_ends import rows
from .fault import Ended, Fault, Make

ESCAPE = "\x1b]"  # an operating system command of a terminal
SHORT = ("--timeout", "5")


def proved(body: str) -> Make:
    """Proves the cases of a file, one of which does something first."""
    return lambda folder, seed: run(folder, "prove", put(folder, body), "--format", "json", "-j", "1")


def lifted(body: str) -> Make:
    """Lifts them, each in five seconds."""
    return lambda folder, seed: run(folder, "lift", put(folder, body), "--format", "json", "-j", "1", *SHORT)


def endless_import(folder: Path, seed: int) -> Ended:
    """Lifts a file that never ends to be imported, and a good one."""
    (folder / "aa.py").write_text(text() + "\nwhile True: pass\n")
    return run(folder, "lift", "aa.py", put(folder), "--format", "json", "-j", "1", *SHORT)


def escaping(folder: Path, seed: int) -> Ended:
    """Prints a message that has an escape sequence as text; where the sequence comes out, there is no result."""
    name = put(folder, r"raise ValueError('\x1b]0;owned\x07' + 'of the user')")
    shown = run(folder, "prove", name, "-j", "1")
    ended = run(folder, "prove", name, "--format", "json", "-j", "1")
    return replace(ended, out="" if ESCAPE in shown.out + shown.err + ended.err else ended.out, err=shown.err)


CASES = (
    Fault("a case calls os._exit", proved("os._exit(3)"), rows("crash")),
    Fault("a case has a segmentation fault", proved("ctypes.string_at(0)"), rows("crash")),
    Fault("a case calls sys.exit", proved("sys.exit(3)"), rows("case", "crash")),
    Fault("a case allocates 1 TB", proved("bytearray(1 << 40)"), rows("memory", "case")),
    Fault("a case prints 2 MB", proved("print('x' * 2_000_000)"), rows(cases=("first", "bad", "last"))),
    Fault("a case raises with an escape sequence of the terminal", escaping, rows("case")),
    Fault("a case loops for ever", lifted("while True: pass"), rows("timeout", word="lift")),
    Fault("a file loops for ever as it is imported", endless_import, rows("timeout", at="", word="lift")),
)
