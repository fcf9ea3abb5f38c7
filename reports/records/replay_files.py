"""Replay scripts of findings: one file for each, in a folder that is made when there is something to write."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

import click

from ..base import sources
from . import findings
from .entries import Row

FOLDER = ".trilift/replay"
ODD = re.compile(r"[^\w.]+")


def written(records: Iterable[Row], folder: str) -> list[Row]:
    """The records with the path of its script in each finding that has one. `folder`: "" for the usual one."""
    taken: set[str] = set()
    return [{**r, "findings": [_written(f, r, folder, taken) for f in findings.of(r)]} for r in records]


def _written(f: Row, record: Row, folder: str, taken: set[str]) -> Row:
    if not f["script"]:
        return f
    path = Path(folder or FOLDER) / _name(f, record, taken)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not folder:
            (Path(FOLDER).parent / ".gitignore").write_text("*\n")
        path.write_text(f["script"], encoding="utf-8")
    except OSError as e:
        click.echo(f"warning: cannot write {path}: {e.strerror}", err=True)
        return f
    return {**f, "replay": str(path)}


def _name(f: Row, record: Row, taken: set[str]) -> str:
    """File, case and rule, and a number if that is taken."""
    file = PurePosixPath(sources.relative(record["file"])).with_suffix("")
    stem = ODD.sub("-", f"{file}-{record['name']}-{f['rule']}").strip("-.")
    names = (f"{stem}{'-' + str(n) if n > 1 else ''}.py" for n in range(1, len(taken) + 2))
    name = next(n for n in names if n not in taken)
    taken.add(name)
    return name
