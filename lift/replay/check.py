"""A formula against the kernel itself, in float64 on random inputs, at shapes that were not used to find it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import numpy as np

from ..capture.trace import Trace
from ..cases.declaration import Case
from ..errors import CaseError, NotLifted, TriliftError
from ..interpreter import interpret
from ..language.evaluate import NegativeSize, evaluate
from ..runtime.budget import BUDGETS
from ..terms import construct as T
from ..terms.spec import Formula
from ..terms.term import Term
from ..ttir.ir import Op
from .dtype_sight import digits_of, tolerance
from .output import Output, Outputs
from .reference import NOISE, deviation, each, nudged, returned, stays, steady
from .rounded import RUN_PROGRAMS, Rounded, left

# Error accepted, relative to the largest expected value or 1.
ROUNDED = 2e-6  # a formula: its numbers are exact (sqrt(2/pi), 1/sqrt(D)) where the kernel's are rounded to f32
REFERENCE = 1e-4  # the user's function in float64 against the kernel's constants and approximations
LIMIT_DIGITS = 2.0**-8  # relative; of a number near the limits of an integer dtype: as coarse as bf16
ALLOCATION = "aten."  # labels of undefined values: "aten.empty_like"
EXPONENTIALS = frozenset({"math.exp", "math.exp2"})
LEAVING_RANGE = EXPONENTIALS | {"arith.mulf", "arith.divf"}
LEAST, LARGEST = 1e-200, 1e200  # what is taken for numbers other than 0 that float64 does not have
NEAR, FARTHER = 1e-5, 100  # of a rounded result: its deviation, and by how much that without rounding is larger

Arrays = Mapping[str, np.ndarray]
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Check:
    """One comparison that held, of an output's `raw` or simplified "formula" with the kernel, or of the kernel with the
    "reference": at which dims, under which autotune configuration, with which largest relative error."""

    output: str
    what: str
    dims: Mapping[str, int | float]
    config: int
    error: float
    finite: float  # fraction of the elements compared that are finite numbers


@dataclass(frozen=True, slots=True)
class Mismatch:
    """The worst element where an array is not what it should be. `shapes`: the two, where they differ."""

    output: str
    dims: Mapping[str, int | float]
    index: tuple[int, ...]
    got: float
    expected: float
    shapes: tuple[tuple[int, ...], tuple[int, ...]] | None = None


@dataclass(slots=True)
class Trial:
    """Random inputs for a case, and everything that was checked on them. `sign`: of all real elements whose spec leaves
    it open; 0 for both."""

    case: Case
    seed: int
    checks: list[Check] = field(default_factory=list)
    runs: dict[int, Run] = field(default_factory=dict)
    sign: int = 0

    def signed(self, sign: int) -> Trial:
        """The same checks on inputs of one sign: zeros of padded lanes are then above or below all elements."""
        return Trial(self.case, self.seed, self.checks, sign=sign)

    def fitting(self, trace: Trace) -> Trial:
        """The same checks on inputs, of one sign if need be, whose floats fit the integers that the kernel makes of
        them: what others become differs between devices. The trial itself where no sign is known to do."""
        if not self.run(trace).unfit:
            return self
        signed = (Trial(self.case, self.seed, self.checks, sign=sign) for sign in (1, -1))
        return next((t for t in signed if not t.run(trace).unfit), self)

    def against_kernel(self, outputs: Outputs, traces: Sequence[Trace], which: str) -> Outputs:
        """Each output whose formula `which` ("raw" or "formula") is what the kernel computes; others with an error."""
        for trace in traces:
            outputs = tuple(o.then(partial(self._meets, trace, which)) for o in outputs)
        return outputs

    def _meets(self, trace: Trace, which: str, o: Output) -> Output:
        run = self.run(trace)
        if self.sign and run.unfit:
            return o
        self.checks.append(meets(getattr(o, which), which, run.value(o.name), trace, run.inputs))
        return o

    def against_reference(self, trace: Trace) -> tuple[Mismatch, ...]:
        """The outputs where the kernel itself differs from the reference, as far as the kernel can be executed. Where
        it does, the reference is asked for real numbers, if it can do without narrow types, and for the elements of
        them that tell anything."""
        if not self.case.reference or trace.another:
            return ()
        args, outputs = self._arguments(trace), list(trace.outputs)
        found = self._compared(trace, reference(self.case, args, outputs))
        if any(isinstance(f, Mismatch) for f in found):
            with suppress(CaseError):
                found = self._compared(trace, *self._telling(args, outputs))
        self.checks += [f for f in found if isinstance(f, Check)]
        return tuple(f for f in found if isinstance(f, Mismatch))

    def _compared(self, trace: Trace, expected: Arrays, telling: Arrays | None = None) -> list[Check | Mismatch]:
        """Of each output; where `telling` is false nothing is compared."""
        found, values = [], self.run(trace).values
        for name, e in expected.items():
            if (value := values.get(name)) is None:
                continue
            if telling is not None and e.shape == value.shape:
                value, e = (np.where(telling[name], x, np.nan) for x in (value, e))
            allowed = max(tolerance(self.case, self.case.reference.fn, REFERENCE), digits_of(trace, name))
            result = compare(name, "reference", value, e, trace, allowed)
            if telling is not None and isinstance(result, Mismatch) and result.shapes is None:
                right = right_where_rounded(trace, self.run(trace).inputs, name, e, deviation(value, e))
                value, e = (np.where(right, np.nan, x) for x in (value, e))
                result = compare(name, "reference", value, e, trace, allowed)
            found.append(result)
        return found

    def _telling(self, args: Mapping[str, Any], outputs: Sequence[str]) -> tuple[Arrays, Arrays]:
        """The reference's outputs without rounding, by name, and the elements that are informative."""
        fn = self.case.reference.fn
        assert fn is not None
        expected, _ = returned(self.case, fn, args)
        telling = steady(self.case, fn, args, expected, self.seed)
        return by_output(expected, outputs), by_output(telling, outputs)

    def run(self, trace: Trace) -> Run:
        """The kernel's own outputs in float64 on this trial's inputs, computed once for a trace."""
        if id(trace) not in self.runs:
            self.runs[id(trace)] = run_kernel(trace, arrays(self.case, self._arguments(trace)))
        return self.runs[id(trace)]

    def _arguments(self, trace: Trace) -> dict[str, object]:
        """The arguments at the shapes of a trace, with this trial's sign where the case lets elements have it."""
        args = arguments(self.case, trace.dims, self.seed)
        return {n: self._signed(n, v) for n, v in args.items()} if self.sign else args

    def _signed(self, name: str, v: object) -> object:
        import torch

        if isinstance(v, list | tuple):
            return type(v)(self._signed(f"{name}{k}", x) for k, x in enumerate(v))
        s = self.case.tensors.get(name)
        free = s is not None and s.is_float and s.low is None and s.high is None and not s.positive
        return self.sign * v.abs() if free and isinstance(v, torch.Tensor) else v


