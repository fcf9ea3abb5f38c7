"""Identity tests of whole kernels in random fields: the kernel's own IR against a formula or another kernel.

Each sample draws primes, a root of unity and inputs; integers stay integers. Equality on all elements of n samples at
sizes where a wrong kernel would pass with probability e each time is TESTED with the bound e^n; a difference is
evidence that the two are not the same function, and no proof of it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import numpy as np

from trilift.lift.capture.trace import Trace
from trilift.lift.cases.declaration import Case, extreme
from trilift.lift.errors import TriliftError, Unsupported
from trilift.lift.interpreter.memory import Memory
from trilift.lift.language.evaluate import evaluate
from trilift.lift.replay.execute import events, results
from trilift.lift.runtime import budget
from trilift.lift.runtime.budget import BUDGETS, Meter, limited, stage
from trilift.lift.terms.ranges import Ranges
from trilift.lift.terms.spec import Formula

from .error_bound import Weights, misses
from .field import Field
from .pairs import Modes, NotTestable, Redraw
from .rational_constants import NoRoot

ATTEMPTS = 8  # redraws of one sample
MEANINGFUL = 1e-3
CONFIGS = 8  # autotune configurations that are tried, at most
DRAWS = 8  # samples at least where integers are drawn
WIDE_BITS = 15  # of integers of 32 and 64 bits that are drawn: products of two fit
UNFINISHED = "differs under one reading of the field, and there were no steps left for the others"
HOPELESS = 0.995  # chance of a sample to miss a difference that many samples do not repair
MODES = (Modes(), Modes(order=True), Modes(logs=True), Modes(order=True, logs=True))


@dataclass(frozen=True, slots=True)
class Outcome:
    """The test result of one output. `equal`: on all samples, None if it could not be tested. `bound`: on the
    probability that different functions pass. `where`: the first element that differs, at which dims."""

    output: str
    equal: bool | None
    samples: int = 0
    bound: float = 1.0
    reason: str = ""
    dims: Mapping[str, int | float] | None = None
    where: tuple[int, ...] | None = None
    drawn: bool = False  # some inputs are integers or booleans: of these, a few that their type has were drawn

    @property
    def probability(self) -> float | None:
        """The bound that may be printed: the theorem does not speak of other integers than those that were drawn."""
        return None if self.drawn else self.bound

    @property
    def limits(self) -> str:
        """The end of a reason: the assumption of the bound, or why there is none."""
        if self.drawn:
            return "; no bound: only the integer inputs that were drawn were tried"
        return f"; the bound takes {self.reason}" if self.reason else ""

    @property
    def tested(self) -> bool:
        """Whether it passed with a bound that says something."""
        return self.equal is True and self.bound <= MEANINGFUL


@dataclass(frozen=True, slots=True)
class FieldResult:
    outcomes: tuple[Outcome, ...]
    seconds: float

    @property
    def tested(self) -> bool:
        return bool(self.outcomes) and all(o.tested for o in self.outcomes)

    @property
    def differs(self) -> bool:
        return any(o.equal is False for o in self.outcomes)

    @property
    def bound(self) -> float:
        return max((o.bound for o in self.outcomes), default=1.0)


Arrays = dict[str, Any]
Side = Callable[[Any, Arrays], Arrays]  # (domain, inputs) -> outputs


@dataclass(frozen=True, slots=True)
class Setup:
    """Two sides on the inputs of one shape. `sample` gives the integers and booleans."""

    dims: Mapping[str, int | float]
    exact: bool  # some inputs are integers or booleans
    shapes: Mapping[str, tuple[int, ...]]
    integers: Callable[[np.random.Generator], Arrays]
    left: Side
    right: Side

    def inputs(self, domain: Any, rng: np.random.Generator) -> Arrays:
        given = self.integers(rng)
        return {n: given[n] if n in given else domain.draw(shape) for n, shape in self.shapes.items()}


def kernel(trace: Trace) -> Side:
    """The launches and torch operations of a trace."""

    def run(domain: Any, inputs: Arrays) -> Arrays:
        memory = Memory(domain)
        for name, ref in trace.inputs.items():
            memory.define(ref, inputs[name])
        events(trace, memory, Ranges(), None)
        return {name: memory.fetch(ref) for name, (ref, _) in results(trace).items()}

    return run


def formula_side(formulas: Sequence[Formula], dims: Mapping[str, int | float]) -> Side:
    def run(domain: Any, inputs: Arrays) -> Arrays:
        return {f.name: evaluate(f.term, f.axes, inputs, dims, domain) for f in formulas}

    return run


def check(
    case: Case,
    formulas: Sequence[Formula],
    seed: int = 0,
    target: float = 1e-9,
    steps: int = BUDGETS.fields.steps,
    config: int = 0,
    dims: Mapping[str, int | float] | None = None,
    more: Sequence[Mapping[str, int | float]] = (),
) -> FieldResult:
    """The case's kernels against formulas of its outputs, at `dims`, or at a small shape and at one that crosses
    blocks, and at `more` shapes; without `dims` the autotune configurations at the small shape too. The bounds are for
    these sizes and scalars."""
    from trilift.lift.capture.run import capture, launching

    shapes = [dims] if dims else [*(t.dims for t in launching(case, 3, seed)[::2]), *more]
    traces = [capture(case, d, config=config, seed=seed) for d in shapes]
    if dims is None:
        others = (k for k in range(min(traces[0].configs, CONFIGS)) if k != config)
        traces += [capture(case, shapes[0], config=k, seed=seed) for k in others]
    if all(t.another for t in traces):
        raise Unsupported(traces[0].another, case.place)
    traces = [t for t in traces if not t.another]
    setups = [_against(case, t, formula_side(formulas, t.dims)) for t in traces]
    return _run_all(setups, [f.name for f in formulas], seed, target, steps)


def pair(
    case: Case, a: Trace, b: Trace, seed: int = 0, target: float = 1e-9, steps: int = BUDGETS.fields.steps
) -> FieldResult:
    """Two kernels of one interface, at the shape of their traces: outputs in order."""
    names = list(a.outputs)
    other = kernel(b)

    def renamed(domain: Any, inputs: Arrays) -> Arrays:
        out = other(domain, dict(zip(b.inputs, (inputs[n] for n in a.inputs), strict=True)))
        return dict(zip(names, (out[n] for n in b.outputs), strict=True))

    return _run_all([_against(case, a, renamed)], names, seed, target, steps)


def _against(case: Case, trace: Trace, right: Side) -> Setup:
    shapes = {n: ref.shape for n, ref in trace.inputs.items()}
    exact = [n for n, ref in trace.inputs.items() if ref.dtype == "bool" or ref.dtype[0] in "iu"]

    def integers(rng: np.random.Generator) -> Arrays:
        if not exact:
            return {}
        named = case.named(case.sample(trace.dims, rng))
        edges = np.random.default_rng(rng.bit_generator.seed_seq.spawn(1)[0])  # type: ignore[attr-defined]
        if edges.integers(0, 2):
            for n in exact:
                extreme(named[n], case.tensors[n], edges, WIDE_BITS)
        return {n: named[n].numpy() for n in exact}

    return Setup(trace.dims, bool(exact), shapes, integers, kernel(trace), right)


def equal_formulas(a: Formula, b: Formula, dims: Mapping[str, int | float] | None = None, seed: int = 0,
                   target: float = 1e-9, steps: int = BUDGETS.fields.formula_steps) -> Outcome:  # fmt: skip
    """Two formulas on random inputs of small sizes."""
    from trilift.lift.language import sample

    numbers = dict(dims or sample.dims([a.term, b.term], a.axes, seed))
    given = sample.inputs([a.term, b.term], numbers, seed)
    shapes = {n: x.shape for n, x in given.items()}
    exact = {n: x for n, x in given.items() if x.dtype.kind != "f"}
    sides = [formula_side([f], numbers) for f in (a, b)]
    right: Side = lambda domain, inputs: {a.name: sides[1](domain, inputs)[b.name]}  # noqa: E731
    setup = Setup(numbers, bool(exact), shapes, lambda rng: exact, sides[0], right)
    return _run_all([setup], [a.name], seed, target, steps).outcomes[0]


def sides(
    left: Side, right: Side, shapes: Mapping[str, tuple[int, ...]], names: Sequence[str], seed: int = 0,
    target: float = 1e-9, steps: int = BUDGETS.fields.formula_steps,
) -> FieldResult:  # fmt: skip
    """Two functions of real inputs of these shapes: the outputs of these names."""
    setup = Setup({}, False, shapes, lambda rng: {}, left, right)
    return _run_all([setup], names, seed, target, steps)


# ---- samples ---------------------------------------------------------------------------------------------------------


def _run_all(setups: Sequence[Setup], names: Sequence[str], seed: int, target: float, steps: int) -> FieldResult:
    start = time.monotonic()
    end = steps + BUDGETS.fields.overrun_steps
    with limited("field test with its last samples", end), stage("field test", steps) as meter:
        outcomes = _outcomes(setups, names, seed, target, meter)
    return FieldResult(outcomes, time.monotonic() - start)


def _outcomes(
    setups: Sequence[Setup], names: Sequence[str], seed: int, target: float, meter: Meter
) -> tuple[Outcome, ...]:
    outcomes: tuple[Outcome, ...] = ()
    for k, modes in enumerate(MODES):
        left = [n for n, o in zip(names, outcomes, strict=True) if not o.equal] if outcomes else list(names)
        if not left:
            break
        if k and meter.exhausted:
            outcomes = tuple(map(_open, outcomes))
            break
        with np.errstate(all="ignore"):
            found = [_at_shape(s, left, modes, [seed, k, j], target, meter) for j, s in enumerate(setups)]
        merged = {n: _worst([f[n] for f in found]) for n in left}
        if meter.exhausted:  # a reading that was ended in the middle might have found no difference
            outcomes = tuple(_open(o) if (m := merged.get(o.output)) and m.equal is None else o for o in outcomes)
        outcomes = tuple(_better(o, merged.get(o.output, o)) for o in outcomes) or tuple(merged.values())
    return outcomes


def _open(o: Outcome) -> Outcome:
    """The outcome where another reading is unfinished: a difference under one is none yet."""
    return replace(o, equal=None, reason=UNFINISHED) if o.equal is False else o


def _worst(found: list[Outcome]) -> Outcome:
    """Of one output at several shapes."""
    return min(found, key=lambda o: ({False: 0, None: 1, True: 2}[o.equal], -o.bound))


def _better(a: Outcome, b: Outcome) -> Outcome:
    """Of one output under two readings."""
    return max(a, b, key=lambda o: ({False: 1, None: 0, True: 2}[o.equal], -o.bound))


def _at_shape(
    setup: Setup, names: Sequence[str], modes: Modes, seed: list[int], target: float, meter: Meter
) -> dict[str, Outcome]:
    """Samples until each output's bound is below the target, or the steps are spent. The first one comes before the
    weights."""
    try:
        roots: set[int] = set()
        wrong = _sample(setup, names, modes, [*seed, 1], roots)
        out = {n: Outcome(n, False, 1, 1.0, "differs in the field", setup.dims, wrong[n]) for n in names}
        right = [n for n in names if wrong[n] is None]
        if not right:
            return out
        chance = _chances(setup, right, modes, seed)
        for k in count(2):
            for n in right:
                bound = min(1.0, chance[n] * 4 ** len(roots)) ** (k - 1)  # a root is had by one field in four
                out[n] = Outcome(n, True, k - 1, bound, _assumptions(modes), setup.dims, drawn=setup.exact)
            few = setup.exact and k <= DRAWS
            pending = [n for n in right if few or out[n].bound > target]
            if not pending or meter.exhausted or (pending and all(chance[n] > HOPELESS for n in pending)):
                return out
            wrong = _sample(setup, right, modes, [*seed, k], roots)
            out |= {
                n: Outcome(n, False, k, 1.0, "differs in the field", setup.dims, w)
                for n, w in wrong.items()
                if w is not None
            }
            right = [n for n in right if wrong[n] is None]
    except TypeError as e:  # numpy has no such operation on values of a field
        return {n: Outcome(n, None, reason=f"no meaning in the field: {e}", dims=setup.dims) for n in names}
    except TriliftError as e:
        return {n: Outcome(n, None, reason=str(e), dims=setup.dims) for n in names}
    return out


def _assumptions(modes: Modes) -> str:
    """The limits of the bound, besides other sizes and scalars."""
    return "no two compared values to be equal" if modes.order else ""


def _chances(setup: Setup, names: Sequence[str], modes: Modes, seed: list[int]) -> dict[str, float]:
    """The probability that one sample misses a difference; 1 where the kernel cannot be run on weights."""
    weights = Weights(modes)
    try:
        given = setup.inputs(weights, np.random.default_rng([*seed, 0]))
        left, right = setup.left(weights, given), setup.right(weights, given)
    except (TypeError, TriliftError):
        return dict.fromkeys(names, 1.0)
    return {n: _chance(weights.reals(left[n]), weights.reals(right[n]), modes) for n in names}


def _chance(x: np.ndarray, y: np.ndarray, modes: Modes) -> float:
    """The probability that one sample misses a difference at the worst element. Each of c comparisons comes out
    either way, or as a tie, with a probability of at least 1/4; each order of c values has probability 1/c!."""
    if x.shape != y.shape:
        return 1.0
    missed = 2 * misses(x, y)  # twice: samples with a division by zero are drawn again
    if modes.logs:
        missed = missed + (x["n"] + y["n"]) / 2.0**28
    c = np.minimum(x["c"] + y["c"], 40)
    seen = np.exp(-np.vectorize(math.lgamma)(c + 1)) if modes.order else 4.0**-c
    return float(np.max(1 - seen * (1 - np.minimum(missed, 1)), initial=0.0))


Differences = dict[str, tuple[int, ...] | None]


def _sample(setup: Setup, names: Sequence[str], modes: Modes, seed: list[int], roots: set[int]) -> Differences:
    """The first element of each output that differs. `roots` grows by the numbers whose roots turn out to be needed."""
    attempt = 0
    while attempt < ATTEMPTS:
        rng = np.random.default_rng([*seed, attempt, len(roots)])
        budget.count("comparison")
        try:
            domain = Field(rng, modes, frozenset(roots))
            given = setup.inputs(domain, rng)
            left, right = setup.left(domain, given), setup.right(domain, given)
        except Redraw:
            attempt += 1
            continue
        except NoRoot as e:
            roots.add(e.number)
            continue
        if missing := [n for n in names if n not in left]:
            raise NotTestable(f"{missing[0]} is not written")
        return {n: _difference(domain, left[n], right[n]) for n in names}
    raise NotTestable("division by zero in every sample")


def _difference(d: Field, x: Any, y: Any) -> tuple[int, ...] | None:
    x, y = np.asarray(x), np.asarray(y)
    if x.shape != y.shape:
        return ()
    if x.dtype.kind != "V" and y.dtype.kind != "V":
        same = x == y
    else:
        x, y = (d.reals(z.astype(np.int8) if z.dtype.kind == "b" else z) for z in (x, y))
        p, q = (x["p"] >= 0) & (y["p"] >= 0), (x["q"] >= 0) & (y["q"] >= 0)
        number = np.isinf(x["v"]) | np.isinf(y["v"])
        if not (p | q | number | (x["p"] == -2) | (y["p"] == -2)).all():
            raise NotTestable("every residue of the result is unknown")
        same = np.where(number, x["v"] == y["v"], np.where(p, x["p"] == y["p"], q & (x["q"] == y["q"])))
    return None if same.all() else tuple(int(i) for i in np.argwhere(~same)[0])
