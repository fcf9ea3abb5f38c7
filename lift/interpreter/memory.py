"""Memory: buffers at their real addresses, each an array of cells of one element type.

    {a in buffer, a = start + size * k}  load a  =  cells[k]          cells of a fresh buffer are undefined

Cells hold machine numbers in the float64 domain and term ids in the symbolic one. An access with another element type
of the same size casts bits; of another size it changes the cells of the whole buffer, if their numbers are known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..capture.trace import Buffer, TensorRef
from ..errors import OutOfBounds, Place, Unsupported
from ..terms import construct as T
from ..terms.bits import cell_size
from ..terms.domain import Float64, Ids, Symbolic, as_ids, on_distinct, shaped
from ..ttir.ir import Op, Type
from .machine import (
    Domain,
    bitcast,
    cell,
    cell_of_dtype,
    cell_type,
    from_constants,
    is_const,
    machine,
    settle,
    take,
    undefined,
)


@dataclass(slots=True, eq=False)
class Cells:
    """The contents of one buffer. `input`: the case's input that lives here, as long as nothing has been written."""

    address: int
    nbytes: int
    origin: str
    element: str
    data: np.ndarray
    fresh: bool = True
    input: tuple[str, TensorRef] | None = None

    @property
    def size(self) -> int:
        return cell_size(self.element)

    def positions(self, addresses: np.ndarray) -> np.ndarray:
        """Cell numbers of byte addresses. Raises Unsupported between cells."""
        offset = addresses - self.address
        index = offset // self.size
        if (index * self.size != offset).any():
            raise Unsupported(f"access between the elements of {self.origin}", why=f"elements are {self.element}")
        return index


