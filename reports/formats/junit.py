"""`--format junit`: a test suite per file and a test per case, as CI servers count them.

A finding or REFUTED is a failure; UNKNOWN is skipped, with the reason; a case that cannot be run is an error. A kernel
that no case launches is a test too, which is skipped if there are only notes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any
from xml.etree import ElementTree

from ..base import sources
from ..records import findings
from ..records.verdict_text import errors_of
from . import Document, text, unlaunched

Record = Mapping[str, Any]
BROKEN = ("case", "internal")
ILLEGAL = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write(document: Document) -> str:
    """The suites, in the order of the files."""
    cases = [*document["cases"], *unlaunched(document)]
    root = ElementTree.Element("testsuites", {"name": "trilift audit", **_counts(cases)})
    for file in dict.fromkeys(sources.relative(c["file"]) for c in cases):
        records = [c for c in cases if sources.relative(c["file"]) == file]
        suite = ElementTree.SubElement(root, "testsuite", {"name": file, **_counts(records)})
        for record in records:
            _case(suite, file, record)
    if "incomplete" in document:
        _incomplete(root, document["incomplete"])
    ElementTree.indent(root, " ")
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _incomplete(root: ElementTree.Element, why: str) -> None:
    """An error for the whole run, since cases are missing."""
    suite = ElementTree.SubElement(root, "testsuite", {"name": "trilift audit", "tests": "1", "errors": "1"})
    test = ElementTree.SubElement(suite, "testcase", {"classname": "trilift", "name": "all cases have run"})
    ElementTree.SubElement(test, "error", {"type": "incomplete", "message": legal(f"{why}; cases are missing")})
    for name in ("tests", "errors"):
        root.set(name, str(int(root.get(name, "0")) + 1))


def _case(suite: ElementTree.Element, file: str, record: Record) -> None:
    """A test with its outcome and, in system-out, what `--format text` says."""
    classname = ".".join(PurePosixPath(file).with_suffix("").parts)
    attributes = {"classname": classname, "name": legal(record["name"] or file), "file": file, "time": _seconds(record)}
    test = ElementTree.SubElement(suite, "testcase", attributes)
    kind, what, message, body = outcome(record)
    if kind:
        said = {"message": legal(message)} if kind == "skipped" else {"type": what, "message": legal(message)}
        ElementTree.SubElement(test, kind, said).text = legal(body) or None
    ElementTree.SubElement(test, "system-out").text = legal(_text(record))


def _text(record: Record) -> str:
    return text.case(record) if "read" not in record else text.kernels([record])


def outcome(record: Record) -> tuple[str, str, str, str]:
    """(element, type, message, text) of a case; the element is "" for one that passes."""
    if "read" in record and all(f["level"] == "note" for f in findings.of(record)):
        return "skipped", "UNKNOWN", record["read"] if record["read"] != "ok" else "no case launches it", ""
    broken = [e for e in errors_of(record) if e["kind"] in BROKEN]
    if broken:
        return "error", broken[0]["kind"], broken[0]["what"], broken[0].get("why") or ""
    found = findings.of(record)
    if found:
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        message = f"{findings.place(found[0])}: {found[0]['message']}{more}"
        return "failure", found[0]["rule"], message, "\n\n".join(map(text.finding, found))
    if record["verdict"] == "REFUTED":
        return "failure", "REFUTED", record["reason"], ""
    undecided = record.get("undecided", ())
    if record["verdict"] == "UNKNOWN" or undecided:
        return "skipped", "UNKNOWN", f"UNKNOWN: {record['reason'] or '; '.join(undecided)}", ""
    return "", "", "", ""


def _counts(records: Sequence[Record]) -> dict[str, str]:
    kinds = [outcome(r)[0] for r in records]
    numbers = {"tests": len(kinds), **{f"{k}s": kinds.count(k) for k in ("failure", "error")}}
    seconds = sum(float(_seconds(r)) for r in records)
    return {**{k: str(n) for k, n in numbers.items()}, "skipped": str(kinds.count("skipped")), "time": f"{seconds:.3f}"}


def _seconds(record: Record) -> str:
    return f"{sum(record.get('seconds', {}).values()):.3f}"


def legal(text: str) -> str:
    """Without the characters that XML 1.0 has no way to write."""
    return ILLEGAL.sub("?", text)
