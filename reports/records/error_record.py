"""Errors as plain data."""

from __future__ import annotations

from trilift.lift.errors import CaseError, NotLifted, OutOfBounds, Place, TriliftError, Unsupported
from trilift.lift.runtime.budget import OutOfSteps, OutOfTime

from .entries import Error

KINDS: dict[type, str] = {
    Unsupported: "unsupported",
    CaseError: "case",
    NotLifted: "not-lifted",
    OutOfSteps: "not-lifted",
    OutOfTime: "timeout",
    OutOfBounds: "out-of-bounds",
}


def kind(e: TriliftError) -> str:
    """The word for its class, or for the class that this is a kind of."""
    return next(KINDS[c] for c in type(e).__mro__ if c in KINDS)


def error_of(e: TriliftError) -> Error:
    """An error as plain data, as `draw.error` takes it."""
    place = e.place or Place("", 0)
    return {
        "kind": kind(e),
        "what": e.what,
        "file": place.file,
        "line": place.line,
        "column": place.column,
        "why": e.why,
        "help": e.help,
    }
