"""Inputs that show what rounding does, and what the kernel and the reference make of them in the case's own types."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from trilift.lift.capture.trace import Trace
from trilift.lift.cases.declaration import Case
from trilift.lift.cases.shapes import RUN_INPUT_ELEMENTS, elements
from trilift.lift.errors import CaseError, TriliftError, Unsupported
from trilift.lift.replay.reference import each, values
from trilift.lift.replay.rounded import Rounded, Values, executed
from trilift.lift.runtime import budget
from trilift.lift.runtime.budget import Meter
from trilift.lift.ttir.ir import Op

from ..model.verdict import Counterexample
from ..refutation.replay_script import Stored, replay_script
from ..runs.adversary import filled
from ..runs.input_table import ROWS, Inputs
from ..runs.isolated_buffers import apart, holds_pointers
from ..runs.trials import Dims

if TYPE_CHECKING:
    from .evidence import Evidence


@dataclass(frozen=True)
class Sample:
    """Arguments in the case's own types at one shape, and the launches there."""

    case: Case
    dims: Dims
    seed: int
    kind: Inputs
    args: Mapping[str, Any]
    trace: Trace

    @cached_property
    def inputs(self) -> dict[str, np.ndarray]:
        """The tensors among the arguments, reals as float64."""
        found = self.case.named(self.args)
        return {n: (x.double() if x.is_floating_point() else x).numpy() for n, x in found.items()}

    def run(self, domain: Rounded) -> Values | None:
        """The kernel's outputs; None where it cannot be executed."""
        return executed(self.trace, self.inputs, domain)

    @cached_property
    def exact(self) -> Values | None:
        """The kernel's outputs without rounding."""
        return self.run(Rounded(rounds=False))

    @cached_property
    def rounded(self) -> Values | None:
        """Its outputs with rounding."""
        return self.run(Rounded())

    @cached_property
    def reference(self) -> Values | None:
        """The reference's results without rounding, by the names of the outputs; None where there is none or it
        raises."""
        return self._referenced(True)

    @cached_property
    def typed_reference(self) -> Values | None:
        """The reference's results in the case's own types."""
        return self._referenced(False)

    def _referenced(self, real: bool) -> Values | None:
        fn = self.case.reference.fn
        if fn is None:
            return None
        wide = lambda x: x.double() if x.is_floating_point() else x  # noqa: E731
        args = {n: each(v, wide) for n, v in self.args.items()} if real else self.args
        try:
            found = values(self.case, fn, args, real)
        except (CaseError, RuntimeError, NotImplementedError, TypeError):
            return None  # it raises, or PyTorch lacks an operation for such a type
        written = [n for n in found if n in self.case.tensors and n not in self.trace.outputs]
        returned = [n for n in found if n not in written]
        names = returned if set(returned) == set(self.trace.outputs) else list(self.trace.outputs)
        if len(names) != len(returned):
            return None
        return dict(zip((*names, *written), (found[n] for n in (*returned, *written)), strict=True))

    def dtype(self, output: str) -> str:
        """Of an output or input."""
        return (self.trace.outputs.get(output) or self.trace.inputs[output]).dtype

    def replay(self, output: str, index: tuple[int, ...], got: float, expected: float, tolerance: float) -> str:
        """A script that computes the element again on these arguments."""
        found = Counterexample(dict(self.dims), self.seed, 0, output, index, got, expected)
        against = "reference" if self.case.reference else "exact value"
        interpreted = not any(map(_is_misread, self.operations()))
        return replay_script(self.case, found, against, Stored(self.args, self.kind.words, tolerance, interpreted))

    def operations(self) -> list[Op]:
        """Those of all kernels launched, each once."""
        modules = {id(m): m for m in (e.module() for e in self.trace.launches)}
        return [op for m in modules.values() for op in m.walk()]


