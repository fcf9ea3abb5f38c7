"""How a µGraph is laid out on the machine: layouts, order of operators, shared memory (Mirage, section 6).

In: a µGraph. Out: an arrangement, from which code is emitted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trilift.lazy import face

if TYPE_CHECKING:
    from .arrangement import Arrangement as Arrangement
    from .arrangement import arrange as arrange
    from .arrangement import record as record
    from .drawing import svg as svg
    from .schedule import violations as violations

__all__, __getattr__ = face(
    __name__,
    {
        "arrangement": "Arrangement arrange record",
        "drawing": "svg",
        "schedule": "violations",
    },
)
