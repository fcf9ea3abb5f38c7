"""The record of one run of a case's host function: launches and torch operations in order, on views of buffers.

Tensors are CPU tensors with their real addresses, so pointer arithmetic, aliasing and pointers stored as integers need
no model: two references alias exactly when their byte ranges meet.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import Place

if TYPE_CHECKING:
    import torch

    from ..ttir.ir import Module


@dataclass(frozen=True, slots=True)
class Buffer:
    """One storage: `address` its first byte, `nbytes` its length. `origin` says how it came to be: "input:x",
    "aten.empty", "aten.zeros" ... `tensor` keeps the storage alive so that addresses stay unique."""

    address: int
    nbytes: int
    origin: str
    tensor: Any = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class TensorRef:
    """A strided view: element (i, j, ...) is at byte `address + itemsize * (i*strides[0] + j*strides[1] + ...)`."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str  # "f32", "i64", "bf16", "bool", "u8" ...
    buffer: Buffer

    @property
    def itemsize(self) -> int:
        bits = "".join(c for c in self.dtype.split("e")[0] if c.isdigit())
        return 1 if self.dtype == "bool" else max(1, int(bits) // 8)

    def addresses(self) -> np.ndarray:
        """int64 array of `shape`: the byte address of every element."""
        out = np.full(self.shape, self.address, np.int64)
        for d, (n, s) in enumerate(zip(self.shape, self.strides, strict=True)):
            step = np.arange(n, dtype=np.int64) * (s * self.itemsize)
            out += step.reshape([-1 if k == d else 1 for k in range(len(self.shape))])
        return out


@dataclass(frozen=True, slots=True)
class Descriptor:
    """A tensor descriptor made by the host (TMA): a block of shape `block_shape` of the tensor of `shape` at `base`."""

    base: TensorRef
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    block_shape: tuple[int, ...]
    padding: str  # value of elements outside: "zero" or "nan"
    round_f32_to_tf32: bool | None


@dataclass(frozen=True, slots=True)
class Launch:
    """One kernel launch. `args` maps parameter names to TensorRef, Descriptor, int, float, bool, None (also tuples of
    them) in signature order, constexprs included; `constexprs` names those that are compile-time. `module()` lowers and
    parses (cached by content), unspecialised: integer arguments equal to 1 or divisible by 16 stay arguments.
    `operands`: the run-time values in the order of `module().entry.args`: TensorRef or number, tuples and descriptors
    flattened (`lift.ttir.lower.leaves`). `restored`: the parameters that the autotuner puts back or zeroes before it
    runs the kernel again, "*" where a hook may do so; `reset`: those that it zeroes between tuning and this launch, "*"
    where a hook may change any of them."""

    kernel: str
    file: str
    line: int
    grid: tuple[int, int, int]
    args: dict[str, Any]
    constexprs: frozenset[str]
    options: dict[str, Any]  # num_warps, num_stages, ...
    config: tuple[int, int]  # which autotune config, of how many: (0, 1) without autotune
    host: Place | None
    module: Callable[[], Module] = field(repr=False, compare=False)
    operands: tuple[Any, ...] = ()
    restored: frozenset[str] = frozenset()
    reset: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class TorchOp:
    """One torch operation, as the dispatcher sees it: `func` the OpOverload, arguments with TensorRef in place of
    tensors, `outputs` the TensorRefs it returned (views and in-place results included). `values`: a snapshot of the
    outputs' contents as torch computed them (right only where nothing traced flows in, e.g. torch.tensor([0, 7]))."""

    func: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    outputs: tuple[TensorRef, ...]
    values: tuple[torch.Tensor, ...]
    host: Place | None

    @property
    def is_view(self) -> bool:
        """Whether it only looks at a tensor in another way. PyTorch leaves some of these out, where a slice is seen to
        be the whole."""
        return _is_view(self.func)


@cache
def _is_view(func: torch._ops.OpOverload) -> bool:
    changes = any(a.alias_info is not None and a.alias_info.is_write for a in func._schema.arguments)
    return bool(func.is_view) and not changes and func._schema.name != "aten::lift_fresh"


@dataclass(frozen=True, slots=True)
class Trace:
    """One run of a case. `dims` maps dim and scalar names to the numbers of this run; `inputs` the case's tensor
    parameters; `outputs` the tensors the host function returned, named out, out0, out1 ... or by their dict keys. An
    input that was written is reported by execution, not here."""

    dims: dict[str, int | float]
    inputs: dict[str, TensorRef]
    events: tuple[Launch | TorchOp, ...]
    outputs: dict[str, TensorRef]
    configs: int = 1  # how many autotune configurations exist in all; this trace took the one asked for
    samples: dict[str, np.ndarray] = field(default_factory=dict, repr=False)  # the contents of the inputs in this run
    bounds: dict[str, int] = field(default_factory=dict)  # index tensor -> b: its elements v meet 0 <= v < b
    absent: tuple[bool, ...] = ()  # of a result that is a tuple or list, which elements are None
    another: str = ""  # why a launch is not what `Launch.module` says: which arguments of 1 make it another kernel

    @property
    def acts(self) -> tuple[Launch | TorchOp, ...]:
        """The events but for views."""
        return tuple(e for e in self.events if isinstance(e, Launch) or not e.is_view)

    @property
    def launches(self) -> tuple[Launch, ...]:
        return tuple(e for e in self.events if isinstance(e, Launch))

    @property
    def programs(self) -> int:
        """Of all launches."""
        return sum(math.prod(e.grid) for e in self.launches)

    @property
    def blocks(self) -> frozenset[int]:
        """The extents of the ranges in the kernels, and the numbers among their compile-time arguments."""
        ranges = (op for e in self.launches for op in e.module().walk() if op.name == "tt.make_range")
        given = (v for e in self.launches for n, v in e.args.items() if n in e.constexprs and type(v) is int)
        return frozenset([op.attrs["end"] - op.attrs["start"] for op in ranges]).union(given)
