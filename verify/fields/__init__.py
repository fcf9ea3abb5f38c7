"""Identity tests of whole kernels in random finite fields (Mirage, section 5).

In: the IR of a kernel, and a formula or another kernel. Out: whether they agree, and how likely a difference is missed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trilift.lazy import face

if TYPE_CHECKING:
    from .error_bound import Weights as Weights
    from .field import Field as Field
    from .identity_test import FieldResult as FieldResult
    from .identity_test import check as check
    from .identity_test import sides as sides
    from .op_rows import FIELD as FIELD
    from .op_rows import FOLDS as FOLDS
    from .pairs import LOST as LOST
    from .pairs import NotTestable as NotTestable
    from .pairs import Redraw as Redraw

__all__, __getattr__ = face(
    __name__,
    {
        "error_bound": "Weights",
        "field": "Field",
        "identity_test": "FieldResult check sides",
        "op_rows": "FIELD FOLDS",
        "pairs": "LOST NotTestable Redraw",
    },
)
