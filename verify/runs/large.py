"""Launches at sizes that no memory here holds: the host function on tensors without contents, then single programs of a
kernel with 32-bit integers as they are, on memory that is addresses only.

An index that wraps around at 2^31 leaves its tensor: that is seen as an access out of bounds after an operation whose
exact result did not fit.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product, zip_longest
from typing import Any

import numpy as np
import torch
from torch.overrides import TorchFunctionMode

from trilift.lift.capture.fake_cuda import pretend
from trilift.lift.capture.launches import Bound, intercepted
from trilift.lift.capture.places import host_place
from trilift.lift.capture.recorder import lowered
from trilift.lift.capture.trace import Buffer
from trilift.lift.cases.declaration import Case, torch_dtype
from trilift.lift.cases.shapes import choose
from trilift.lift.errors import OutOfBounds, Place, TriliftError
from trilift.lift.interpreter.interpret import Run
from trilift.lift.interpreter.interpret import run as interpret
from trilift.lift.interpreter.machine import machine
from trilift.lift.interpreter.memory import Memory
from trilift.lift.language.case_spec import DTYPES, Spec
from trilift.lift.runtime.budget import BUDGETS, OutOfSteps, limited
from trilift.lift.terms.domain import Float64
from trilift.lift.terms.fit import value
from trilift.lift.ttir.ir import Module, Op, Type
from trilift.lift.ttir.lower import leaves

from ..model.slices import ancestors, parents
from .trials import Dims

TOUCHING = frozenset(("tt.load", "tt.store", "tt.atomic_rmw", "tt.atomic_cas"))
HERE = os.path.dirname(os.path.dirname(__file__)) + os.sep  # the folder verify/
GAP = 1 << 44  # bytes between buffers
MEMORY = 80 << 30  # bytes of the inputs of a call that is worth a warning: one large device
BELOW = (0, 1)  # the largest index may stand for none
AXIS = 65535  # programs along the axes y and z of a grid, at most
ELSEWHERE = "at a different element than without the wrap"
ENDS = 2  # iterations at either end of a long loop
STEPS = 8_000  # operations of one program
WIDE = {"arith.addi": np.add, "arith.subi": np.subtract, "arith.muli": np.multiply, "arith.shli": np.left_shift}
PAIRS = 6
LARGEST_SIZE = 1 << 40
MULTIPLES = (2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)  # of which a size may have to be one
_IS_CUDA = torch.Tensor.is_cuda.__get__
SHORT = {getattr(torch, long): short for short, long in DTYPES.items()}


class Refused(Exception):
    """The host function raised."""


class Undecided(Exception):
    """It cannot be run on tensors without contents."""


@dataclass(frozen=True, eq=False, slots=True)
class LargeLaunch:
    """One launch of a run without contents: its numbers are those that the kernel would get."""

    bound: Bound
    place: Place | None
    operands: tuple[Any, ...]  # meta tensors and numbers, in the order of the module's arguments
    largest: Mapping[int, int]  # of an index tensor, by its storage, the largest element that it may have

    @property
    def kernel(self) -> str:
        return str(self.bound.kernel.fn.__name__)

    @property
    def grid(self) -> tuple[int, int, int]:
        return self.bound.grid


class _Contentless(TorchFunctionMode):  # type: ignore[misc]
    """Tensors without contents that claim to be on cuda; what is made is without contents too."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if getattr(func, "__name__", "") == "__get__" and func == _IS_CUDA and args[0].is_meta:
            return True
        if kwargs.get("device") is not None:
            kwargs["device"] = "meta"
        return func(*args, **kwargs)


