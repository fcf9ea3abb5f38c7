"""The interpreter: walks a kernel's IR for one program at a time, in any domain.

    an operation is (1) control flow, here, (2) a handler in HANDLERS, or (3) an elementwise row of `lift.terms.ops`

A condition that depends on data runs both branches, each under its path condition:

    c: run A under path & c, B under path & ~c; results where(c, A, B); stores are guarded by the path
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..errors import Place, TriliftError, Unsupported
from ..runtime import budget
from ..terms.domain import Ids
from ..terms.ranges import Ranges
from ..ttir.ir import Block, Function, Module, Op, Region, Value
from .handlers import arithmetic, assembly, atomics, casts, compare, dot, load, reduce, shape, store  # noqa: F401
from .machine import Domain, machine, numbers
from .memory import Memory
from .monoids import Monoid
from .registry import CHECKS, HANDLERS, elementwise, row_of

TERMINATORS = frozenset(
    (
        "tt.return",
        "scf.yield",
        "scf.condition",
        "cf.br",
        "cf.cond_br",
        "tt.reduce.return",
        "tt.scan.return",
        "ub.unreachable",
    )
)
LOOP_LIMIT = 1 << 20
FEW_ELEMENTS = 64  # of a result, which take no longer than one
SUMMED_ELEMENTS = 8  # of a product of matrices, which take as long as one of another result


class Run:
    """One program of a launch. `env`: SSA values of the current function; `path`: the path condition, None when
    true; `rebracketed`: whether unknown combiners take their elements in another order than usual."""

    rebracketed = False

    def __init__(self, module: Module, domain: Domain, memory: Memory, ranges: Ranges | None = None) -> None:
        self.module, self.domain, self.memory = module, domain, memory
        self.ranges = ranges or Ranges()
        self.program: tuple[int, int, int] = (0, 0, 0)
        self.grid: tuple[int, int, int] = (1, 1, 1)
        self.env: dict[Value, Any] = {}
        self.path: Any = None
        self.constants: dict[Op, Any] = {}
        self.monoids: dict[Op, Monoid | None] = {}
        self.used = frozenset(
            v for op in module.walk() for vs in (op.operands, *(a for _, a in op.successors)) for v in vs
        )

    def launch(self, args: Sequence[Any], grid: tuple[int, int, int]) -> None:
        """Run every program of the grid, x fastest."""
        entry = self.module.entry
        if len(args) != len(entry.args):
            raise Unsupported(f"launch of {entry.name}", why=f"{len(args)} arguments for {len(entry.args)} parameters")
        self.grid = grid
        self.every(self.programs(grid), args)

    def every(self, programs: Iterable[tuple[int, int, int]], args: Sequence[object]) -> None:
        """Run these programs, each to its end before the next one begins."""
        for program in programs:
            self.one(program, args)

    def one(self, program: tuple[int, int, int], args: Sequence[object]) -> None:
        """Run one program."""
        self.program, self.path = program, None
        with np.errstate(all="ignore"):
            self.call(self.module.entry, args)

    def unfit(self, op: Op) -> None:
        """Called where `op` makes an integer of a float that does not fit: what it gives differs between devices."""

    def programs(self, grid: tuple[int, int, int]) -> Iterator[tuple[int, int, int]]:
        """The programs in the order in which they run."""
        return ((x, y, z) for z in range(grid[2]) for y in range(grid[1]) for x in range(grid[0]))

    # ---- functions and blocks

    def call(self, function: Function, args: Sequence[Any]) -> list[Any]:
        """The results of a function, in its own scope."""
        outer, self.env = self.env, {}
        try:
            return self.blocks(function.body, function.body.blocks[0], args)
        finally:
            self.env = outer

    def region(self, region: Region, args: Sequence[Any]) -> list[Any]:
        """The operands of a one-block region's terminator."""
        return self.operands(self.block(region.blocks[0], args))

    def block(self, block: Block, args: Sequence[Any]) -> Op | None:
        """Run a block; its terminator."""
        for value, x in zip(block.args, args, strict=True):
            self.env[value] = x
        for op in block.ops:
            if op.name in TERMINATORS:
                return op
            self.step(op)
        return None

    def blocks(self, body: Region, block: Block, args: Sequence[Any]) -> list[Any]:
        """Run from a block of a control-flow graph to a return; its results."""
        labels = {b.label: b for b in body.blocks}
        for _ in range(LOOP_LIMIT):
            last = self.block(block, args)
            if last is None or not last.successors:
                return self.operands(last)
            targets = [(labels[label], [self.env[v] for v in values]) for label, values in last.successors]
            taken = 0
            if last.name == "cf.cond_br":
                condition = self.known(last.operands[0])
                if condition is None:
                    return self.both(
                        self.env[last.operands[0]], *(lambda b=b, a=a: self.blocks(body, b, a) for b, a in targets)
                    )
                taken = 0 if condition else 1
            elif last.name != "cf.br":
                raise Unsupported(last.name, last.place)
            block, args = targets[taken]
        raise Unsupported("a loop that does not end")

    def both(self, condition: Any, *branches: Callable[[], list[Any]]) -> list[Any]:
        """Two branches under a condition that depends on data, merged."""
        path = self.path
        results = []
        try:
            for c, branch in zip((condition, self.domain.apply("not", condition)), branches, strict=True):
                self.path = c if path is None else self.domain.apply("and", path, c)
                results.append(branch())
        finally:
            self.path = path
        return [self.domain.apply("where", condition, a, b) for a, b in zip(*results, strict=True)]

    # ---- operations

    def step(self, op: Op) -> None:
        """Run one operation and bind its results."""
        try:
            out = self.result(op)
        except TriliftError as error:
            error.place = error.place or op.place
            raise
        self.spend(op, out)
        if len(op.results) == 1 and not isinstance(out, list):
            self.env[op.results[0]] = out
            return
        for value, x in zip(op.results, out or (), strict=True):
            self.env[value] = x

    def spend(self, op: Op, out: Any) -> None:
        """Counts an operation and the elements of its result, those of a product of matrices along the summed axis."""
        budget.spend("operation")
        number = getattr(out, "size", 1)
        if op.name == "tt.dot":
            number *= -(-self.env[op.operands[0]].shape[-1] // SUMMED_ELEMENTS)
        if number > FEW_ELEMENTS and self.domain.name != "symbolic":  # which counts the distinct ones
            budget.spend(f"{self.domain.name} element", number)

    def result(self, op: Op) -> Any:
        control = CONTROL.get(op.name)
        if control is not None:
            return control(self, op)
        xs = [self.env[v] for v in op.operands]
        handler = self.domain.handlers.get(op.name) or HANDLERS.get(op.name)
        if handler is not None:
            return handler(self, op, *xs)
        return elementwise(self, op, *xs)

    def operands(self, op: Op | None) -> list[Any]:
        return [self.env[v] for v in op.operands] if op else []

    def known(self, value: Value) -> Any:
        """The known number of a scalar value, or None if it depends on data."""
        x = self.env[value]
        if isinstance(x, Ids):
            x = numbers(x, value.type)
        return None if x is None else np.asarray(x).item()

    def number(self, value: Value, what: str, place: Place | None) -> Any:
        x = self.known(value)
        if x is None:
            raise Unsupported(f"{what} depends on data", place, "only sizes and scalars may decide it")
        return x


# ---- control flow ----------------------------------------------------------------------------------------------------


def _for(run: Run, op: Op) -> list[Any]:
    low, high, step = (run.number(v, "loop bound", op.place) for v in op.operands[:3])
    counter = machine(op.operands[0].type).type
    if "unsignedCmp" in op.attrs and op.attrs["unsignedCmp"] and min(low, high) < 0:
        raise Unsupported("scf.for", op.place, "unsigned loop bounds")
    if step == 0:
        raise Unsupported("scf.for", op.place, "a step of 0 never ends")
    carried = [run.env[v] for v in op.operands[3:]]
    for i in range(low, high, step):
        carried = run.region(op.regions[0], [counter(i), *carried])
    return carried


def _while(run: Run, op: Op) -> list[Any]:
    carried = run.operands(op)
    before, after = op.regions
    for _ in range(LOOP_LIMIT):
        condition = run.block(before.blocks[0], carried)
        assert condition is not None
        carried = [run.env[v] for v in condition.operands[1:]]
        if not run.number(condition.operands[0], "loop condition", op.place):
            return carried
        carried = run.region(after, carried)
    raise Unsupported("a loop that does not end", op.place)


def _branch(run: Run, region: Region) -> list[Any]:
    return run.region(region, ()) if region.blocks else []


def _if(run: Run, op: Op) -> list[Any]:
    regions = [*op.regions, Region([])][:2]
    branches = [partial(_branch, run, r) for r in regions]
    condition = run.known(op.operands[0])
    if condition is None:
        return run.both(run.env[op.operands[0]], *branches)
    return branches[0 if condition else 1]()


def _call(run: Run, op: Op) -> list[Any]:
    return run.call(run.module.functions[op.attrs["callee"].lstrip("@")], run.operands(op))


CONTROL: dict[str, Callable[[Run, Op], Any]] = {"scf.for": _for, "scf.while": _while, "scf.if": _if, "tt.call": _call}


def missing(module: Module) -> list[tuple[str, Place | None]]:
    """Every operation of a module that has no meaning here: (its name, its place)."""
    return [(name, op.place) for op in module.walk() if (name := _missing(op))]


def _missing(op: Op) -> str | None:
    if op.name in TERMINATORS or op.name in CONTROL or op.name == "tt.func":
        return None
    check = CHECKS.get(op.name)
    if check is not None:
        return check(op)
    return None if op.name in HANDLERS or row_of(op) else op.name


def run(
    module: Module,
    args: Iterable[Any],
    grid: tuple[int, int, int],
    memory: Memory,
    ranges: Ranges | None = None,
    kind: type[Run] = Run,
) -> None:
    """Execute a launch on memory: all programs of the grid, one after another. `args`: numbers and addresses of
    `module.entry.args`. `kind`: a Run that looks on."""
    kind(module, memory.domain, memory, ranges).launch(
        [_argument(memory.domain, v, x) for v, x in zip(module.entry.args, args, strict=True)], grid
    )


def _argument(domain: Domain, value: Value, x: Any) -> Any:
    """A launch argument as a value of its IR type; unsigned numbers keep their bits. Raises Unsupported for an integer
    of which it is one bit."""
    if isinstance(x, (Ids, np.ndarray)):
        return x
    dtype = machine(value.type)
    if dtype.kind == "b" and x not in (0, 1):
        what = f"{value.name.removeprefix('%')} is one bit of the integer {x}"
        raise Unsupported(what, why="pass a bool to a parameter of type tl.int1")
    if dtype.kind == "i":
        half = 1 << (dtype.itemsize * 8 - 1)
        x = (int(x) + half) % (2 * half) - half
    return domain.reals(np.asarray(x, dtype)) if dtype.kind == "f" else np.asarray(x, dtype)
