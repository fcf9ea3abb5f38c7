"""One test for each law that the formulas were proved to obey."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .cases import Part


def tests(p: Part) -> Iterator[str]:
    """The source of each."""
    yield from ()
