"""Kernels that no case launches, found in files and packages.

In: a file, a folder or a package. Out: kernels with guessed signatures, and what can be said of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trilift.lazy import face

if TYPE_CHECKING:
    from .modules import STAGES as STAGES
    from .modules import Found as Found
    from .modules import Result as Result
    from .source import Kernel as Kernel
    from .sweep import PACKAGES as PACKAGES
    from .usage import callees as callees

__all__, __getattr__ = face(
    __name__,
    {
        "modules": "Found Result STAGES",
        "source": "Kernel",
        "sweep": "PACKAGES",
        "usage": "callees",
    },
)
