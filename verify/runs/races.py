"""Elements that more than one program touches in one launch, and whether the order of programs matters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from trilift.lift.cases.declaration import Case
from trilift.lift.ttir.ir import Module, Op
from trilift.lift.ttir.written_pointers import WRITERS

from ..model.barriers import joins_global_memory, pipelined, reorders, within_program
from .caller_memory import READERS, sources
from .happens_before import Order, concurrent
from .observe import Backwards, Observation, Rebracketed, Stale, Touch, Watched, differing, observe
from .trials import Dims
from .turns import InTurns, in_turns, touching

INTERLEAVINGS = 4  # runs in which programs take turns
LATE_OPERATIONS = 16  # before each of which one program waits for the others


@dataclass(frozen=True, slots=True, eq=False)
class Clash:
    """One element that two programs touch. `kind`: "write" for two stores of unlike values, "read" for a load of what
    another program changes. `before`, `after`: the first and the second value."""

    kind: str
    address: int
    first: Touch
    second: Touch
    before: float
    after: float


def clashes(page: Watched) -> Iterator[Clash]:
    """The first clash of each pair of lines of a launch. Launches whose programs wait for each other are skipped: a
    lock may order what they do."""
    if synchronises(page):
        return
    told: set[tuple[str, Op, Op]] = set()
    for address, mine in _shared(page):
        for c in _of_element(page, address, mine):
            if (key := (c.kind, c.first.op, c.second.op)) not in told:
                told.add(key)
                yield c


def unwaited(page: Watched) -> Iterator[Clash]:
    """The same of a launch whose programs wait for each other, for accesses that their atomics do not order."""
    if not synchronises(page):
        return
    order = Order(page)
    for address, mine in _shared(page):
        old = _before(page, address)
        for first, k, second, n in concurrent(order, mine):
            if second.kind == "load":
                first, k, second, n = second, n, first, k
            a, b = (float(t.values[i]) if t.values is not None else old for t, i in ((first, k), (second, n)))
            if not _same(a, b):
                kind = "write" if first.kind == "store" else "read"
                yield Clash(kind, address, first, second, a, b)
                break


def synchronises(page: Watched) -> bool:
    """Whether an atomic gives its old value to the program: a lock, a ticket, a counter."""
    module = page.launch.module()
    used = {v for op in module.walk() for v in op.operands}
    return any(op.name.startswith("tt.atomic") and op.results and op.results[0] in used for op in module.walk())


def unreleased(page: Watched) -> str:
    """Why the atomics of a launch whose programs wait for each other order nothing else; "" where they may: each that
    tells its old value acquires and releases, or is a compare and swap that acquires, and each other one releases.
    The kernel says so: the launch may be of one program at this shape."""
    if not synchronises(page):
        return ""
    module = page.launch.module()
    used = {v for op in module.walk() for v in op.operands}
    atomics = [op for op in module.walk() if op.name in ("tt.atomic_rmw", "tt.atomic_cas")]
    for op in atomics:
        if op.attrs.get("sem", "acq_rel") not in _enough(op, any(v in used for v in op.results)):
            return f"the atomic operation{_at(op)} is {op.attrs['sem']}, which orders no other access"
    if not any(op.attrs.get("sem", "acq_rel") in ("acq_rel", "release") for op in atomics):
        return "no atomic operation releases what was stored before it"
    return _plainly_stored(page)


def _enough(op: Op, told: bool) -> tuple[str, ...]:
    """The orders that an atomic needs, one of them. `told`: the program uses its old value."""
    if op.name == "tt.atomic_cas":
        return "acq_rel", "acquire"
    return ("acq_rel",) if told else ("acq_rel", "release")


def _plainly_stored(page: Watched) -> str:
    """A text about an element that one program stores and another one changes or waits for by an atomic."""
    atomic = [t for t in page.touches if t.kind == "atomic" and t.addresses.size]
    for t in (t for t in page.touches if t.kind == "store" and t.addresses.size):
        if any(a.program != t.program and np.intersect1d(a.addresses, t.addresses).size for a in atomic):
            return f"the store{_at(t.op)} goes to an element of the atomics of another program"
    return ""


def _at(op: Op) -> str:
    return f" at line {op.place.line}" if op.place is not None else ""


def _shared(page: Watched) -> Iterator[tuple[int, list[tuple[Touch, int]]]]:
    """Elements that several programs touch and one of them stores: (address, touches with the lane)."""
    touches = [t for t in page.touches if t.addresses.size]
    if not any(t.kind == "store" for t in touches):
        return
    at = np.concatenate([t.addresses for t in touches])
    of = np.repeat(np.arange(len(touches)), [t.addresses.size for t in touches])
    lane = np.concatenate([np.arange(t.addresses.size) for t in touches])
    programs = {p: k for k, p in enumerate(dict.fromkeys(t.program for t in touches))}
    who = np.array([programs[t.program] for t in touches])[of]
    stored = np.array([t.kind == "store" for t in touches])[of]
    order = np.argsort(at, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(at[order]) != 0])
    several = np.maximum.reduceat(who[order], starts) != np.minimum.reduceat(who[order], starts)
    some = np.maximum.reduceat(stored[order], starts)
    ends = np.r_[starts[1:], len(order)]
    for k in np.flatnonzero(several & some):
        rows = order[starts[k] : ends[k]]
        yield int(at[rows[0]]), [(touches[of[r]], int(lane[r])) for r in rows]


def _of_element(page: Watched, address: int, mine: list[tuple[Touch, int]]) -> Iterator[Clash]:
    """Two stores of unlike values, then a load by one program and a store of something new by another."""
    stores = [(t, float(t.values[k])) for t, k in mine if t.kind == "store" and t.values is not None]
    last = {t.program: (t, v) for t, v in stores}  # of each program the value that it leaves
    pairs = list(last.values())
    for t, v in pairs[1:]:
        if not _same(v, pairs[0][1]):
            yield Clash("write", address, pairs[0][0], t, pairs[0][1], v)
            break
    old = _before(page, address)
    for load, _ in mine:
        if load.kind != "load":
            continue
        for t, v in stores:
            if t.program != load.program and not _same(v, old):
                yield Clash("read", address, load, t, old, v)
                return


def _before(page: Watched, address: int) -> float:
    """The element's value when the launch began."""
    start = max((a for a in page.before if a <= address), default=None)
    if start is None:
        return float("nan")
    data = page.before[start]
    size = next((t.size for t in page.touches if address in t.addresses), 1)
    k = (address - start) // size
    return float(data[k]) if k < data.size else float("nan")


