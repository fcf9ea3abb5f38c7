"""Inputs on which a case was seen to fail, kept so that the tests written later try them again, whether the kernel was
mended or not. They lie beside the cache of records and, unlike it, are not bound to the content of a file."""

from __future__ import annotations

import json
import math
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..records import entries
from . import store

if TYPE_CHECKING:
    from trilift.verify.model.verdict import Counterexample

NAME = "failures-1.sqlite"
TABLE = """CREATE TABLE IF NOT EXISTS failures (file TEXT NOT NULL, name TEXT NOT NULL, body TEXT NOT NULL,
  UNIQUE (file, name, body))"""
KEPT_FAILURES = 8  # of one case, the newest


def keep(records: Iterable[entries.Row | entries.Record], folder: str | Path) -> None:
    """Keeps the counterexamples of the proofs in records. No error: what cannot be written is told in a warning."""
    rows = [(os.path.realpath(r["file"]), r["name"], json.dumps(c, sort_keys=True)) for r in records for c in _of(r)]
    if not rows:
        return
    try:
        with closing(_open(folder)) as connection:
            connection.executemany("INSERT OR IGNORE INTO failures VALUES (?, ?, ?)", rows)
    except (OSError, sqlite3.Error) as e:
        store.warn(f"counterexamples are not kept: {Path(folder) / NAME}: {e}")


def known(file: str, name: str, folder: str | Path) -> list[Counterexample]:
    """The counterexamples kept of a case, the newest first."""
    from trilift.verify.model.verdict import Counterexample

    if not (Path(folder) / NAME).exists():
        return []
    try:
        with closing(_open(folder)) as connection:
            query = "SELECT body FROM failures WHERE file = ? AND name = ? ORDER BY rowid DESC LIMIT ?"
            rows = connection.execute(query, (os.path.realpath(file), name, KEPT_FAILURES)).fetchall()
    except (OSError, sqlite3.Error) as e:
        store.warn(f"earlier counterexamples are not used: {Path(folder) / NAME}: {e}")
        return []
    read = (json.loads(body) for (body,) in rows)
    return [Counterexample(**{**c, "index": tuple(c["index"])}) for c in read]


def count(folder: str | Path) -> int:
    """How many counterexamples are kept."""
    if not (Path(folder) / NAME).exists():
        return 0
    with closing(_open(folder)) as connection:
        return int(connection.execute("SELECT COUNT(*) FROM failures").fetchone()[0])


def _of(r: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The counterexamples in a record, as data of the class."""
    for p in r.get("proofs", ()):
        if c := p.get("counterexample"):
            numbers = {n: float(math.nan if c[n] is None else c[n]) for n in ("got", "expected")}
            yield {n: c[n] for n in ("dims", "seed", "config", "output", "index", "why")} | numbers


def _open(folder: str | Path) -> sqlite3.Connection:
    """The database; a file that is none is put aside and made anew."""
    path = Path(folder) / NAME
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        return _opened(path)
    except sqlite3.OperationalError:
        raise
    except sqlite3.DatabaseError as e:
        aside = f"{path}.damaged"
        store.warn(f"the counterexamples in {path} cannot be read ({e}); the damaged file is now {aside}")
        os.replace(path, aside)
        return _opened(path)


def _opened(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=store.WAIT, isolation_level=None)
    try:
        connection.execute(TABLE)
        connection.execute("SELECT file, name, body FROM failures LIMIT 1").fetchall()
    except sqlite3.Error:
        connection.close()
        raise
    return connection