@dataclass(frozen=True, slots=True)
class Run:
    """One execution of the traced launches in float64; `errors` are events that could not be executed. `unfit`: whether
    a float did not fit the integer that the kernel made of it."""

    trace: Trace
    inputs: Arrays
    values: Arrays
    errors: list[TriliftError]
    unfit: bool = False

    def value(self, name: str) -> np.ndarray:
        """The output of that name. Raises what kept it from being computed."""
        if name not in self.values:
            raise self.errors[0] if self.errors else NotLifted(f"{name} is not written", why=_at(self.trace))
        return self.values[name]


def run_kernel(trace: Trace, inputs: Arrays) -> Run:
    """The outputs of the traced launches in float64."""
    from .execute import replay

    errors, unfit = list[TriliftError](), list[Op]()
    values = replay(trace, {name: x.copy() for name, x in inputs.items()}, errors, kind=_watching(unfit))
    return Run(trace, inputs, values, errors, bool(unfit))


def _watching(unfit: list[Op]) -> type[interpret.Run]:
    """Runs that take note of conversions to integers which floats do not fit."""

    class Watched(interpret.Run):
        def unfit(self, op: Op) -> None:
            unfit.append(op)

    return Watched


def arguments(case: Case, dims: Mapping[str, int | float], seed: int) -> dict[str, Any]:
    """Arguments of the host function, every real tensor in float64; the same for the same seed."""
    args = case.sample(dims, np.random.default_rng(seed))
    return {name: each(v, lambda x: x.double() if x.is_floating_point() else x) for name, v in args.items()}


