"""Atomics: programs and lanes run one after another, so each is a read, an operation and a write."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import Unsupported
from ...terms import term as T
from ...terms.domain import Ids, Symbolic, as_ids, shaped
from ...terms.ops import OPS
from ...ttir.ir import Op, Type
from ..machine import cell, machine, settle, take, undefined
from ..registry import CHECKS, handles, unsigned
from .load import POINTER, guard
from .store import Write, rounds, update

if TYPE_CHECKING:
    from ..interpret import Run

# name: row of lift.terms.ops, unit (None: the guard stays outside)
ATOMICS: dict[str, tuple[str, Any]] = {
    "add": ("add", 0), "fadd": ("add", 0), "max": ("max", None), "min": ("min", None), "umax": ("max", None),
    "umin": ("min", None), "and": ("bitand", None), "or": ("bitor", 0), "xor": ("bitxor", 0), "exch": ("", None),
}  # fmt: skip


@handles("tt.atomic_rmw")
def _atomic_rmw(run: Run, op: Op, pointer: Any, value: Any, mask: Any = None) -> Any:
    """cells[pointer] = old op value, one lane after another; the value is the old one."""
    t = op.operands[1].type
    mask, pointer = guard(run, mask, t.shape), settle(pointer, POINTER)
    write = _write(run, op, t, op.attrs["atomic_rmw_op"])
    if op.results[0] in run.used:
        return fetch_and(run, write, pointer, value, mask)
    if not _float_order(run, op, pointer, value, mask):
        update(run, write, pointer, value, mask)
    return undefined(run.domain, t.shape, t, f"result of the atomic at {op.place}")


def _write(run: Run, op: Op, t: Type, name: str) -> Write:
    """The atomic operation `name` as a Write."""
    row, unit = ATOMICS[name]
    scalar = Type(t.element, (), t.pointee, t.element)
    if not row:
        return Write(op, t, lambda old, new: new)
    if name[0] == "u" and t.is_int:
        return Write(op, t, lambda old, new: _unsigned(run, row, old, new, t))
    if unit is None and t.is_float:
        unit = -np.inf if row == "max" else np.inf
    unit = unit if unit is None else np.asarray(unit, machine(scalar))
    return Write(op, t, lambda old, new: settle(run.domain.apply(row, old, new), scalar), unit, OPS[row].on_terms)


def _unsigned(run: Run, row: str, old: Any, new: Any, t: Type) -> Any:
    out = run.domain.apply(row, unsigned(run, old, t.bits), unsigned(run, new, t.bits))
    return out if isinstance(out, Ids) else out.view(f"i{t.bits // 8}")


_ORDERS = {"max": "max", "umin": "max", "min": "min", "umax": "min"}


def _float_order(run: Run, op: Op, pointer: Any, value: Any, mask: Any) -> bool:
    """Triton's float maximum, done on reals: bits are ordered as signed integers where v >= 0, against unsigned where
    v < 0.

    v >= 0: max_signed(bits a, bits v) = bits max(a, v)        v < 0: min_unsigned(bits a, bits v) = bits max(a, v)
    and the mirror image for the minimum. False if this is something else."""
    name, t = op.attrs["atomic_rmw_op"], op.operands[1].type
    if name not in _ORDERS or not t.is_int or not isinstance(value, Ids) or isinstance(pointer, Ids):
        return False
    element, terms = f"f{t.bits}", [T.TERMS[i] for i in np.unique(value.ids)]
    lanes = np.broadcast_to(pointer, t.shape)[as_ids(mask) != T.const(False).id]
    if not lanes.size or any(x.op not in (f"bits_{element}", "const", "undef") for x in terms):
        return False
    if run.memory.groups(lanes.ravel(), op.place)[0][0].element != element:
        return False
    reals = run.memory.cast(value, cell(t), element)
    write = Write(op, Type(element, t.shape, None, element), lambda old, new: run.domain.apply(_ORDERS[name], old, new))
    update(run, write, pointer, reals, mask)
    return True


def fetch_and(run: Run, write: Write, pointer: Any, value: Any, mask: Any) -> Any:
    """`update` where the old values are wanted: they are the result. Addresses must be known."""
    t, op = write.type, write.op
    if isinstance(pointer, Ids):
        raise Unsupported(f"{op.name} whose result is used", op.place, "its address depends on data")
    pointer, mask, value = (shaped(x, lambda a: np.broadcast_to(a, t.shape).ravel()) for x in (pointer, mask, value))
    symbolic = isinstance(run.domain, Symbolic)
    out = undefined(run.domain, pointer.shape, t, f"masked atomic at {op.place}")
    out = np.array(as_ids(out) if symbolic else out)
    live = np.flatnonzero(mask.ids != T.const(False).id if isinstance(mask, Ids) else mask)
    for chosen in rounds(pointer[live]):
        lanes = live[chosen]
        at, new, m = (take(x, lanes) for x in (pointer, value, mask))
        old = run.memory.load(at, t, op.place)
        out[lanes] = as_ids(old) if symbolic else old
        run.memory.store(at, write.guarded(m, old, new), t, op.place)
    return settle(Ids(out.reshape(t.shape)), t) if symbolic else out.reshape(t.shape)


@handles("tt.atomic_cas")
def _atomic_cas(run: Run, op: Op, pointer: Any, expected: Any, value: Any) -> Any:
    """old if old != expected, else value; the result is the old value."""
    t, pointer = op.operands[1].type, settle(pointer, POINTER)
    if t.shape and len(np.unique(as_ids(pointer) if isinstance(pointer, Ids) else pointer)) != pointer.size:
        raise Unsupported(op.name, op.place, "several lanes share one address")
    flat = shaped(expected, lambda a: np.broadcast_to(a, t.shape).ravel())
    write = Write(op, t, lambda old, new: run.domain.apply("where", run.domain.apply("eq", old, flat), new, old))
    return fetch_and(run, write, pointer, value, guard(run, None, t.shape))


CHECKS["tt.atomic_rmw"] = lambda op: (
    None if op.attrs["atomic_rmw_op"] in ATOMICS else f"atomic {op.attrs['atomic_rmw_op']}"
)
