"""PyTorch functions and operators, read as formulas that hold at every shape.

In: a function on tensors with symbolic sizes. Out: a `Reading`, its formulas and the conditions under which they hold.
The meaning of an operator is a row of `lift.pytorch.aten`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trilift.lazy import face

if TYPE_CHECKING:
    from .concrete import meaning as meaning
    from .read import Reading as Reading
    from .read import read_case as read_case
    from .read import reading as reading
    from .symbolic_tensor import SymbolicTensor as SymbolicTensor
    from .symbolic_tensor import named as named
    from .symbolic_tensor import tensor as tensor

__all__, __getattr__ = face(
    __name__,
    {
        "concrete": "meaning",
        "read": "Reading read_case reading",
        "symbolic_tensor": "SymbolicTensor named tensor",
    },
)
