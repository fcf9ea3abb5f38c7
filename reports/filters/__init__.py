"""Which findings count: rules asked for, comments in the source, a baseline of known ones.

In: the findings of an audit. Out: those that are shown, and those that a comment or baseline accepts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trilift.lazy import face

if TYPE_CHECKING:
    from .choice import Choice as Choice
    from .choice import Step as Step
    from .choice import by_rule as by_rule
    from .choice import configured as configured
    from .choice import steps as steps
    from .ignores import Ignore as Ignore
    from .ignores import note as note

__all__, __getattr__ = face(
    __name__,
    {
        "choice": "Choice Step by_rule configured steps",
        "ignores": "Ignore note",
    },
)
