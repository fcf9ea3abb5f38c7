"""Text of the user's on a terminal: exceptions, names and source lines may hold control characters."""

from __future__ import annotations

KEPT = "\n\t"


def plain(text: str) -> str:
    """The text with escapes for what a terminal obeys instead of showing it: control characters, and those that turn
    the direction of writing.

    >>> plain("a\\x1b]0;title\\x07b")
    'a\\\\x1b]0;title\\\\x07b'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in KEPT else c.encode("unicode_escape").decode("ascii") for c in text)
