"""The language of formulas: known names and what they mean, reading and evaluating a text.

In: a text, and the sizes of its inputs. Out: a `Formula`, its value at a shape, or its terms with known names unfolded.
A known name is a row of `DEFINITIONS`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trilift.lazy import face

from . import unfolding as unfolding  # known names can be unfolded wherever there are any

if TYPE_CHECKING:
    from .alignment import align as align
    from .definitions import DEFINITIONS as DEFINITIONS
    from .definitions import Definition as Definition
    from .definitions import named as named
    from .parse import Scalars as Scalars
    from .parse import formula as formula
    from .parse import pattern as pattern
    from .unfolding import expand as expand
    from .unfolding import meaningful as meaningful
    from .unfolding import unfold as unfold

__all__, __getattr__ = face(
    __name__,
    {
        "alignment": "align",
        "definitions": "DEFINITIONS Definition named",
        "parse": "Scalars formula pattern",
        "unfolding": "expand meaningful unfold",
    },
)
