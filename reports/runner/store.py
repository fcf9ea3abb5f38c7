"""Results of before, in one SQLite file: data by the hash of all that they follow from.

A file that is not a database is put aside and made anew; one that cannot be written is left out; both with a warning.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
import zlib
from functools import cache
from pathlib import Path
from threading import RLock
from typing import Any

import click

NAME = "records-2.sqlite"  # the number is that of the format
DAYS = 60.0  # that an entry is kept
WAIT = 10.0  # seconds for another process that writes
ENTRIES = "CREATE TABLE IF NOT EXISTS entries (key TEXT PRIMARY KEY, made REAL NOT NULL, body BLOB NOT NULL)"


class Store:
    """Data by key; any thread may ask. No method raises: a store is never a reason for not having a result."""

    def __init__(self, folder: str | Path) -> None:
        self.path = Path(folder) / NAME
        self.connection: sqlite3.Connection | None = None
        self.lock = RLock()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.connection = self._open()
        except sqlite3.OperationalError as e:
            warn(f"no cache: {self.path}: {e}")
        except sqlite3.DatabaseError as e:
            self._anew(e)
        except OSError as e:
            warn(f"no cache: cannot use {self.path.parent}: {e.strerror}")

    def get(self, key: str) -> dict[str, Any] | None:
        """The value put there last."""
        rows = self._do("SELECT body FROM entries WHERE key = ?", key)
        try:
            found = json.loads(zlib.decompress(rows[0][0])) if rows else None
        except (ValueError, TypeError, zlib.error):
            return None
        return found if isinstance(found, dict) else None

    def put(self, key: str, data: dict[str, Any]) -> None:
        """Keeps data in place of those of that key, and drops what is old."""
        body = zlib.compress(json.dumps(data).encode(), 1)
        self._do("DELETE FROM entries WHERE made < ?", time.time() - DAYS * 86400)
        self._do("INSERT OR REPLACE INTO entries VALUES (?, ?, ?)", key, time.time(), body)

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


@cache
def warn(text: str) -> None:
    """A line on stderr, once."""
    click.echo(f"warning: {text}", err=True)


def folder() -> str:
    """Where the cache is if nobody says so: TRILIFT_CACHE_DIR, else the user's folder for caches."""
    import platformdirs

    return os.environ.get("TRILIFT_CACHE_DIR") or platformdirs.user_cache_dir("trilift")
