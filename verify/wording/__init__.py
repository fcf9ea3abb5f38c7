"""The terms of a proof in the user's names.

In: programs, conditions, buffers. Out: texts, as messages and contracts show them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trilift.lazy import face

if TYPE_CHECKING:
    from .buffer_names import tensor_name as tensor_name
    from .program_text import listing as listing
    from .user_terms import readable as readable
    from .user_terms import shortened as shortened
    from .user_terms import tidied as tidied
    from .user_terms import words as words

__all__, __getattr__ = face(
    __name__,
    {
        "buffer_names": "tensor_name",
        "program_text": "listing",
        "user_terms": "readable shortened tidied words",
    },
)