def _same(a: float, b: float) -> bool:
    return a == b or (np.isnan(a) and np.isnan(b)) or abs(a - b) <= 1e-9 * max(abs(a), abs(b))


def backwards(run: Observation) -> dict[str, np.ndarray]:
    """The outputs that change when the programs of every launch run in the reverse order."""
    return differing(run.outputs, run.again(kind=Backwards))


def at_once(run: Observation) -> dict[str, np.ndarray]:
    """The outputs that change when no program sees what another one stores; none where atomics order them."""
    if any(t.kind == "atomic" for page in run.launches for t in page.touches):
        return {}
    return differing(run.outputs, run.again(kind=Stale))


def rebracketed(run: Observation) -> dict[str, np.ndarray]:
    """The outputs that change when combiners of tl.reduce and tl.associative_scan take their elements in another order:
    Triton promises none."""
    return differing(run.outputs, run.again(kind=Rebracketed)) if _combines(run) else {}


def _combines(run: Observation) -> bool:
    return any(op.name in ("tt.reduce", "tt.scan") for page in run.launches for op in page.launch.module().walk())


def interleaved(run: Observation) -> str:
    """A text on launches that use what their atomics tell them, whose programs may not take turns; "" where they
    may."""
    mine = dict.fromkeys(page.launch.kernel for page in run.launches if synchronises(page) or _replaces(page))
    said = f"{' and '.join(mine)} depend{'s' * (len(mine) == 1)} on an order that nothing promises"
    for kind in kinds_of_turns(run) if mine else ():
        outputs = run.again(kind=kind)
        if outputs is None:
            return f"{said}: it does not come to an end where programs take turns"
        if changed := next(iter(differing(run.outputs, outputs)), ""):
            return f"{said}: {changed} differs where programs take turns at their accesses to memory"
    return ""


