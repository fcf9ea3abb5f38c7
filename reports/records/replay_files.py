"""Replay scripts of findings: one file for each, in a folder that is made when there is something to write."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path, PurePosixPath

import click

from ..base import sources
from . import findings
from .entries import Row

FOLDER = ".trilift/replay"
ODD = re.compile(r"[^\w.]+")


class Scripts:
    """The scripts of one run. `folder`: "" for the usual one."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.paths: dict[tuple[str, ...], str | None] = {}  # of a finding's case, rule and script; None: not written

    def written(self, record: Row) -> Row:
        """The record with the path of its script in each finding that has one. A finding met again has the same."""
        return {**record, "findings": [self._written(f, record) for f in findings.of(record)]}

    def _written(self, f: Row, record: Row) -> Row:
        if not f["script"]:
            return f
        key = (record["file"], record["name"], f["rule"], f["script"])
        if key not in self.paths:
            self.paths[key] = self._path(f, record)
        return {**f, "replay": self.paths[key]} if self.paths[key] else f

    def _path(self, f: Row, record: Row) -> str | None:
        """The path of the script, which is written; None, with a warning, where it cannot be."""
        path = Path(self.folder or FOLDER) / _name(f, record, {Path(p).name for p in self.paths.values() if p})
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if not self.folder:
                (Path(FOLDER).parent / ".gitignore").write_text("*\n")
            path.write_text(f["script"], encoding="utf-8")
        except OSError as e:
            click.echo(f"warning: cannot write {path}: {e.strerror}", err=True)
            return None
        return str(path)


def _name(f: Row, record: Row, taken: Collection[str]) -> str:
    """File, case and rule, and a number if that is taken."""
    file = PurePosixPath(sources.relative(record["file"])).with_suffix("")
    stem = ODD.sub("-", f"{file}-{record['name']}-{f['rule']}").strip("-.")
    names = (f"{stem}{'-' + str(n) if n > 1 else ''}.py" for n in range(1, len(taken) + 2))
    return next(n for n in names if n not in taken)
