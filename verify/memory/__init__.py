"""Memory under launches: who writes an element, what a buffer holds, and the conditions of safe access.

In: the accesses of a program. Out: the contents of buffers, and the conditions of every access.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trilift.lazy import face

if TYPE_CHECKING:
    from .contents import Memory as Memory
    from .effects import forwarded as forwarded
    from .safety import in_bounds as in_bounds
    from .safety import nowrap as nowrap
    from .safety import well_defined as well_defined
    from .sites import Site as Site
    from .sites import locate as locate
    from .stores import Found as Found
    from .stores import covered as covered
    from .stores import holds as holds

__all__, __getattr__ = face(
    __name__,
    {
        "contents": "Memory",
        "effects": "forwarded",
        "safety": "in_bounds nowrap well_defined",
        "sites": "Site locate",
        "stores": "Found covered holds",
    },
)
