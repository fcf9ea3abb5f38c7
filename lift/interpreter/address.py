"""Elements at addresses that depend on data: gather and scatter.

    address = start(x) + size * (sum of strides * indices)     x an input nobody has written
    ----------------------------------------------------------------------------------------
    load address = x[indices]

In a buffer that has been written the loaded value is a pick among the cells that the address can reach; a store
changes every cell e that it can reach to where(address = e, new, old).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..capture.trace import TensorRef
from ..errors import Place, Unsupported
from ..terms import construct as T
from ..terms.ranges import Facts, Ranges, affine, from_affine, sum_interval
from .memory import Cells, Memory

REACHED_CELLS = 1 << 14  # cells that one data-dependent address may reach


@dataclass(frozen=True, slots=True)
class Reach:
    """Cell number `constant + sum of parts` of a buffer, which is within low..high."""

    cells: Cells
    constant: int
    parts: dict[T.Term, int]
    low: int
    high: int

    def candidates(self) -> Iterator[tuple[int, T.Term]]:
        """(cell number, condition under which the address is that cell's)."""
        step = math.gcd(*self.parts.values())
        first = self.low + (self.constant - self.low) % step
        if (self.high - first) // step >= REACHED_CELLS:
            raise Unsupported(
                f"an address in {self.cells.origin} that depends on data", why="it can reach too many elements"
            )
        index = from_affine(0, {t: c // step for t, c in self.parts.items()})
        for k in range(first, self.high + 1, step):
            yield k, T.make("eq", index, (k - self.constant) // step)


def reach(memory: Memory, ranges: Ranges, address: T.Term, facts: Facts, size: int, place: Place | None) -> Reach:
    """Where a symbolic byte address can point. Raises Unsupported if no single buffer is meant."""
    constant, parts = affine(address)
    low, high = sum_interval(constant, parts, ranges, facts)
    cells = _buffer(memory, constant, low, high)
    if cells is None:
        raise Unsupported(
            "an address that depends on data",
            place,
            "it may point into more than one tensor",
            'bound the index tensor: "i64[M] < V"',
        )
    offset = constant - cells.address
    if offset % size or any(c % size for c in parts.values()):
        raise Unsupported(f"access between the elements of {cells.origin}", place)
    last = cells.nbytes // size - 1
    lo = 0 if low == -math.inf else max(0, (int(low) - cells.address) // size)
    hi = last if high == math.inf else min(last, (int(high) - cells.address) // size)
    return Reach(cells, offset // size, {t: c // size for t, c in parts.items()}, lo, hi)


def _buffer(memory: Memory, constant: int, low: float, high: float) -> Cells | None:
    """The only buffer that meets low..high, else the one that holds the constant part."""
    if math.isinf(low) or math.isinf(high):
        return memory.find(constant)
    met = [c for c in memory.order if c.address <= high and low < c.address + c.nbytes]
    return met[0] if len(met) == 1 else memory.find(constant)


def gather(memory: Memory, ranges: Ranges, at: Reach, facts: Facts, place: Place | None) -> T.Term:
    """The term of the cell at `at`."""
    if at.cells.input is not None:
        name, ref = at.cells.input
        if (indices := multi_index(at, ref, ranges, facts)) is not None:
            return input_element(name, ref, indices)
    picked = list(at.candidates())
    if not picked:
        raise memory.out_of_bounds(at.cells.address + at.cells.nbytes, place)
    elements = [T.TERMS[at.cells.data[k]] for k, _ in picked]
    step = math.gcd(*at.parts.values())
    index = from_affine((at.constant - picked[0][0]) // step, {t: c // step for t, c in at.parts.items()})
    return T.make("pick", index, *elements)


def input_element(name: str, ref: TensorRef, index: Sequence[T.TermLike]) -> T.Term:
    """The cell of one element of an input: its read; booleans are stored as 1 and 0."""
    if ref.dtype == "bool":
        return T.where(T.read(name, index, T.BOOL), 1, 0)
    return T.read(name, index, T.INT if ref.dtype[0] in "iu" else T.REAL)


def multi_index(at: Reach, ref: TensorRef, ranges: Ranges, facts: Facts) -> list[T.Term] | None:
    """The indices (i, j, ...) of the cell in a strided tensor: quotients by the strides, outermost first, each
    remainder proved to be within its stride; floor division where that is not so and the tensor is contiguous; else
    None."""
    constant = at.constant - (ref.address - at.cells.address) // ref.itemsize
    parts = at.parts
    out: dict[int, T.Term] = {}
    dims = sorted((d for d in range(len(ref.shape)) if ref.shape[d] > 1), key=lambda d: -ref.strides[d])
    for n, d in enumerate(dims):
        stride = ref.strides[d]
        if stride <= 0:
            return None
        rest = {t: int(math.fmod(c, stride)) for t, c in parts.items()}
        quotient = constant // stride, {t: (c - rest[t]) // stride for t, c in parts.items()}
        low, high = sum_interval(constant % stride, rest, ranges, facts)
        if low < 0 or high >= stride:
            return _divided(at, ref)
        if n and not _within(sum_interval(*quotient, ranges, facts), ref.shape[d]):
            return _divided(at, ref)
        out[d] = from_affine(*quotient)
        constant, parts = constant % stride, {t: c for t, c in rest.items() if c}
    if constant or parts:
        return None
    return [out.get(d, T.const(0)) for d in range(len(ref.shape))]


def _within(interval: tuple[float, float], size: int) -> bool:
    return interval[0] >= 0 and interval[1] < size


def _divided(at: Reach, ref: TensorRef) -> list[T.Term] | None:
    """Indices of a contiguous tensor by floor division and remainder."""
    expected = np.cumprod([1, *ref.shape[:0:-1]])[::-1]
    if tuple(expected) != tuple(ref.strides):
        return None
    linear = from_affine(at.constant - (ref.address - at.cells.address) // ref.itemsize, at.parts)
    out = []
    for d, stride in enumerate(ref.strides):
        i = T.make("floordiv", linear, stride) if stride > 1 else linear
        out.append(T.make("mod", i, ref.shape[d]) if d else i)
    return out
