"""A case that draws known arguments: those of a counterexample, which its seed alone may not make again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

from trilift.lift.cases.declaration import Case

if TYPE_CHECKING:
    import numpy as np

    from .readings import Arguments


@dataclass(frozen=True)
class Given(Case):
    """A case that draws `arguments`, each time anew, with the strides that they have."""

    arguments: Mapping[str, object] = field(default_factory=dict)

    def sample(self, dims: Mapping[str, int | float], rng: np.random.Generator) -> Arguments:  # noqa: ARG002
        """The arguments, whatever the numbers."""
        return {n: _copied(v) for n, v in self.arguments.items()}


def given(case: Case, arguments: Mapping[str, object] | None) -> Case:
    """The case with these arguments only; the case itself for None."""
    if arguments is None:
        return case
    return Given(**{f.name: getattr(case, f.name) for f in fields(Case) if f.init}, arguments=arguments)


def _copied(v: object) -> object:
    import torch

    if isinstance(v, list | tuple):
        return type(v)(map(_copied, v))
    if not isinstance(v, torch.Tensor):
        return v
    reach = sum((n - 1) * k for n, k in zip(v.shape, v.stride(), strict=True)) + 1 if v.numel() else 0
    cells = torch.as_strided(v, (reach,), (1,)).clone()
    return torch.as_strided(cells, v.shape, v.stride(), 0)
