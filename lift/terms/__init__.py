"""Terms, the one language of the project, and the table of elementwise operations.

In: names, numbers and other terms. Out: a `Term`, hash-consed; a `Formula` is one with axes, a `Spec` an array of them.
The meaning of an operation is a row of `OPS`; its meaning to another stage, a row of a `Domain`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trilift.lazy import face

from . import ops as ops  # terms are made by the rows of the table, wherever there are any

if TYPE_CHECKING:
    from .construct import make as make
    from .meanings import Domain as Domain
    from .ops import OPS as OPS
    from .ops import Op as Op
    from .ranges import Ranges as Ranges
    from .spec import Formula as Formula
    from .spec import Spec as Spec
    from .term import Axis as Axis
    from .term import Term as Term

__all__, __getattr__ = face(
    __name__,
    {
        "construct": "make",
        "meanings": "Domain",
        "ops": "OPS Op",
        "ranges": "Ranges",
        "spec": "Formula Spec",
        "term": "Axis Term",
    },
)
