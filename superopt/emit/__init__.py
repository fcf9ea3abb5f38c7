"""Triton source of a µGraph: kernels, the host function, its contract.

In: a µGraph with its arrangement. Out: the text of one Python file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trilift.lazy import face

if TYPE_CHECKING:
    from .codegen import formatted as formatted
    from .codegen import source as source

__all__, __getattr__ = face(
    __name__,
    {
        "codegen": "formatted source",
    },
)
