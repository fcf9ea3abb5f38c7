"""Triton launches executed here, on the tensors' own memory, by the machine that rounds every result to its type.

    with emulated(host) as emulation:    every launch inside runs the IR of its kernel, programs in order
        emulation.mutate(k, mutation)    launch k of each call of `host` runs the mutated IR from here on

A kernel may touch the storages of the tensors that it is given, to their last byte: beyond a tensor and inside
its storage it reads and writes what lies there, beyond the storage OutOfBounds is raised. Storages lie far apart.
"""

from __future__ import annotations

import ctypes
import inspect
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import Any

import numpy as np

from trilift.lift.capture.fake_cuda import Driver, replaced
from trilift.lift.capture.launches import Bound, executed
from trilift.lift.capture.recorder import lowered
from trilift.lift.errors import OutOfBounds, Place, TriliftError, Unsupported
from trilift.lift.interpreter import interpret, random_numbers
from trilift.lift.interpreter.machine import cell, machine
from trilift.lift.interpreter.memory import Cells, Memory
from trilift.lift.replay.rounded import Rounded
from trilift.lift.replay.rounding import nearest
from trilift.lift.runtime.budget import BUDGETS, OutOfSteps, limited
from trilift.lift.terms.bits import cell_size, from_bits, to_bits
from trilift.lift.ttir.ir import Module, Type
from trilift.lift.ttir.lower import leaves

from ..runs.isolated_buffers import GAP
from .mutant_filter import Mutation


class Storages(Memory):
    """Memory that is the storages of tensors: cells hold bytes, and every access reads or writes them as its own
    type."""

    def __init__(self, domain: Rounded, watch: Callable[[np.ndarray], None] | None = None) -> None:
        super().__init__(domain)
        self.addresses: dict[int, int] = {}
        self.watch = watch

    def operand(self, x: Any) -> Any:
        """A number; of a tensor the address of its first element."""
        if not hasattr(x, "data_ptr"):
            return x.item() if isinstance(x, np.generic) else x
        storage = x.untyped_storage() if hasattr(x, "untyped_storage") else x.base.untyped_storage()
        start, size = storage.data_ptr(), storage.nbytes()
        if start not in self.addresses:
            self.addresses[start] = GAP * (len(self.addresses) + 1)
            if size:
                raw = np.frombuffer((ctypes.c_uint8 * size).from_address(start), np.uint8)
                self.order.append(Cells(self.addresses[start], size, "the storage of an argument", "i8", raw, False))
                self.starts = np.array([c.address for c in self.order], np.int64)
        return self.addresses[start] + x.data_ptr() - start

    def load(self, addresses: np.ndarray, t: Type, place: Place | None = None) -> Any:
        flat, name = np.ascontiguousarray(addresses).ravel(), cell(t)
        out = np.empty(flat.shape, self.domain.real if t.is_float else machine(t))
        for cells, lanes in self.groups(flat, place) if flat.size else ():
            data, at = self.elements(cells, flat[lanes], cell_size(name), place)
            if self.watch is not None:
                self.watch(flat[lanes] - cells.address + cells.data.ctypes.data)
            out[lanes] = from_bits(data[at], name)
        return out.reshape(addresses.shape)

    def store(self, addresses: np.ndarray, values: Any, t: Type, place: Place | None = None) -> None:
        flat, name = np.ascontiguousarray(addresses).ravel(), cell(t)
        given = np.broadcast_to(values, np.shape(addresses)).ravel()
        number = np.dtype(f"i{cell_size(name)}")
        found = to_bits(nearest(given, name), name) if t.is_float else given.astype(number)
        for cells, lanes in self.groups(flat, place) if flat.size else ():
            data, at = self.elements(cells, flat[lanes], number.itemsize, place)
            data[at] = found[lanes]

    def elements(self, cells: Cells, flat: np.ndarray, size: int, place: Place | None) -> tuple[np.ndarray, np.ndarray]:
        """The storage as integers of `size` bytes, and where in it the addresses are. Raises OutOfBounds where only
        the first bytes of an element are inside."""
        offset = flat - cells.address
        if int(offset.max()) + size > cells.nbytes:
            raise self.out_of_bounds(int(flat.max()) + size - 1, place)
        at, odd = np.divmod(offset, size)
        phase = int(odd[0])
        if (odd != phase).any():
            raise Unsupported("access at addresses of several alignments", place)
        count = (cells.nbytes - phase) // size
        return cells.data[phase : phase + count * size].view(f"i{size}"), at


