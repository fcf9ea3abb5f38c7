"""tt.load: lanes with known addresses and masks at once, the others term by term.

mask known true    the element                     mask depends on data    where(mask, element, other)
mask known false   other, or undefined             address depends on data  lift.interpreter.address
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...terms import construct as T
from ...terms.bits import cell_size
from ...terms.domain import Ids, as_ids, on_distinct, shaped
from ...ttir.ir import Op, Type
from .. import address as A
from ..machine import cell, is_const, settle, undefined
from ..registry import handles

if TYPE_CHECKING:
    from ..interpret import Run

BOOL = Type("i1", text="i1")
POINTER = Type("i64", text="i64")


def guard(run: Run, mask: Any, shape: tuple[int, ...]) -> Any:
    """The lanes that are really executed: mask and path condition, as known booleans or terms."""
    if run.path is not None:
        mask = run.path if mask is None else run.domain.apply("and", mask, run.path)
    mask = np.ones((), np.bool_) if mask is None else mask
    return shaped(settle(mask, BOOL), lambda a: np.broadcast_to(a, shape))


def segments(op: Op, xs: tuple[Any, ...]) -> list[Any]:
    """Optional operands by operandSegmentSizes, None where absent."""
    sizes, rest = op.attrs.get("operandSegmentSizes"), list(xs)
    if sizes is None:
        return rest
    return [rest.pop(0) if n else None for n in sizes]


# ---- loads -----------------------------------------------------------------------------------------------------------


@handles("tt.load")
def _load(run: Run, op: Op, *xs: Any) -> Any:
    pointer, mask, other = (*segments(op, xs), None, None)[:3]
    t = op.results[0].type
    other = undefined(run.domain, t.shape, t, f"masked load at {op.place}") if other is None else other
    pointer = settle(pointer, POINTER)
    mask = settle(guard(run, mask, t.shape), BOOL) if run.path is None else _path_mask(mask, t.shape)
    if isinstance(pointer, Ids) or isinstance(mask, Ids):
        return settle(_load_terms(run, op, pointer, mask, other), t)
    return _load_known(run, op, pointer, mask, other)


def _path_mask(mask: Any, shape: tuple[int, ...]) -> Any:
    """A load on a path needs no guard of its own: what it gives is used on that path only."""
    lanes = np.ones(shape, np.bool_) if mask is None else shaped(mask, lambda a: np.broadcast_to(a, shape))
    return settle(lanes, BOOL)


def _load_known(run: Run, op: Op, pointer: np.ndarray, mask: np.ndarray, other: Any) -> Any:
    """Addresses and mask are numbers."""
    t, memory = op.results[0].type, run.memory
    lanes = mask & memory.inside(pointer) if run.path is not None else mask
    if lanes.all():
        return memory.load(pointer, t, op.place)
    got = memory.load(pointer[lanes], t, op.place) if lanes.any() else other
    if not lanes.any():
        return other
    if isinstance(got, Ids) or isinstance(other, Ids):
        out = np.array(np.broadcast_to(as_ids(other), t.shape))
        out[lanes] = as_ids(got)
        return settle(Ids(out), t)
    out = np.array(np.broadcast_to(other, t.shape))
    out[lanes] = got
    return out


def _load_terms(run: Run, op: Op, pointer: Any, mask: Any, other: Any) -> Ids:
    """Some address or mask depends on data: once per distinct lane."""
    t = op.results[0].type
    _prepare(run, pointer, mask, t)
    path = [] if run.path is None else [T.TERMS[int(run.path.ids)]]

    def lane(address: T.Term, m: T.Term, default: T.Term) -> T.Term:
        if m.is_const and not m.attr:
            return default
        return T.where(m, element(run, op, address, [m, *path], t), default)

    return on_distinct(lane, *np_broadcast(pointer, mask, other))


def np_broadcast(*xs: Any) -> list[Ids]:
    return [Ids(a) for a in np.broadcast_arrays(*(as_ids(x) for x in xs))]


def element(run: Run, op: Op, address: T.Term, conditions: list[T.Term], t: Type) -> T.Term:
    """The term at one address, given conditions that hold."""
    if address.op == "where":
        yes, no = (element(run, op, a, conditions, t) for a in address.args[1:])
        return T.where(address.args[0], yes, no)
    if address.is_const:
        at = np.array([address.attr], np.int64)
        if not run.memory.inside(at).all() and any(not c.is_const for c in conditions):
            return T.undef(f"out of bounds at {op.place}", _kind(t))
        return T.TERMS[int(as_ids(run.memory.load(at, t, op.place))[0])]
    facts = run.ranges.facts(*conditions)
    size = cell_size(cell(t))
    where = A.reach(run.memory, run.ranges, address, facts, size, op.place)
    run.memory.retype(where.cells, cell(t))
    got = A.gather(run.memory, run.ranges, where, facts, op.place)
    if where.cells.element == cell(t):
        return got
    cast = run.memory.cast(Ids(np.array([got.id], np.int32)), where.cells.element, cell(t))
    return T.TERMS[int(as_ids(cast)[0])]


def _kind(t: Type) -> str:
    return T.REAL if t.is_float else T.INT


def _prepare(run: Run, pointer: Any, mask: Any, t: Type) -> None:
    """Give the buffers of known addresses cells of the right size before single elements are read."""
    if not isinstance(pointer, Ids) and isinstance(mask, Ids):
        possible = ~(is_const[mask.ids] & (mask.ids == T.const(False).id)) & run.memory.inside(pointer)
        if possible.any():
            run.memory.load(pointer[possible], t)
