"""Findings that a comment in the source accepts: `# trilift: ignore[rule] reason` on the line of the finding, or on a
line of its own before it. Of a statement over several lines any line will do.

The reason is required. A comment without one, with a rule that does not exist, or on a line where nothing is found
accepts nothing and is itself a finding, of level warning.
"""

from __future__ import annotations

import difflib
import io
import os
import re
import tokenize
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from trilift.lift.runtime.files import unreadable

from ..records.entries import Row
from ..records.findings import Record

RULE = "ignore-comment"  # of findings about the comments themselves
COMMENT = re.compile(r"#\s*trilift:\s*ignore\b\s*(?:\[(?P<rules>[^\]]*)\])?(?P<reason>.*)$")
BLANK = (tokenize.NL, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING)


@dataclass(frozen=True, slots=True)
class Ignore:
    """One comment. `lines`: those whose findings it accepts."""

    file: str
    line: int
    column: int
    rules: tuple[str, ...]
    reason: str
    lines: range


def comments(file: str) -> tuple[Ignore, ...]:
    """The comments of a Python file that ask to ignore something; none of a file that cannot be read as one."""
    try:
        if not file.endswith(".py") or unreadable(Path(file)):
            return ()
        return _of_file(file, os.stat(file).st_mtime_ns)
    except OSError:
        return ()


@cache
def _of_file(file: str, _time: int) -> tuple[Ignore, ...]:
    try:
        with tokenize.open(file) as f:
            text = f.read()
        return tuple(_comments(file, text)) if "trilift:" in text else ()
    except (OSError, SyntaxError, UnicodeDecodeError, tokenize.TokenError):
        return ()


def _comments(file: str, text: str) -> Iterator[Ignore]:
    """A logical line takes the comments in it and those on lines of their own just before it."""
    waiting: list[Ignore] = []
    first = 0  # line on which the logical line began, 0 between two of them
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and (m := COMMENT.match(token.string)):
            rules = tuple(r.strip() for r in (m["rules"] or "").split(",") if r.strip())
            line, column = token.start
            waiting.append(Ignore(file, line, column + 1, rules, m["reason"].strip(" \t-:—"), range(line, line + 1)))
        elif token.type == tokenize.NEWLINE:
            yield from (replace(c, lines=range(first, token.start[0] + 1)) for c in waiting)
            waiting, first = [], 0
        elif token.type not in BLANK and not first:
            first = token.start[0]
    yield from waiting


def applied(
    records: Sequence[Row],
    rules: Collection[str],
    whole: Collection[str] = (),
    active: Collection[str] | None = None,
) -> list[Row]:
    """The records with what is ignored moved from "findings" to "suppressed", each with its reason; and with a finding
    for each comment that does not work. `rules`: all that there are; `active`: those that were checked; `whole`: the
    files all of whose cases were asked for, in which a comment that accepts nothing is reported."""
    used: set[Ignore] = set()
    out = [split(r, used) for r in records]
    finished = {f for f in whole if all(not r["errors"] for r in records if r["file"] == f)}
    seen = [os.path.realpath(f["file"]) for r in records for f in r["findings"] if f["file"]]
    files = dict.fromkeys([*(os.path.realpath(r["file"]) for r in records), *seen])
    ended = {os.path.realpath(f) for f in finished}
    notes = [n for file in files for c in comments(file) for n in _notes(c, c in used, rules, active, file in ended)]
    return _with_notes(out, notes)


def split(record: Row, used: set[Ignore]) -> Row:
    """The record with "findings" and "suppressed" apart; comments that accept one are added to `used`."""
    kept, accepted = [], list(record.get("suppressed", ()))
    for f in record["findings"]:
        by = next((c for c in _at(f) if c.reason), None)
        if by is None:
            kept.append(f)
        else:
            used.add(by)
            accepted.append({**f, "suppression": {"kind": "inSource", "justification": by.reason}})
    return {**record, "findings": kept, "suppressed": accepted}


def _at(finding: Row) -> Iterator[Ignore]:
    """The comments that speak of a finding's line and rule."""
    if finding["file"] and finding["rule"] != RULE:
        for c in comments(os.path.realpath(finding["file"])):
            if finding["line"] in c.lines and finding["rule"] in c.rules:
                yield c


def _notes(
    c: Ignore, used: bool, rules: Collection[str], active: Collection[str] | None, finished: bool
) -> Iterator[Row]:
    """The mistake in a comment."""
    unknown = [r for r in c.rules if r not in rules]
    if not c.rules:
        yield note(c, "this comment names no rule", "write # trilift: ignore[rule] reason")
    for r in unknown:
        near = difflib.get_close_matches(r, rules, 1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(rules)}"
        yield note(c, f"this comment ignores {r}, which is not a rule", hint)
    if not c.reason:
        yield note(
            c, "this comment gives no reason, so it accepts nothing", "explain after the bracket why the code is right"
        )
    checked = active is None or set(c.rules) <= set(active)
    if c.rules and c.reason and not unknown and not used and finished and checked:
        yield note(c, f"this comment ignores {' or '.join(c.rules)}, which finds nothing here", "remove the comment")


def note(c: Ignore, message: str, hint: str) -> Row:
    """A finding about a comment."""
    where = {"file": c.file, "line": c.line, "column": c.column, "level": "warning"}
    return {"rule": RULE, "message": message, **where, "counterexample": {}, "hint": hint, "replay": None, "steps": []}


def _with_notes(records: Sequence[Row], notes: Iterable[Row]) -> list[Row]:
    """Each note in the first record of its file, else of all; placed in the file as the record names it."""
    out = [{**r, "findings": list(r["findings"])} for r in records]
    by_file = {os.path.realpath(r["file"]): r for r in reversed(out)}
    for n in notes:
        home = by_file.get(n["file"], out[0])
        home["findings"].append({**n, "file": home["file"]} if n["file"] in by_file else n)
    return out


def apart(record: Record) -> tuple[Row, Row]:
    """The record without what is said about comments, and with that alone."""
    about: dict[bool, Row] = {
        chosen: {k: [f for f in record.get(k, ()) if (f["rule"] == RULE) == chosen] for k in ("findings", "suppressed")}
        for chosen in (False, True)
    }
    return {**record, **about[False]}, {**record, **about[True]}