def arrays(case: Case, args: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The tensors among the arguments, as numpy arrays."""
    return {name: x.numpy() for name, x in case.named(args).items()}


def meets(formula: Formula, which: str, expected: np.ndarray, trace: Trace, inputs: Arrays) -> Check:
    """The formula is what the kernel computes. Raises NotLifted where it is not: the fault is ours."""
    try:
        got = np.asarray(evaluate(formula.term, formula.axes, inputs, trace.dims))
    except NegativeSize as e:
        raise NotLifted(f"the formula found for {formula.name} holds only for some sizes", why=str(e)) from e
    if got.shape != expected.shape:
        raise NotLifted(
            f"{formula.name} has shape {list(got.shape)}, the kernel's is {list(expected.shape)}", why=_at(trace)
        )
    if any(t.op == "undef" for t in formula.term.walk()):
        passed = np.isnan(got.astype(np.float64)) & ~_unset(formula, trace, inputs)  # max and min pass such lanes by
        expected = np.where(passed, np.nan, expected)
    result = compare(formula.name, which, got, expected, trace, ROUNDED)
    if isinstance(result, Mismatch):  # on a step, rounding decides
        telling = _steady(formula, got, trace, inputs)
        got, expected = (np.where(telling, x, np.nan) for x in (got, expected))
        result = compare(formula.name, which, got, expected, trace, ROUNDED)
    if isinstance(result, Check):
        return result
    element = f"element {list(result.index)} is {result.got:.9g}, the kernel's {result.expected:.9g}"
    raise NotLifted(
        f"no formula for {formula.name}: the one that was tried differs from what the kernel computes",
        why=f"{element}, {_at(trace)}",
    )


def _unset(formula: Formula, trace: Trace, inputs: Arrays) -> np.ndarray:
    """The real elements of which the formula says that nobody writes them: they are what an allocation holds."""

    def whole(t: Term) -> Term:
        if t.op == "where":
            return T.where(t.args[0], whole(t.args[1]), whole(t.args[2]))
        return T.const(t.op == "undef" and t.type == T.REAL and str(t.attr).startswith(ALLOCATION))

    found = np.asarray(evaluate(whole(formula.term), formula.axes, inputs, trace.dims))
    return np.asarray(found, bool)


def _steady(formula: Formula, got: np.ndarray, trace: Trace, inputs: Arrays) -> np.ndarray:
    """Which elements of a formula stay where its real inputs change a little, or are infinite or NaN: not steps."""
    good = np.ones(got.shape, bool)
    for sign in (1, -1):
        noise = np.random.default_rng(0)
        moved = {n: nudged(x, sign, noise) if x.dtype.kind == "f" else x for n, x in inputs.items()}
        good &= stays(np.asarray(evaluate(formula.term, formula.axes, moved, trace.dims)), got)
    good |= ~np.isfinite(got.astype(np.float64))
    return good


def right_where_rounded(
    trace: Trace,
    inputs: Arrays,
    name: str,
    expected: np.ndarray,
    error: np.ndarray,
    programs: int = RUN_PROGRAMS,
    steps: int = BUDGETS.run.rounded_steps,
) -> np.ndarray:
    """Where the kernel with every result rounded to its own type gives the expected number, from which it deviates by
    `error` in float64: (x + 1.5 * 2^23) - 1.5 * 2^23 is the nearest integer in float32. A wrong constant is as wrong
    when it is rounded. Nowhere, if that needs more programs or steps. A float that does not fit the integer it becomes,
    for it is rounded, is another one on every device. NaN and infinities do not count where there would be
    none if results were kept within the range of float64: exp(-800) / exp(-800)."""
    unfit: list[Op] = []
    found = left(trace, inputs, Rounded(), programs, steps, _watching(unfit))
    if found is None or name not in found or found[name].shape != expected.shape:
        return np.zeros(error.shape, bool)
    again = deviation(found[name], expected)
    right = (again <= NEAR) & (again * FARTHER <= error)
    if np.isinf(error).any():
        within = left(trace, inputs, Rounded(rounds=False, watch=_within_range), programs, steps)
        right |= np.isinf(error) & np.isfinite(within[name] if within and name in within else np.nan)
    dtype = found[name].dtype
    if not unfit or run_kernel(trace, inputs).unfit:
        return np.asarray(right)
    return np.asarray(right | (_at_limits(found[name], dtype) & _at_limits(expected, dtype)))


def _within_range(_run: object, op: Op, operands: tuple[np.ndarray, ...], _exact: object, x: np.ndarray) -> np.ndarray:
    """The result of an operation, or the least or largest number that is taken for it where float64 has none."""
    if op.name not in LEAVING_RANGE:
        return x
    finite = np.logical_and.reduce(np.broadcast_arrays(*map(np.isfinite, operands)))
    if op.name not in EXPONENTIALS:
        finite &= np.logical_and.reduce(np.broadcast_arrays(*(np.not_equal(v, 0) for v in operands)))
    sign = 1.0 if op.name in EXPONENTIALS else np.prod(np.broadcast_arrays(*map(np.sign, operands)), axis=0)
    return np.where(finite & (x == 0), sign * LEAST, np.where(finite & np.isinf(x), sign * LARGEST, x))


def _at_limits(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Which numbers are as near to the limits of an integer dtype as rounding takes them; of floats none."""
    if dtype.kind not in "iu":
        return np.zeros(x.shape, bool)
    limits = np.iinfo(dtype)
    near = lambda limit: np.abs(x.astype(np.float64) - limit) <= LIMIT_DIGITS * limits.max  # noqa: E731
    return np.asarray(near(limits.max) | (near(limits.min) if limits.min else False))


def compare(
    name: str, what: str, got: np.ndarray, expected: np.ndarray, trace: Trace, allowed: float
) -> Check | Mismatch:
    """The check if every element is within `allowed`, else the worst. Infinities must be equal, nan must meet nan."""
    if got.shape != expected.shape:
        return Mismatch(name, trace.dims, (), got.size, expected.size, (got.shape, expected.shape))
    got, expected = got.astype(np.float64), expected.astype(np.float64)
    finite = np.isfinite(expected)
    scale = float(np.max(np.abs(expected[finite]), initial=0.0)) or 1.0
    with np.errstate(all="ignore"):
        same = (got == expected) | (np.isnan(got) & np.isnan(expected)) | (np.abs(got - expected) <= NOISE)
        both = finite & np.isfinite(got)
        error = np.where(same, 0.0, np.where(both, np.abs(got - expected) / scale, np.inf))
    if not error.size:
        return Check(name, what, trace.dims, config(trace), 0.0, 1.0)
    worst = tuple(int(i) for i in np.unravel_index(int(np.argmax(error)), error.shape))
    if error[worst] > allowed:
        return Mismatch(name, trace.dims, worst, float(got[worst]), float(expected[worst]))
    return Check(name, what, trace.dims, config(trace), float(error[worst]), float(finite.mean()))


def config(trace: Trace) -> int:
    """Which autotune configuration the launches took."""
    return max((launch.config[0] for launch in trace.launches), default=0)


def _at(trace: Trace) -> str:
    at = ", ".join(f"{k} = {v}" for k, v in trace.dims.items()) or "the shapes of the case"
    return f"at {at}" + (f", autotune configuration {config(trace)}" if trace.configs > 1 else "")


def reference(case: Case, args: Mapping[str, Any], outputs: Sequence[str]) -> dict[str, np.ndarray]:
    """The reference's outputs on these arguments, by name. Raises CaseError if it raises or miscounts."""
    assert case.reference.fn is not None
    found, _ = returned(case, case.reference.fn, args, real=False)
    if len(found) != len(outputs):
        what = f"the reference of {case.name} returns {len(found)} tensors, the function {len(outputs)}"
        raise CaseError(what, case.place)
    return by_output(found, outputs)


def by_output(found: Mapping[str, Result], outputs: Sequence[str]) -> dict[str, Result]:
    """A function's results under the host function's names: by name where these are the same, else in their order."""
    if set(found) == {*outputs}:
        return {n: found[n] for n in outputs}
    return dict(zip(outputs, found.values(), strict=True))
