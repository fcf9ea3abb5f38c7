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


def prints(records: Sequence[Row]) -> list[list[str]]:
    """The fingerprints of the findings of each record."""
    seen: Counter[tuple[str, ...]] = Counter()
    return [[_print(f, seen) for f in r["findings"]] for r in records]


def _print(finding: Row, seen: Counter[tuple[str, ...]]) -> str:
    alike = likeness(finding)
    seen[alike] += 1
    return of_text(*alike, str(seen[alike]))


def applied(records: Sequence[Row], known: Collection[str], path: str, new_only: bool = False) -> list[Row]:
    """The records with what is known moved from "findings" to "suppressed"; with `new_only` it is left out."""
    reason = {"kind": "external", "justification": f"known: {path}"}
    out = []
    for r, names in zip(records, prints(records), strict=True):
        old = [{**f, "suppression": reason} for f, n in zip(r["findings"], names, strict=True) if n in known]
        fresh = [f for f, n in zip(r["findings"], names, strict=True) if n not in known]
        accepted = [] if new_only else [*r.get("suppressed", ()), *old]
        out.append({**r, "findings": fresh, "suppressed": accepted})
    return out


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
    for r, names in zip(records, prints(records), strict=True):
        for f, name in zip(r["findings"], names, strict=True):
            file = portable(f["file"]) if f["file"] else ""
            yield {"fingerprint": name, "rule": f["rule"], "file": file, "line": f["line"], "message": f["message"]}
