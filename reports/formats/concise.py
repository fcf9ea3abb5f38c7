"""`--format concise`: a line for each finding, then one for each case.

kernels.py:31:17: undefined-value masked lane of `b` reaches the output
kernels.py::matmul: UNKNOWN: the kernel has the finding undefined-value
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..base import sources
from ..records import findings
from ..records.draw import flat
from ..records.second_opinion import word
from ..records.verdict_text import errors_of
from . import Document
from .text import incomplete


def write(document: Document) -> str:
    """Findings, each once, then what keeps a case from being read, then verdicts."""
    cases = document["cases"]
    found = [f for f in findings.problems(findings.sources_of(document)) if "suppression" not in f]
    lines = [f"{findings.place(f)}: {f['rule']} {flat(f['message'])}" for f in found]
    lines += [line for c in cases for line in _case(c)]
    return "".join(f"{line}\n" for line in lines) + incomplete(document)


def _case(record: Any) -> Iterator[str]:
    """Its errors where nothing was proved, and its verdict."""
    for e in errors_of(record):
        where = findings.place({**e, "file": sources.relative(e["file"])}) if e["file"] else findings.name_of(record)
        yield f"{where}: {e['kind']} {flat(e['what'])}"
    name = findings.name_of(record)
    reason = f": {flat(record['reason'])}" if record["reason"] and record["verdict"] != "PROVED" else ""
    yield f"{name}: {word(record)}{reason}"
    yield from (f"{name}: UNKNOWN: {flat(text)}" for text in record.get("undecided", ()))
