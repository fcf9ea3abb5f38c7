"""From a case to its configurations: the launches of its host function, with symbols for its numbers.

In: a case, and traces at several shapes. Out: a symbolic configuration for each path of the host function.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trilift.lazy import face

if TYPE_CHECKING:
    from .ambiguity import alternatives as alternatives
    from .antiunify import Different as Different
    from .launches import bounds as bounds
    from .launches import configurations as configurations
    from .launches import facts as facts
    from .relations import ROW as ROW
    from .relations import places as places

__all__, __getattr__ = face(
    __name__,
    {
        "ambiguity": "alternatives",
        "antiunify": "Different",
        "launches": "bounds configurations facts",
        "relations": "ROW places",
    },
)
