"""Torch operations of a trace, on memory. With known numbers torch itself runs them, in float64; on terms
`lift.pytorch.concrete` says what they mean. Views and allocations do nothing: tensors are addresses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..capture.trace import TensorRef, TorchOp
from ..errors import TriliftError, Unsupported
from ..interpreter.memory import Memory
from ..interpreter.registry import signed_term, unsigned_term
from ..terms import term as T
from ..terms.domain import Ids, on_distinct
from ..terms.ranges import Ranges
from .storage import as_numpy, ensure

if TYPE_CHECKING:
    import torch

NARROW_BYTES = 2  # integers of so many bytes or fewer wrap
ALLOCATIONS = ("empty", "new_empty")  # prefixes: empty_like, empty_strided, new_empty_strided ...


def run(event: TorchOp, memory: Memory, ranges: Ranges) -> None:
    """Execute one torch operation. Raises Unsupported for one without a meaning on terms."""
    name = event.func.overloadpacket.__name__
    tensors = list(refs((event.args, event.kwargs)))
    for ref in (*tensors, *event.outputs):
        ensure(memory, ref)
    written = [given for _, given in written_arguments(event)]
    if name.startswith(ALLOCATIONS) or (not event.outputs and not written):
        return
    sources = {ref.buffer.address for ref in tensors}
    if not written and event.outputs and all(r.buffer.address in sources for r in event.outputs):
        return
    loaded = {ref: memory.fetch(ref) for ref in tensors}
    if any(isinstance(v, Ids) or v.dtype.kind == "V" for v in loaded.values()):
        _on_terms(event, memory, ranges, loaded, written)
    else:
        _on_numbers(event, memory, loaded)


def refs(x: Any) -> Any:
    """The tensors inside a structure of arguments."""
    if isinstance(x, TensorRef):
        yield x
    elif isinstance(x, list | tuple | dict):
        for e in x.values() if isinstance(x, dict) else x:
            yield from refs(e)


def written_arguments(event: TorchOp) -> list[tuple[Any, TensorRef]]:
    """(position or name, tensor) of the arguments that the operation writes."""
    out: list[tuple[Any, TensorRef]] = []
    for k, a in enumerate(event.func._schema.arguments):
        if a.alias_info is not None and a.alias_info.is_write:
            given = (
                event.kwargs.get(a.name) if a.name in event.kwargs else event.args[k] if k < len(event.args) else None
            )
            out += [(k if a.name not in event.kwargs else a.name, ref) for ref in refs(given)]
    return out


# ---- on terms --------------------------------------------------------------------------------------------------------


def _on_terms(
    event: TorchOp, memory: Memory, ranges: Ranges, loaded: dict[TensorRef, Any], written: list[TensorRef]
) -> None:
    from ..pytorch import concrete

    unknown = [w for w in written if not any(w.address == o.address for o in event.outputs)]
    if unknown:
        raise Unsupported(str(event.func), event.host, "it writes an argument that it does not return")
    indices = [name for name, (low, _) in ranges.inputs.items() if low >= 0]
    try:
        out = concrete.meaning(event.func, event.args, event.kwargs, loaded.__getitem__, memory.domain, indices)
    except TriliftError as error:
        error.place = error.place or event.host
        raise
    for ref, values in zip(event.outputs, out, strict=True):
        memory.define(ref, _narrow(values, ref, ranges) if isinstance(values, Ids) else np.asarray(values))


def _narrow(values: Ids, ref: TensorRef, ranges: Ranges) -> Ids:
    """Integers as the numbers of a narrow dtype; wide ones are proved to fit elsewhere."""
    if ref.dtype[0] not in "iu" or ref.itemsize > NARROW_BYTES:
        return values
    number = signed_term if ref.dtype[0] == "i" else unsigned_term
    out: Ids = on_distinct(lambda t: t if t.type == T.REAL else number(ranges, t, 8 * ref.itemsize), values)
    return out


# ---- on numbers ------------------------------------------------------------------------------------------------------


def _on_numbers(event: TorchOp, memory: Memory, loaded: dict[TensorRef, np.ndarray]) -> None:
    """torch itself on float64 tensors; what is random or depends on nothing is what the trace saw."""
    import torch

    seeded = torch.Tag.nondeterministic_seeded in event.func.tags
    if seeded and any(isinstance(v, Ids) for v in loaded.values()):
        raise Unsupported(str(event.func), event.host, "random numbers that depend on data")
    if seeded:
        for ref, value in zip(event.outputs, event.values, strict=True):
            memory.define(ref, as_numpy(value))
        return
    copies = {ref: torch.from_numpy(np.array(v)) for ref, v in loaded.items()}
    default = torch.get_default_dtype()
    try:
        torch.set_default_dtype(torch.float64)
        result = event.func(*_wide(event.args, copies), **{k: _wide(v, copies) for k, v in event.kwargs.items()})
    except (RuntimeError, NotImplementedError, TypeError) as error:
        raise Unsupported(str(event.func), event.host, str(error).splitlines()[0]) from error
    finally:
        torch.set_default_dtype(default)
    written = [(ref, copies[ref]) for _, ref in written_arguments(event)]
    flat = [result] if isinstance(result, torch.Tensor) else [t for t in result or () if isinstance(t, torch.Tensor)]
    for ref, value in (*written, *zip(event.outputs, flat, strict=True)):
        if tuple(value.shape) != ref.shape:
            raise Unsupported(str(event.func), event.host, "a tensor is given other memory")
        memory.define(ref, as_numpy(value))


def _wide(x: Any, copies: dict[TensorRef, torch.Tensor]) -> Any:
    """Arguments with copies for tensors, float64 for float dtypes, and everything on the CPU."""
    import torch

    if isinstance(x, TensorRef):
        return copies[x]
    if isinstance(x, list | tuple):
        return type(x)(_wide(e, copies) for e in x)
    if isinstance(x, torch.dtype):
        return torch.float64 if x.is_floating_point else x
    return torch.device("cpu") if isinstance(x, torch.device) else x