@dataclass
class Emulation:
    """`host`: code of the function whose calls begin the numbers of launches anew. `changed`: how many launches ran a
    mutated kernel. `watch` hears the addresses that are read. `trouble`: what kept a launch from being executed, other
    than an access out of bounds; `late`: whether one did not end."""

    host: CodeType | None = None
    launch: int = -1
    mutation: Mutation | None = None
    watch: Callable[[np.ndarray], None] | None = None
    changed: int = 0
    late: bool = False
    trouble: str = ""
    domain: Rounded = field(default_factory=Rounded)
    _frame: FrameType | None = field(default=None, repr=False)
    _number: int = 0
    _mutants: dict[Module, Module] = field(default_factory=dict, repr=False)
    _runs: dict[Module, interpret.Run] = field(default_factory=dict, repr=False)

    def mutate(self, launch: int, mutation: Mutation) -> None:
        self.launch, self.mutation, self._mutants = launch, mutation, {}

    def run(self, bound: Bound) -> None:
        """One launch."""
        number = self._numbered()
        try:
            module = lowered(bound)
            if self.mutation is not None and number == self.launch:
                module = self._mutated(module)
            memory = Storages(self.domain, self.watch)
            given = [v for n, kind in bound.signature.items() for v in leaves(kind, bound.args[n])]
            operands = [memory.operand(v) for v in given]
            with limited("launch", BUDGETS.run.emulated_steps):
                interpret.run(random_numbers.named(module), operands, bound.grid, memory, None, self._kept)
        except OutOfBounds:
            raise
        except OutOfSteps:
            self.late = True
            raise
        except (TriliftError, ArithmeticError, ValueError, LookupError, TypeError, MemoryError) as error:
            self.trouble = self.trouble or f"{type(error).__name__}: {error}"
            raise

    def _numbered(self) -> int:
        """The number of this launch within the call of the host function that is going on."""
        frame: FrameType | None = sys._getframe()
        while frame is not None and not (self.host and _same(frame.f_code, self.host)):
            frame = frame.f_back
        if frame is None:
            return -1
        if frame is not self._frame:
            self._frame, self._number = frame, 0
        self._number += 1
        return self._number - 1

    def _mutated(self, module: Module) -> Module:
        """The mutant; the kernel itself where it has no such place."""
        assert self.mutation is not None
        if module not in self._mutants:
            try:
                self._mutants[module] = self.mutation(module)
            except Unsupported:
                self._mutants[module] = module
        found = self._mutants[module]
        self.changed += found is not module
        return found

    @property
    def _kept(self) -> Any:
        """The same run for every launch of a module: its constants and combiners are known from the first on."""

        def kept(module: Module, domain: Any, memory: Memory, ranges: Any) -> interpret.Run:
            if module not in self._runs:
                self._runs[module] = interpret.Run(module, domain, memory, ranges)
            self._runs[module].memory = memory
            return self._runs[module]

        return kept


def _same(a: CodeType, b: CodeType) -> bool:
    """Also of a function whose file was loaded twice, perhaps through a link."""
    if a is b:
        return True
    same_place = (a.co_firstlineno, a.co_name) == (b.co_firstlineno, b.co_name)
    return same_place and os.path.realpath(a.co_filename) == os.path.realpath(b.co_filename)


@contextmanager
def emulated(host: Callable[..., Any] | None = None) -> Iterator[Emulation]:
    """Launches inside are executed here. Kernels that are declared inside are Triton's own, whatever TRITON_INTERPRET
    says."""
    import triton

    emulation = Emulation(inspect.unwrap(host).__code__ if host is not None else None)
    with (
        triton.knobs.runtime.scope(),
        replaced(triton.runtime.driver, {"_active": Driver()}),
        executed(emulation.run),
    ):
        triton.knobs.runtime.interpret = False
        yield emulation
