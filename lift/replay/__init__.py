"""A trace run again: on terms, which gives specs, or on numbers, which checks formulas against the kernel itself.

In: a `Trace`. Out: a `Spec` per output, or its values in float64; and an `Output`, which has come through the stages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trilift.lazy import face

if TYPE_CHECKING:
    from .check import Check as Check
    from .check import Mismatch as Mismatch
    from .check import run_kernel as run_kernel
    from .execute import events as events
    from .execute import replay as replay
    from .execute import results as results
    from .execute import spec as spec
    from .output import Output as Output
    from .reference import deviation as deviation
    from .reference import values as values

__all__, __getattr__ = face(
    __name__,
    {
        "check": "Check Mismatch run_kernel",
        "execute": "events replay results spec",
        "output": "Output",
        "reference": "deviation values",
    },
)
