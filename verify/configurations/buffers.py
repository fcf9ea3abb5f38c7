"""Tensors of several traces as views of buffers whose numbers are terms: address arithmetic, shape by shape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from trilift.lift.capture.recorder import NAMES
from trilift.lift.capture.trace import TensorRef, TorchOp, Trace
from trilift.lift.cases.declaration import stride_terms
from trilift.lift.errors import Place, Unsupported
from trilift.lift.pytorch.symbolic_tensor import SymbolicTensor, tensor, type_of_name
from trilift.lift.terms import construct as T
from trilift.lift.terms.term import Term

from ..model.configuration import Buffer, View
from .relations import Relations

Initial = Callable[[Term], Term]


@dataclass(eq=False, slots=True)
class Buffers:
    """Buffers in order of appearance. `index`: of each trace, address -> which buffer; the same one at every shape."""

    relations: Relations
    every: list[Buffer] = field(default_factory=list)
    index: list[dict[int, int]] = field(default_factory=list)
    inputs: dict[str, View] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.index = [{} for _ in self.relations.all]
        for name, spec in self.relations.case.tensors.items():
            self.inputs[name] = self.input(name, [t.inputs[name] for t in self.relations.all], bool(spec.strided))

    def input(self, name: str, refs: Sequence[TensorRef], strided: bool) -> View:
        """An input: element (i, j) is read(x, o) at its offset o; the storage of a strided one ends with its last
        element."""
        if self.position(refs, name, None) is not None:
            raise Unsupported(f"input {name} shares memory with another one")
        of_type = type_of_name(refs[0].dtype)
        make = lambda o: T.read(name, (o,), of_type)  # noqa: E731
        if not strided or not refs[0].shape:
            return self.view(refs, name, None, (name, f"input:{name}", make))
        shape = tuple(self.relations.case.dims(name))
        strides = stride_terms(name, self.relations.case.tensors[name])
        span = T.add(1, *(T.mul(T.sub(n, 1), s) for n, s in zip(shape, strides, strict=True)))
        buffer = self.add(refs, Buffer(name, refs[0].dtype, span, f"input:{name}", make))
        return View(buffer, T.const(0), shape, strides, buffer.dtype)

    def add(self, refs: Sequence[TensorRef], buffer: Buffer) -> Buffer:
        for known, ref in zip(self.index, refs, strict=True):
            if ref.buffer.nbytes:
                known[ref.buffer.address] = len(self.every)
        self.every.append(buffer)
        return buffer

    def position(self, refs: Sequence[TensorRef], what: str, place: Place | None) -> int | None:
        """Which buffer these are; None if it was not seen before. Shapes where it has no elements do not
        count."""
        found = {
            known.get(ref.buffer.address) for known, ref in zip(self.index, refs, strict=True) if ref.buffer.nbytes
        }
        if len(found) > 1:
            raise Unsupported(f"{what} shares memory with another tensor at some shapes only", place)
        return found.pop() if found else None

    def view(
        self,
        refs: Sequence[TensorRef],
        what: str,
        place: Place | None,
        new: tuple[str, str, Initial] | None = None,
        address: bool = False,
    ) -> View:
        """The tensor that is refs[k] in trace k. `new`: (name, origin, initial contents) of a buffer that was not seen
        before; Unsupported without. `address`: only where it starts counts, its rank may depend on the shape."""
        position = self.position(refs, what, place)
        if position is None:
            if new is None and not any(ref.buffer.nbytes for ref in refs):  # every access to it is out of bounds
                new = (name := self.fresh(), "nothing", nothing(name, refs[0].dtype))
            if new is None:
                raise Unsupported(f"{what} is a tensor of unknown origin", place)
            self.add(refs, self.buffer(refs, what, place, new))
            position = len(self.every) - 1
        buffer = self.every[position]
        dtypes = {ref.dtype for ref in refs}
        if dtypes != {buffer.dtype}:
            raise Unsupported(f"{what} is a view as {', '.join(sorted(dtypes))} of {buffer.dtype} memory", place)
        if address and len({len(ref.shape) for ref in refs}) > 1:
            offset = self.offset(refs, what, place)
            return View(buffer, offset, (T.sub(buffer.length, offset),), (T.const(1),), buffer.dtype)
        return self.placed(buffer, refs, what, place)

    def offset(self, refs: Sequence[TensorRef], what: str, place: Place | None) -> Term:
        """The element of its buffer where it starts."""
        offsets = [divmod(ref.address - ref.buffer.address, ref.itemsize) for ref in refs]
        return self.relations.term([q for q, _ in offsets], f"the offset of {what}", place)

    def buffer(
        self, refs: Sequence[TensorRef], what: str, place: Place | None, new: tuple[str, str, Initial]
    ) -> Buffer:
        name, origin, initial = new
        if len({ref.dtype for ref in refs}) > 1:
            raise Unsupported(f"the dtype of {what} depends on the shape", place)
        lengths = [ref.buffer.nbytes // ref.itemsize for ref in refs]
        length = self.relations.term(lengths, f"the length of {what}", place)
        return Buffer(name, refs[0].dtype, length, origin, initial)

    def placed(self, buffer: Buffer, refs: Sequence[TensorRef], what: str, place: Place | None) -> View:
        """Offset, shape and strides; a stride along one element is 0."""
        if len({len(ref.shape) for ref in refs}) > 1:
            raise Unsupported(f"the rank of {what} depends on the shape", place)
        term = self.relations.term
        offset = self.offset(refs, what, place)
        shape, strides = [], []
        for d in range(len(refs[0].shape)):
            shape.append(term([ref.shape[d] for ref in refs], f"{what}.shape[{d}]", place))
            seen: list[Any] = [ref.strides[d] if ref.shape[d] > 1 else None for ref in refs]
            moving = any(s is not None for s in seen)
            strides.append(term(seen, f"{what}.stride({d})", place) if moving else T.const(0))
        return View(buffer, offset, tuple(shape), tuple(strides), refs[0].dtype)

    def fresh(self) -> str:
        """The name of the next buffer that the host function makes: t0, t1 ..."""
        taken = {b.name for b in self.every}
        return next(n for k in range(len(self.every) + 1) if (n := f"t{k}") not in taken)


def reference(x: Any, trace: Trace) -> TensorRef | None:
    """The stand-in of a tensor in a launch, by the address that it gives; None where no tensor of the trace is."""
    address, dtype = x.data_ptr(), NAMES.get(x.dtype)
    seen = [*trace.inputs.values(), *(r for e in trace.events if isinstance(e, TorchOp) for r in e.outputs)]
    held = (r.buffer for r in seen if r.buffer.address <= address < r.buffer.address + r.buffer.nbytes)
    buffer = next(held, None)
    return None if buffer is None or dtype is None else TensorRef(address, (), (), dtype, buffer)


def contents(view: View) -> SymbolicTensor:
    """The tensor's contents now, as reads of its buffer."""
    of_type = type_of_name(view.dtype)
    return tensor(view.shape, lambda i: T.read(view.buffer.name, (view.element(i),), of_type), of_type)


def nothing(name: str, dtype: str) -> Initial:
    """The contents of torch.empty."""
    return lambda o: T.undef(f"{name}, which was never written", type_of_name(dtype))
