"""The interpreter of Triton IR: one walk over a kernel, in any domain of values.

In: a module, operands, a grid, a memory. Out: the memory as the launch leaves it. An operation is a row of
`HANDLERS`, or of `lift.terms.ops`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trilift.lazy import face

if TYPE_CHECKING:
    from .interpret import Run as Run
    from .interpret import missing as missing
    from .interpret import run as run
    from .memory import Cells as Cells
    from .memory import Memory as Memory
    from .registry import HANDLERS as HANDLERS
    from .registry import handles as handles

__all__, __getattr__ = face(
    __name__,
    {
        "interpret": "Run missing run",
        "memory": "Cells Memory",
        "registry": "HANDLERS handles",
    },
)
