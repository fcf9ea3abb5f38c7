"""Results of before, in one SQLite file: data by the hash of all that they follow from.

A file that is not a database is put aside and made anew; one that cannot be written, or that belongs to another user,
is left out; each with a warning. An entry that this user did not make is none (`seal`).
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
import zlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import RLock
from typing import Any

import click

from . import seal

NAME = "records-3.sqlite"  # the number is that of the format
DAYS = 60.0  # that an entry is kept
SIZE_BYTES = 1 << 30  # of the file; the oldest entries go when it is larger
ENTRY_BYTES = 1 << 28  # of an entry as JSON: what is larger is damaged, or meant to fill the memory
KEPT_SHARE = 0.8  # of SIZE_BYTES, left when entries went
WAIT = 10.0  # seconds for another process that writes
ENTRIES = "CREATE TABLE IF NOT EXISTS entries (key TEXT PRIMARY KEY, made REAL NOT NULL, body BLOB NOT NULL)"


# The oldest entries, which with all that are newer have more than so many bytes.
OLDEST = """DELETE FROM entries WHERE key IN (SELECT key FROM (SELECT key, SUM(LENGTH(body))
  OVER (ORDER BY made DESC, key) AS size FROM entries) WHERE size > ?)"""
FIGURES = "SELECT COUNT(*), COALESCE(SUM(LENGTH(body)), 0), MIN(made), MAX(made) FROM entries"
DAY_SECONDS = 86400


@dataclass(frozen=True, slots=True)
class Figures:
    """How many entries, their bytes, and when the first and last were made, in seconds of the epoch; None for none."""

    entries: int
    used_bytes: int
    first: float | None
    last: float | None


class Store:
    """Data by key; any thread may ask. No method raises: a store is never a reason for not having a result."""

    def __init__(self, folder: str | Path) -> None:
        self.path = Path(folder) / NAME
        self.connection: sqlite3.Connection | None = None
        self.lock = RLock()
        self.key = b""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            if stranger := _owner(self.path.parent) or _owner(self.path):
                warn(f"no cache: {stranger} belongs to another user")
                return
            self.key = seal.key()
            self.connection = self._open()
        except sqlite3.OperationalError as e:
            warn(f"no cache: {self.path}: {e}")
        except sqlite3.DatabaseError as e:
            self._anew(e)
        except OSError as e:
            warn(f"no cache: cannot use {e.filename or self.path.parent}: {e.strerror}")

    def get(self, key: str) -> dict[str, Any] | None:
        """The value put there last."""
        rows = self._do("SELECT body FROM entries WHERE key = ?", key)
        try:
            body = seal.opened(key, rows[0][0], self.key) if rows else None
            found = json.loads(_inflated(body)) if body is not None else None
        except (ValueError, TypeError, zlib.error):
            return None
        return found if isinstance(found, dict) else None

    def put(self, key: str, data: dict[str, Any]) -> None:
        """Keeps data in place of those of that key, and drops what is old."""
        body = seal.sealed(key, zlib.compress(json.dumps(data).encode(), 1), self.key)
        self._do("INSERT OR REPLACE INTO entries VALUES (?, ?, ?)", key, time.time(), body)
        self.prune()

    def prune(self, days: float = DAYS, size_bytes: int = SIZE_BYTES) -> int:
        """Drops what is older, and the oldest entries of a file that is larger; returns how many."""
        with self.lock:
            before = self.figures().entries
            self._do("DELETE FROM entries WHERE made < ?", time.time() - days * DAY_SECONDS)
            if self.figures().used_bytes > size_bytes:
                self._do(OLDEST, size_bytes * KEPT_SHARE)
            return before - self.figures().entries

    def clear(self) -> int:
        """Drops all entries; returns how many."""
        return self.prune(days=-1.0)

    def compact(self) -> None:
        """Gives the space of dropped entries back."""
        self._do("VACUUM")

    def figures(self) -> Figures:
        """How much there is now; zeros where the cache does not work."""
        rows = self._do(FIGURES)
        return Figures(*rows[0]) if rows else Figures(0, 0, None, None)

    def close(self) -> None:
        if self.connection is not None:
            self.connection.close()
            self.connection = None

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, timeout=WAIT, isolation_level=None, check_same_thread=False)
        connection.execute("PRAGMA synchronous=NORMAL")  # no WAL: switching to it fails beside others, without waiting
        connection.execute(ENTRIES)
        connection.execute("SELECT key, made, body FROM entries LIMIT 1").fetchall()
        return connection

    def _do(self, statement: str, *values: Any) -> list[Any]:
        """The rows of a statement; none where the cache does not work."""
        with self.lock:
            return self._done(statement, values)

    def _done(self, statement: str, values: tuple[Any, ...]) -> list[Any]:
        if self.connection is None:
            return []
        try:
            return self.connection.execute(statement, values).fetchall()
        except sqlite3.OperationalError as e:  # locked for long, a full disk
            warn(f"the cache is no longer used: {self.path}: {e}")
            self.close()
        except sqlite3.DatabaseError as e:
            self._anew(e)
        return []

    def _anew(self, error: Exception) -> None:
        """An empty file in place of one that is not a database, which is put aside."""
        aside = f"{self.path}.damaged"
        warn(f"the cache {self.path} is damaged ({error}) and is rebuilt; the damaged file is now {aside}")
        self.close()
        try:
            os.replace(self.path, aside)
            Path(f"{self.path}-journal").unlink(missing_ok=True)
            self.connection = self._open()
        except (sqlite3.Error, OSError) as e:
            warn(f"no cache: {self.path}: {e}")


def _inflated(body: bytes) -> bytes:
    """The bytes before they were compressed. Raises ValueError for more than ENTRY_BYTES."""
    inflater = zlib.decompressobj()
    out = inflater.decompress(body, ENTRY_BYTES)
    if inflater.unconsumed_tail:
        raise ValueError(f"an entry of more than {ENTRY_BYTES} bytes")
    return out


def _owner(path: Path) -> str:
    """The path, where another user owns it; "" where that is ours or not there. The superuser may use any."""
    try:
        return str(path) if os.geteuid() not in (0, path.stat().st_uid) else ""
    except OSError:
        return ""


@cache
def warn(text: str) -> None:
    """A line on stderr, once."""
    click.echo(f"warning: {text}", err=True)


def folder() -> str:
    """Where the cache is if nobody says so: TRILIFT_CACHE_DIR, else the user's folder for caches."""
    import platformdirs

    return os.environ.get("TRILIFT_CACHE_DIR") or platformdirs.user_cache_dir("trilift")