def launches(case: Case, dims: Dims, config: int = 0) -> list[LargeLaunch]:
    """The launches of the host function at these dims, without any contents. Raises Refused where it raises, Undecided
    where it needs contents."""
    found: list[LargeLaunch] = []

    def heard(bound: Bound) -> None:
        operands = tuple(x for n, kind in bound.signature.items() for x in leaves(kind, bound.args[n]))
        found.append(LargeLaunch(bound, host_place(HERE), operands, largest))

    given = {n: _argument(n, s, dims) for n, s in case.params.items()}
    limits = {n: value(s.high, dims) for n, s in case.tensors.items() if s.high is not None and not s.is_float}
    tensors = case.named(given)
    largest = {tensors[n].untyped_storage()._cdata: int(v) - 1 for n, v in limits.items() if v is not None}
    try:
        with torch.random.fork_rng(devices=[]), pretend(), intercepted(heard, config), _Contentless():
            case.call(given)
    except NotImplementedError as error:
        raise Undecided(str(error)) from None
    except (Exception, SystemExit) as error:
        if "meta" in str(error).lower():
            raise Undecided(str(error)) from None
        raise Refused(f"{type(error).__name__}: {error}") from None
    return found


def _argument(name: str, s: Any, dims: Dims) -> Any:
    if isinstance(s, list | tuple):
        return type(s)(_argument(f"{name}{k}", e, dims) for k, e in enumerate(s))
    if not isinstance(s, Spec):
        return s
    if s.shape is None:
        return dims[name]
    shape = [int(value(e, dims) or 0) for e in s.shape]
    return torch.empty(shape, dtype=torch_dtype(s.dtype), device="meta")


def nbytes(case: Case, dims: Dims) -> int:
    """Of all inputs together."""
    size = lambda n: math.prod(case.shape(n, dims)) * torch_dtype(case.tensors[n].dtype).itemsize  # noqa: E731
    return sum(map(size, case.tensors))


# ---- one program -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Wrap:
    """An integer operation whose exact result does not fit: its operands and both results, of one lane."""

    op: Op
    operands: tuple[int, ...]
    exact: int
    wrapped: int


@dataclass(frozen=True, slots=True, eq=False)
class Escape:
    """An access that leaves its tensor because of a wrap."""

    launch: LargeLaunch
    program: tuple[int, int, int]
    wrap: Wrap
    access: Op
    why: str


class _Addresses(Memory):
    """Memory without contents: loads give what `content` says of the buffer, bounds are checked."""

    def __init__(self) -> None:
        super().__init__(Float64())
        self.content: dict[int, int] = {}  # every element of a buffer
        self.touched: list[tuple[Op, np.ndarray]] = []  # accesses with the addresses of their lanes
        self.now: Op | None = None

    def _undefine(self, cells: Any, element: str) -> None:
        cells.element, cells.data = element, np.zeros(0)

    def load(self, addresses: np.ndarray, t: Type, place: Place | None = None) -> Any:
        flat = np.ravel(addresses)
        out = np.zeros(flat.shape, machine(t))
        for cells, lanes in self.groups(flat, place) if flat.size else ():
            out[lanes] = self.content.get(cells.address, 0)
        self.note(flat)
        return out.reshape(np.shape(addresses))

    def store(self, addresses: np.ndarray, values: object, t: Type, place: Place | None = None) -> None:
        flat = np.ravel(addresses)
        if flat.size:
            self.groups(flat, place)
        self.note(flat)

    def note(self, addresses: np.ndarray) -> None:
        if self.now is not None:
            self.touched.append((self.now, addresses))


@dataclass
class _Noted:
    """The record of one program."""

    wraps: list[Wrap] = field(default_factory=list)
    access: Op | None = None
    steps: int = 0


def _single(program: tuple[int, int, int], noted: _Noted, exact: bool = False) -> type[Run]:
    """A run of one program, in which 32-bit integers wrap; `exact`: in which they do not."""

    class Single(Run):
        def programs(self, grid: tuple[int, int, int]) -> Iterator[tuple[int, int, int]]:
            return iter([program])

        def result(self, op: Op) -> Any:
            noted.steps += 1
            if noted.steps > STEPS:
                raise OutOfSteps("program", STEPS, "operation")
            if op.name in TOUCHING:
                noted.access = op
                if isinstance(self.memory, _Addresses):
                    self.memory.now = op
            if op.name == "scf.for" and (ends := _ends(self, op)) is not None:
                return ends
            if op.name not in WIDE or op.results[0].type.element != "i32":
                return super().result(op)
            xs = [np.asarray(self.env[v]).astype(np.int64) for v in op.operands]
            true = WIDE[op.name](*xs)
            if exact:
                return true
            out = super().result(op)
            if (lost := np.asarray(true != out)).any():
                noted.wraps.append(_first_wrap(op, xs, true, out, lost))
            return out

    return Single


