"""Where work runs: functions in child processes, and names that are imported late.

In: a function and its arguments. Out: an `Outcome`, which a crash or a time-out ends as well as a result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trilift.lazy import face

if TYPE_CHECKING:
    from .isolate import Event as Event
    from .isolate import Outcome as Outcome
    from .isolate import run as run
    from .isolate import run_all as run_all

__all__, __getattr__ = face(
    __name__,
    {
        "isolate": "Event Outcome run run_all",
    },
)
