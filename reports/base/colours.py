"""Colours of verdicts and of the levels of findings, on a terminal that shows them.

`NO_COLOR` with any text, `TERM=dumb`, a file and a pipe turn them off (https://no-color.org).
"""

from __future__ import annotations

import os
import re
import sys
from typing import TextIO

import click

from .plain_text import plain

VERDICTS = {"PROVED": "green", "TESTED": "cyan", "REFUTED": "red", "UNKNOWN": "yellow"}
LEVELS = {"error": "red", "warning": "yellow", "unknown": "yellow", "note": "blue", "help": "blue"}
VERDICT = re.compile(rf"(?<=: )({'|'.join(VERDICTS)})\b(?= in |,| \(|$)", re.MULTILINE)
LEVEL = re.compile(rf"^( *(?:= )?)({'|'.join(LEVELS)})(?=(?:\[[\w-]+\])?: )", re.MULTILINE)


def shows(stream: TextIO) -> bool:
    """Whether the stream is a terminal that shows colours, and the user has not turned them off."""
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb" and stream.isatty()


def coloured(text: str) -> str:
    """The text with the colours of its verdicts and levels."""
    text = VERDICT.sub(lambda m: click.style(m[1], VERDICTS[m[1]], bold=True), text)
    return LEVEL.sub(lambda m: m[1] + click.style(m[2], LEVELS[m[2]], bold=m[2] == "error"), text)


def echo(text: str, nl: bool = True) -> None:
    """Prints a text for people on stdout: what a terminal would obey is escaped, then verdicts have their colours."""
    text = plain(text)
    click.echo(coloured(text) if shows(sys.stdout) else text, nl=nl)
