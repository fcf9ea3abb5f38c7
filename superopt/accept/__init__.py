"""Acceptance of an emitted kernel: compiled, lifted again, proved, run.

In: an emitted file and its program. Out: a verdict; a kernel that fails is never shown as a result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trilift.lazy import face

if TYPE_CHECKING:
    from .acceptance import Acceptance as Acceptance
    from .acceptance import Compiled as Compiled
    from .acceptance import Step as Step
    from .acceptance import accept as accept
    from .mutants import graph_mutants as graph_mutants
    from .mutants import text_mutants as text_mutants
    from .timing import Device as Device
    from .timing import Measured as Measured
    from .timing import device as device
    from .timing import present as present

__all__, __getattr__ = face(
    __name__,
    {
        "acceptance": "Acceptance Compiled Step accept",
        "mutants": "graph_mutants text_mutants",
        "timing": "Device Measured device present",
    },
)
