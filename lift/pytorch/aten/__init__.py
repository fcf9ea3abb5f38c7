"""The table of PyTorch's operators: what each one means on symbolic tensors.

In: an overload of `torch.ops.aten` with its arguments. Out: the tensors that it returns. A new operator is one `Row` in
the `*_rows` module of its kind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trilift.lazy import face

if TYPE_CHECKING:
    from .operator_row import Row as Row
    from .operator_row import Rows as Rows
    from .operators import NO_MEANING as NO_MEANING
    from .operators import TABLE as TABLE
    from .operators import apply as apply
    from .operators import bind as bind
    from .operators import has_row as has_row
    from .operators import packet as packet

__all__, __getattr__ = face(
    __name__,
    {
        "operator_row": "Row Rows",
        "operators": "NO_MEANING TABLE apply bind has_row packet",
    },
)
