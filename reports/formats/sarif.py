"""`--format sarif`: SARIF 2.1.0 (OASIS), as code scanning services read it.

A finding is a result, and its steps are the result's code flow; a baseline or comment that accepts it is a suppression.
Undecided rules and unreadable kernels are notifications, neither findings nor passes. The run's properties hold the
verdicts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ..base import explanations, sources
from ..filters import baseline
from ..records import findings
from ..records.verdict_text import errors_of
from . import Document
from .text import incomplete

Record = Mapping[str, Any]
SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
ROOT = "%SRCROOT%"
BROKEN = ("case", "internal")  # kinds of errors after which the run did not succeed


def write(document: Document) -> str:
    """The log: one run."""
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [_run(document)]}
    return json.dumps(log, indent=2, ensure_ascii=False) + "\n"


def _run(document: Document) -> Record:
    cases = document["cases"]
    found = findings.problems(findings.sources_of(document))
    described = [
        explanations.described(n) for n in dict.fromkeys([*explanations.FINDINGS, *(f["rule"] for f in found)])
    ]
    index = {d.name: i for i, d in enumerate(described)}
    prints = baseline.Prints().of({"findings": found})
    return {
        "tool": {
            "driver": {
                "name": "trilift",
                "version": document["version"],
                "semanticVersion": document["version"],
                "rules": [_rule(d) for d in described],
            }
        },
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {ROOT: {"description": {"text": "The folder in which trilift was started."}}},
        "invocations": [_invocation(document)],
        "results": [_result(f, index[f["rule"]], p) for f, p in zip(found, prints, strict=True)],
        "properties": {"cases": [_case(c) for c in cases]},
    }


def _rule(d: explanations.Described) -> Record:
    """One rule with its page, which is Markdown and can be read as text too."""
    return {
        "id": d.name,
        "name": "".join(part.capitalize() for part in d.name.split("-")),
        "shortDescription": {"text": d.summary},
        "fullDescription": {"text": d.summary},
        "help": {"text": d.page, "markdown": d.page},
        "defaultConfiguration": {"level": d.level},
        "properties": {"tags": ["correctness", "triton"], "precision": "very-high"},
    }


def _result(f: Record, index: int, fingerprint: str) -> Record:
    """One finding. Its message ends with the counterexample and what to do, since viewers show little else."""
    example = findings.example(f)
    parts = [f["message"], f"Counterexample: {example}" if example else "", f"Help: {f['hint']}" if f["hint"] else ""]
    properties = {"cases": f["cases"], "counterexample": f["counterexample"]}
    result = {
        "ruleId": f["rule"],
        "ruleIndex": index,
        "level": f["level"],
        "message": {"text": "\n".join(p for p in parts if p)},
        "locations": [_location(f)] if f["file"] else [],
        "partialFingerprints": {"triliftLine/v1": fingerprint},
        "codeFlows": [_flow(f)] if f["steps"] else [],
        "suppressions": [_suppression(f["suppression"])] if "suppression" in f else [],
        "properties": {**properties, "replay": f["replay"]} if f["replay"] else properties,
    }
    return {k: v for k, v in result.items() if v != [] or k == "locations"}


def _flow(f: Record) -> Record:
    """The steps of the counterexample, and the place of the finding at their end."""
    last = {**f, "text": f["message"]}
    at_end = [] if f["steps"][-1].get("line") == f["line"] and f["steps"][-1]["file"] == f["file"] else [last]
    return {
        "message": {"text": findings.example(f) or f["message"]},
        "threadFlows": [{"locations": [{"location": _location(s, s["text"])} for s in (*f["steps"], *at_end)]}],
    }


def _suppression(s: Record) -> Record:
    return {"status": "accepted", **s}


def _location(at: Record, text: str = "") -> Record:
    """File, region and function of a place, with what happens there."""
    if not at.get("file"):
        return {"message": {"text": text}}
    out: dict[str, Any] = {"physicalLocation": {"artifactLocation": _artifact(at["file"])}}
    if at.get("line"):
        out["physicalLocation"]["region"] = _region(at)
        if (function := sources.function(at["file"], at["line"])) is not None:
            out["logicalLocations"] = [{"fullyQualifiedName": function.name, "kind": "function"}]
    return {**out, "message": {"text": text}} if text else out


def _artifact(file: str) -> Record:
    """Relative to the folder of the run where it is below it."""
    path = Path(sources.relative(file))
    if path.is_absolute():
        return {"uri": path.as_uri()}
    return {"uri": quote(path.as_posix()), "uriBaseId": ROOT}


def _region(at: Record) -> Record:
    column = {"startColumn": at["column"]} if at.get("column") else {}
    text = sources.line(at["file"], at["line"])
    return {"startLine": at["line"], **column, **({"snippet": {"text": text}} if text else {})}


def _invocation(document: Document) -> Record:
    cases = document["cases"]
    kinds = {e["kind"] for c in cases for e in c["errors"]}
    notes = [n for c in cases for n in _notifications(c)]
    if said := incomplete(document).strip():
        notes.insert(0, _notification("error", "incomplete", said, {}))
    successful = not said and not kinds & set(BROKEN)
    return {"executionSuccessful": successful, "toolExecutionNotifications": notes}


def _notifications(c: Record) -> Iterator[Record]:
    """The parts of a case that were not read or not decided."""
    name = findings.name_of(c)
    for e in errors_of(c):
        level = "error" if e["kind"] in BROKEN else "warning"
        text = f"{name}: {e['kind']}: {e['what']}" + (f": {e['why']}" if e.get("why") else "")
        yield _notification(level, e["kind"], text, e)
    if c["verdict"] == "UNKNOWN":
        yield _notification("warning", "UNKNOWN", f"{name}: UNKNOWN: {c['reason']}", c["place"] or {})
    for text in c.get("undecided", ()):
        yield _notification("note", "UNKNOWN", f"{name}: {text}", {})


def _notification(level: str, kind: str, text: str, at: Record) -> Record:
    where = {"locations": [_location(at)]} if at.get("file") else {}
    return {"level": level, "descriptor": {"id": kind}, "message": {"text": text}, **where}


def _case(c: Record) -> Record:
    """The claims of a case."""
    formula = c["formula"]["text"] if c["formula"] else None
    fields = {k: c[k] for k in ("name", "verdict", "against", "bound", "reason", "contract")}
    return {"file": sources.relative(c["file"]), **fields, "formula": formula}
