"""Runs a trace: launches through the interpreter, torch operations through their meaning, all on one memory.

spec(trace)             every element of every output as a term over single elements of the inputs
replay(trace, inputs)   the same events in float64 on given numbers: the kernel without rounding
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ..capture.trace import Launch, TensorRef, TorchOp, Trace
from ..errors import TriliftError, Unsupported
from ..interpreter import interpret, random_numbers
from ..interpreter.address import input_element
from ..interpreter.interpret import Run
from ..interpreter.machine import cell_of_dtype
from ..interpreter.memory import Memory
from ..interpreter.registry import signed_term, unsigned_term
from ..runtime.budget import OutOfSteps, OutOfTime
from ..terms import term as T
from ..terms.domain import FLOAT64, SYMBOLIC, Ids, as_ids, on_distinct
from ..terms.ranges import Ranges, dtype_interval
from ..terms.spec import Spec
from ..ttir.written_constants import as_passed, rounded_arguments
from ..ttir.written_pointers import written
from . import torch_ops
from .storage import ensure

UNKNOWN = "unknown: "  # label of what an event that could not be executed may have written


def spec(trace: Trace, errors: list[TriliftError] | None = None) -> list[Spec]:
    """One Spec per output, and one per input whose contents changed. Raises Unsupported, OutOfBounds with the kernel's
    place; when `errors` is given it collects them, and outputs that depend on such an event are left out."""
    memory = Memory(SYMBOLIC)
    for name, ref in trace.inputs.items():
        _symbolic_input(memory, name, ref)
    ranges = _ranges(trace)
    before = {name: _contents(memory, ref, ranges) for name, ref in trace.inputs.items()}
    events(trace, memory, ranges, errors)
    shapes = {name: ref.shape for name, ref in trace.inputs.items()}
    specs = []
    for name, (ref, in_place) in results(trace).items():
        ids = _contents(memory, ref, ranges)
        changed = in_place != name or not np.array_equal(ids, before[name])
        if changed and not (errors and _is_unknown(ids)):
            specs.append(Spec(name, ids, dict(trace.dims), shapes, ref.dtype, in_place))
    return specs


def replay(
    trace: Trace,
    inputs: Mapping[str, np.ndarray],
    errors: list[TriliftError] | None = None,
    memory: Memory | None = None,
    kind: type[Run] = Run,
) -> dict[str, np.ndarray]:
    """The outputs (and inputs that changed, under their names) as float64, integer or boolean arrays, for inputs of the
    shapes of this trace. Undefined elements are NaN, or 0x5a5a... in integers; so is what an event may have written
    that
    cannot be executed, whose error is raised, or collected in `errors` when given. `memory`, `kind`: those of somebody
    who looks on."""
    memory = memory or Memory(FLOAT64)
    for name, ref in trace.inputs.items():
        memory.define(ref, np.asarray(inputs[name]).reshape(ref.shape))
    before = {name: memory.fetch(ref) for name, ref in trace.inputs.items()}
    events(trace, memory, Ranges(), errors, kind)
    out = {}
    for name, (ref, in_place) in results(trace).items():
        values = memory.fetch(ref)
        if in_place != name or not np.array_equal(values, before[name], equal_nan=values.dtype.kind == "f"):
            out[name] = values
    return out


def results(trace: Trace) -> dict[str, tuple[TensorRef, str | None]]:
    """name -> (tensor, the input that it is): the outputs, then the inputs that are not outputs themselves; of those a
    view may be an output."""
    same = lambda a, b: (a.address, a.shape, a.strides) == (b.address, b.shape, b.strides)  # noqa: E731
    inputs = trace.inputs.items()
    out = {n: (ref, next((i for i, x in inputs if same(x, ref)), None)) for n, ref in trace.outputs.items()}
    taken = {i for _, i in out.values()}
    return out | {n: (ref, n) for n, ref in inputs if n not in taken and n not in out}


# ---- inputs ----------------------------------------------------------------------------------------------------------


def _symbolic_input(memory: Memory, name: str, ref: TensorRef) -> None:
    """Element (i, j) is read(name, i, j); where inputs overlap the first one names the element."""
    cells = memory.allocate(ref.buffer, cell_of_dtype(ref.dtype))
    if not ref.buffer.nbytes:
        return
    if cells.element != cell_of_dtype(ref.dtype):
        raise Unsupported(f"inputs {cells.origin} and {name} share memory and differ in dtype")
    alone = cells.fresh
    positions = cells.positions(ref.addresses())
    for index in np.ndindex(ref.shape):
        k = positions[index]
        if T.TERMS[cells.data[k]].op == "undef":
            cells.data[k] = input_element(name, ref, index).id
    cells.fresh, cells.input = False, (name, ref) if alone else None


def _ranges(trace: Trace) -> Ranges:
    bounds = {n: (0, b - 1) for n, b in trace.bounds.items()}
    return Ranges({n: dtype_interval(ref.dtype) for n, ref in trace.inputs.items() if ref.dtype[0] in "iu"} | bounds)


def _contents(memory: Memory, ref: TensorRef, ranges: Ranges) -> np.ndarray:
    """int32 ids of the elements of a tensor, integers as the numbers that its dtype reads from the bits."""
    ids = np.array(as_ids(memory.fetch(ref)), np.int32)
    if ref.dtype[0] not in "iu":
        return ids
    number = signed_term if ref.dtype[0] == "i" else unsigned_term
    return on_distinct(lambda t: number(ranges, t, 8 * ref.itemsize), Ids(ids)).ids


def _is_unknown(ids: np.ndarray) -> bool:
    terms = (s for i in np.unique(ids) for s in T.TERMS[i].walk())
    return any(s.op == "undef" and str(s.attr).startswith(UNKNOWN) for s in terms)


# ---- events ----------------------------------------------------------------------------------------------------------


def events(
    trace: Trace, memory: Memory, ranges: Ranges, errors: list[TriliftError] | None, kind: type[Run] = Run
) -> None:
    for event in trace.events:
        try:
            if isinstance(event, Launch):
                launch(event, memory, ranges, kind)
            else:
                torch_ops.run(event, memory, ranges)
        except TriliftError as error:
            error.place = error.place or event.host
            if errors is None or isinstance(error, OutOfSteps | OutOfTime):
                raise
            errors.append(error)
            for ref in _may_write(event):
                _forget(memory, ref, error)


def _may_write(event: Launch | TorchOp) -> Iterable[TensorRef]:
    """The tensors that an event which could not be executed may have written."""
    if isinstance(event, TorchOp):
        return event.outputs
    try:
        positions = written(event.module())
    except TriliftError:
        positions = None
    return _tensors(event.args if positions is None else [event.operands[k] for k in sorted(positions)])


def _tensors(x: Any) -> list[TensorRef]:
    """The tensors inside a structure of arguments."""
    if isinstance(x, Mapping):
        x = tuple(x.values())
    if isinstance(x, list | tuple):
        return [r for e in x for r in _tensors(e)]
    return [x] if isinstance(x, TensorRef) else [x.base] if hasattr(x, "base") else []


def _forget(memory: Memory, ref: TensorRef, error: TriliftError) -> None:
    """Anything may be in the buffer now."""
    cells = memory.allocate(ref.buffer, cell_of_dtype(ref.dtype))
    if isinstance(memory.domain, type(SYMBOLIC)):
        cells.data[...] = T.undef(f"{UNKNOWN}{error.what}").id
    else:
        cells.data[...] = np.nan if cells.data.dtype.kind == "f" else 0x5A
    cells.fresh, cells.input = False, None


def launch(event: Launch, memory: Memory, ranges: Ranges, kind: type[Run] = Run) -> None:
    """All programs of one kernel launch."""
    for ref in _tensors(event.operands):
        ensure(memory, ref)
    module = event.module()
    rounded = rounded_arguments(module)
    operands = [as_passed(_operand(x), k, rounded) for k, x in enumerate(event.operands)]
    interpret.run(random_numbers.named(module), operands, event.grid, memory, ranges, kind)


def _operand(x: Any) -> Any:
    """A number; of a tensor, and of what stands for one, its address."""
    if isinstance(x, TensorRef):
        return x.address
    return x.data_ptr() if hasattr(x, "data_ptr") else x