def _first_wrap(op: Op, xs: Sequence[Any], true: Any, out: Any, lost: Any) -> Wrap:
    k = np.flatnonzero(lost.ravel())[0]  # masks hide the last lanes, if any
    at = [int(np.broadcast_to(x, true.shape).ravel()[k]) for x in (*xs, true, out)]
    return Wrap(op, tuple(at[:-2]), at[-2], at[-1])


def _ends(run: Run, op: Op) -> list[Any] | None:
    """A long loop that carries nothing but reals: its first iterations and its last ones, whose addresses are those of
    all of them in between; None for any other loop."""
    low, high, step = (run.number(v, "loop bound", op.place) for v in op.operands[:3])
    turns = range(low, high, step) if step else range(0)
    if len(turns) <= 2 * ENDS or not all(v.type.is_float for v in op.operands[3:]):
        return None
    counter, carried = machine(op.operands[0].type).type, [run.env[v] for v in op.operands[3:]]
    for i in (*turns[:ENDS], *turns[-ENDS:]):
        carried = run.region(op.regions[0], [counter(i), *carried])
    return carried


def escape(case: Case, dims: Dims, config: int = 0) -> Escape | None:
    """The first access that leaves its tensor since an index wrapped around, in programs at the corners of each
    launch's grid; None where none is seen. Raises Refused, Undecided."""
    made = launches(case, dims, config)
    if not possible(made):
        return None
    for launch in made:
        for program, below in product(corners(launch.grid), BELOW if launch.largest else (0,)):
            found = _escape(launch, program, below)
            if found is not None:
                return found
    return None


def possible(made: Sequence[LargeLaunch]) -> bool:
    """Whether one device can hold all tensors of these launches, and takes their grids."""
    return fits(made) and all(e.grid[0] < 1 << 31 and max(e.grid[1:]) <= AXIS for e in made)


def fits(made: Sequence[LargeLaunch]) -> bool:
    """Whether one device can hold all tensors of these launches."""
    tensors = [x for e in made for x in e.operands if isinstance(x, torch.Tensor)]
    storages: dict[int, int] = {x.untyped_storage()._cdata: x.untyped_storage().nbytes() for x in tensors}
    return sum(storages.values()) <= MEMORY


def corners(grid: tuple[int, int, int]) -> list[tuple[int, int, int]]:
    """The last program first, then those that are last along fewer axes."""
    x, y, z = (sorted({0, n - 1}, reverse=True) for n in grid)
    return sorted(product(x, y, z), key=lambda p: -sum(p))


def _escape(launch: LargeLaunch, program: tuple[int, int, int], below: int) -> Escape | None:
    """`below`: how far the elements of index tensors are from the largest that they may be."""
    noted, exact = _Noted(), _Noted()
    try:
        module = lowered(launch.bound)
        memory, why = _walk(launch, module, _single(program, noted), below)
        if not noted.wraps:
            return None
        right, _ = _walk(launch, module, _single(program, exact, exact=True), below)
    except OutOfSteps:
        raise Undecided("one program takes too long") from None
    except (TriliftError, ArithmeticError, ValueError, IndexError, TypeError, MemoryError):
        return None
    pairs = zip_longest(memory.touched, right.touched, fillvalue=(None, np.zeros(0)))
    differing = ((a, b) for (a, x), (b, y) in pairs if a is not b or not np.array_equal(x, y))
    if why is not None:
        access = noted.access if next(differing, (None, None))[1] is not None else None
    else:
        access, why = next(differing, (None, None))[0], ELSEWHERE
    if access is None:
        return None
    flows = _flows_into(access, module)
    wrap = next((w for w in noted.wraps if w.op in flows), None)
    return None if wrap is None else Escape(launch, program, wrap, access, why)


