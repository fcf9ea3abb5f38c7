"""The kinds of trouble, each with its place: the kernel is wrong (a finding), we cannot read it, the case is wrong."""

from __future__ import annotations

from dataclasses import dataclass


def text_of(error: BaseException) -> str:
    """The text of any exception: `str` of one that a user declares may raise."""
    try:
        return str(error)
    except Exception as e:
        return f"its text is not known, for str() of it raises {type(e).__name__}"


def _without_stack(text: str) -> str:
    """A text without the frames of C++ that PyTorch adds to some of its errors."""
    return text.split("\nException raised from ", 1)[0]


@dataclass(frozen=True, slots=True)
class Place:
    """A place in the user's source, as Triton's location information or a Python frame gives it."""

    file: str
    line: int
    column: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" + (f":{self.column}" if self.column else "")


class TriliftError(Exception):
    """Base of all that we raise on purpose. `what` in the user's names, `place` where, `why`, and `help`: what now."""

    def __init__(self, what: str, place: Place | None = None, why: str = "", help: str = "") -> None:
        super().__init__(what)
        self.what, self.place, self.why, self.help = _without_stack(what), place, _without_stack(why), help

    def __str__(self) -> str:
        where = f" at {self.place}" if self.place else ""
        why = f": {self.why}" if self.why else ""
        return f"{self.what}{where}{why}" + (f" (help: {self.help})" if self.help else "")


class Unsupported(TriliftError):
    """We cannot read this kernel or host function. `what` names the operation: "tt.foo", "aten.bar"."""


class TooManyLaunches(Unsupported):
    """A host function launches more kernels than a reading follows."""


class OutOfBounds(TriliftError):
    """The kernel reads or writes where no tensor is. `why` relates the address to the nearest tensor, which begins at
    `near`."""

    near: int | None = None


class CaseError(TriliftError):
    """The case itself is wrong: its shapes, its `where`, its host function raised, no launch recorded."""


class NoLaunch(CaseError):
    """The host function of a case launches no kernel."""


class NotLifted(TriliftError):
    """The spec was formed, but no formula was found that meets it at every shape tried."""
