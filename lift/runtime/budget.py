"""Budgets: how much work a stage may do, counted in steps that are the same on every machine.

    with stage("search", BUDGETS.search.steps) as meter:     what is done inside counts
        while not meter.exhausted: ...                       a stage that stops between two pieces of work asks
        meter.spend("normal form")                           work that may end the stage: OutOfSteps
    with limited("run", BUDGETS.run.search_steps):           every piece of work inside may end it
        spend("operation")

A step is work that takes about a microsecond of one core of a server of 2024, or somewhat more: COSTS says how many
steps each kind of work is. Work is counted for the process; what an inner stage does counts for the outer ones too. No
budget reads a clock: a slower machine finds and proves the same. A `Guard` is the outer time limit that a user sets; it
says so when it strikes, and is never mixed with a budget.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field

from ..errors import TriliftError

# ---- work ------------------------------------------------------------------------------------------------------------

COSTS: dict[str, float] = {  # steps for one of each
    "normal form": 400.0,  # of one term, not found among those known
    "product of monomials": 20.0,
    "linear question": 150.0,  # about integers, put to elimination
    "row": 4.0,  # combined with another one by elimination
    "z3 resource": 0.2,  # of z3's own count, rlimit
    "operation": 15.0,  # of Triton IR, executed for one program
    "float64 element": 0.01,  # of its result, as a number
    "rounded element": 0.1,  # rounded to its type
    "field element": 0.4,  # in a finite field
    "weights element": 0.4,  # as a bound of an error
    "symbolic element": 20.0,  # as a term
    "capture": 5000.0,  # of the launches of a host function at one shape
    "host operation": 5000.0,  # of PyTorch, in a host function that is followed
    "sizes tried": 40.0,  # for the other side of a test in a host function
    "comparison": 2500.0,  # of a run with what it should give
    "sampled element": 0.5,  # of the largest input of a sample that a rule looks at
    "cut": 100.0,  # of the elements of an output
    "element of a cut": 25.0,
    "candidate": 100.0,  # formula that synthesis tries
    "node": 2.0,  # of an e-graph, per iteration
    "trial": 1000.0,  # of a law on numbers
}


class _Work:
    """The work that this process has done so far: `steps` in all, and in `of` the number of units of each kind in
    COSTS."""

    def __init__(self) -> None:
        self.steps = 0.0
        self.of = dict.fromkeys(COSTS, 0.0)


_WORK = _Work()


def count(kind: str, number: float = 1) -> None:
    """Counts work; no budget is asked. Raises KeyError for a kind that COSTS does not name."""
    _WORK.steps += COSTS[kind] * number
    _WORK.of[kind] += number


# ---- errors ----------------------------------------------------------------------------------------------------------


class OutOfSteps(TriliftError):
    """A budget is spent: which one, how many steps, at what."""

    def __init__(self, stage: str, steps: int, at: str) -> None:
        article = "an" if at.startswith(tuple("aeio")) else "a"
        super().__init__(f"out of steps: the {stage} may take {steps:,}", why=f"at {article} {at}" if at else "")
        self.stage, self.steps, self.at = stage, steps, at


GUARDED = "time ran out"  # in what is said where the outer time limit struck


class OutOfTime(TriliftError):
    """The outer time limit struck."""

    def __init__(self, seconds: float, what: str = "proof") -> None:
        super().__init__(f"{GUARDED} after {seconds:g} s, during the {what}")
        self.seconds = seconds


CAUSES: dict[type[TriliftError], str] = {OutOfSteps: "out-of-steps", OutOfTime: "timeout"}


GUARD_SECONDS = 300.0  # of the processor, for a proof, where nobody says otherwise: above what its steps take

# ---- meters ----------------------------------------------------------------------------------------------------------


class Guard:
    """The outer time limit, in seconds of the processor from now on: the only clock that may end a proof. `struck`:
    whether it has ended anything, be it noticed where it was caught or not."""

    def __init__(self, seconds: float, what: str = "proof") -> None:
        self.seconds, self.what, self.struck = seconds, what, False
        self.end = time.process_time() + seconds

    @property
    def left(self) -> float:
        """Seconds; 0 where it has struck."""
        return max(0.0, self.end - time.process_time())

    def check(self) -> None:
        """Raises OutOfTime once it has struck."""
        if time.process_time() > self.end:
            raise self.strike()

    def strike(self) -> OutOfTime:
        """The error to raise; from now on it has struck."""
        self.struck = True
        return OutOfTime(self.seconds, self.what)


class Meter:
    """Counts the steps that one stage spends from now on, at most `limit`. If a stage runs inside another one
    (`outer`), it ends with that one, and shares its guard unless it has its own."""

    def __init__(
        self, name: str, limit: float = math.inf, outer: Meter | None = None, guard: Guard | None = None
    ) -> None:
        self.name, self.limit, self.outer = name, limit, outer
        self.guard: Guard | None = guard or (outer.guard if outer is not None else None)
        self.began, self.before = _WORK.steps, dict(_WORK.of)
        self.end: float = min(self.began + limit, outer.end if outer is not None else math.inf)
        self.over = False  # whether the stage has ended

    @property
    def going(self) -> bool:
        """Whether neither the stage nor one around it has ended: what is asked later is not of its steps."""
        return not self.over and (self.outer is None or self.outer.going)

    @property
    def spent(self) -> int:
        """Steps since it began."""
        return round(_WORK.steps - self.began)

    @property
    def kinds(self) -> dict[str, float]:
        """How much of each kind of work was done since it began."""
        return {k: n - self.before[k] for k, n in _WORK.of.items() if n > self.before[k]}

    @property
    def exhausted(self) -> bool:
        """Whether its steps, or those of a stage around it, are spent."""
        return _WORK.steps > self.end

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Context manager: what is done inside is not of this stage's steps, but of those of another one that has a
        budget of its own."""
        began, before = _WORK.steps, dict(_WORK.of)
        try:
            yield
        finally:
            beside = _WORK.steps - began
            self.began += beside
            self.end = min(self.end + beside, self.outer.end if self.outer is not None else math.inf)
            self.before = {k: n + _WORK.of[k] - before[k] for k, n in self.before.items()}

    def spend(self, kind: str, number: float = 1) -> None:
        """Counts work. Raises OutOfSteps once the steps are spent, OutOfTime once the guard has struck."""
        count(kind, number)
        self.check(kind)

    def check(self, at: str = "") -> None:
        """Raises what `spend` raises."""
        if _WORK.steps > self.end:
            m = self._empty()
            raise OutOfSteps(m.name, round(m.limit), at)
        if self.guard is not None:
            self.guard.check()

    def _empty(self) -> Meter:
        """The innermost stage whose own steps are spent."""
        m = self
        while m.outer is not None and _WORK.steps <= m.began + m.limit:
            m = m.outer
        return m


