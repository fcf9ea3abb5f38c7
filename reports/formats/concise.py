"""`--format concise`: of each case a line for each finding that is new, then one for its verdict.

kernels.py:31:17: undefined-value masked lane of `b` reaches the output
kernels.py::matmul: UNKNOWN: the kernel has the finding undefined-value
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ..base import sources
from ..filters import ignores
from ..records import findings
from ..records.draw import flat
from ..records.second_opinion import word
from ..records.verdict_text import errors_of
from . import Document, Stream
from .text import incomplete


def write(document: Document) -> str:
    """Of each case its findings, those of earlier ones left out, what keeps it from being read, and its verdict."""
    return stream().whole(document)


def stream() -> Stream:
    said: set[str] = set()

    def fresh(records: Iterable[findings.Record]) -> list[str]:
        found = [f for f in findings.problems(records) if "suppression" not in f]
        lines = [f"{findings.place(f)}: {f['rule']} {flat(f['message'])}" for f in found]
        new = [line for line in dict.fromkeys(lines) if line not in said]
        said.update(new)
        return new

    def case(record: findings.Record) -> str:
        return _lines([*fresh([ignores.apart(record)[0]]), *_case(record)])

    def rest(document: Document) -> str:
        about = [ignores.apart(r)[1] for r in document["cases"]]
        return _lines(fresh([*document.get("kernels", ()), *about])) + incomplete(document)

    return Stream(case, rest)


def _lines(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _case(record: Any) -> Iterator[str]:
    """Its errors where nothing was proved, and its verdict."""
    for e in errors_of(record):
        where = findings.place({**e, "file": sources.relative(e["file"])}) if e["file"] else findings.name_of(record)
        yield f"{where}: {e['kind']} {flat(e['what'])}"
    name = findings.name_of(record)
    reason = f": {flat(record['reason'])}" if record["reason"] and record["verdict"] != "PROVED" else ""
    yield f"{name}: {word(record)}{reason}"
    yield from (f"{name}: UNKNOWN: {flat(text)}" for text in record.get("undecided", ()))
