"""tt.store, and the updates of cells that atomics are made of.

mask known            cells[a] = new, or cells[a] o new
mask depends on data  cells[a] = where(mask, new, old), or cells[a] o where(mask, new, unit)
address depends too   every cell e in reach: where(mask and address = e, new, e)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import Unsupported
from ...terms import construct as T
from ...terms.bits import cell_size
from ...terms.domain import Ids, as_ids, on_distinct, shaped
from ...ttir.ir import Op, Type
from .. import address as A
from ..machine import cell, settle, take
from ..memory import Cells
from ..registry import handles
from .load import BOOL, POINTER, guard

if TYPE_CHECKING:
    from ..interpret import Run

Combine = Callable[[Any, Any], Any]


@dataclass(frozen=True, slots=True, eq=False)
class Write:
    """The effect of a store on a cell: the new value, or `combine(old, new)`, which leaves old when new is `unit`."""

    op: Op
    type: Type
    combine: Combine | None = None
    unit: Any = None
    term: Callable[[T.Term, T.Term], T.Term] | None = None  # combine on single terms

    def value(self, old: Any, new: Any) -> Any:
        return new if self.combine is None else self.combine(old, new)

    def one(self, old: T.Term, new: T.Term) -> T.Term:
        """The same for two terms."""
        if self.combine is None:
            return new
        if self.term is not None:
            return self.term(old, new)
        return T.TERMS[int(as_ids(self.combine(_single(old), _single(new)))[0])]

    def guarded(self, mask: Any, old: Any, new: Any) -> Any:
        """where(mask, value(old, new), old), lane by lane where the mask depends on data."""
        if not isinstance(mask, Ids):
            return self.value(old, new)
        return on_distinct(self.guarded_term, mask, old, new)

    def guarded_term(self, m: T.Term, old: T.Term, new: T.Term) -> T.Term:
        """The mask goes inside where there is a unit. Else: old = where(~m, a, b) gives where(m, value(b, new), a)."""
        if self.unit is not None:
            return self.one(old, T.where(m, new, self.unit.item()))
        if old.op == "where" and old.args[0] is T.make("not", m):
            return T.where(m, self.one(old.args[2], new), old.args[1])
        return T.where(m, self.one(old, new), old)


def _single(t: T.Term) -> Ids:
    return Ids(np.array([t.id], np.int32))


@handles("tt.store")
def _store(run: Run, op: Op, pointer: Any, value: Any, mask: Any = None) -> None:
    t = op.operands[1].type
    update(run, Write(op, t), pointer, value, guard(run, mask, t.shape))


def update(run: Run, write: Write, pointer: Any, value: Any, mask: Any) -> None:
    """Do `write` at the addresses, in the lanes of the mask, in lane order."""
    t = write.type
    lanes = [shaped(x, lambda a: np.broadcast_to(a, t.shape).ravel()) for x in (pointer, value, mask)]
    live = lanes[2].ids != T.const(False).id if isinstance(lanes[2], Ids) else lanes[2]
    if not live.all():
        lanes = [take(x, live) for x in lanes]
    pointer, value, mask = settle(lanes[0], POINTER), lanes[1], settle(lanes[2], BOOL)
    if isinstance(pointer, Ids):
        scatter(run, write, pointer, value, mask)
        return
    if isinstance(mask, Ids) and not (inside := run.memory.inside(pointer)).all():
        pointer, value, mask = (take(x, inside) for x in (pointer, value, mask))
    if write.combine is None and not isinstance(mask, Ids):
        run.memory.store(pointer, value, t, write.op.place)
        return
    for turn in rounds(pointer):
        at, new, m = (take(x, turn) for x in (pointer, value, mask))
        old = run.memory.load(at, t, write.op.place)
        run.memory.store(at, write.guarded(m, old, new), t, write.op.place)


def rounds(addresses: np.ndarray) -> list[Any]:
    """Lane sets without repeated addresses; the k-th occurrence of an address is in the k-th set."""
    order = np.argsort(addresses, kind="stable")
    ordered = addresses[order]
    first = np.r_[True, ordered[1:] != ordered[:-1]] if len(ordered) else np.zeros(0, np.bool_)
    if first.all():
        return [slice(None)]
    starts = np.maximum.accumulate(np.where(first, np.arange(len(first)), 0))
    rank = np.empty(len(first), np.int64)
    rank[order] = np.arange(len(first)) - starts
    return [np.flatnonzero(rank == k) for k in range(int(rank.max()) + 1)]


def scatter(run: Run, write: Write, pointer: Ids, value: Any, mask: Any) -> None:
    """Addresses that depend on data, one lane after another: every cell e in reach becomes where(address = e, new,
    e)."""
    for address, new, m in zip(pointer.ids, as_ids(value), as_ids(mask), strict=True):
        for condition, a in _alternatives(T.TERMS[address]):
            hit = T.make("and", T.TERMS[m], condition)
            cells, targets = _targets(run, write, a, hit)
            for k, here in targets:
                full = T.make("and", hit, here)
                cells.data[k] = write.guarded_term(full, T.TERMS[cells.data[k]], T.TERMS[new]).id
            cells.fresh, cells.input = False, None


def _targets(run: Run, write: Write, address: T.Term, hit: T.Term) -> tuple[Cells, Iterable[tuple[int, T.Term]]]:
    """The buffer of an address and the (cell number, condition) that it can be."""
    element, place = cell(write.type), write.op.place
    if address.is_const:
        at = np.array([address.attr], np.int64)
        cells = run.memory.groups(at, place)[0][0]
        run.memory.retype(cells, element)
        targets: Iterable[tuple[int, T.Term]] = [(int(cells.positions(at)[0]), T.const(True))]
    else:
        facts = run.ranges.facts(*(hit.args if hit.op == "and" else [hit]))
        reach = A.reach(run.memory, run.ranges, address, facts, cell_size(element), place)
        cells, targets = reach.cells, reach.candidates()
        run.memory.retype(cells, element)
    if cells.element != element:
        raise Unsupported(f"{cells.origin} holds {cells.element} and is accessed as {element}", place)
    return cells, targets


def _alternatives(address: T.Term) -> list[tuple[T.Term, T.Term]]:
    """where(c, a, b) as an address is a under c and b under ~c."""
    if address.op != "where":
        return [(T.const(True), address)]
    c, a, b = address.args
    out = [(T.make("and", c, k), x) for k, x in _alternatives(a)]
    return out + [(T.make("and", T.make("not", c), k), x) for k, x in _alternatives(b)]
