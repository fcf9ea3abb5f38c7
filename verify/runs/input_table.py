"""The inputs on which runs are made: one table of values, one of layouts, for proofs, audits and written tests. Every
row of values goes with every layout. Sizes are at the edges of blocks (`verify.runs.trials`).

A row makes its numbers of `x`: standard normal ones, or what a case draws, in float64. Written tests have copies of
these functions (`reports.testgen.library`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

Reals = Callable[["torch.Tensor"], "torch.Tensor"]


def normal(x: torch.Tensor) -> torch.Tensor:
    return x


def negative(x: torch.Tensor) -> torch.Tensor:
    return -0.5 - x.abs()


def positive(x: torch.Tensor) -> torch.Tensor:
    return 0.5 + x.abs()


def equal(x: torch.Tensor) -> torch.Tensor:
    return x.flatten()[0].expand(x.shape) if x.numel() else x


def large(x: torch.Tensor) -> torch.Tensor:
    return 30 * x


def tiny(x: torch.Tensor) -> torch.Tensor:
    return 1e-3 * x


def one_hot(x: torch.Tensor) -> torch.Tensor:
    """One number in each row that is not 0: the one farthest from it."""
    if x.dim() == 0 or x.numel() == 0:
        return x
    return x * (x.abs() == x.abs().amax(-1, keepdim=True))


def ties(x: torch.Tensor) -> torch.Tensor:
    """Whole numbers from -2 to 2, many of them equal."""
    return x.round().clamp(-2, 2)


def eighths(x: torch.Tensor) -> torch.Tensor:
    """Whole eighths from -8 to 8: sums of two, and half and double of them, are exact in every dtype."""
    return (16 * x).round().clamp(-64, 64) / 8


def masked(x: torch.Tensor, seed: int) -> torch.Tensor:
    """About a quarter of the elements, three of four, or all but the first slices of each dimension are minus
    infinity."""
    drawn = x.abs() < (0.32, 1.15, float("inf"))[seed % 3]
    for d in range(x.dim()):
        drawn.narrow(d, 0, min(1, x.shape[d])).fill_(False)
    return x.masked_fill(drawn, -float("inf")) if x.dim() else x


def zeros(x: torch.Tensor) -> torch.Tensor:
    """Zeros of either sign: the first row, and half of the other numbers."""
    kept = x.abs() > x.abs().flatten().median()
    if x.dim():
        kept[:1] = False
    return x * kept


def all_zero(x: torch.Tensor) -> torch.Tensor:
    """Of either sign."""
    return 0 * x


def subnormal(x: torch.Tensor) -> torch.Tensor:
    """As small as single precision has them."""
    return 1e-40 * x


def ordered(x: torch.Tensor) -> torch.Tensor:
    """Every row from its largest number down."""
    return x.sort(-1, descending=True).values if x.dim() else x


def alternating(x: torch.Tensor) -> torch.Tensor:
    """Neighbours of opposite signs."""
    return (1 + x.abs()) * (2 * (x.new_ones(x.shape).cumsum(-1) % 2) - 1) if x.dim() else x


def tenths(x: torch.Tensor) -> torch.Tensor:
    """0.7, whose roundings in a narrow sum go one way."""
    return 0 * x + 0.7


def unit(x: torch.Tensor) -> torch.Tensor:
    """From 0 to 1."""
    return x.abs().frac()


def far(x: torch.Tensor) -> torch.Tensor:
    return (100 + 300 * x.abs().frac()).copysign(x)


def far_above(x: torch.Tensor) -> torch.Tensor:
    return far(x).abs()


def far_below(x: torch.Tensor) -> torch.Tensor:
    return -far(x).abs()


def shifted(x: torch.Tensor) -> torch.Tensor:
    return 1e4 + x


def shifted_narrow(x: torch.Tensor) -> torch.Tensor:
    return 1e3 + 4 * x


def contiguous(shape: Sequence[int]) -> list[int]:
    strides = [1] * len(shape)
    for k in range(len(shape) - 2, -1, -1):
        strides[k] = strides[k + 1] * max(shape[k + 1], 1)
    return strides


def padded(shape: Sequence[int]) -> list[int]:
    """Rows that lie 3 elements apart."""
    return contiguous([*shape[:-1], shape[-1] + 3]) if shape else []


def gaps(shape: Sequence[int]) -> list[int]:
    """Every second element of a row, rows apart."""
    return [2 * s for s in padded(shape)]


def transposed(shape: Sequence[int]) -> list[int]:
    """The last two dimensions the other way round in memory."""
    if len(shape) < 2:
        return contiguous(shape)
    *batch, m, n = shape
    strides = contiguous([*batch, n, m])
    return [*strides[:-2], strides[-1], strides[-2]]


def strided(shape: Sequence[int]) -> list[int]:
    """Every second element of a tensor twice as wide."""
    return [2 * s for s in contiguous(shape)]


def expanded(shape: Sequence[int]) -> list[int]:
    """All rows are one."""
    return [0, *contiguous(shape)[1:]]


def channels_last(shape: Sequence[int]) -> list[int]:
    """The second of four dimensions is the innermost."""
    if len(shape) != 4:
        return contiguous(shape)
    n, c, h, w = shape
    outer, row, column, inner = contiguous([n, h, w, c])
    return [outer, inner, row, column]


def last_apart(shape: Sequence[int]) -> list[int]:
    """As if contiguous, but for the last dimension: its stride is the number of elements."""
    return [*contiguous(shape)[:-1], math.prod(shape)] if len(shape) > 1 else contiguous(shape)


LAYOUTS = {
    "contiguous": contiguous,
    "offset": contiguous,
    "padded": padded,
    "gaps": gaps,
    "transposed": transposed,
    "strided": strided,
    "expanded": expanded,
}

HARD_LAYOUTS = {"channels last": channels_last, "last apart": last_apart}


# ---- the table -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Inputs:
    """How reals are filled, in `words` too, and the mistakes that such inputs `show`. `integers`: the "first" or "last"
    that limits allow, or where there are none the "edges" of their type; "" and None: as the case draws them. `unused`:
    by which of prove, audit and write, and why."""

    name: str
    reals: Reals
    words: str
    shows: str
    integers: str = ""
    booleans: bool | None = None
    unused: Mapping[str, str] = field(default_factory=dict)


REALS = "numbers are reals there, without rounding or overflow"
TOLERANCE = "the tolerance of a test leaves no room for what rounding does to such numbers"
UNDEFINED = "NaN and underflow are as likely as a number"
WHOLE = "equal and large inputs have these integers and booleans"
ROUNDED = {"prove": REALS, "write": TOLERANCE}

ROWS = {
    r.name: r
    for r in (
        Inputs("normal", normal, "random inputs", "most: wrong terms, indices, masks"),
        Inputs("negative", negative, "inputs below 0", "a masked lane that counts as 0 in a maximum", "edges"),
        Inputs("equal", equal, "inputs that are equal", "a spread of 0 that is divided by", "last", True),
        Inputs("large", large, "large inputs", "exp before the maximum is subtracted; clamps and thresholds", "first",
               False),
        Inputs("one-hot", one_hot, "inputs that are 0 but for one in a row", "products over the rest of a row; 0 taken "
               "for a lane without a number", "edges"),
        Inputs("zeros", zeros, "inputs with zeros", "0 taken for a lane without a number; 0 / 0", "edges",
               unused={"write": UNDEFINED}),
        Inputs("alternating", alternating, "inputs of alternating signs", "sums of pairs that cancel", "edges",
               unused={"write": "relative errors of sums that cancel have no bound"}),
        Inputs("ordered", ordered, "inputs in descending order", "a running maximum that is never rescaled", "edges",
               unused={"write": "random inputs have such rows, which are short"}),
        Inputs("positive", positive, "inputs above 0", "a masked lane that counts as 0 in a minimum"),
        Inputs("ties", ties, "inputs with ties", "which of equal numbers argmax or a sort takes", "edges"),
        Inputs("all-zero", all_zero, "inputs that are 0", "a norm that is divided by without an epsilon",
               unused={"write": UNDEFINED}),
        Inputs("subnormal", subnormal, "subnormal inputs", "thresholds beside 0", "edges", unused={"write": UNDEFINED}),
        Inputs("tiny", tiny, "inputs of size 0.001", "an epsilon that is missing or of another size",
               unused={"prove": "all-zero inputs show it", "audit": "all-zero inputs show it"}),
        Inputs("eighths", eighths, "whole eighths", "a law that is to hold bit for bit",
               unused={"prove": REALS, "audit": "rounding is what it looks for"}),
        Inputs("first", normal, "random inputs, masks all false", "rows without a lane", "first", False,
               {"prove": WHOLE, "write": WHOLE}),
        Inputs("last", normal, "random inputs, masks all true", "rows without a masked lane", "last", True,
               {"prove": WHOLE, "write": WHOLE}),
        Inputs("tenths", tenths, "inputs that are 0.7", "narrow sums that round one way", unused=ROUNDED),
        Inputs("unit", unit, "inputs from 0 to 1", "narrow sums that grow until they stand still", unused=ROUNDED),
        Inputs("far", far, "inputs from 100 to 400, of either sign", "exp before the maximum is subtracted",
               unused=ROUNDED),
        Inputs("far-above", far_above, "inputs from 100 to 400", "squares and sums in a narrow type", unused=ROUNDED),
        Inputs("far-below", far_below, "inputs from -400 to -100", "exp(-x) that is infinite before it is divided by",
               unused=ROUNDED),
        Inputs("shifted", shifted, "inputs beside 10000, spread 1", "E[x^2] - E[x]^2", unused=ROUNDED),
        Inputs("shifted-narrow", shifted_narrow, "inputs beside 1000, spread 4", "the same in half precision",
               unused=ROUNDED),
    )
}  # fmt: skip


ENDS = ("first", "last")
VALUES = {name: r.reals for name, r in ROWS.items() if "write" not in r.unused}  # of written tests