def _walk(launch: LargeLaunch, module: Module, kind: type[Run], below: int) -> tuple[_Addresses, str | None]:
    """The accesses of one program, and why it ends early if it leaves a tensor."""
    memory, operands = _memory(launch, below)
    try:
        with limited("program", BUDGETS.run.program_steps):
            interpret(module, operands, launch.grid, memory, kind=kind)
    except OutOfBounds as error:
        return memory, error.why
    return memory, None


def _memory(launch: LargeLaunch, below: int) -> tuple[_Addresses, list[Any]]:
    """Memory with the buffers of a launch far apart, and its operands there."""
    memory = _Addresses()
    addresses: dict[int, int] = {}

    def operand(x: Any) -> Any:
        if not isinstance(x, torch.Tensor):
            return x
        storage = x.untyped_storage()
        if (key := storage._cdata) not in addresses:
            addresses[key] = GAP * (len(addresses) + 1)
            memory.content[addresses[key]] = max(0, launch.largest.get(key, 0) - below)
            memory.allocate(Buffer(addresses[key], storage.nbytes(), "its tensor", None), SHORT[x.dtype])
        return addresses[key] + x.storage_offset() * x.element_size()

    return memory, [operand(x) for x in launch.operands]


def _flows_into(access: Op, module: Module) -> set[Op]:
    """The operations that the address or mask of an access may depend on."""
    pointer, *rest = access.operands
    masks = [v for v in rest if v.type.element == "i1"]
    return ancestors([pointer, *masks], parents(module))


# ---- which sizes -----------------------------------------------------------------------------------------------------


def elements(case: Case, dims: Dims) -> int:
    """Of the largest tensor that a launch gets. Raises Refused, Undecided."""
    tensors = [x for e in launches(case, dims) for x in e.operands if isinstance(x, torch.Tensor)]
    return max((x.untyped_storage().nbytes() // x.element_size() for x in tensors), default=0)


def reaching(
    case: Case, base: Dims, measure: Callable[[Dims], float], limit: float, largest: int
) -> list[dict[str, int | float]]:
    """Dims at which `measure`, which grows with them, is at least `limit`: `base` with one dim grown, or two together,
    no further than needed. Least memory first, of about equal ones those whose largest dim is smallest; none whose
    inputs have more than `largest` bytes."""
    grown = (_along(case, base, names, measure, limit, largest) for names in _directions(case))
    return sorted((d for d in grown if d is not None), key=lambda d: (nbytes(case, d).bit_length(), max(d.values())))


def bases(case: Case, seed: int) -> list[dict[str, int | float]]:
    """Where sizes grow from: all 1 if the case allows it, and small unlike ones."""
    chosen = choose(case, 1, seed)[0]
    ones = {**chosen, **dict.fromkeys(case.names, 1)}
    return [ones, chosen] if case.holds(ones) else [chosen]


def _directions(case: Case) -> list[tuple[str, ...]]:
    pairs = [(a, b) for k, a in enumerate(case.names) for b in case.names[k + 1 :]]
    return [*((n,) for n in case.names), *pairs[:PAIRS]]


def _along(
    case: Case, base: Dims, names: tuple[str, ...], measure: Callable[[Dims], float], limit: float, largest: int
) -> dict[str, int | float] | None:
    """The smallest growth of these dims together that reaches the limit: doubled until it does, then by halving."""

    def reached(n: int) -> dict[str, int | float] | None:
        d = _allowed(case, {**base, **dict.fromkeys(names, n)}, names)
        return d if d is not None and measure(d) >= limit else None

    def affordable(n: int) -> bool:
        d = _allowed(case, {**base, **dict.fromkeys(names, n)}, names)
        return d is not None and nbytes(case, d) <= largest

    low, high = 1, 2
    while not reached(high):
        if high >= LARGEST_SIZE or not affordable(high):
            return None
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reached(middle) else (middle, high)
    found = reached(high)
    return found if found is not None and nbytes(case, found) <= largest else None


def _allowed(case: Case, dims: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any] | None:
    """These dims, or those a little larger that the case allows."""
    n = dims[names[0]]
    sizes = (n, *(-(-n // m) * m for m in MULTIPLES))
    return next((d for s in sizes if case.holds(d := {**dims, **dict.fromkeys(names, s)})), None)