def kinds_of_turns(run: Observation) -> list[type[InTurns]]:
    """Runs in which programs take turns: as drawn, and with one program that waits before each access."""
    number = max(len(touching(page.launch.module())) for page in run.launches)
    late = [in_turns(seed, k) for k in range(min(number, LATE_OPERATIONS)) for seed in range(2)]
    return [*map(in_turns, range(INTERLEAVINGS)), *late]


class OtherTurns(NamedTuple):
    """A run in which programs take other turns, and the elements of each output that `changed`."""

    kind: type[InTurns]
    changed: dict[str, np.ndarray]


def in_other_turns(run: Observation) -> OtherTurns | None:
    """The first of these runs in which outputs change; None where they never do."""
    found = (OtherTurns(kind, differing(run.outputs, run.again(kind=kind))) for kind in kinds_of_turns(run))
    return next((f for f in found if f.changed), None)


def _replaces(page: Watched) -> bool:
    """Whether an atomic puts its operand in the place of what was there."""
    ops = [op for op in page.launch.module().walk() if op.name.startswith("tt.atomic")]
    return any(op.name == "tt.atomic_cas" or op.attrs.get("atomic_rmw_op") == "exch" for op in ops)


def told_apart(page: Watched) -> str:
    """A text about an atomic of which two lanes meet at one element, and that tells them its old values."""
    used = {v for op in page.launch.module().walk() for v in op.operands}
    found: dict[tuple[object, Op], list[np.ndarray]] = {}
    for t in page.touches:
        if t.kind == "atomic" and any(v in used and v.type.shape for v in t.op.results):
            found.setdefault((t.program, t.op), []).append(t.addresses)
    for (_, op), every in found.items():
        at = np.concatenate(every)
        if np.unique(at).size < at.size:
            return f"two lanes of the atomic operation{_at(op)} get the old values of one element"
    return ""


def unordered(page: Watched) -> Iterator[Clash]:
    """Elements that one program stores twice with tiles of unlike shapes, so by unlike threads, other values, and no
    barrier between."""
    module = page.launch.module()
    if any(joins_global_memory(op) for op in module.walk()):
        return
    told: set[tuple[Op, Op]] = set()
    by_program: dict[object, list[Touch]] = {}
    for t in page.touches:
        if t.kind == "store" and t.values is not None and t.addresses.size:
            by_program.setdefault(t.program, []).append(t)
    for mine in by_program.values():
        for k, second in enumerate(mine):
            for first in mine[:k]:
                alike = first.op.operands[0].type.shape == second.op.operands[0].type.shape
                if first.op is second.op or alike or (first.op, second.op) in told:
                    continue
                both, a, b = np.intersect1d(first.addresses, second.addresses, return_indices=True)
                assert first.values is not None and second.values is not None
                unlike = [
                    i for i in range(len(both)) if not _same(float(first.values[a[i]]), float(second.values[b[i]]))
                ]
                if unlike:
                    told.add((first.op, second.op))
                    i = unlike[0]
                    values = float(first.values[a[i]]), float(second.values[b[i]])
                    yield Clash("write", int(both[i]), first, second, *values)


def reloaded(page: Watched) -> Iterator[Clash]:
    """The first element of each load that two of its lanes find, and that the program then changes: one lane may store
    before the other loads. Not where a barrier, or a reduction of a tile, is anywhere in the kernel."""
    module = page.launch.module()
    if any(joins_global_memory(op) or op.name == "tt.reduce" for op in module.walk()):
        return
    told: set[Op] = set()
    twice: dict[object, list[tuple[Touch, np.ndarray]]] = {}
    for t in page.touches:
        if t.kind == "load" and t.op not in told:
            at, counts = np.unique(t.addresses, return_counts=True)
            if (counts > 1).any():
                twice.setdefault(t.program, []).append((t, at[counts > 1]))
        elif t.kind == "store" and t.values is not None:
            values = np.asarray(t.values, np.float64).ravel()
            for load, at in twice.get(t.program, ()):
                for k in np.flatnonzero(np.isin(t.addresses, at)):
                    old = _before(page, int(t.addresses[k]))
                    if load.op not in told and not _same(float(values[k]), old):
                        told.add(load.op)
                        yield Clash("read", int(t.addresses[k]), load, t, old, float(values[k]))


