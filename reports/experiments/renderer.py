"""The result of an experiment as text, as a Markdown page, as JSON, or as a golden text."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from collections.abc import Callable
from datetime import date
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import NoReturn

import click

from ..base.fingerprint import ROOT
from . import golden
from .experiment import Result, Row

VERSIONED = ("torch", "triton", "egglog", "numpy")
PACKAGES = ("liger-kernel", "flag-gems", "fla-core", "torchao", "gemlite", "attn-gym", "xformers")


def as_text(result: Result) -> str:
    """Notes, then aligned columns."""
    parts = list(result.notes)
    for t in result.tables:
        if t.rows:
            rows = (t.columns, *t.rows)
            widths = [max(len(r[i]) for r in rows) for i in range(len(t.columns))]
            lines = ["  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in rows]
            parts.append("\n".join([t.heading, *("  " + line for line in lines)]))
    return "\n\n".join(parts)


def as_markdown(result: Result) -> str:
    """A page: title, versions, notes, tables."""
    said = ", ".join(f"{k} {v}" for k, v in versions().items())
    parts = [f"# {result.title}", said, *result.notes]
    for t in result.tables:
        if t.rows:
            lines = [_line(t.columns), "|" + " --- |" * len(t.columns), *map(_line, t.rows)]
            parts += [f"## {t.heading}", "\n".join(lines)]
    return "\n\n".join(parts) + "\n"


def _line(row: Row) -> str:
    return "| " + " | ".join(c.replace("|", "\\|") for c in row) + " |"


def as_json(result: Result) -> str:
    """The data with title, date and versions."""
    return json.dumps({"title": result.title, "versions": versions(), **result.data}, indent=1)


def as_golden(result: Result) -> str:
    """The golden text of a result: the part that has to be the same in every run, see golden.py."""
    return golden.text({"title": result.title, **result.data}).rstrip("\n")


RENDERERS: dict[str, Callable[[Result], str]] = {
    "table": as_text, "md": as_markdown, "json": as_json, "golden": as_golden,
}  # fmt: skip


def versions() -> dict[str, str]:
    """The environment of a run: date, machine, versions of Python and of the packages that matter, and the commit if
    there is one."""
    out = {"date": date.today().isoformat(), "python": platform.python_version(), "machine": platform.machine()}
    for package in (*VERSIONED, *PACKAGES):
        try:
            out[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return out | ({"commit": found} if (found := commit()) else {})


@cache
def commit() -> str:
    """The commit of this checkout, "" without one."""
    try:
        command = ["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


# ---- modules that are commands of their own --------------------------------------------------------------------------

FORM = click.option("--format", "form", type=click.Choice(list(RENDERERS)), default="table", help="Output form.")
OUTPUT = click.option("-o", "output", type=click.Path(dir_okay=False), help="Write there and not to stdout.")


def deliver(result: Result, form: str, output: str | None = None) -> NoReturn:
    """Prints a result, or writes it to a file, and ends with its exit code."""
    text = RENDERERS[form](result)
    if output:
        Path(output).write_text(text + "\n")
    else:
        click.echo(text)
    sys.exit(result.code)
