"""The inputs that are tried: numbers and layouts by name, one table for proofs, audits and written tests. Sizes are at
the edges of blocks (`verify.runs.trials`).

Written tests have copies of these definitions (`reports.testgen.library`).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch


def normal(shape: Sequence[int], random: torch.Generator) -> torch.Tensor:
    return torch.randn(shape, generator=random, dtype=torch.float64)


def large(shape: Sequence[int], random: torch.Generator) -> torch.Tensor:
    """Of either sign: sums cancel, and exp overflows unless the maximum is subtracted first."""
    return 30 * torch.randn(shape, generator=random, dtype=torch.float64)


def tiny(shape: Sequence[int], random: torch.Generator) -> torch.Tensor:
    return 1e-3 * torch.randn(shape, generator=random, dtype=torch.float64)


def equal(shape: Sequence[int], random: torch.Generator) -> torch.Tensor:
    return torch.randn((), generator=random, dtype=torch.float64).expand(shape)


def negative(shape: Sequence[int], random: torch.Generator) -> torch.Tensor:
    """A lane that counts as 0 wins a maximum."""
    return -0.5 - torch.randn(shape, generator=random, dtype=torch.float64).abs()


def positive(shape: Sequence[int], random: torch.Generator) -> torch.Tensor:
    """Nothing cancels, and every logarithm is a number."""
    return 0.5 + torch.randn(shape, generator=random, dtype=torch.float64).abs()


def one_hot(shape: Sequence[int], random: torch.Generator) -> torch.Tensor:
    """One number in each row that is not 0."""
    x = torch.randn(shape, generator=random, dtype=torch.float64)
    if x.dim() == 0 or x.numel() == 0:
        return x
    keep = torch.randint(shape[-1], (*shape[:-1], 1), generator=random)
    return x * (torch.arange(shape[-1]) == keep)


def ties(shape: Sequence[int], random: torch.Generator) -> torch.Tensor:
    """Whole numbers, many of them equal."""
    return torch.randint(-2, 3, shape, generator=random).double()


def eighths(shape: Sequence[int], random: torch.Generator) -> torch.Tensor:
    """Whole eighths from -8 to 8: sums of two, and half and double of them, are exact in every dtype."""
    x = 16 * torch.randn(shape, generator=random, dtype=torch.float64)
    return x.round().clamp(-64, 64) / 8


def masked(x: torch.Tensor, random: torch.Generator, seed: int) -> torch.Tensor:
    """A quarter of the elements, three of four, or all but the first slices of each dimension are minus infinity."""
    drawn = torch.rand(x.shape, generator=random) < (0.25, 0.75, 1.0)[seed % 3]
    for d in range(x.dim()):
        drawn.narrow(d, 0, min(1, x.shape[d])).fill_(False)
    return torch.where(drawn, -torch.inf, x) if x.dim() else x


VALUES = {
    "normal": normal,
    "large": large,
    "tiny": tiny,
    "equal": equal,
    "negative": negative,
    "positive": positive,
    "one-hot": one_hot,
    "ties": ties,
    "eighths": eighths,
}


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


LAYOUTS = {
    "contiguous": contiguous,
    "offset": contiguous,
    "padded": padded,
    "gaps": gaps,
    "transposed": transposed,
    "strided": strided,
    "expanded": expanded,
}


# ---- of proofs alone: NaN and rounding are as likely as a number ----


def zeros(shape: Sequence[int], random: torch.Generator) -> torch.Tensor:
    """Of either sign, between numbers."""
    x = torch.randn(shape, generator=random, dtype=torch.float64)
    return torch.where(torch.rand(shape, generator=random) < 0.5, torch.copysign(torch.zeros_like(x), x), x)


def subnormal(shape: Sequence[int], random: torch.Generator) -> torch.Tensor:
    """As small as single precision has them."""
    return 1e-40 * torch.randn(shape, generator=random, dtype=torch.float64)


def ordered(shape: Sequence[int], random: torch.Generator) -> torch.Tensor:
    """Every row from its largest number down."""
    x = torch.randn(shape, generator=random, dtype=torch.float64)
    return x.sort(-1, descending=True).values if x.dim() else x


def alternating(shape: Sequence[int], random: torch.Generator) -> torch.Tensor:
    """Neighbours of opposite signs, which cancel."""
    x = 1 + torch.rand(shape, generator=random, dtype=torch.float64)
    return x * (1 - 2 * (torch.arange(shape[-1]) % 2)) if x.dim() else x


def channels_last(shape: Sequence[int]) -> list[int]:
    """The second of four dimensions is the innermost."""
    if len(shape) != 4:
        return contiguous(shape)
    n, c, h, w = shape
    outer, row, column, inner = contiguous([n, h, w, c])
    return [outer, inner, row, column]


HARD_VALUES = {"zeros": zeros, "subnormal": subnormal, "ordered": ordered, "alternating": alternating}
HARD_LAYOUTS = {"channels last": channels_last}
