"""Formulas in their shortest known form, by equality saturation.

In: a `Formula`. Out: a `Simplified` one, with the laws that were needed. A law is a row of `LAWS`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trilift.lazy import face

if TYPE_CHECKING:
    from .egraph import Limits as Limits
    from .egraph import saturate as saturate
    from .laws import FACTS as FACTS
    from .laws import LAWS as LAWS
    from .laws import Law as Law
    from .saturation import Simplified as Simplified
    from .saturation import constants as constants
    from .saturation import simplify as simplify
    from .saturation import tidy as tidy

__all__, __getattr__ = face(
    __name__,
    {
        "egraph": "Limits saturate",
        "laws": "FACTS LAWS Law",
        "saturation": "Simplified constants simplify tidy",
    },
)
