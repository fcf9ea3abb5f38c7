"""A kernel as the machine computes it, up to the order of sums: every float result is rounded to its IR type.

    exact     x op y                         reals are float64
    rounded   nearest_t(x op y)              t the type of the result; cells of memory round what is stored

Sums in f32 are exact and rounded once, which is at least as good as any order. Those in narrow types are rounded after
every step: a reduction pairwise, a product of matrices after every 16 products. Tensor cores' tf32 is not modelled.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..capture.trace import Trace
from ..errors import Place, TriliftError
from ..interpreter import interpret
from ..interpreter.handlers import reduce
from ..interpreter.machine import cell
from ..interpreter.memory import Memory
from ..interpreter.registry import HANDLERS, ROW_OF_TTIR, elementwise
from ..runtime.budget import BUDGETS, limited
from ..terms.domain import Float64
from ..terms.ranges import Ranges
from ..ttir.ir import Op
from .execute import events, results
from .rounding import NARROW, nearest

RUN_PROGRAMS = 600  # of all launches of one run
CHUNK = 16  # products that the machine sums before it rounds to a narrow accumulator

Watch = Callable[[Any, Op, tuple[Any, ...], Any, Any], Any]
Values = dict[str, np.ndarray]
COMPUTING = {
    "tt.dot", "tt.reduce", "tt.scan", "tt.fp_to_fp", "tt.clampf", "tt.precise_divf", "tt.precise_sqrt",
    "tt.extern_elementwise", "tt.elementwise_inline_asm",
}  # fmt: skip


@dataclass(eq=False)
class Rounded(Float64):
    """float64 with rounding, or, with `rounds` false, without. `wide`: operations whose result is rounded to f32
    instead of its own narrow type; `constants`: what stands for constants of the kernel. `watch(run, op, operands,
    unrounded, result)` sees every float result and gives what is taken for it."""

    name = "rounded"
    rounds: bool = True
    wide: frozenset[Op] = frozenset()
    constants: Mapping[Op, float] = field(default_factory=dict)
    watch: Watch | None = None

    def __post_init__(self) -> None:
        computing = {n for n in (*HANDLERS, *ROW_OF_TTIR) if n.startswith(("arith.", "math."))} | COMPUTING
        own: dict[str, Callable[..., Any]] = {
            "tt.reduce": self._reduce,
            "tt.dot": self._dot,
            "arith.constant": self._constant,
        }
        self.handlers = {
            n: functools.partial(self._result, own.get(n) or HANDLERS.get(n, elementwise)) for n in computing
        }

    def element(self, op: Op, k: int = 0) -> str:
        """The format of a result."""
        return "f32" if op in self.wide else cell(op.results[k].type)

    def _result(self, meaning: Callable[..., Any], run: Any, op: Op, *xs: Any) -> Any:
        out = meaning(run, op, *xs)
        if not any(v.type.is_float for v in op.results):
            return out
        if isinstance(out, list):
            return [self._rounded(run, op, xs, x, k) for k, x in enumerate(out)]
        return self._rounded(run, op, xs, out, 0)

    def _rounded(self, run: Any, op: Op, xs: tuple[Any, ...], x: Any, k: int) -> Any:
        if not op.results[k].type.is_float:
            return x
        out = nearest(x, self.element(op, k)) if self.rounds else x
        return out if self.watch is None else self.watch(run, op, xs, x, out)

    def _constant(self, run: Any, op: Op) -> Any:
        if op in self.constants:
            return np.full(op.results[0].type.shape, self.constants[op])
        return HANDLERS["arith.constant"](run, op)

    def _is_narrow(self, op: Op) -> bool:
        return self.rounds and len(op.results) == 1 and self.element(op) in NARROW

    def _reduce(self, run: Any, op: Op, *xs: Any) -> Any:
        if self._is_narrow(op):
            return reduce.tree(run, op.regions[0], list(xs), op.attrs["axis"])
        return HANDLERS["tt.reduce"](run, op, *xs)

    def _dot(self, run: Any, op: Op, a: Any, b: Any, c: Any) -> Any:
        if not self._is_narrow(op):
            return HANDLERS["tt.dot"](run, op, a, b, c)
        out = c
        for k in range(0, np.shape(a)[-1], CHUNK):
            out = nearest(np.matmul(a[..., k : k + CHUNK], b[..., k : k + CHUNK, :]) + out, self.element(op))
        return np.where(np.isinf(out), np.matmul(a, b) + c, out)


class RoundedMemory(Memory):
    """Memory whose cells hold numbers of their format only, or of f32 where a wide operation stores them."""

    def __init__(self, domain: Rounded) -> None:
        super().__init__(domain)
        self.rounds, self.wide = domain.rounds, {op.place for op in domain.wide}

    def store(self, addresses: np.ndarray, values: Any, t: Any, place: Place | None = None) -> None:
        if t.is_float and self.rounds:
            values = nearest(values, "f32" if place in self.wide else cell(t))
        super().store(addresses, values, t, place)


def executed(trace: Trace, inputs: Mapping[str, np.ndarray], domain: Rounded) -> Values | None:
    """The reals that the launches leave in outputs and written inputs; None where they cannot be executed."""
    found = left(trace, inputs, domain)
    return None if found is None else {n: x for n, x in found.items() if x.dtype.kind == "f"}


def left(
    trace: Trace,
    inputs: Mapping[str, np.ndarray],
    domain: Rounded,
    programs: int = RUN_PROGRAMS,
    steps: int = BUDGETS.run.rounded_steps,
    kind: type[interpret.Run] = interpret.Run,
) -> Values | None:
    """The numbers of all types that the launches leave there; None where they cannot be executed with so many programs
    and steps. `kind`: of run."""
    if trace.programs > programs:
        return None
    memory = RoundedMemory(domain)
    try:
        with limited("run with rounding", steps), np.errstate(all="ignore"):
            for name, ref in trace.inputs.items():
                memory.define(ref, np.asarray(inputs[name]).reshape(ref.shape))
            before = {name: memory.fetch(ref) for name, ref in trace.inputs.items()}
            events(trace, memory, Ranges(), None, kind)
            found = {n: (memory.fetch(ref), in_place) for n, (ref, in_place) in results(trace).items()}
    except (TriliftError, ArithmeticError, ValueError, IndexError, TypeError, MemoryError):
        return None
    return {n: x for n, (x, at) in found.items() if at != n or not np.array_equal(x, before[n], equal_nan=True)}
