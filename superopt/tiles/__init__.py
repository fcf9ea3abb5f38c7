"""Tile programs (Trinity): loops over tiles as terms, rewritten by equality saturation.

In: a program. Out: plans as µGraphs. A rule is a row of `rules`, tried on random programs before it is trusted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trilift.lazy import face

if TYPE_CHECKING:
    from .rules import RULES as RULES
    from .rules import Rule as Rule
    from .tile_program import TileProgram as TileProgram
    from .tile_program import lowered as lowered
    from .tile_program import statements as statements
    from .tile_program import stores as stores
    from .trials import Found as Found
    from .trials import Tried as Tried
    from .trials import all_rules as all_rules
    from .trials import tried as tried

__all__, __getattr__ = face(
    __name__,
    {
        "rules": "RULES Rule",
        "tile_program": "TileProgram lowered statements stores",
        "trials": "Found Tried all_rules tried",
    },
)
