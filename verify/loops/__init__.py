"""Closed forms of loop variables, as functions of the iteration number.

In: one symbolic iteration of a loop. Out: an invariant, guessed and then proved by induction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trilift.lazy import face

if TYPE_CHECKING:
    from .agreement import AGREEMENT as AGREEMENT
    from .invariant import STRATEGIES as STRATEGIES
    from .invariant import Loops as Loops
    from .invariant import agree as agree
    from .program_symbols import Names as Names

__all__, __getattr__ = face(
    __name__,
    {
        "agreement": "AGREEMENT",
        "invariant": "Loops STRATEGIES agree",
        "program_symbols": "Names",
    },
)
