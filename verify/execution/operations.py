"""The operations of the IR that are neither control flow nor elementwise: shapes, pointers, memory, reductions.

HANDLERS[name](run, op, *tiles) is the tile of the result, a list for several, None where there is no meaning here
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from trilift.lift.interpreter.handlers.arithmetic import wrapped
from trilift.lift.interpreter.handlers.shape import AXES, NO_EFFECT
from trilift.lift.interpreter.machine import machine
from trilift.lift.terms import construct as T
from trilift.lift.terms.domain import as_ids
from trilift.lift.terms.term import Term
from trilift.lift.ttir.descriptors import MARK
from trilift.lift.ttir.ir import Op

from ..model.barriers import BARRIERS, joins_global_memory, reorders
from ..model.program import PIDS, POINTER, Barrier, term_type
from . import accesses, reductions, tile
from .indexing import reindexed, within
from .tile import Tile, base, constant, pointwise, select

if TYPE_CHECKING:
    from .parametric import Execution


def _constant(run: Execution, op: Op) -> Tile:
    t = op.results[0].type
    if isinstance(op.attrs["value"], Term):
        return _symbolic_constant(run, op, op.attrs["value"])
    value, dtype = np.asarray(op.attrs["value"]), machine(t)
    value = (wrapped(value, dtype) if dtype.kind == "i" else value).astype(dtype)
    ids = as_ids(value)
    if value.ndim == 0 or value.size == 1:
        return constant(t, T.TERMS[int(ids.ravel()[0])])
    elements = [T.TERMS[i] for i in np.broadcast_to(ids, t.shape).ravel()]
    return Tile(t, lambda lanes: T.make("pick", reindexed(lanes, t.shape, (len(elements),), run.ranges)[0], *elements))


def _symbolic_constant(run: Execution, op: Op, value: Term) -> Tile:
    """A number in terms of block sizes, which must fit its type."""
    out = constant(op.results[0].type, value)
    if out.type.is_int:
        run.oblige("wrap", op, out, out.type.bits)
    return out


def _poison(run: Execution, op: Op) -> Tile:
    t = op.results[0].type
    return constant(t, T.undef(f"poison at {op.place}", term_type(t)))


def _program(run: Execution, op: Op) -> Tile:
    axis = AXES.get(op.attrs["axis"], op.attrs["axis"])
    count = run.grid[axis]
    if op.name != "tt.get_program_id":
        return constant(op.results[0].type, count)
    return constant(op.results[0].type, T.const(0) if count is T.const(1) else PIDS[axis])


def _make_range(run: Execution, op: Op) -> Tile:
    return Tile(op.results[0].type, lambda lanes: T.add(lanes[0], op.attrs["start"]))


def _broadcast(run: Execution, op: Op, x: Tile) -> Tile:
    if not x.shape:
        return Tile(op.results[0].type, lambda lanes: x.at())
    return tile.moved(op.results[0].type, x, lambda lanes: lanes)


def _unsplat(run: Execution, op: Op, x: Tile) -> Tile:
    return tile.moved(op.results[0].type, x, lambda lanes: [tile.ZERO] * len(x.shape))


def _reshape(run: Execution, op: Op, x: Tile) -> Tile | None:
    """None where the compiler may choose another order and it matters."""
    if reorders(run.module, op):
        return None
    out = tile.reshape(op.results[0].type, x, run.ranges)
    if len(out.shape) == 1 < len(x.shape):
        out.whole = x
    return out


def _cat(run: Execution, op: Op, a: Tile, b: Tile) -> Tile | None:
    if reorders(run.module, op):
        return None
    t, n = op.results[0].type, a.shape[0]

    def element(lanes: tile.Lanes) -> Term:
        first = T.make("lt", lanes[0], n)
        return select(first, a.at(lanes), b.at((T.sub(lanes[0], n), *lanes[1:])), t)

    return Tile(t, element)


def _gather(run: Execution, op: Op, source: Tile, index: Tile) -> Tile:
    """source[.., index[lanes], ..]; poison where the index is outside."""
    axis, t = op.attrs["axis"], op.results[0].type
    index = tile.signed(run.ranges, index)
    outside = T.undef(f"gather outside at {op.place}", term_type(t))

    def element(lanes: tile.Lanes) -> Term:
        i = index.at(lanes)
        found = source.at(tile.replaced(lanes, axis, i))
        if within(i, source.shape[axis], run.ranges):
            return found
        inside = T.make("and", T.make("le", 0, i), T.make("lt", i, source.shape[axis]))
        return select(inside, found, outside, t)

    return Tile(t, element)


def _addptr(run: Execution, op: Op, p: Tile, offset: Tile) -> Tile:
    return pointwise(op.results[0].type, tile.advance, p, _offset(run, op, offset))


def _offset(run: Execution, op: Op, x: Tile) -> Tile:
    """A narrow offset as a number: of sizes, it owes that it fits its type, as wide integers do; of data, it is the
    remainder that the machine has."""
    t = x.type
    if not t.is_int or not 1 < t.bits <= tile.NARROW:
        return x
    if any(s.op == "read" for s in x.at(run.generic_lanes(x.shape)).walk()):
        return tile.signed(run.ranges, x)
    run.oblige("wrap", op, x, t.bits)
    return x


def on_pointers(run: Execution, op: Op, *xs: Tile) -> Tile | None:
    """Choices and casts of pointers."""
    t = op.results[0].type if op.results else None
    if op.name == "arith.select" and t is not None:
        return pointwise(t, lambda c, a, b: select(c, a, b, t), *xs)
    if op.name == "tt.ptr_to_int" and (found := _address(run, op, xs[0])) is not None:
        return found
    if op.name == "tt.bitcast" and t is not None and term_type(op.operands[0].type) == term_type(t) == POINTER:
        return _pointer_cast(run, op, xs[0])
    run.cannot(op)
    return None


def _address(run: Execution, op: Op, x: Tile) -> Tile | None:
    """The address of memory that a launch passes: some number that is not 0, so that `if ptr:` can be followed."""
    memory = base(x)
    if memory is None or memory.op != "pointer" or memory.attr not in run.present:
        return None
    return Tile(op.results[0].type, lambda i: T.node("address", x.at(i).args, memory.attr, T.INT))


def _pointer_cast(run: Execution, op: Op, x: Tile) -> Tile | None:
    """Offsets count elements, so the width must stay."""
    widths = {accesses.width(v.type.pointee) for v in (op.operands[0], op.results[0])}
    return Tile(op.results[0].type, x.at) if len(widths) == 1 else None


def _assert(run: Execution, op: Op, condition: Tile, *_: Tile) -> list[Tile]:
    """path => condition, in every lane: a launch with debug=True stops else; others are compiled without it."""
    if str(op.attrs.get("message", "")).startswith(MARK):
        run.oblige("descriptor", op, condition, 1)
        return []
    c = condition.at(run.generic_lanes(condition.shape))
    run.oblige("assert", op, condition, 1)
    run.asserts.append((T.make("or", T.make("not", run.path), c), op))
    return []


def _assume(run: Execution, op: Op, condition: Tile) -> list[Tile]:
    """The kernel means something only where the condition holds."""
    run.oblige("assume", op, condition, 1)
    return []


def _nothing(run: Execution, op: Op, *_: Tile) -> list[Tile]:
    return []


def _barrier(run: Execution, op: Op) -> list[Tile]:
    """No values, but an order between lanes."""
    if joins_global_memory(op):
        run.barriers.append(Barrier(op, run.loops, run.path, run.order))
    return []


def _dot(run: Execution, op: Op, *xs: Tile) -> reductions.Results:
    return reductions.dot(run, op, *xs[:3]) if len(xs) == 3 else None


def _store(run: Execution, op: Op, *xs: Tile) -> list[Tile]:
    accesses.store(run, op, *xs)
    return []


HANDLERS: dict[str, Callable[..., Tile | list[Tile] | None]] = {
    **dict.fromkeys(chain(NO_EFFECT, ("tt.grid_dependency_wait", "tt.grid_dependency_launch_dependents")), _nothing),
    **dict.fromkeys(BARRIERS, _barrier),
    "arith.constant": _constant,
    "ub.poison": _poison,
    "tt.get_program_id": _program,
    "tt.get_num_programs": _program,
    "tt.make_range": _make_range,
    "tt.splat": _broadcast,
    "tt.broadcast": _broadcast,
    "tt.unsplat": _unsplat,
    "tt.expand_dims": lambda run, op, x: tile.expand_dims(op.results[0].type, x, op.attrs["axis"]),
    "tt.reshape": _reshape,
    "tt.trans": lambda run, op, x: tile.trans(op.results[0].type, x, op.attrs["order"]),
    "tt.join": lambda run, op, a, b: tile.join(op.results[0].type, a, b),
    "tt.cat": _cat,
    "tt.split": lambda run, op, x: [tile.split(v.type, x, k) for k, v in enumerate(op.results)],
    "tt.gather": _gather,
    "tt.addptr": _addptr,
    "tt.assert": _assert,
    "llvm.intr.assume": _assume,
    "tt.load": accesses.load,
    "tt.store": _store,
    "tt.atomic_rmw": accesses.atomic_rmw,
    "tt.atomic_cas": accesses.atomic_cas,
    "tt.reduce": reductions.reduce,
    "tt.scan": reductions.scan,
    "tt.dot": _dot,
    "tt.histogram": reductions.histogram,
}
