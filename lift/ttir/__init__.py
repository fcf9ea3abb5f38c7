"""Triton IR, typed: what Triton compiles a kernel to, with the place of every operation in the source.

In: a `@triton.jit` function with the types of its arguments, or the text of a `.ttir` file. Out: a `Module`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trilift.lazy import face

if TYPE_CHECKING:
    from .ir import Block as Block
    from .ir import Function as Function
    from .ir import Module as Module
    from .ir import Op as Op
    from .ir import Region as Region
    from .ir import Type as Type
    from .ir import Value as Value
    from .lower import lower_file as lower_file
    from .reader import parse as parse
    from .written_pointers import written as written

__all__, __getattr__ = face(
    __name__,
    {
        "ir": "Block Function Module Op Region Type Value",
        "lower": "lower_file",
        "reader": "parse",
        "written_pointers": "written",
    },
)
