"""Standard output that cannot be written, as on a full disk: an error that names it."""

from __future__ import annotations

import io
import os
import sys

import click

NAME = "standard output"  # the file in its errors
FAILED = 2  # exit code


class _Raw(io.FileIO):
    def write(self, data: object) -> int:
        try:
            return super().write(data)  # type: ignore[arg-type]
        except OSError as e:
            raise OSError(e.errno, e.strerror, NAME) from None


def guard() -> None:
    """From now on errors of `sys.stdout` name it, where it is closed too. No other file of this process takes the place
    of a stream that is closed."""
    for number, mode in enumerate((os.O_RDONLY, os.O_RDONLY, os.O_WRONLY)):  # what is open for reading refuses a text
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, mode)  # the least free number
    sys.stderr = sys.stderr or os.fdopen(2, "w", closefd=False)
    raw = io.BufferedWriter(_Raw(1, "w", closefd=False))
    old = sys.stdout
    sys.stdout = io.TextIOWrapper(
        raw,
        encoding=old.encoding if old else "utf-8",
        errors=old.errors if old else "replace",
        line_buffering=raw.isatty(),
        write_through=getattr(old, "write_through", False),
    )


def failed(e: OSError) -> int:
    """Tells an error of standard output, to which nothing is written from now on; returns the exit code."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    if isinstance(e, BrokenPipeError):  # who read has seen enough
        return 1
    click.echo(f"error: could not write to {NAME}: {e.strerror}", err=True)
    return FAILED


def finished(code: int) -> int:
    """The exit code of a command that would end with `code`, once all its output is written."""
    try:
        sys.stdout.flush()
    except OSError as e:
        return failed(e)
    return code
