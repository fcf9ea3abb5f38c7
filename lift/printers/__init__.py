"""Formulas as people and machines read them: text, LaTeX, PyTorch source.

In: a `Formula`. Out: a text. `lift.printers.all` has the three printers side by side.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trilift.lazy import face

if TYPE_CHECKING:
    from .text import element_text as element_text
    from .text import index_form as index_form
    from .text import size_text as size_text
    from .torch_source import parameters as parameters

__all__, __getattr__ = face(
    __name__,
    {
        "text": "element_text index_form size_text",
        "torch_source": "parameters",
    },
)
