"""Cases: what the user says a host function takes, and the numbers that it is looked at with.

In: a decorated function, with specs of its parameters. Out: a `Case`, and dims and scalars to run it at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trilift.lazy import face

if TYPE_CHECKING:
    from .advice import working_where as working_where
    from .declaration import Case as Case
    from .declaration import Spec as Spec
    from .declaration import case as case
    from .declaration import make_case as make_case
    from .shapes import around as around
    from .shapes import beyond as beyond
    from .shapes import choose as choose
    from .shapes import elements as elements
    from .shapes import varied as varied

__all__, __getattr__ = face(
    __name__,
    {
        "advice": "working_where",
        "declaration": "Case Spec case make_case",
        "shapes": "around beyond choose elements varied",
    },
)
