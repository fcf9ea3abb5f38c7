"""Errors drawn on the source, and the text of a record: formula by formula, then what went wrong.

error[unsupported]: tt.elementwise_inline_asm
  --> kernel.py:31:17
   |  acc += tl.inline_asm_elementwise(...)
   |         ^ not a known idiom
   = help: ...
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..base import sources

Record = Mapping[str, Any]
WIDTH = 160  # characters of a source line that are shown


def error(e: Record) -> str:
    """One error as a drawing: what, where, why, and what now. `e` has kind, what, file, line, column, why and help; its
    level, if it is not an error; `notes` as (label, text); a replay script."""
    lines = [f"{e.get('level', 'error')}[{e['kind']}]: {e['what']}"]
    why, place = e.get("why") or "", _place(e)
    lines += [f"  --> {place}"] if place else []
    source = _source(e)
    if source:
        line, caret = source
        lines += [f"   |  {line}", f"   |  {' ' * caret}^ {why}".rstrip()]
    elif why:
        lines += [f"   |  {part}" for part in why.splitlines()]
    notes = [*e.get("notes", ()), ("help", e.get("help")), ("replay", e.get("replay") and f"python {e['replay']}")]
    lines += [f"   = {label}: {text}" for label, text in notes if text]
    return "\n".join(lines)


def finding(f: Record) -> dict[str, Any]:
    """A finding in the form of an error: its message, and the example on which it fails."""
    example = ", ".join(f"{k} = {v}" for k, v in f["counterexample"].items() if k not in ("element", "got", "expected"))
    return {
        "kind": f["rule"],
        "what": f["message"],
        "file": f["file"],
        "line": f["line"],
        "why": example and f"at {example}",
    }


def _place(e: Record) -> str:
    if not e.get("file"):
        return ""
    return ":".join(str(p) for p in (sources.relative(e["file"]), e.get("line"), e.get("column")) if p)


def _source(e: Record) -> tuple[str, int] | None:
    """The source line without its indentation, and where in it the caret goes."""
    line = sources.line(e.get("file") or "", e.get("line") or 0).rstrip()
    text = line.lstrip()
    if not text:
        return None
    return _cut(text, max(0, (e.get("column") or 0) - 1 - (len(line) - len(text))))


def _cut(text: str, caret: int) -> tuple[str, int]:
    """The part of a line around the caret, at most WIDTH characters, and where the caret is in it."""
    first = max(0, min(caret - WIDTH // 2, len(text) - WIDTH))
    before, after = "..." if first else "", "..." if first + WIDTH < len(text) else ""
    shown = before + text[first : first + WIDTH] + after
    return shown, min(caret - first + len(before), len(shown))


def heading(record: Record) -> str:
    """ "kernels.py::softmax"; the file alone where it could not be loaded."""
    return "::".join(filter(None, (sources.escaped(record["file"]), record["name"])))


def case(record: Record, to: str) -> str:
    """The output of `trilift lift --to text|latex|torch` for one case."""
    comment = {"text": "", "latex": "% ", "torch": "# "}[to]
    parts = [comment + heading(record)]
    if record["formula"] is not None:
        parts += [indented(record["formula"][to], "" if to == "torch" else "    ")]
    for note in record["explain"]:
        parts.append(indented(note["title"] + "\n" + indented(note["text"], "  "), comment + "  "))
    parts += [indented(error(e), comment) for e in (*map(finding, record["findings"]), *record["errors"])]
    return "\n".join(parts) + "\n"


def indented(text: str, prefix: str) -> str:
    """Every line with the prefix."""
    return "\n".join((prefix + line).rstrip() for line in text.splitlines())


def flat(text: str) -> str:
    """The text on one line."""
    return " ".join(text.split())
