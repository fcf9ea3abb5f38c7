"""Tensor programs over named axes: what the search starts from.

In: formulas, lifted from kernels or read from PyTorch. Out: a program, its abstract expressions, its values at a shape.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trilift.lazy import face

if TYPE_CHECKING:
    from .abstract import Class as Class
    from .abstract import function as function
    from .abstract import tables as tables
    from .abstract import templates as templates
    from .positions import launch_numbers as launch_numbers
    from .program import Input as Input
    from .program import Node as Node
    from .program import Program as Program
    from .program import source as source
    from .views import of_case as of_case

__all__, __getattr__ = face(
    __name__,
    {
        "abstract": "Class function tables templates",
        "positions": "launch_numbers",
        "program": "Input Node Program source",
        "views": "of_case",
    },
)