def within(page: Watched) -> Iterator[Clash]:
    """The first element of each store that two of its lanes store, with unlike values."""
    told: set[Op] = set()
    for t in page.touches:
        if t.kind != "store" or t.values is None or t.op in told:
            continue
        order = np.argsort(t.addresses, kind="stable")
        at, values = t.addresses[order], np.asarray(t.values, np.float64).ravel()[order]
        for k in np.flatnonzero(at[1:] == at[:-1]):
            if not _same(float(values[k]), float(values[k + 1])):
                told.add(t.op)
                yield Clash("write", int(at[k]), t, t, float(values[k]), float(values[k + 1]))
                break


def unpromised(case: Case, shapes: Iterable[Dims], seed: int = 0) -> str:
    """Names a tensor whose contents depend on an order of programs or lanes that nothing promises, in runs at these
    shapes; "" where there is none. One run in one order says little about such a kernel."""
    for dims in shapes:
        if (run := observe(case, dims, seed)) is None:
            continue
        for page in run.launches:
            if why := unreleased(page) or told_apart(page):
                return f"{page.launch.kernel} depends on an order that nothing promises: {why}"
            for find in (clashes, unwaited, within, unordered, reloaded):
                if (c := next(find(page), None)) is not None:
                    return f"{run.name(c.address)} depends on an order that nothing promises: {_between(c)}"
        if (wrong := _meaningless(run)) is not None:
            return wrong
        if why := interleaved(run):
            return why
        if not _waits(run) and (changed := next(iter(backwards(run)), "")):
            return f"{changed} depends on an order that nothing promises: it differs where the programs run backwards"
        if changed := next((n for r in (run, *_tied(run)) for n in rebracketed(r)), ""):
            why = "a combiner that is not associative and commutative"
            return f"{changed} depends on an order that nothing promises: {why}"
    return ""


def _tied(run: Observation) -> Iterator[Observation]:
    """The same run with equal elements in every tensor that may have them: a combiner may only then ask which of two
    comes first."""
    if not _combines(run):
        return
    may = {n for n, s in run.case.tensors.items() if not s.distinct}
    inputs = {n: np.full_like(x, x.flat[0]) if n in may and x.size else x for n, x in run.inputs.items()}
    tied = replace(run, inputs=inputs)
    if (outputs := tied.again()) is not None:
        yield replace(tied, outputs=outputs)


def _waits(run: Observation) -> bool:
    """Whether a program may wait for another one, for ever in another order."""
    return any(op.name == "scf.while" for page in run.launches for op in page.launch.module().walk())


def _meaningless(run: Observation) -> str | None:
    """A text about a tl.assume that was false, an atomic that is none between programs, or a tile without an order."""
    for op in run.memory.broken:
        return f"the compiler believes the tl.assume{_at(op)}, which is false at {dict(run.dims)}"
    modules = (page.launch.module() for page in run.launches)
    for module, op in ((m, op) for m in modules for op in m.walk()):
        if within_program(op):
            return f"the atomic operation{_at(op)} is atomic within one program only"
        if pipelined(op) and _loads_what_it_stores(module, op):
            return f"the pipelined loop{_at(op)} may load elements before it stores them"
        if reorders(module, op):
            return f"the elements of the tile{_at(op)} are in an order that nothing promises"
    return None


def _loads_what_it_stores(module: Module, loop: Op) -> bool:
    """Whether loads and stores of a loop may go to memory of the same argument."""
    at = lambda names: sources(module, [op.operands[0] for op in loop.walk() if op.name in names])  # noqa: E731
    read, written = at(READERS), at(WRITERS)
    return read is None or written is None or not read.isdisjoint(written)


def _between(c: Clash) -> str:
    lines = [t.op.place.line for t in (c.first, c.second) if t.op.place is not None]
    where = " and ".join(f"line {n}" for n in dict.fromkeys(lines)) or "a store"
    who = "two lanes" if c.first.program == c.second.program else f"programs {c.first.program} and {c.second.program}"
    what = "store unlike values in one element" if c.kind == "write" else "load and change one element"
    return f"{who} {what} at {where}"
