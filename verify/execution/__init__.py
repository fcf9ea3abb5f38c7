"""Parametric execution of a kernel: every program, lane and iteration at once.

In: a module, with symbols for its operands. Out: a `verify.model.program.Program`, whose cost does not depend on sizes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trilift.lazy import face

if TYPE_CHECKING:
    from .parametric import execute as execute
    from .tile import generic as generic
    from .tile import terms as terms

__all__, __getattr__ = face(
    __name__,
    {
        "parametric": "execute",
        "tile": "generic terms",
    },
)
