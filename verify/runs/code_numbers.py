"""Inputs beside the numbers that the code has in it: `x == 77` against `x == 78` differs at two integers of 2^32."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np

from trilift.lift.cases.declaration import Case, Spec
from trilift.lift.terms.fit import Number, value

from .readings import Arguments

if TYPE_CHECKING:
    import torch

SHARE = 0.5  # of the elements of a tensor that are such numbers


@dataclass(frozen=True)
class Beside(Case):
    """A case half of whose elements are `near`, where its dtypes and limits allow them."""

    near: tuple[Number, ...] = ()

    def sample(self, dims: Mapping[str, Number], rng: np.random.Generator) -> Arguments:
        """The arguments of the case, changed."""
        args = super().sample(dims, rng)
        for n, x in self.named(args).items():
            if numbers := allowed(self.tensors[n], self.near, dims):
                _put(x, numbers, rng)
        return args


def beside(case: Case, numbers: Iterable[Number]) -> Beside | None:
    """The case with elements at and beside these numbers; None without numbers or tensors of numbers."""
    near = dict.fromkeys(m for n in numbers if math.isfinite(n) for m in _near(n))
    if not near or all(s.dtype == "bool" for s in case.tensors.values()):
        return None
    return Beside(**{f.name: getattr(case, f.name) for f in fields(Case) if f.init}, near=tuple(near))


def _near(n: Number) -> list[Number]:
    whole = [int(n) + d for d in (0, 1, -1)] if n == int(n) else [math.floor(n), math.ceil(n)]
    single = np.float32(min(max(n, -3e38), 3e38))
    return [*whole, -n, n, float(np.nextafter(single, np.float32(np.inf))), float(single)]


def allowed(s: Spec, numbers: Iterable[Number], dims: Mapping[str, Number]) -> list[Number]:
    """Those that a tensor may hold."""
    low, high = (None if e is None else value(e, dims) for e in (s.low, s.high))
    if s.distinct or s.dtype == "bool" or (s.low is not None and low is None) or (s.high is not None and high is None):
        return []
    least, most = _limits(s.dtype)
    return [
        n
        for n in numbers
        if (s.is_float or n == int(n)) and least <= n <= most and (n > 0 or not s.positive)
        if (low is None or low <= n) and (high is None or n < high)
    ]


def _limits(dtype: str) -> tuple[float, float]:
    import torch

    from trilift.lift.cases.declaration import torch_dtype

    if dtype[0] not in "iu":
        most = torch.finfo(torch_dtype(dtype)).max
        return -most, most
    of = torch.iinfo(torch_dtype(dtype))
    return of.min, of.max


def _put(x: torch.Tensor, numbers: list[Number], rng: np.random.Generator) -> None:
    import torch

    chosen = rng.choice(len(numbers), tuple(x.shape))
    drawn = torch.tensor(numbers, dtype=x.dtype)[torch.from_numpy(np.asarray(chosen))]
    here = torch.from_numpy(np.asarray(rng.random(tuple(x.shape)) < SHARE))
    x.copy_(torch.where(here, drawn.reshape(x.shape), x))
