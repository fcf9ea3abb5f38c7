"""Records: what was found out about a case, as plain data.

In: what lift, verify and audit return. Out: the entries of the JSON's "cases", and their text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trilift.lazy import face

if TYPE_CHECKING:
    from .draw import flat as flat
    from .emitted_heading import heading as heading
    from .entries import Record as Record
    from .entries import Row as Row
    from .options import Options as Options
    from .options import Proving as Proving
    from .unfinished import broken as broken
    from .unfinished import failed as failed
    from .unfinished import unproved as unproved
    from .verdict_text import errors_of as errors_of

__all__, __getattr__ = face(
    __name__,
    {
        "draw": "flat",
        "emitted_heading": "heading",
        "entries": "Record Row",
        "options": "Options Proving",
        "unfinished": "broken failed unproved",
        "verdict_text": "errors_of",
    },
)
