"""The basis of written tests: laws, sizes, tolerances, calls that are refused.

In: the formulas of a case, and its proof. Out: a suite, which `reports.testgen` writes as tests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trilift.lazy import face

if TYPE_CHECKING:
    from .magnitudes import Magnitudes as Magnitudes
    from .records import Dims as Dims
    from .records import Output as Output
    from .records import Property as Property
    from .records import Refusal as Refusal
    from .records import Suite as Suite

__all__, __getattr__ = face(
    __name__,
    {
        "magnitudes": "Magnitudes",
        "records": "Dims Output Property Refusal Suite",
    },
)
