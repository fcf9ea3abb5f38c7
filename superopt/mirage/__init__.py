"""µGraphs as Mirage saves them, read, executed and judged.

In: its JSON. Out: what a saved µGraph computes, and whether that is its program.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trilift.lazy import face

if TYPE_CHECKING:
    from .execution import run as run
    from .judge import Judgement as Judgement
    from .judge import Reference as Reference
    from .judge import read as read
    from .judge import reference as reference

__all__, __getattr__ = face(
    __name__,
    {
        "execution": "run",
        "judge": "Judgement Reference read reference",
    },
)
