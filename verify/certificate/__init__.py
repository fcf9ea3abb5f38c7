"""A proof as data, for `lift.checker`, which shares no code with the prover.

In: the proofs of a case with what was executed for them. Out: a certificate, plain data for a JSON file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trilift.lazy import face

if TYPE_CHECKING:
    from .export import certificate as certificate
    from .origin import differences as differences

__all__, __getattr__ = face(
    __name__,
    {
        "export": "certificate",
        "origin": "differences",
    },
)
