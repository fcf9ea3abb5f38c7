"""The ends that a fault has to have: rows of results, a refusal with words, a file as it was."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping

from .fault import Ended, Expected

GOOD = ("first", "last")  # the cases of a file beside the one that is at fault
Row = Mapping[str, object]


def rows(*kinds: str, cases: Collection[str] = GOOD, at: str = "bad", word: str = "verdict") -> Expected:
    """The good cases are PROVED, or lifted where `word` is "lift"; with kinds, the case `at` fault has an error of one
    of them."""

    def missing(ended: Ended) -> str:
        found = read(ended)
        if lost := [c for c in cases if found.get(c, {}).get(word) not in ("PROVED", "ok")]:
            return f"no result of {', '.join(lost)}"
        errors = found.get(at, {}).get("errors", [])
        told = {e["kind"] for e in errors} if isinstance(errors, list) else set()
        return "" if not kinds or told & {*kinds} else f"{at}: an error of {sorted(told)}, not of {', '.join(kinds)}"

    return missing


def refused(*words: str, code: int = 2) -> Expected:
    """An exit code, and words on stderr."""

    def missing(ended: Ended) -> str:
        if ended.code != code:
            return f"not exit code {code}"
        return next((f"stderr has no {w!r}" for w in words if w not in ended.err), "")

    return missing


def incomplete(*codes: int, cases: Collection[str] = GOOD[:1]) -> Expected:
    """A file of these cases that says that it is incomplete, and one of the exit codes."""

    def missing(ended: Ended) -> str:
        if ended.code not in codes:
            return f"not an exit code of {codes}"
        if '"incomplete"' not in ended.out:
            return "the file is not marked as incomplete"
        return rows(cases=cases)(ended)

    return missing


def read(ended: Ended) -> dict[str, Row]:
    """The rows of a JSON document by the names of their cases; none where it is not such a document."""
    try:
        return {r["name"]: r for r in json.loads(ended.out)["cases"]}
    except (ValueError, KeyError, TypeError):
        return {}
