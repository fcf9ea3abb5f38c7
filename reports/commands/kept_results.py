"""`trilift cache`: how much is kept of earlier runs, and what may go."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path

import click

from ..runner import failures, seal, store


def info(folder: str) -> int:
    """Prints where the cache is and how much it holds."""
    with closing(store.Store(folder)) as kept:
        found = kept.figures()
        click.echo(f"folder    {folder}")
        click.echo(f"entries   {found.entries}, {_size(found.used_bytes)} of at most {_size(store.SIZE_BYTES)}")
        if found.first is not None and found.last is not None:
            click.echo(f"made      {_day(found.first)} to {_day(found.last)}; an entry is kept for {store.DAYS:g} days")
        click.echo(f"failures  {failures.count(folder)} inputs on which a case failed, which written tests try again")
        click.echo(f"key       {f'of {seal.VARIABLE}' if seal.is_given() else seal.path()}")
    return 0


def prune(folder: str, days: float) -> int:
    """Drops entries that are older, and the oldest ones of a cache that is too large."""
    with closing(store.Store(folder)) as kept:
        return _said(kept.prune(days), kept)


def clear(folder: str) -> int:
    """Drops all entries and all kept failures."""
    with closing(store.Store(folder)) as kept:
        (Path(folder) / failures.NAME).unlink(missing_ok=True)
        return _said(kept.clear(), kept)


def _said(count: int, kept: store.Store) -> int:
    kept.compact()
    click.echo(f"{count} {'entry' if count == 1 else 'entries'} removed, {kept.figures().entries} left in {kept.path}")
    return 0


def _size(size_bytes: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if size_bytes < 1024:
            return f"{size_bytes:.0f} {unit}"
        size_bytes /= 1024
    return f"{size_bytes:.1f} GiB"


def _day(seconds: float) -> str:
    return time.strftime("%Y-%m-%d", time.localtime(seconds))
