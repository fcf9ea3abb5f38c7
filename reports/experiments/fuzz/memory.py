"""Guard of the accesses of kernels in Triton's interpreter: part of `interpreter_server.py`, which is a script."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import cast

import numpy as np
import torch
import triton.runtime.interpreter as interpreter
from draws import POISON  # type: ignore[import-not-found]  # beside this script

Index = tuple[int, ...]  # of a program in its grid
TRACKED = 40_000  # elements of a launch whose programs are told apart
EMPTY, ZEROS = torch.empty, torch.zeros


class Wrong(Exception):
    """The kernel did something that no kernel may do."""


class Memory:
    """The tensors that a kernel may touch, and which program wrote what."""

    def __init__(self) -> None:
        self.kept: list[torch.Tensor] = []
        self.program: Index | None = None
        self.written: dict[int, tuple[Index, object]] = {}
        self.read: dict[int, Index] = {}
        self.lanes: dict[int, tuple[Index, int, int]] = {}  # of what was stored since the last barrier
        self.file = ""  # of the kernels
        self.unused: frozenset[int] = frozenset()  # its lines whose loads a compiled kernel does not make

    def add(self, x: torch.Tensor) -> torch.Tensor:
        self.kept.append(x)
        return x

    def launch(self) -> None:
        self.written, self.read, self.lanes = {}, {}, {}

    def barrier(self, *_: object) -> None:
        """Lanes of a program may read what others stored before."""
        self.lanes = {}

    @property
    def line(self) -> int:
        """The line of the kernel that makes an access now."""
        frame: types.FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename != self.file:
            frame = frame.f_back
        return frame.f_lineno if frame is not None else 0

    def check(self, addresses: np.ndarray, size: int, what: str) -> None:
        kept = [t.untyped_storage() for t in self.kept if t.numel()]
        found = sorted((s.data_ptr(), s.data_ptr() + s.size()) for s in kept)
        starts, ends = (np.array([f[k] for f in found] or [0], np.uint64) for k in (0, 1))
        at = np.searchsorted(starts, addresses, "right").astype(np.int64) - 1
        if (at < 0).any() or (addresses + np.uint64(size) > ends[np.maximum(at, 0)]).any():
            raise Wrong(f"{what} out of bounds at line {self.line}")

    def stored(self, addresses: np.ndarray, values: np.ndarray, lanes: np.ndarray) -> None:
        me = interpreter.interpreter_builder.grid_idx
        if len(self.lanes) < TRACKED:
            self.lanes |= {
                a: (me, k, len(lanes)) for a, k in zip(addresses.tolist(), lanes.nonzero()[0].tolist(), strict=True)
            }
        for a, v in zip(addresses.tolist(), values.tolist(), strict=True):
            if (a in self.written and self.written[a][0] != me and self.written[a][1] != v) or self.read.get(
                a, me
            ) != me:
                raise Wrong("programs meet at a store")
            if len(self.written) < TRACKED:
                self.written[a] = (me, v)

    def loaded(self, addresses: np.ndarray, lanes: np.ndarray) -> None:
        me = interpreter.interpreter_builder.grid_idx
        for a, k in zip(addresses.tolist(), lanes.nonzero()[0].tolist(), strict=True):
            if self.lanes.get(a, (None, k, 0))[0] == me and self.lanes[a][1:] != (k, len(lanes)):
                raise Wrong("lanes meet without a barrier")
        for a in addresses.tolist():
            if a in self.written and self.written[a][0] != me:
                raise Wrong("programs meet at a load")
            if len(self.read) < TRACKED:
                self.read[a] = me


MEMORY = Memory()


class Guarded:
    """Triton's interpreter of accesses, with checks."""

    def __init__(self, inner: interpreter.InterpreterBuilder) -> None:
        self.inner = inner

    def __getattr__(self, name: str) -> Callable[..., object]:
        return cast(Callable[..., object], getattr(self.inner, name))

    def load(self, pointers: np.ndarray, mask: np.ndarray, other: np.ndarray, dtype: np.dtype) -> np.ndarray:
        if MEMORY.unused and MEMORY.line in MEMORY.unused:
            return np.ones(np.shape(pointers), np.dtype(dtype))
        seen = np.asarray(pointers)[np.asarray(mask)].ravel()
        MEMORY.check(seen, np.dtype(dtype).itemsize, "load")
        MEMORY.loaded(seen, np.asarray(mask).ravel())
        return cast(np.ndarray, self.inner.load(pointers, mask, other, dtype))

    def store(self, pointers: np.ndarray, values: np.ndarray, mask: np.ndarray) -> object:
        chosen = np.asarray(mask)
        seen = np.asarray(pointers)[chosen].ravel()
        MEMORY.check(seen, values.dtype.itemsize, "store")
        MEMORY.stored(seen, np.broadcast_to(values, chosen.shape)[chosen].ravel(), chosen.ravel())
        return self.inner.store(pointers, values, mask)

    def atomic_rmw(self, op: object, pointers: np.ndarray, values: np.ndarray, mask: np.ndarray, sem: object) -> object:
        MEMORY.check(np.asarray(pointers)[np.asarray(mask)].ravel(), values.dtype.itemsize, "atomic")
        return self.inner.atomic_rmw(op, pointers, values, mask, sem)


def install() -> None:
    """Puts the checks into Triton's interpreter, and poison into what was never written."""
    interpreter._interpreter = Guarded(interpreter._interpreter)
    load, call = interpreter.InterpreterBuilder.create_masked_load, interpreter.GridExecutor.__call__

    def poisoned(
        self: interpreter.InterpreterBuilder,
        ptrs: interpreter.TensorHandle,
        mask: interpreter.TensorHandle,
        other: interpreter.TensorHandle | None,
        *policy: object,
    ) -> object:
        if other is None and not np.all(mask.data):
            dtype = interpreter._get_np_dtype(ptrs.get_element_ty())
            raw = np.full((*ptrs.data.shape, np.dtype(dtype).itemsize), POISON, np.uint8)
            data = np.ones(ptrs.data.shape, bool) if dtype == np.bool_ else raw.view(dtype)[..., 0]
            other = interpreter.TensorHandle(data, ptrs.get_element_ty())
        return load(self, ptrs, mask, other, *policy)

    def launched(self: interpreter.GridExecutor, *args: object, **kwargs: object) -> object:
        MEMORY.launch()
        return call(self, *args, **kwargs)

    interpreter.InterpreterBuilder.create_masked_load = poisoned
    interpreter.GridExecutor.__call__ = launched
    interpreter.InterpreterBuilder.create_barrier = MEMORY.barrier
    torch.empty = lambda *a, **k: MEMORY.add(poison(EMPTY(*a, **k)))
    torch.zeros = lambda *a, **k: MEMORY.add(ZEROS(*a, **k))


def poison(x: torch.Tensor) -> torch.Tensor:
    """The same memory, with bytes that nobody would write."""
    if x.dtype != torch.bool and x.numel():
        x.view(torch.uint8).fill_(POISON)
    return x
