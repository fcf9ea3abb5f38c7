"""Arguments that tell wrong kernels from right ones, made from a seed: seed % 5 says of which kind; from FURTHER on
they are those of `verify.runs.input_table`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from trilift.lift.cases.declaration import Case, Spec, extreme
from trilift.lift.terms.fit import value

from .trials import Dims

if TYPE_CHECKING:
    import torch

FURTHER = 10**9  # the first seed of the kinds of the table
TABLE = ("zeros", "alternating", "ordered", "ties", "one-hot", "equal", "subnormal", "negative")
LARGE = 8.0  # times a standard normal number


Change = Callable[["torch.Tensor", Spec, Any, Any, np.random.Generator], None]


def arguments(case: Case, dims: Dims, seed: int) -> dict[str, Any]:
    """Arguments of the host function, real tensors in float64; the strides are those that the case draws."""
    from trilift.lift.replay import check

    args = check.arguments(case, dims, seed)
    change, rng = _change(seed), np.random.default_rng([seed, 1])
    if change is not None:
        for name, x in case.named(args).items():
            s = case.tensors[name]
            low, high = (None if e is None else value(e, dims) for e in (s.low, s.high))
            if x.numel():
                change(x, s, low, high, rng)
    return args


def kind(seed: int) -> str:
    """The kind of inputs of a seed."""
    if seed >= FURTHER:
        return TABLE[(seed - FURTHER) % len(TABLE)]
    change = _change(seed)
    return "random" if change is None else change.__name__.strip("_")


def _change(seed: int) -> Change | None:
    return _tabled(kind(seed), seed) if seed >= FURTHER else KINDS[seed % len(KINDS)]


def _tabled(name: str, seed: int) -> Change:
    """Reals without limits as the row `name` of the table has them, integers at the edges of their types."""

    def change(x: torch.Tensor, s: Spec, low: object, high: object, rng: np.random.Generator) -> None:
        import torch

        from .input_table import HARD_VALUES, VALUES

        extreme(x, s, rng)
        if s.is_float and low is None and not s.positive:
            x.copy_({**VALUES, **HARD_VALUES}[name](x.shape, torch.Generator().manual_seed(seed)))

    return change


def at_edges(case: Case, seed: int) -> bool:
    """Whether a seed puts integer inputs at the edges of their types."""
    free = any(s.dtype[0] in "iu" and s.low is None and s.high is None for s in case.tensors.values())
    return free and (seed >= FURTHER or KINDS[seed % len(KINDS)] in (_negative, _sparse))


def _equal(x: torch.Tensor, s: Spec, low: Any, high: Any, rng: np.random.Generator) -> None:
    """All elements of a tensor the same; of an index tensor the last one allowed."""
    if s.is_float:
        x.copy_(x.flatten()[0].expand(x.shape).clone())
    elif high is not None:
        x.fill_(max(int(high) - 1, int(low or 0)))


def _large(x: torch.Tensor, s: Spec, low: Any, high: object, rng: np.random.Generator) -> None:
    """Large numbers of either sign, where there are no limits; of an index tensor the first one allowed."""
    if s.is_float and low is None and not s.positive:
        x.mul_(LARGE)
    elif not s.is_float and low is not None:
        x.fill_(int(low))


def _sparse(x: torch.Tensor, s: Spec, low: Any, high: object, rng: np.random.Generator) -> None:
    """One number in each row that is not 0, where 0 is allowed; integers at the edges of their type."""
    extreme(x, s, rng)
    if s.is_float and x.dim() and not s.positive and (low is None or low <= 0):
        keep = rng.integers(0, x.shape[-1], tuple(x.shape[:-1]))
        mask = np.arange(x.shape[-1]) == np.asarray(keep)[..., None]
        x.copy_(x * _tensor(mask))


def _negative(x: torch.Tensor, s: Spec, low: Any, high: object, rng: np.random.Generator) -> None:
    """All elements below 0: a lane that counts as 0 wins a maximum; integers at the edges of their type."""
    extreme(x, s, rng)
    if s.is_float and low is None and not s.positive:
        x.copy_(-x.abs() - 0.5)


def _tensor(mask: np.ndarray) -> torch.Tensor:
    import torch

    return torch.from_numpy(mask)


KINDS: tuple[Change | None, ...] = (None, _negative, _equal, _large, _sparse)


def arrays(case: Case, args: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The tensors among the arguments, as numpy arrays of their own."""
    from trilift.lift.replay import check

    return {name: x.copy() for name, x in check.arrays(case, args).items()}
