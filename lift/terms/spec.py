"""The pointwise spec: every element of every output as a term over single elements of the inputs, at one shape."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .term import REAL, Axis, Term, read


@dataclass(frozen=True, slots=True)
class Spec:
    """`ids[i, j, ...]` is the id of the term of output element (i, j, ...), an int32 array. `dims`: the numbers of this
    run. `inputs`: shape of each input. `in_place`: the output is the final contents of the input of that name."""

    name: str
    ids: np.ndarray
    dims: dict[str, int | float]
    inputs: dict[str, tuple[int, ...]]
    dtype: str
    in_place: str | None = None


@dataclass(frozen=True, slots=True)
class Formula:
    """The value of one output for every shape: the free axes of `term` are `axes`, in the order of the output's
    dimensions."""

    name: str
    axes: tuple[Axis, ...]
    term: Term
    dtype: str
    in_place: str | None = None


def input_elements(name: str, shape: tuple[int, ...], like: Term) -> np.ndarray:
    """The ids of reads of all elements of an input, of the type with which a term reads it."""
    kind = next((t.type for t in like.walk() if t.op == "read" and t.attr == name), REAL)
    return np.array([read(name, i, kind).id for i in np.ndindex(*shape)], np.int32).reshape(shape)
