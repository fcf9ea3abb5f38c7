"""How a tensor may lie in memory: the same elements at the strides of a row of `verify.runs.input_table`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from trilift.lift.cases.declaration import Case

if TYPE_CHECKING:
    import torch

OTHERWISE = ("transposed", "padded", "contiguous", "last apart")  # than a case draws tensors that may have any strides
OF_ROWS = ("contiguous", "offset", "padded")  # layouts whose last stride is 1
Layout = Callable[["torch.Tensor"], "torch.Tensor"]
RANKS = {"strided": 1, "transposed": 2, "expanded": 1}  # that a tensor has at least


def layout(name: str) -> Layout:
    """A tensor in the layout of that name (`verify.runs.input_table`)."""

    def placed(x: torch.Tensor) -> torch.Tensor:
        import torch

        from .input_table import HARD_LAYOUTS
        from .input_table import LAYOUTS as TABLE

        strides = {**TABLE, **HARD_LAYOUTS}[name](x.shape)
        if 0 in strides:
            return x[:1].clone().expand(x.shape)
        return torch.empty_strided(tuple(x.shape), strides, dtype=x.dtype).copy_(x)

    return placed


LAYOUTS: Mapping[str, tuple[int, Layout]] = {name: (rank, layout(name)) for name, rank in RANKS.items()}


def fits(layout: str, x: torch.Tensor) -> bool:
    """Whether the tensor then lies in memory in another way than before."""
    rank, made = LAYOUTS[layout]
    return x.dim() >= rank and x.numel() > 1 and made(x).stride() != x.stride() and not made(x).is_contiguous()


@dataclass(frozen=True)
class Laid(Case):
    """A case whose arguments lie in memory otherwise, or whose index tensors begin with another number; where
    `dense`, with the same elements in the usual order."""

    layouts: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, int] = field(default_factory=dict)
    dense: bool = False

    def sample(self, dims: Mapping[str, int | float], rng: np.random.Generator) -> dict[str, Any]:
        """The arguments of the case, changed."""
        return {n: self.changed(n, v) for n, v in super().sample(dims, rng).items()}

    def changed(self, name: str, v: Any) -> Any:
        """An argument, or each of a list of them."""
        if isinstance(v, list | tuple):
            return type(v)(self.changed(f"{name}{k}", e) for k, e in enumerate(v))
        if name in self.values and v.numel():
            v[(0,) * v.dim()] = self.values[name]
        if name not in self.layouts:
            return v
        laid = layout(self.layouts[name])(v)
        return laid.clone(memory_format=_contiguous()) if self.dense else laid


def laid(case: Case, layouts: Mapping[str, str], values: Mapping[str, int] | None = None, dense: bool = False) -> Laid:
    """The case with arguments that lie so."""
    kept = (case.name, case.fn, case.params, case.where, case.reference, case.place, case.written, case.mentioned)
    return Laid(*kept, layouts=layouts, values=values or {}, dense=dense)


def otherwise(case: Case) -> Iterator[Laid]:
    """The case with its tensors of any strides in one layout after the other that it never draws: host functions test
    strides for 1."""
    free = {n: s.unit for n, s in case.tensors.items() if s.strided and s.shape}
    names = (n for n in OTHERWISE if n in OF_ROWS or not any(free.values()))
    yield from (laid(case, dict.fromkeys(free, name)) for name in names if free)


def strides(case: Case, dims: Mapping[str, int | float], seed: int) -> dict[str, tuple[int, ...]]:
    """The strides with which the case draws each tensor: {"x": (8, 1)}. Converted to float64, tensors may lose them."""
    args = case.sample(dims, np.random.default_rng(seed))
    return {n: tuple(x.stride()) for n, x in case.named(args).items()}


def numbers(case: Case, dims: Mapping[str, int | float], seed: int) -> dict[str, int]:
    """{"stride(x,0)": 8, ...} of the tensors that may have any strides."""
    free = [n for n, s in case.tensors.items() if s.strided]
    drawn = strides(case, dims, seed) if free else {}
    return {f"stride({n},{d})": s for n in free for d, s in enumerate(drawn[n])}


def _contiguous() -> Any:
    import torch

    return torch.contiguous_format
