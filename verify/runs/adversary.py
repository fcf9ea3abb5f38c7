"""Arguments that tell wrong kernels from right ones, made from a seed, which says too with which row of
`verify.runs.input_table`: seed % 5 with which of SEARCHED, from FURTHER on with which other one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from trilift.lift.cases.declaration import Case, Spec, extreme
from trilift.lift.terms.fit import value

from .given_arguments import Given
from .input_table import ROWS, Inputs
from .trials import Dims

if TYPE_CHECKING:
    import torch

SEARCHED = ("normal", "negative", "equal", "large", "one-hot")
TABLE = tuple(name for name, r in ROWS.items() if name not in SEARCHED and "prove" not in r.unused)
FURTHER = 10**9  # the first seed of TABLE


def arguments(case: Case, dims: Dims, seed: int) -> dict[str, Any]:
    """Arguments of the host function, real tensors in float64; the strides are those that the case draws."""
    from trilift.lift.replay import check

    drawn = check.arguments(case, dims, seed)
    return drawn if isinstance(case, Given) else filled(case, drawn, dims, row(seed), seed)


def row(seed: int) -> Inputs:
    """The row of a seed."""
    names, k = (TABLE, seed - FURTHER) if seed >= FURTHER else (SEARCHED, seed)
    return ROWS[names[k % len(names)]]


def filled(case: Case, args: dict[str, Any], dims: Dims, row: Inputs, seed: int) -> dict[str, Any]:
    """The arguments that a case drew, with the numbers of a row in their place where the case allows those."""
    rng = np.random.default_rng([seed, 1])
    for name, x in case.named(args).items():
        if x.numel():
            _fill(x, case.tensors[name], dims, row, rng)
    return args


def _fill(x: torch.Tensor, s: Spec, dims: Dims, row: Inputs, rng: np.random.Generator) -> None:
    low, high = (None if e is None else value(e, dims) for e in (s.low, s.high))
    if s.is_float:
        made = row.reals(x.double().clone())
        made = made.abs().masked_fill(made == 0, 1) if s.positive else made
        if (low is None or (made >= low).all()) and (high is None or (made < high).all()):
            x.copy_(made)
    elif s.distinct:
        _in_order(x, row, low, high)
    elif s.dtype == "bool" and row.booleans is not None:
        x.fill_(row.booleans)
    elif row.integers == "first" and low is not None:
        x.fill_(int(low))
    elif row.integers == "last" and high is not None:
        x.fill_(max(int(high) - 1, int(low or 0)))
    elif row.integers == "edges":
        extreme(x, s, rng)


def _in_order(x: torch.Tensor, row: Inputs, low: float | None, high: float | None) -> None:
    """The first numbers in order, or the last ones from the greatest on, in a tensor without two equal elements."""
    import torch

    steps = torch.arange(x.numel()).reshape(x.shape)
    if row.integers == "first" and low is not None:
        x.copy_(int(low) + steps)
    elif row.integers == "last" and high is not None:
        x.copy_(int(high) - 1 - steps)


def at_edges(case: Case, seed: int) -> bool:
    """Whether a seed puts integer inputs at the edges of their types."""
    free = any(s.dtype[0] in "iu" and s.low is None and s.high is None for s in case.tensors.values())
    return free and row(seed).integers == "edges"


def arrays(case: Case, args: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The tensors among the arguments, as numpy arrays of their own."""
    from trilift.lift.replay import check

    return {name: x.copy() for name, x in check.arrays(case, args).items()}
