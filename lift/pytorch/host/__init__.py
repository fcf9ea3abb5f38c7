"""Host functions read: run once on tensors without contents whose sizes, and on scalars that, remember where they come
from.

In: a case, and numbers for its dims. Out: a `HostRun`: the launches and torch operations as a trace whose numbers carry
terms, every decision that Python made on such a number, and what could not be followed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trilift.lazy import face

if TYPE_CHECKING:
    from .events import term_of as term_of
    from .host_run import HostRun as HostRun
    from .host_run import read_host as read_host
    from .record import Copied as Copied
    from .record import Decision as Decision
    from .record import Note as Note

__all__, __getattr__ = face(
    __name__,
    {
        "events": "term_of",
        "host_run": "HostRun read_host",
        "record": "Copied Decision Note",
    },
)
