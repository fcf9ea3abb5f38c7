"""Findings that are known already: a file of fingerprints, which hold when lines move and numbers change.

fingerprint = hash of rule, file, source line without spacing and comment, message without numbers, and which of its
like it is
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from functools import cache
from pathlib import Path

import click

from ..base import sources
from ..base.fingerprint import of_text
from ..base.written_files import replace
from ..records.entries import Row

SCHEMA = 1
ROOTS = (".git", "pyproject.toml", "setup.py")
NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+(?:\.\d+)?(?:e[-+]?\d+)?|inf|nan)\b", re.IGNORECASE)
HELP = "write it again with --write-baseline"


class Prints:
    """The fingerprints of the findings of records, which are given in their order."""

    def __init__(self) -> None:
        self.seen: Counter[tuple[str, ...]] = Counter()

    def of(self, record: Row) -> list[str]:
        return [self._print(f) for f in record["findings"]]

    def _print(self, finding: Row) -> str:
        alike = likeness(finding)
        self.seen[alike] += 1
        return of_text(*alike, str(self.seen[alike]))


class Known:
    """The baseline at `path`, whose fingerprints are `names`, for records that are given in their order."""

    def __init__(self, names: Collection[str], path: str, new_only: bool = False) -> None:
        self.names, self.new_only, self.prints = names, new_only, Prints()
        self.reason = {"kind": "external", "justification": f"known: {path}"}

    def applied(self, record: Row) -> Row:
        """The record with what is known moved from "findings" to "suppressed"; with `new_only` it is left out."""
        named = [*zip(record["findings"], self.prints.of(record), strict=True)]
        old = [{**f, "suppression": self.reason} for f, n in named if n in self.names]
        fresh = [f for f, n in named if n not in self.names]
        accepted = [] if self.new_only else [*record.get("suppressed", ()), *old]
        return {**record, "findings": fresh, "suppressed": accepted}


def likeness(finding: Row) -> tuple[str, ...]:
    """The identity of a finding across runs."""
    file, line = finding["file"], sources.line(finding["file"], finding["line"] or 0) if finding["file"] else ""
    source = " ".join(line.partition("#")[0].split())
    return finding["rule"], portable(file) if file else "", source, NUMBER.sub("#", finding["message"])


@cache
def portable(file: str) -> str:
    """The path within its project or among the installed packages: the same on every machine."""
    path = Path(os.path.realpath(file))
    if "site-packages" in path.parts:
        return "/".join(path.parts[path.parts.index("site-packages") + 1 :])
    root = next((p for p in path.parents if any((p / name).exists() for name in ROOTS)), path.parent)
    return path.relative_to(root).as_posix()


def read(path: str) -> frozenset[str]:
    """The fingerprints of a baseline. Raises click.UsageError if the file is not one."""
    try:
        found = json.loads(Path(path).read_text())
    except OSError as e:
        raise click.UsageError(f"--baseline: cannot read {path}: {e.strerror}; {HELP}") from None
    except (ValueError, RecursionError) as e:
        raise click.UsageError(f"--baseline: {path} is not JSON ({e}); {HELP}") from None
    if not isinstance(found, dict) or found.get("schema") != SCHEMA or not isinstance(found.get("findings"), list):
        raise click.UsageError(f"--baseline: {path} is not a baseline of schema {SCHEMA}; {HELP}")
    named = [f["fingerprint"] for f in found["findings"] if isinstance(f, dict) and "fingerprint" in f]
    if len(named) < len(found["findings"]) or not all(isinstance(n, str) for n in named):
        raise click.UsageError(f"--baseline: a finding in {path} has no fingerprint; {HELP}")
    return frozenset(named)


def write(path: str, records: Sequence[Row]) -> int:
    """Writes what is found now, and returns how many. Raises click.UsageError where nothing can be written."""
    rows = sorted(_rows(records), key=lambda f: (f["file"], f["line"], f["rule"], f["fingerprint"]))
    try:
        replace(path, json.dumps({"schema": SCHEMA, "tool": "trilift", "findings": rows}, indent=1) + "\n")
    except OSError as e:
        raise click.UsageError(f"--write-baseline: cannot write {path}: {e.strerror}") from None
    return len(rows)


def _rows(records: Sequence[Row]) -> Iterator[Row]:
    prints = Prints()
    for r in records:
        for f, name in zip(r["findings"], prints.of(r), strict=True):
            file = portable(f["file"]) if f["file"] else ""
            yield {"fingerprint": name, "rule": f["rule"], "file": file, "line": f["line"], "message": f["message"]}
