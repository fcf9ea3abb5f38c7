"""Values of a field, and their possible failures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from trilift.lift.errors import Unsupported

VALUE = np.dtype([("p", np.int64), ("q", np.int64), ("v", np.float64)])
LOST, POISON = -1, -2  # no residue of this kind; undefined
Q_BITS, M_BITS = 30, 19  # q < 2^30 and p = q m + 1 with 2^19 <= m < 2^20
TABLE = 1 << 15
STEPS = 1 << 20
LARGEST = 1 << 13  # exponent of a power
NOWHERE = -(1 << 40) - 90


class NotTestable(Unsupported):
    """The field has no meaning for this."""


class Redraw(Exception):
    """Division by zero: an accident of this sample."""


@dataclass(frozen=True, slots=True)
class Modes:
    """Readings of what the field cannot have in full; each is sound by itself.

    order   max, min and comparisons follow one random order without ties; else max and min are free, a fresh value
            for each set, and comparisons come out by chance, ties included
    logs    log is the discrete logarithm, in q alone; else a hash
    """

    order: bool = False
    logs: bool = False


KEPT = {"random"}  # reals that machine integers alone determine


def whole(xs: Sequence[Any]) -> list[np.ndarray]:
    """The arguments of a choice, with a number out of every range for NaN beside integers."""
    arrays = [np.asarray(x) for x in xs]
    if any(a.dtype.kind in "iu" for a in arrays):
        return [np.full(a.shape, NOWHERE) if a.dtype.kind == "f" and np.isnan(a).all() else a for a in arrays]
    return arrays