def _is_misread(op: Op) -> bool:
    """Whether Triton's interpreter computes with the bits of a number for the number: arithmetic in bf16, fp8."""
    computes = op.name.startswith(("arith.", "math.", "tt.reduce", "tt.scan", "tt.dot", "tt.atomic_rmw"))
    moved = op.name in ("arith.constant", "arith.select", "arith.truncf", "arith.extf", "arith.bitcast")
    types = {v.type.element.lower() for v in (*op.operands, *op.results)}
    return computes and not moved and any(t == "bf16" or t.startswith("f8") for t in types)


@dataclass
class Numerics:
    """The samples of one audit; `steps` of this process, after which there are no more."""

    evidence: Evidence
    steps: int
    traces: dict[Any, Trace | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.meter = Meter("samples", self.steps, self.evidence.meter)

    @property
    def late(self) -> bool:
        return self.meter.exhausted

    def shapes(self, count: int) -> list[Dims]:
        """Small shapes; none for a case without."""
        from trilift.lift.cases.shapes import choose

        try:
            return list(choose(self.evidence.case, count, self.evidence.seed))
        except CaseError:
            return []

    def sample(self, dims: Dims, kind: Inputs, seed: int, most: int = RUN_INPUT_ELEMENTS) -> Sample | None:
        """Arguments of a row; None where the case, the host function or the contract refuses these dims, an input has
        more than `most` elements, or the steps are spent."""
        case = self.evidence.case
        if self.late or not case.holds(dims) or elements(case, dims) > most:
            return None
        if (trace := self._trace(dims, seed)) is None:
            return None
        budget.count("comparison")
        budget.count("sampled element", elements(case, dims))
        found = Sample(case, dims, seed, kind, arguments(case, dims, kind, seed), trace)
        return found if self.evidence.excluded(found) is None else None  # type: ignore[arg-type]

    def _trace(self, dims: Dims, seed: int) -> Trace | None:
        key = (tuple(dims.items()), seed)
        if key not in self.traces:
            self.traces[key] = _captured(self.evidence.case, dims, seed)
        return self.traces[key]


def again(
    case: Case, dims: Dims, seed: int, args: Mapping[str, Any], output: str, index: tuple[int, ...]
) -> float | str:
    """One element as the kernel with rounding computes it on these arguments, or what keeps it from being computed."""
    trace = _captured(case, dims, seed)
    found = None if trace is None else Sample(case, dims, seed, ROWS["normal"], args, trace).rounded
    if found is None or output not in found:
        return "the kernel cannot be run on these arguments"
    return float(found[output][index])


def numerics(evidence: Evidence, steps: int) -> Numerics:
    """The samples of an audit with a new budget; traces are kept from one rule to the next."""
    found = Numerics(evidence, steps)
    found.traces = evidence.kept.setdefault("traces", {})
    return found


def _captured(case: Case, dims: Dims, seed: int) -> Trace | None:
    from trilift.lift.capture.run import capture

    try:
        trace = capture(case, dims, seed=seed)
    except (CaseError, Unsupported, TriliftError):
        return None
    if trace.another:
        return None
    return trace if holds_pointers(trace) else apart(trace)


def arguments(case: Case, dims: Dims, kind: Inputs, seed: int) -> dict[str, Any]:
    """Arguments of the host function, tensors in their own types; the strides are those that the case draws."""
    return filled(case, case.sample(dims, np.random.default_rng(seed)), dims, kind, seed)


class Sampled(Protocol):
    """A fault that a sample shows."""

    @property
    def sample(self) -> Sample: ...


Found = TypeVar("Found", bound=Sampled)


def smallest(
    case: Case, found: Found, again: Callable[[Dims], Found | None], sizes: Sequence[int] = (1, 2, 3, 4)
) -> Found:
    """The fault that `again` finds at the smallest dims that show it: one dim after the other is made as small as it
    can be among `sizes`."""
    for name in case.names:
        dims = found.sample.dims
        for n in (n for n in sizes if n < dims[name]):
            if (other := again({**dims, name: n})) is not None:
                found = other
                break
    return found
