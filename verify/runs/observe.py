"""Executions in float64 that are looked on: which program touched which element, what was never written, what poison
reaches, and whether the order of programs matters.

    observe(case, dims, seed, config)     one run, in program order, with every access that was made
    differs(run, programs backwards)      a race: the outputs depend on the order
    differs(run, other poison)            an undefined value: the outputs depend on what nobody defined
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from trilift.lift.capture.trace import Launch, TensorRef, Trace
from trilift.lift.cases.declaration import Case
from trilift.lift.errors import CaseError, OutOfBounds, Place, TriliftError, Unsupported
from trilift.lift.interpreter.interpret import Run
from trilift.lift.interpreter.memory import Memory
from trilift.lift.replay.check import ROUNDED
from trilift.lift.runtime.budget import BUDGETS, limited
from trilift.lift.terms.domain import Float64
from trilift.lift.ttir.ir import Op, Type

from .adversary import arguments, arrays
from .isolated_buffers import apart, holds_pointers
from .trials import RUN_PROGRAMS, Dims

FINITE = (1e4, -1e4)  # what undefined reals are in two further runs, beyond ordinary inputs in either direction
TOUCHING = frozenset(("tt.load", "tt.store", "tt.atomic_rmw", "tt.atomic_cas"))
UNINITIALISED = ("aten.empty", "aten.new_empty")
Program = tuple[int, int, int]


@dataclass(frozen=True, slots=True, eq=False)
class Touch:
    """Some lanes of one access in one program: "load", "store" or "atomic" at byte addresses, with what was stored."""

    kind: str
    op: Op
    program: Program
    addresses: np.ndarray
    values: np.ndarray | None
    size: int  # bytes of an element


@dataclass(slots=True, eq=False)
class Watched:
    """One launch while it ran."""

    launch: Launch
    touches: list[Touch] = field(default_factory=list)
    before: dict[int, np.ndarray] = field(default_factory=dict)  # buffer -> its contents when the launch began


class Watching(Memory):
    """Memory that notes who touches it. `written`: of each buffer the bytes that anybody wrote; `unset`: loads of what
    nobody wrote."""

    def __init__(self, domain: Float64) -> None:
        super().__init__(domain)
        self.now: tuple[Program, Op] | None = None
        self.launches: list[Watched] = []
        self.written: dict[int, np.ndarray] = {}
        self.unset: list[tuple[Program, Op, int]] = []

    def load(self, addresses: np.ndarray, t: Type, place: Place | None = None) -> Any:
        got = super().load(addresses, t, place)
        if self.now is not None and self.now[1].name == "tt.load":
            self.note("load", addresses, None, t)
            self.check(np.ravel(addresses), place)
        return got

    def check(self, addresses: np.ndarray, place: Place | None) -> None:
        """Notes a load of memory that was allocated without contents and not written since."""
        assert self.now is not None
        for cells, lanes in self.groups(addresses, place) if addresses.size else ():
            if not cells.origin.startswith(UNINITIALISED):
                continue
            seen = self.written.get(cells.address)
            at = addresses[lanes]
            unset = at if seen is None else at[~seen[at - cells.address]]
            if unset.size:
                self.unset.append((self.now[0], self.now[1], int(unset[0])))

    def store(self, addresses: np.ndarray, values: Any, t: Type, place: Place | None = None) -> None:
        super().store(addresses, values, t, place)
        flat, size = np.ravel(addresses), max(1, t.bits // 8)
        for cells, lanes in self.groups(flat, place) if flat.size else ():
            seen = self.written.setdefault(cells.address, np.zeros(cells.nbytes, np.bool_))
            at = flat[lanes] - cells.address
            for byte in range(size):
                seen[at + byte] = True
        if self.now is not None:
            self.note("store" if self.now[1].name == "tt.store" else "atomic", addresses, values, t)

    def note(self, kind: str, addresses: np.ndarray, values: Any, t: Type) -> None:
        assert self.now is not None
        program, op = self.now
        flat = np.ascontiguousarray(addresses).ravel()
        kept = None if values is None else np.broadcast_to(values, np.shape(addresses)).ravel()
        self.launches[-1].touches.append(Touch(kind, op, program, flat, kept, max(1, t.bits // 8)))


class Onlooker(Run):
    """A run that tells its memory which program does what."""

    def launch(self, args: Any, grid: tuple[int, int, int]) -> None:
        assert isinstance(self.memory, Watching)
        super().launch(args, grid)
        self.memory.now = None

    def result(self, op: Op) -> Any:
        assert isinstance(self.memory, Watching)
        self.memory.now = (self.program, op) if op.name in TOUCHING else None
        return super().result(op)


class Backwards(Run):
    """The programs in the reverse order."""

    def programs(self, grid: tuple[int, int, int]) -> Iterator[Program]:
        return reversed(list(super().programs(grid)))


class Rebracketed(Run):
    """Combiners that are not known to be associative combine their elements in another order."""

    rebracketed = True


class Stale(Run):
    """Every program finds memory as it was when the launch began, and what it stored itself; afterwards the stores of
    all programs are made in order. For launches without atomics."""

    def programs(self, grid: tuple[int, int, int]) -> Iterator[Program]:
        before = {a: c.data.copy() for a, c in self.memory.buffers.items()}
        after = {a: x.copy() for a, x in before.items()}
        for program in super().programs(grid):
            for address, cells in self.memory.buffers.items():
                if address in before:
                    cells.data = before[address].copy()
            yield program
            for address, x in before.items():
                now = self.memory.buffers[address].data
                if now.shape != x.shape:
                    raise Unsupported("a buffer that changes its element type")
                changed = ~((now == x) | ((now != now) & (x != x)))
                after[address][changed] = now[changed]
        for address, x in after.items():
            self.memory.buffers[address].data = x


class Poisoned(Float64):
    """Reals where what is undefined is a number: `everywhere`, or `labelled` says which."""

    def __init__(self, everywhere: float, labelled: Mapping[str, float] | None = None) -> None:
        self.everywhere, self.labelled = everywhere, labelled or {}
        self.labels: set[str] = set()

    def poison(self, label: str) -> float:
        self.labels.add(label)
        return self.labelled.get(label, self.everywhere)

    def integer_poison(self, label: str, dtype: np.dtype[Any]) -> int:
        self.labels.add(label)
        return int(np.sign(self.labelled.get(label, self.everywhere))) % 100


@dataclass(frozen=True, eq=False)
class Observation:
    """One run. `outputs` is None where `trouble` ended it. `memory` is what it left; buffers lie far apart."""

    case: Case
    dims: Dims
    seed: int
    config: int
    trace: Trace
    inputs: Mapping[str, np.ndarray]
    outputs: Mapping[str, np.ndarray] | None
    trouble: TriliftError | None
    memory: Watching
    where: tuple[Program, Op] | None  # what was executed when the trouble began

    @property
    def launches(self) -> list[Watched]:
        return self.memory.launches

    @cached_property
    def at(self) -> dict[str, Any]:
        """Dims, and what else is needed to make the run again."""
        config = {"config": self.config} if self.trace.configs > 1 else {}
        return {**self.dims, **config, "seed": self.seed}

    def again(self, domain: Float64 | None = None, kind: type[Run] = Run) -> Mapping[str, np.ndarray] | None:
        """The outputs of the same run with another domain or order; None where it does not come to an end."""
        from trilift.lift.replay.execute import replay

        given = {n: x.copy() for n, x in self.inputs.items()}
        try:
            with limited("watched run", BUDGETS.run.watched_steps):
                return replay(self.trace, given, memory=Memory(domain or Float64()), kind=kind)
        except (TriliftError, ArithmeticError, ValueError, IndexError, TypeError):
            return None

    def buffer(self, address: int) -> TensorRef | None:
        """A tensor of the case or of a launch that holds this byte."""
        refs = [*self.trace.inputs.values(), *self.trace.outputs.values()]
        refs += [x for e in self.trace.launches for x in e.operands if isinstance(x, TensorRef)]
        return next((r for r in refs if r.buffer.address <= address < r.buffer.address + r.buffer.nbytes), None)

    def name(self, address: int) -> str:
        """The user's name of the tensor that holds this byte: an input, an output, else a kernel's parameter."""
        from ..wording.buffer_names import tensor_name

        return tensor_name(self.trace, address)

    def unwritten(self, output: str) -> np.ndarray:
        """Which elements of an output nobody wrote."""
        ref = self.trace.outputs[output]
        seen = self.memory.written.get(ref.buffer.address)
        at = ref.addresses() - ref.buffer.address
        if ref.buffer.address in {r.buffer.address for r in self.trace.inputs.values()}:
            return np.zeros(ref.shape, np.bool_)
        return np.ones(ref.shape, np.bool_) if seen is None else ~seen[at]


def observe(case: Case, dims: Dims, seed: int, config: int = 0) -> Observation | None:
    """One run that is looked on; None where the host function refuses these dims, or where it cannot be executed for a
    reason unrelated to the kernel."""
    from trilift.lift.capture.run import capture
    from trilift.lift.replay.execute import replay

    try:
        trace = capture(case, dims, config=config, seed=seed)
        if trace.another or trace.programs > RUN_PROGRAMS or holds_pointers(trace):
            return None
    except (CaseError, Unsupported):
        return None
    trace = apart(trace)
    inputs = arrays(case, arguments(case, dims, seed))
    memory = Watching(Float64())
    outputs: Mapping[str, np.ndarray] | None = None
    trouble: TriliftError | None = None
    try:
        with limited("watched run", BUDGETS.run.watched_steps):
            outputs = replay(trace, {n: x.copy() for n, x in inputs.items()}, memory=memory, kind=_per_launch(trace))
    except OutOfBounds as error:
        trouble = error
    except (TriliftError, ArithmeticError, ValueError, IndexError, TypeError, MemoryError):
        return None
    return Observation(case, dims, seed, config, trace, inputs, outputs, trouble, memory, memory.now)


def _per_launch(trace: Trace) -> type[Run]:
    """An onlooker that opens a page for each launch, in the trace's order."""
    launches = iter(trace.launches)

    class Page(Onlooker):
        def launch(self, args: Any, grid: tuple[int, int, int]) -> None:
            assert isinstance(self.memory, Watching)
            page = Watched(next(launches))
            page.before = {a: c.data.copy() for a, c in self.memory.buffers.items()}
            self.memory.launches.append(page)
            super().launch(args, grid)

    return Page


def differing(a: Mapping[str, np.ndarray] | None, b: Mapping[str, np.ndarray] | None) -> dict[str, np.ndarray]:
    """Of each output the elements that are not the same in both, but for rounding; none where a run is missing."""
    if a is None or b is None:
        return {}
    out = {}
    for name in a.keys() & b.keys():
        x, y = (np.asarray(v, np.float64) for v in (a[name], b[name]))
        if x.shape != y.shape or not x.size:
            continue
        with np.errstate(all="ignore"):
            scale = np.max(np.abs(x[np.isfinite(x)]), initial=0.0)
            same = (x == y) | (np.isnan(x) & np.isnan(y)) | (np.abs(x - y) <= ROUNDED * np.maximum(np.abs(x), scale))
        if not same.all():
            out[name] = ~same
    return out


def element(output: str, index: Iterable[Any]) -> str:
    """`out[3, 4]`."""
    inside = ", ".join(str(int(i)) for i in index)
    return f"{output}[{inside}]" if inside else output
