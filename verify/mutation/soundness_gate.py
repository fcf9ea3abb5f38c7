"""The soundness gate: what a prover says of a mutant against what executions say.

                     differs within the contract   equal wherever run      cannot be run
    PROVED, TESTED   wrong                         equivalent              unchecked
    REFUTED          refuted                       refuted                 refuted
    UNKNOWN          unknown                       unknown                 unknown
    it raised        error                         error                   error

An error is a defect of the prover: it does not judge the mutant, and must not pass for an honest UNKNOWN. `original`
is the prover's word on the case as it is: where that is not PROVED, an UNKNOWN of its mutants is not a merit.
A mutant of several outputs is wrong as soon as one output is PROVED that differs, whatever is said of the others.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from trilift.lift.cases.declaration import Case
from trilift.lift.errors import TriliftError

from ..model.verdict import Proof, Verdict
from ..runs.trials import Trial, more_trials, trials
from .editor import clone
from .mutant_filter import Crashed, Killed, Mutation, Outcome, Survived, allows, verdict_by_execution
from .mutants import Mutant

Prove = Callable[[Case, int, Mutation], Sequence[Proof]]  # the case with this mutation of its launch of this number

GREEN = (Verdict.PROVED, Verdict.TESTED)
FAILURES = ("wrong", "unchecked", "error")
ERROR = "ERROR"
FURTHER = 60  # trials beyond the usual ones for what is called proved


@dataclass(frozen=True, slots=True)
class Examined:
    """One mutant. `verdict`: the prover's word, or ERROR if it raised; `execution`: killed, survived or crashed;
    `outcome`: see above; `evidence`: what the execution showed; `reason`: why the prover does not know."""

    file: str
    case: str
    launch: int
    kernel: str
    number: int
    kind: str
    text: str
    identifier: str
    verdict: str
    execution: str
    outcome: str
    evidence: str
    reason: str
    original: str
    prove_seconds: float
    run_seconds: float
    replay: str = field(default="", repr=False)


@dataclass(slots=True)
class Tried:
    """The trials of one case; `further` is filled when something is called proved."""

    case: Case
    seed: int
    first: tuple[Trial, ...]
    further: tuple[Trial, ...] | None = None
    original: str = ""  # what the prover says of the case as it is

    @classmethod
    def of(cls, case: Case, seed: int = 0) -> Tried:
        return cls(case, seed, trials(case, seed))

    def all(self) -> tuple[Trial, ...]:
        if self.further is None:
            self.further = tuple(more_trials(self.case, self.first, FURTHER, self.seed))
        return self.first + self.further


def examine(prove: Prove, tried: Tried, launch: int, mutant: Mutant) -> Examined:
    """Asks the prover, of the original too the first time, then runs the mutant: until it is killed, or everywhere if
    something of it is called proved."""
    if not tried.original:
        tried.original = _verdict(*_asked(prove, tried.case, launch, clone))
    start = time.perf_counter()
    proofs, reason = _asked(prove, tried.case, launch, mutant)
    middle = time.perf_counter()
    green = [p for p in proofs if p.verdict in GREEN]
    ran = [_checked(tried, launch, mutant, p) for p in green] or [verdict_by_execution(tried.first, launch, mutant)]
    worst = min(ran, key=lambda r: (Killed, Crashed, Survived).index(type(r)))
    said = _verdict(proofs, reason)
    return Examined(
        file=tried.case.place.file if tried.case.place else "",
        case=tried.case.name,
        launch=launch,
        kernel=tried.first[0].trace.launches[launch].kernel,
        number=mutant.number,
        kind=mutant.kind,
        text=mutant.text,
        identifier=mutant.identifier,
        verdict=said,
        execution=type(worst).__name__.lower(),
        outcome=_outcome(said, worst, bool(green)),
        evidence=_evidence(worst),
        reason=reason or next((p.reason for p in proofs if p.verdict not in GREEN and p.reason), ""),
        original=tried.original,
        prove_seconds=middle - start,
        run_seconds=time.perf_counter() - middle,
        replay=worst.counterexample.replay if isinstance(worst, Killed) else "",
    )


def _asked(prove: Prove, case: Case, launch: int, mutation: Mutation) -> tuple[list[Proof], str]:
    """The proofs, or none and what was raised."""
    try:
        return list(prove(case, launch, mutation)), ""
    except TriliftError as error:
        return [], str(error)
    except Exception as error:
        return [], f"{ERROR} {type(error).__name__}: {error}"


def _checked(tried: Tried, launch: int, mutant: Mutant, proof: Proof) -> Outcome:
    """The mutant's output of a claim that is called proved, at every trial that the contract allows."""
    return verdict_by_execution(tried.all(), launch, mutant, {proof.claim.output}, allows(proof.contract))


def _verdict(proofs: Sequence[Proof], reason: str) -> str:
    """Of all claims together: REFUTED if one is, PROVED or TESTED only if all are; ERROR if the prover failed."""
    if reason.startswith(ERROR):
        return ERROR
    found = {p.verdict for p in proofs}
    if Verdict.REFUTED in found:
        return "REFUTED"
    if not found or Verdict.UNKNOWN in found:
        return "UNKNOWN"
    return "TESTED" if Verdict.TESTED in found else "PROVED"


def _outcome(said: str, ran: Outcome, green: bool) -> str:
    if green and isinstance(ran, Killed):
        return "wrong"
    if said in ("REFUTED", "UNKNOWN", ERROR):
        return said.lower()
    return "unchecked" if isinstance(ran, Crashed) else "equivalent"


def _evidence(ran: Outcome) -> str:
    match ran:
        case Killed(example, why):
            at = ", ".join(f"{k} = {v}" for k, v in example.dims.items())
            return f"{why} (at {at}, seed {example.seed})"
        case Survived(runs, specs):
            same = f", equal spec at {specs} shapes" if specs else ""
            return f"equal in {len(runs)} runs{same}"
        case Crashed(reason):
            return reason