UNLIMITED = Meter("process")
_LIMITS: list[Meter] = []  # of the limited stages that are going on, innermost last
_LEDGER: dict[str, list[float]] = {}  # stage -> how often it was entered, its limit, steps spent


def current() -> Meter:
    """The meter of the innermost limited stage."""
    return _LIMITS[-1] if _LIMITS else UNLIMITED


@contextmanager
def stage(
    name: str, limit: float = math.inf, outer: Meter | None = None, guard: Guard | None = None
) -> Iterator[Meter]:
    """Context manager: yields the meter of the work done inside the block. It ends with `outer`, by default the
    innermost limited stage; whoever has the meter asks it."""
    meter = Meter(name, limit, outer or current(), guard)
    try:
        yield meter
    finally:
        meter.over = True
        row = _LEDGER.setdefault(name, [0, limit, 0])
        row[0] += 1
        row[2] += meter.spent


@contextmanager
def limited(name: str, limit: float) -> Iterator[Meter]:
    """Context manager: the same; `spend` raises inside the block once the steps are spent."""
    with stage(name, limit) as meter:
        _LIMITS.append(meter)
        try:
            yield meter
        finally:
            _LIMITS.pop()


def spend(kind: str, number: float = 1) -> None:
    """Counts work. Raises OutOfSteps once the steps of the innermost limited stage are spent."""
    count(kind, number)
    if _LIMITS and _WORK.steps > _LIMITS[-1].end:
        _LIMITS[-1].check(kind)


def spent() -> list[str]:
    """A line for each stage that was entered in this process: how often, how many steps, and of how many each time."""
    return [f"{name}: {steps:,.0f} steps in {times:.0f} of {_words(limit)}"
            for name, (times, limit, steps) in sorted(_LEDGER.items())]  # fmt: skip


def _words(limit: float) -> str:
    return "any number" if limit == math.inf else f"{limit:,.0f}"


# ---- budgets ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LiftBudget:
    """Of lifting one case where a proof follows, and of what one search for a formula bottom-up tries."""

    steps: int = 45_000_000
    candidates: int = 20_000


