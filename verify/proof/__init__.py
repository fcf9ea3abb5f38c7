"""The proof of one configuration: every access in bounds, every output element what its formula says.

In: a symbolic configuration, and a formula for each output. Out: what was proved, under which conditions, or the first
condition that was not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trilift.lazy import face

if TYPE_CHECKING:
    from .prover import Proving as Proving
    from .prover import Shown as Shown

__all__, __getattr__ = face(
    __name__,
    {
        "prover": "Proving Shown",
    },
)
