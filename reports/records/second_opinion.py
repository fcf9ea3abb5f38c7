"""The second opinion on a proof: its certificate, replayed at once by `lift.checker`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from trilift.lift.checker import Data, Wrong, check
from trilift.lift.runtime.isolate import run
from trilift.lift.runtime.recursion import deep

from .entries import Opinion

CHECKED, NOT_CHECKED = "checked", "not checked"


def opinion(certificate: Data, seconds: float) -> Opinion:
    """The certificate replayed in a child process, which may take so long."""
    outcome = run(_replayed, certificate, timeout=seconds)
    if outcome.failure == "timeout":
        return without(f"the checker was not done after {seconds:g} s")
    if outcome.failure is not None:
        return without(f"the checker failed: {outcome.failure}")
    found: Opinion = outcome.value
    return found


def without(why: str) -> Opinion:
    """The opinion where nothing was replayed."""
    return {"verdict": NOT_CHECKED, "solver": "", "obligations": 0, "missing": [why]}


def _replayed(certificate: Data, event: Callable[[str], None]) -> Opinion:  # noqa: ARG001
    try:
        with deep():
            report = check(certificate)
    except Wrong as e:
        return without(str(e))
    verdict = CHECKED if report.checked else NOT_CHECKED
    shown = sum(report.shown.values())
    return {
        "verdict": verdict,
        "solver": report.answered,
        "obligations": shown,
        "missing": [*map(str, report.failures)],
    }


def word(record: Mapping[str, Data]) -> str:
    """The verdict of a record, and whether the checker agrees where it was asked: PROVED (checked)."""
    found = record.get("checked")
    return f"{record['verdict']} ({found['verdict']})" if found else str(record["verdict"])
