"""Runs of a kernel on numbers: what it is compared with, at which inputs, and what was watched.

In: a case. Out: goals of a proof, and observations of executions. They show mistakes, and prove nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trilift.lazy import face

if TYPE_CHECKING:
    from .adversary import arguments as arguments
    from .goals import Targets as Targets
    from .observe import Observation as Observation
    from .observe import differing as differing
    from .observe import element as element
    from .trials import Dims as Dims
    from .trials import blocks_of as blocks_of
    from .trials import boundary_shapes as boundary_shapes

__all__, __getattr__ = face(
    __name__,
    {
        "adversary": "arguments",
        "goals": "Targets",
        "observe": "Observation differing element",
        "trials": "Dims blocks_of boundary_shapes",
    },
)
