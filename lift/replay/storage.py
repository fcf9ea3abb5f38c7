"""Buffers of the host program in the memory of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..capture.trace import TensorRef
from ..errors import Unsupported
from ..interpreter.machine import cell_of_dtype
from ..interpreter.memory import Memory, to_cells
from ..terms.bits import cell_size
from ..terms.domain import SYMBOLIC, as_ids

if TYPE_CHECKING:
    import torch


def ensure(memory: Memory, ref: TensorRef) -> None:
    """The buffer in memory. One that the trace did not make holds constants of the host program."""
    known = ref.buffer.address in memory.buffers
    cells = memory.allocate(ref.buffer, cell_of_dtype(ref.dtype))
    if known or ref.buffer.origin != "host" or not ref.buffer.nbytes:
        return
    values = storage_values(ref)
    cells.element = cell_of_dtype(ref.dtype)
    reals = values if cells.element[0] == "i" else memory.domain.reals(values)
    cells.data = as_ids(values).copy() if isinstance(memory.domain, type(SYMBOLIC)) else reals
    cells.fresh = False


def storage_values(ref: TensorRef) -> np.ndarray:
    """The whole storage of a tensor of the host program, as cells of the tensor's dtype."""
    import torch
    from torch._subclasses.fake_tensor import FakeTensor

    held = ref.buffer.tensor
    if isinstance(held, FakeTensor):
        raise Unsupported("the numbers of a tensor that an earlier call of the host function made are not known")
    size = cell_size(cell_of_dtype(ref.dtype))
    if held.element_size() != size:
        raise Unsupported(f"{ref.buffer.origin} tensor seen with another element size")
    flat = torch.empty(0, dtype=held.dtype).set_(held.untyped_storage())
    return to_cells(as_numpy(flat), ref.dtype).ravel()


def as_numpy(t: torch.Tensor) -> np.ndarray:
    """Its values; reals in float64."""
    t = t.detach()
    out: np.ndarray = (t.double() if t.is_floating_point() else t).numpy()
    return out
