"""One fault: how it is made, and how it has to end. An attempt ends in one of four ways."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

RIGHT, HANG, TRACEBACK, LOST = ENDS = ("right", "hang", "traceback", "lost")
OURS = re.compile(r"Traceback \(most recent call last\)|trilift itself failed")


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of a command. `code`: its exit code, None where it was ended because it hung; `out`: of stdout or of the
    file that it wrote; `err`: of stderr."""

    code: int | None
    out: str = ""
    err: str = ""


Make = Callable[[Path, int], Ended]  # an empty folder, a seed
Expected = Callable[[Ended], str]


@dataclass(frozen=True, slots=True)
class Fault:
    """`make` makes it in an empty folder with a seed, and runs the command; `expected` names what is missing in the end
    of the command, "" where nothing is."""

    name: str
    make: Make
    expected: Expected


@dataclass(frozen=True, slots=True)
class Attempt:
    """How one attempt ended, of `ENDS`, and why where it is not right."""

    end: str
    why: str = ""


def attempt(fault: Fault, folder: Path, seed: int) -> Attempt:
    """Makes the fault once, and judges its end."""
    ended = fault.make(folder, seed)
    if ended.code is None:
        return Attempt(HANG, ended.err[-1000:])
    if OURS.search(ended.out) or OURS.search(ended.err):
        return Attempt(TRACEBACK, (ended.out + ended.err)[-1000:])
    missing = fault.expected(ended)
    return Attempt(LOST, f"{missing}; exit code {ended.code}; {ended.err[-1000:]}") if missing else Attempt(RIGHT)