@dataclass(frozen=True, slots=True)
class SolverBudget:
    """Of one question about integers, in z3's own count: several tries of a non-linear question share it."""

    resources: int = 10_000_000


@dataclass(frozen=True, slots=True)
class ProofBudget:
    """Of one case, beside the reading of its host function: of all its configurations, of one that has symbols for the
    numbers of several; of the search for a contract, and of a proof under one set of clauses."""

    steps: int = 30_000_000
    together_steps: int = 3_000_000
    contract_steps: int = 18_000_000
    clauses_steps: int = 9_000_000
    unrolled_operations: int = 1_000  # of a kernel at a compile-time value that no trace has


@dataclass(frozen=True, slots=True)
class SearchBudget:
    """Of the search for a counterexample: in all, at large shapes in which there is no proof, at likely inputs, of
    making one small, of looking for one outside of a contract."""

    steps: int = 12_000_000
    likely_steps: int = 1_500_000
    growing_steps: int = 1_500_000  # at sizes that grow, of claims without a proof
    rows_steps: int = 500_000  # on other rows of the table of inputs, of those
    large_steps: int = 40_000_000
    beside_steps: int = 150_000  # of the runs beside a proof
    shrink_steps: int = 2_000_000
    beyond_steps: int = 6_000_000


@dataclass(frozen=True, slots=True)
class RunBudget:
    """Of one execution of a kernel: in the search, at a large shape, watched, of a trial, with rounding, of one program
    of a large launch, of a launch within a test suite; of a mutant beside its original; of terms at one shape."""

    search_steps: int = 4_000_000
    large_steps: int = 40_000_000
    watched_steps: int = 2_000_000
    trial_steps: int = 2_000_000
    rounded_steps: int = 2_000_000
    program_steps: int = 2_000_000
    emulated_steps: int = 40_000_000
    mutant_steps: int = 6_000_000
    spec_steps: int = 20_000_000


@dataclass(frozen=True, slots=True)
class FieldBudget:
    """Of an identity test: one that follows a failed proof, and one that is asked for. Behind them no sample is begun;
    one that was is ended in the middle after `overrun_steps` more."""

    proof_steps: int = 15_000_000
    steps: int = 90_000_000
    formula_steps: int = 15_000_000
    overrun_steps: int = 90_000_000


@dataclass(frozen=True, slots=True)
class AuditBudget:
    """Of an audit: its watched runs, its rules in all, of the samples of single rules, and of a question about a lane,
    in z3's own count."""

    watched_steps: int = 4_000_000
    rules_steps: int = 10_000_000
    nan_steps: int = 1_500_000
    overflow_steps: int = 1_500_000
    precision_steps: int = 2_500_000
    question_resources: int = 2_500_000


@dataclass(frozen=True, slots=True)
class TestBudget:
    """Of writing tests: of the laws of a case, of each stage beside what lifting and proving may take, and of a
    question about integers, in z3's own count."""

    laws_steps: int = 4_000_000
    stage_steps: int = 90_000_000
    question_resources: int = 2_500_000


@dataclass(frozen=True, slots=True)
class OptimiseBudget:
    """Of a replay of an emitted file."""

    replay_steps: int = 20_000_000


@dataclass(frozen=True, slots=True)
class HostBudget:
    """Of reading one host function: in all, paths, sides of tests that are looked for, launches on one path, and how
    many more a path may make than the first one: a loop over the sizes."""

    steps: int = 40_000_000
    paths: int = 32
    sides: int = 200
    launches: int = 200
    more_launches: int = 4


@dataclass(frozen=True, slots=True)
class Budgets:
    """All of them."""

    lift: LiftBudget = field(default_factory=LiftBudget)
    solver: SolverBudget = field(default_factory=SolverBudget)
    proof: ProofBudget = field(default_factory=ProofBudget)
    search: SearchBudget = field(default_factory=SearchBudget)
    run: RunBudget = field(default_factory=RunBudget)
    fields: FieldBudget = field(default_factory=FieldBudget)
    audit: AuditBudget = field(default_factory=AuditBudget)
    tests: TestBudget = field(default_factory=TestBudget)
    optimise: OptimiseBudget = field(default_factory=OptimiseBudget)
    host: HostBudget = field(default_factory=HostBudget)

    def __str__(self) -> str:
        """One line for each stage, for `--debug` and for keys of caches."""
        rows = asdict(self).items()
        return "\n".join(f"{s}: {', '.join(f'{n:,} {k}' for k, n in limits.items())}" for s, limits in rows)


BUDGETS = Budgets()
