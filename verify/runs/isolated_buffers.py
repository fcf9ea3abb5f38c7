"""A trace with its buffers far apart, so that no access beyond the end of one falls into another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from trilift.lift.capture.trace import Buffer, Descriptor, Launch, TensorRef, TorchOp, Trace

GAP = 1 << 40  # bytes from one buffer's start to the next


def apart(trace: Trace) -> Trace:
    """The same launches and torch operations on buffers at GAP, 2 * GAP, ... in order of appearance; addresses no
    longer depend on where the host's memory was. The buffer of an input ends with the input's last element. Pointers
    that are stored as integers keep their old numbers."""
    known: dict[int, Buffer] = {}
    ends: dict[int, int] = {}
    for ref in trace.inputs.values():
        ends[ref.buffer.address] = max(ends.get(ref.buffer.address, 0), end(ref))

    def buffer(b: Buffer) -> Buffer:
        if b.address not in known:
            size = min(b.nbytes, ends.get(b.address, b.nbytes))
            known[b.address] = replace(b, address=GAP * (len(known) + 1), nbytes=size)
        return known[b.address]

    def moved(x: Any) -> Any:
        match x:
            case TensorRef():
                b = buffer(x.buffer)
                return replace(x, address=x.address - x.buffer.address + b.address, buffer=b)
            case Descriptor():
                return replace(x, base=moved(x.base))
            case Mapping():
                return {k: moved(v) for k, v in x.items()}
            case tuple() if hasattr(x, "_fields"):
                return type(x)(*map(moved, x))
            case list() | tuple():
                return type(x)(map(moved, x))
        return x

    def event(e: Launch | TorchOp) -> Launch | TorchOp:
        if isinstance(e, Launch):
            return replace(e, args=moved(e.args), operands=moved(e.operands))
        return replace(e, args=moved(e.args), kwargs=moved(e.kwargs), outputs=moved(e.outputs))

    inputs = moved(trace.inputs)
    return replace(trace, inputs=inputs, events=tuple(map(event, trace.events)), outputs=moved(trace.outputs))


def end(ref: TensorRef) -> int:
    """Bytes from the buffer's start to behind the last element."""
    last = max(ref.addresses().ravel(), default=ref.buffer.address - ref.itemsize)
    return int(last) + ref.itemsize - ref.buffer.address


def holds_pointers(trace: Trace) -> bool:
    """Whether addresses may be stored as numbers: then buffers have to stay where they are."""
    buffers = [r.buffer for e in trace.events for r in _refs(e)]
    if any(hasattr(v, "data_ptr") for e in trace.launches for v in e.operands):
        return True  # what stands for a tensor knows its old address only
    inside = lambda v: any(b.address <= v < b.address + b.nbytes for b in buffers)  # noqa: E731
    numbers = [v for e in trace.launches for v in e.operands if type(v) is int and v > 1 << 20]
    numbers += [
        int(v)
        for e in trace.events
        if isinstance(e, TorchOp)
        for x in e.values
        if str(x.dtype) in ("torch.int64", "torch.uint64")
        for v in x.flatten()[:64].tolist()
    ]
    return any(map(inside, numbers))


def _refs(e: Launch | TorchOp) -> list[Any]:
    return [x for x in (e.operands if isinstance(e, Launch) else e.outputs) if hasattr(x, "buffer")]
