"""`--format github`: workflow commands, which GitHub shows at the lines of a pull request.

::error file=kernels.py,line=31,col=17,title=undefined-value::masked lane of `b` reaches the output

A step shows ten of them. `summary` is a Markdown page of everything, for the file that $GITHUB_STEP_SUMMARY names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..base import sources
from ..records import findings
from ..records.draw import flat
from ..records.second_opinion import word
from ..records.verdict_text import errors_of
from . import Document, Stream
from .text import incomplete, total

Record = Mapping[str, Any]
STEP_ANNOTATIONS = 10  # annotations of a step
SIZE = 900_000  # characters of a summary: GitHub refuses one above 1 MiB
COMMANDS = {"error": "error", "warning": "warning", "note": "notice"}
DATA = {"%": "%25", "\r": "%0D", "\n": "%0A"}
PROPERTY = {**DATA, ":": "%3A", ",": "%2C"}


def write(document: Document) -> str:
    """A line for each case, then at most ten commands, the worst first, and how many are left."""
    return stream().whole(document)


def stream() -> Stream:
    """The lines of cases as they end; the commands, of which the worst come first, are known at the end."""
    return Stream(lambda c: f"{_plain(f'{findings.name_of(c)}: {word(c)}{_reason(c)}')}\n", _commands)


def _commands(document: Document) -> str:
    cases = document["cases"]
    said = [*_annotations(cases, _shown(findings.sources_of(document)))]
    left = len(said) - STEP_ANNOTATIONS
    lines = said[:STEP_ANNOTATIONS] + ([f"and {left} more: see the summary of this step"] if left > 0 else [])
    if "incomplete" in document:
        lines.insert(0, command("error", {}, "incomplete", f"{document['incomplete']}; cases are missing"))
    return "".join(f"{line}\n" for line in [*lines, total(cases, document.get("kernels", ()))])


def _annotations(cases: list[Record], found: list[dict[str, Any]]) -> Iterator[str]:
    """Findings, then cases that cannot be run, then what is not decided."""
    for f in found:
        example = findings.example(f)
        text = "\n".join(t for t in (f["message"], example and f"at {example}", f["hint"]) if t)
        yield command(COMMANDS[f["level"]], f, f["rule"], text)
    for c in cases:
        for e in errors_of(c):
            level = "error" if e["kind"] in ("case", "internal") else "warning"
            yield command(level, e, f"{e['kind']}: {c['name']}", e["what"])
    for c in cases:
        if c["verdict"] in ("UNKNOWN", "REFUTED") and not c["findings"] and not [*errors_of(c)]:
            level = "warning" if c["verdict"] == "UNKNOWN" else "error"
            at = {"file": c["file"], **(c["place"] or {})}
            yield command(level, at, f"{c['verdict']}: {c['name']}", c["reason"])


def _shown(cases: list[Record]) -> list[dict[str, Any]]:
    return [f for f in findings.problems(cases) if "suppression" not in f]


def command(level: str, at: Record, title: str, text: str) -> str:
    """One workflow command, escaped as the runner unescapes it."""
    places = {"file": sources.relative(at.get("file") or ""), "line": at.get("line"), "col": at.get("column")}
    properties = {**{k: v for k, v in places.items() if v}, "title": title}
    given = ",".join(f"{k}={escaped(str(v), PROPERTY)}" for k, v in properties.items())
    return f"::{level} {given}::{escaped(text, DATA)}"


def escaped(text: str, table: Mapping[str, str]) -> str:
    return "".join(table.get(c, c) for c in text)


def _plain(text: str) -> str:
    """A line of the log that is not a command."""
    return flat(text).replace("##[", "# #[").lstrip(":")


def _reason(c: Record) -> str:
    return f": {c['reason']}" if c["reason"] and c["verdict"] != "PROVED" else ""


# ---- the summary of the step -----------------------------------------------------------------------------------------


def summary(document: Document) -> str:
    """All findings and all verdicts as Markdown."""
    cases = document["cases"]
    found = _shown(findings.sources_of(document))
    parts = ["## trilift audit", total(cases, document.get("kernels", ())), _plain_cell(incomplete(document).strip())]
    if found:
        head = ("level", "rule", "place", "message", "counterexample", "what to do")
        parts += ["### Findings", _table(head, [_row(f) for f in found])]
    verdicts = [(_code(findings.name_of(c)), word(c), _formula(c), _cell(c["reason"])) for c in cases]
    parts += ["### Verdicts", _table(("case", "verdict", "formula", "reason"), verdicts)]
    text = "\n\n".join(filter(None, parts)) + "\n"
    return text if len(text.encode()) <= SIZE else text.encode()[:SIZE].decode(errors="ignore") + "\n\n(cut)\n"


def _row(f: Record) -> tuple[str, ...]:
    texts = (f["message"], findings.example(f), f["hint"])
    return f["level"], _code(f["rule"]), _code(findings.place(f)), *map(_cell, texts)


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join("| " + " | ".join(row) + " |" for row in lines)


def _formula(c: Record) -> str:
    return _code(c["formula"]["text"]) if c["formula"] else ""


def _cell(text: str) -> str:
    """Text escaped as neither Markdown nor HTML; text between backticks is code."""
    parts = flat(text).split("`")
    ends = len(parts) % 2 == 1  # each backtick has its second
    return "".join(_code(p) if i % 2 and p and ends else _plain_cell(p) for i, p in enumerate(parts))


def _plain_cell(text: str) -> str:
    return "".join(f"\\{c}" if c in "\\`*_[]|~#" else {"<": "&lt;", "&": "&amp;"}.get(c, c) for c in text)


def _code(text: str) -> str:
    """Text as code in a table: a bar would end the cell, a backtick the code."""
    return "`" + flat(text).replace("|", "\\|").replace("`", "'") + "`"
