"""The records of cases that were not finished: a file that cannot be loaded, a child that did not come back."""

from __future__ import annotations

from trilift.lift.runtime.isolate import Outcome

from .entries import Error, Record
from .error_record import error_of


def unproved(lifted: Record, failure: Record) -> Record:
    """The record of a case that was lifted, and whose proof did not come back."""
    reason, errors = f"proof: {failure['reason']}", [*lifted["errors"], *failure["errors"]]
    return {**lifted, "verdict": "UNKNOWN", "bound": None, "reason": reason, "errors": errors}


def failed(file: str, name: str, outcome: Outcome, debug: bool = False) -> Record:
    """The record of a child that did not come back, with the end of what it wrote; with `debug` all that is known."""
    kind, what, help = _FAILURES.get(outcome.failure or "", _FAILURES["crash"])
    if kind == "crash" and not (outcome.failure or "").startswith("SIG"):
        help = LEFT
    why = outcome.log.strip() if debug else _tail(outcome.log)
    return empty(file, name, kind, what.format(outcome.failure), why=why, help=help)


LEFT = "os._exit and KeyboardInterrupt end it so, in the file or in what it imports"
_FAILURES = {
    "timeout": ("timeout", "not finished in the time given", "--timeout SECONDS allows more"),
    "memory": ("memory", "needed more memory than it may take", "--memory SIZE allows more, and so does a smaller -j"),
    "exception": ("internal", "trilift itself failed", "please report this with the file"),
    "crash": ("crash", "the process that read it ended with {}", "a kernel that the compiler rejects may abort it"),
}


def _tail(log: str) -> str:
    return "\n".join(log.strip().splitlines()[-6:])


def broken(file: str, name: str, e: Exception) -> Record:
    """The record of a file or case that raised: its own fault (a CaseError), or the user's script."""
    from trilift.lift.errors import TriliftError, text_of

    if isinstance(e, TriliftError):
        return {**empty(file, name, "case", e.what), "errors": [error_of(e)]}
    return empty(file, name, "case", f"loading the file raised {type(e).__name__}", why=text_of(e))


def empty(file: str, name: str, kind: str, what: str, why: str = "", help: str = "") -> Record:
    """A record without a formula."""
    error: Error = {"kind": kind, "what": what, "file": file, "line": 0, "column": 0, "why": why, "help": help}
    return {
        "name": name,
        "file": file,
        "formula": None,
        "lift": f"{kind}: {what}",
        "verdict": "UNKNOWN",
        "against": "formula",
        "bound": None,
        "reason": f"{kind}: {what}",
        "contract": [],
        "findings": [],
        "seconds": {"capture": 0.0, "lift": 0.0, "simplify": 0.0, "prove": 0.0, "audit": 0.0},
        "launches": 0,
        "outputs": [],
        "errors": [error],
        "explain": [],
        "dims": [],
        "where": "",
        "place": None,
        "proofs": [],
        "blocks": {},
        "kernels": [],
        "undecided": [],
        "suppressed": [],
    }
