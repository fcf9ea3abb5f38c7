"""Operators that give a tensor another shape in place. They write no element: `x.t_()` makes x the view `x.t()`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from torch._ops import OpOverload

OVERLOADS = {"transpose_": "int"}  # of views, where they have another name than those that act in place


def as_view(func: OpOverload) -> OpOverload:
    """The operator that returns the view which func makes of its argument; func itself where it does something else."""
    if torch.Tag.inplace_view not in func.tags:
        return func
    name = func.overloadpacket.__name__
    packet = getattr(torch.ops.aten, name.removesuffix("_"), None)
    view = getattr(packet, OVERLOADS.get(name, func._overloadname), None)
    return view if view is not None and view.is_view else func