class Memory:
    """All buffers of one run. `broken`: each tl.assume that was false for some program."""

    def __init__(self, domain: Domain) -> None:
        self.domain = domain
        self.broken: dict[Op, None] = {}
        self.buffers: dict[int, Cells] = {}
        self.starts = np.zeros(0, np.int64)
        self.order: list[Cells] = []

    def allocate(self, buffer: Buffer, element: str) -> Cells:
        """The cells of a buffer, undefined when it is new."""
        found = self.buffers.get(buffer.address)
        if found is not None and found.nbytes >= buffer.nbytes:
            return found
        found = Cells(buffer.address, buffer.nbytes, buffer.origin, element, np.zeros(0))
        self._undefine(found, element)
        self.buffers[buffer.address] = found
        self.order = sorted((c for c in self.buffers.values() if c.nbytes), key=lambda c: c.address)
        self.starts = np.array([c.address for c in self.order], np.int64)
        return found

    def _undefine(self, cells: Cells, element: str) -> None:
        t = cell_type(element)
        values = undefined(self.domain, (cells.nbytes // cell_size(element),), t, cells.origin)
        cells.element, cells.data = element, np.array(values.ids if isinstance(values, Ids) else values)

    def find(self, address: int) -> Cells | None:
        """The buffer that holds the byte at `address`."""
        k = int(np.searchsorted(self.starts, address, side="right")) - 1
        return self.order[k] if k >= 0 and address < self.order[k].address + self.order[k].nbytes else None

    def inside(self, addresses: np.ndarray) -> np.ndarray:
        """Which addresses are in a buffer."""
        if not self.order:
            return np.zeros(addresses.shape, np.bool_)
        k = np.searchsorted(self.starts, addresses, side="right") - 1
        ends = np.array([c.address + c.nbytes for c in self.order], np.int64)
        return (k >= 0) & (addresses < ends[k])

    def groups(self, addresses: np.ndarray, place: Place | None) -> list[tuple[Cells, Any]]:
        """(buffer, which lanes) for a flat array of addresses. Raises OutOfBounds."""
        first, last = self.find(int(addresses.min())), self.find(int(addresses.max()))
        if first is not None and first is last:
            return [(first, slice(None))]
        if not (inside := self.inside(addresses)).all():
            raise self.out_of_bounds(int(addresses[~inside][0]), place)
        k = np.searchsorted(self.starts, addresses, side="right") - 1
        return [(self.order[i], k == i) for i in np.unique(k)]

    def out_of_bounds(self, address: int, place: Place | None) -> OutOfBounds:
        """The error that relates the address to the nearest buffer."""
        if not self.order:
            return OutOfBounds("access out of bounds", place, "there is no tensor in memory")
        distance = lambda c: max(c.address - address, address - (c.address + c.nbytes - 1))  # noqa: E731
        near = min(self.order, key=distance)
        element, elements = (address - near.address) // near.size, near.nbytes // near.size
        why = f"element {element} of {near.origin}, which has {elements} element{'s' * (elements != 1)}"
        error = OutOfBounds("access out of bounds", place, why)
        error.near = near.address
        return error

    # ---- elements at known addresses

    def load(self, addresses: np.ndarray, t: Type, place: Place | None = None) -> Any:
        """The elements of IR type `t` at byte addresses; all must be in buffers."""
        flat = np.ascontiguousarray(addresses).ravel()
        symbolic = isinstance(self.domain, Symbolic)
        out = np.empty(flat.shape, np.int32 if symbolic else self.domain.real if t.is_float else machine(t))
        for cells, lanes in self.groups(flat, place) if flat.size else ():
            self.retype(cells, cell(t))
            got: Any = cells.data[cells.positions(flat[lanes])]
            got = self.cast(Ids(got) if symbolic else got, cells.element, cell(t))
            out[lanes] = as_ids(got) if symbolic else got
        tile = out.reshape(addresses.shape)
        return settle(Ids(tile), t) if symbolic else tile

    def store(self, addresses: np.ndarray, values: Any, t: Type, place: Place | None = None) -> None:
        """Write elements of IR type `t`; of two lanes with one address the later wins."""
        flat = np.ascontiguousarray(addresses).ravel()
        for cells, lanes in self.groups(flat, place) if flat.size else ():
            self.retype(cells, cell(t))
            mine = take(shaped(values, np.ravel), lanes)
            mine = self.cast(mine, cell(t), cells.element)
            mine = mine if cells.element[0] == "i" else self.domain.reals(mine)
            cells.data[cells.positions(flat[lanes])] = as_ids(mine) if isinstance(self.domain, Symbolic) else mine
            cells.fresh, cells.input = False, None

    def cast(self, x: Any, source: str, target: str) -> Any:
        if source == target:
            return x
        return bitcast(self.domain, settle(x, cell_type(source)), source, target)

    def retype(self, cells: Cells, element: str) -> None:
        """Make the cells of the size of `element`: at once where nothing is defined yet, by bytes where integers are
        known."""
        if cells.fresh and cells.element != element:
            self._undefine(cells, element)
        if cell_size(element) == cells.size:
            return
        known = cells.data if isinstance(self.domain, Float64) else None
        if known is None and is_const[cells.data].all():
            known = from_constants(cells.data, cell_type(cells.element))
        if known is None or cells.element[0] != "i":
            raise Unsupported(f"{cells.origin} holds {cells.element} and is accessed as {element}")
        size = cell_size(element)
        raw = known.tobytes()[: len(known.tobytes()) // size * size]
        new = np.frombuffer(raw, np.dtype(f"i{size}")).copy()
        cells.data = as_ids(new).copy() if isinstance(self.domain, Symbolic) else new
        cells.element = f"i{8 * size}"

    # ---- tensors

    def define(self, ref: TensorRef, values: Any) -> None:
        """Write a whole tensor: reals, machine integers of its dtype, or terms."""
        self.allocate(ref.buffer, cell_of_dtype(ref.dtype))
        t = cell_type(cell_of_dtype(ref.dtype))
        if not isinstance(values, Ids):
            values = np.asarray(values)
            values = values if values.dtype.kind == "V" else to_cells(values, ref.dtype)
        elif ref.dtype == "bool":
            values = self.domain.apply("where", values, np.int8(1), np.int8(0))
        self.store(ref.addresses(), np.broadcast_to(values, ref.shape) if not isinstance(values, Ids) else values, t)

    def fetch(self, ref: TensorRef) -> Any:
        """The contents of a tensor: reals, integers of its dtype, booleans; or terms."""
        t = cell_type(cell_of_dtype(ref.dtype))
        self.allocate(ref.buffer, cell_of_dtype(ref.dtype))
        got = self.load(ref.addresses(), t)
        if isinstance(got, Ids):
            return Ids(_booleans(got.ids)) if ref.dtype == "bool" else got
        return from_cells(got, ref.dtype)


def to_cells(values: np.ndarray, dtype: str) -> np.ndarray:
    """Numbers of a tensor's dtype as machine numbers of its cells."""
    target = machine(cell_type(cell_of_dtype(dtype)))
    return values.astype(np.bool_).astype(np.int8) if dtype == "bool" else values.astype(target)


def from_cells(values: np.ndarray, dtype: str) -> np.ndarray:
    """The reverse: u8 cells are read as unsigned, bool cells as booleans."""
    if dtype == "bool":
        return np.asarray(values, np.bool_)
    return values.astype(f"u{values.dtype.itemsize}") if dtype[0] == "u" else values


def _booleans(ids: np.ndarray) -> np.ndarray:
    """Terms of 0/1 cells as booleans: where(c, 1, 0) is c."""
    return on_distinct(truth, Ids(ids)).ids


def truth(t: T.Term) -> T.Term:
    """t != 0 for an integer term; where(c, 1, 0) gives back c."""
    if t.type == T.BOOL:
        return t
    if t.op == "where" and all(a.op == "const" for a in t.args[1:]):
        yes, no = (bool(a.attr) for a in t.args[1:])
        return T.const(yes) if yes == no else t.args[0] if yes else T.make("not", t.args[0])
    if t.op == "undef":
        return T.undef(t.attr, T.BOOL)
    return T.make("ne", t, 0)
