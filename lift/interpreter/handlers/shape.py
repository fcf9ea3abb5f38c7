"""Operations that move elements and compute none: shapes, ranges, pointers, program ids, barriers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import Unsupported
from ...terms import construct as T
from ...terms.bits import cell_size
from ...terms.domain import Ids, as_ids, on_distinct, shaped
from ...terms.ranges import Ranges
from ...ttir.ir import Op
from ..machine import cell, machine, settle, take
from ..registry import handles, signed

if TYPE_CHECKING:
    from ..interpret import Run

AXES = {"x": 0, "y": 1, "z": 2}


@handles("tt.get_program_id", "tt.get_num_programs")
def _program(run: Run, op: Op) -> Any:
    axis = op.attrs["axis"]
    axis = AXES.get(axis, axis)
    return np.int32((run.program if op.name == "tt.get_program_id" else run.grid)[axis])


@handles("tt.make_range")
def _make_range(run: Run, op: Op) -> Any:
    return np.arange(op.attrs["start"], op.attrs["end"], dtype=np.int32)


@handles("tt.splat", "tt.broadcast", "tt.unsplat")
def _broadcast(run: Run, op: Op, x: Any) -> Any:
    shape = op.results[0].type.shape
    if op.name == "tt.unsplat":
        return shaped(x, lambda a: a.reshape(()))
    return shaped(x, lambda a: np.broadcast_to(a, shape))


@handles("tt.expand_dims")
def _expand_dims(run: Run, op: Op, x: Any) -> Any:
    return shaped(x, lambda a: np.expand_dims(a, op.attrs["axis"]))


@handles("tt.reshape")
def _reshape(run: Run, op: Op, x: Any) -> Any:
    """Row-major, also where the operation allows another order."""
    return shaped(x, lambda a: a.reshape(op.results[0].type.shape))


@handles("tt.trans")
def _trans(run: Run, op: Op, x: Any) -> Any:
    return shaped(x, lambda a: a.transpose(op.attrs["order"]))


@handles("tt.join")
def _join(run: Run, op: Op, a: Any, b: Any) -> Any:
    return _together(lambda x, y: np.stack([x, y], -1), a, b)


@handles("tt.cat")
def _cat(run: Run, op: Op, a: Any, b: Any) -> Any:
    return _together(lambda x, y: np.concatenate([x, y], 0), a, b)


@handles("tt.split")
def _split(run: Run, op: Op, x: Any) -> Any:
    return [take(x, (..., k)) for k in (0, 1)]


def _together(f: Any, *xs: Any) -> Any:
    """A shape operation on several values."""
    if any(isinstance(x, Ids) for x in xs):
        return Ids(f(*(as_ids(x) for x in xs)))
    return f(*xs)


@handles("tt.addptr")
def _addptr(run: Run, op: Op, pointer: Any, offset: Any) -> Any:
    """Byte address + size * offset, offsets sign-extended to 64 bits."""
    pointee = op.operands[0].type.pointee
    assert pointee is not None
    size = 1 if pointee.element == "i1" else cell_size(cell(pointee))
    if not (isinstance(pointer, Ids) or isinstance(offset, Ids)):
        return np.asarray(pointer) + np.asarray(offset).astype(np.int64) * size
    offset = signed(run, offset, op.operands[1].type.bits) if _narrow(op) else offset
    return settle(on_distinct(lambda p, k: T.add(p, T.mul(size, k)), pointer, offset), op.results[0].type)


def _narrow(op: Op) -> bool:
    """Whether the index, the second operand, is an integer that is known up to multiples of 2^bits only."""
    return 1 < op.operands[1].type.bits <= 16


@handles("tt.gather")
def _gather(run: Run, op: Op, source: Any, index: Any) -> Any:
    """source[..., index[i, ...], ...] along one axis; an index that depends on data picks among the elements."""
    axis = op.attrs["axis"]
    if not isinstance(index, Ids):
        inside = np.clip(index, 0, source.shape[axis] - 1).astype(np.int64)
        return shaped(source, lambda a: np.take_along_axis(a, inside, axis))
    columns = np.moveaxis(as_ids(source), axis, -1)
    index = signed(run, index, op.operands[1].type.bits) if _narrow(op) else index
    rows = np.moveaxis(index.ids, axis, -1)
    out = np.empty(rows.shape, np.int32)
    for at in np.ndindex(rows.shape[:-1]):
        elements = [T.TERMS[i] for i in columns[at]]
        out[at] = on_distinct(lambda k, e=elements: pick(run.ranges, k, e), Ids(rows[at])).ids
    return settle(Ids(np.moveaxis(out, -1, axis)), op.results[0].type)


def pick(ranges: Ranges, index: T.Term, elements: list[T.Term]) -> T.Term:
    """pick(index, elements), of those that the index can reach."""
    low, high = ranges.of(index)
    first, last = int(max(low, 0)), int(min(high, len(elements) - 1))
    return T.make("pick", T.sub(index, first), *elements[first : last + 1])


@handles("tt.histogram")
def _histogram(run: Run, op: Op, x: Any, mask: Any = None) -> Any:
    """Element b is how many x are b; numbers outside the bins count nowhere."""
    t, bins = op.results[0].type, np.arange(op.results[0].type.shape[0])
    hits = [run.domain.apply("eq", x, np.asarray(b, machine(op.operands[0].type))) for b in bins]
    if mask is not None:
        hits = [run.domain.apply("and", h, mask) for h in hits]
    counts = [run.domain.fold("sum", run.domain.apply("where", h, np.int64(1), np.int64(0)), 0) for h in hits]
    return settle(_together(lambda *cs: np.stack(cs), *counts), t) if any(isinstance(c, Ids) for c in counts) else (
        np.stack(counts).astype(machine(t))
    )  # fmt: skip


NO_EFFECT = (
    "ttg.barrier",
    "gpu.barrier",
    "tt.print",
    "tt.assert",
    "tt.debug_barrier",
    "ttg.local_barrier",
)


@handles(*NO_EFFECT, "tt.grid_dependency_wait", "tt.grid_dependency_launch_dependents", "gpu.grid_dependency_wait")
def _nothing(run: Run, op: Op, *_: object) -> None:
    """Order between the threads of a program, messages and hints: no values."""


@handles("llvm.intr.assume")
def _assume(run: Run, op: Op, condition: np.ndarray | Ids) -> None:
    """The compiler believes it, so that a program for which it is false means nothing: the memory notes it."""
    if not isinstance(condition, Ids) and not np.all(condition):
        run.memory.broken.setdefault(op)


@handles("ttng.wait_barrier", "nvvm.griddepcontrol.wait", "nvvm.griddepcontrol.launch.dependents")
def _order(run: Run, op: Op, *_: object) -> None:
    if op.results:
        raise Unsupported(op.name, op.place)
