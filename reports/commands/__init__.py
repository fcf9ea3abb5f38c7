"""The commands of the command line, one module each.

In: targets and options. Out: what is printed, and the exit code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trilift.lazy import face

if TYPE_CHECKING:
    from .gathering import document as document
    from .write import Asked as Asked
    from .write import text_of as text_of
    from .write import versions as versions

__all__, __getattr__ = face(
    __name__,
    {
        "gathering": "document",
        "write": "Asked text_of versions",
    },
)
