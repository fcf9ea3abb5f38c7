"""The normal form of terms under facts, and when two of them are equal.

    poly < literals < algebra < piecewise < rules.fold < variables < signs < rules.* < equality < rules.argmax < zero

Imports go from right to left only. A rule is given the engine, a term and what is known (`algebra.Algebra`, `Context`);
what it needs of a family that stands to its right it asks the engine (`Algebra.condition`, `.sign`, `.lattice`,
`.nonempty`, `.zero`), to which that family gave an answer. Here every family is imported, so that no rule is missing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trilift.lazy import face

from . import piecewise as piecewise
from . import signs as signs
from . import zero as zero
from .rules import indicator as indicator
from .rules import maximum as maximum
from .rules import product as product
from .rules import sum as sum  # noqa: A004 - the family of sums
from .rules import whole_numbers as whole_numbers

if TYPE_CHECKING:
    from .algebra import ALL as ALL
    from .algebra import Algebra as Algebra
    from .algebra import Context as Context
    from .algebra import Split as Split
    from .algebra import Undecided as Undecided
    from .enclosure import Enclosure as Enclosure
    from .equality import equal as equal
    from .literals import opposite as opposite
    from .poly import Poly as Poly
    from .poly import structural as structural

__all__, __getattr__ = face(
    __name__,
    {
        "algebra": "ALL Algebra Context Split Undecided",
        "enclosure": "Enclosure",
        "equality": "equal",
        "literals": "opposite",
        "poly": "Poly structural",
    },
)
