"""An audit: the proof of a case, then every rule on what the proof executed and on runs that were watched.

proved        what the proof covers cannot go wrong under its contract: the rules look at what is beyond it
not proved    runs at small shapes, at the edges of blocks and under each configuration are watched too
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice, zip_longest
from typing import TYPE_CHECKING

from trilift.lift.errors import CaseError, TriliftError
from trilift.lift.runtime.budget import BUDGETS, GUARD_SECONDS, stage

from ..model.verdict import Proof, Verdict
from ..runs.given_arguments import given
from ..runs.observe import Observation, observe
from .evidence import Evidence
from .finding import Finding, Rule

if TYPE_CHECKING:
    from trilift.lift import Lifted
    from trilift.lift.cases.declaration import Case

    from ..pipeline import Examined
    from ..proof.prover import Proving
    from ..runs.goals import Targets
    from ..runs.trials import Dims

LAST = "wrong-result"
MEMORY_RULES = frozenset(
    (
        "out-of-bounds",
        "write-race",
        "read-write-race",
        "missing-barrier",
        "unwritten-output",
        "undefined-value",
        "broken-contract",
    )
)
VALUES = frozenset(("overflow-risk", "nan-risk", "precision-loss"))
EXPLAINED = VALUES | {LAST}
EXPLAINS = {LAST: MEMORY_RULES | VALUES}
WATCHED = 24  # runs of a case that is not proved
PROVED = 2  # of one that is


@dataclass(frozen=True, slots=True)
class Audited:
    """`unknown`: what a rule could not decide, in words. `seconds`: without the proof."""

    proofs: tuple[Proof, ...]
    findings: tuple[Finding, ...]
    unknown: tuple[str, ...]
    seconds: float
    watched: int = 0  # runs


def audit(
    case: Case,
    *,
    seed: int = 0,
    timeout: float = GUARD_SECONDS,
    lifted: Lifted | None = None,
    against: str | None = None,
    progress: Callable[[str], None] = lambda stage: None,
    found: Examined | None = None,
) -> Audited:
    """Proofs and findings of a case; `found`: its proofs, where they were made already. Raises CaseError where the case
    makes no sense."""
    from ..pipeline import examine

    proofs: tuple[Proof, ...] = ()
    goal: Targets | None = None
    provings: tuple[Proving, ...] = ()
    unknown: list[str] = []
    try:
        if found is None:
            found = examine(case, seed=seed, timeout=timeout, lifted=lifted, against=against, progress=progress)
        proofs, goal, provings = found.proofs, found.goal, found.provings
    except CaseError:
        raise
    except TriliftError as error:
        unknown.append(f"not proved: {error}")
    start = time.perf_counter()
    progress("watched runs")
    safe = bool(proofs) and all(p.verdict is Verdict.PROVED for p in proofs)
    runs = tuple(islice(_runs(case, proofs, seed), PROVED if safe else WATCHED))
    with stage("rules", BUDGETS.audit.rules_steps) as meter:
        evidence = Evidence(case, lifted, goal, proofs, provings, runs, seed, meter, unknown)
        findings = tuple(_findings(evidence, progress))
    return Audited(proofs, findings, tuple(evidence.unknown), time.perf_counter() - start, len(runs))


def _runs(case: Case, proofs: tuple[Proof, ...], seed: int) -> Iterator[Observation]:
    """Watched runs, those on which a proof was refuted first."""
    refuted = [p.counterexample for p in proofs if p.counterexample is not None]
    known = [(given(case, c.arguments), c.dims, c.seed, c.config) for c in refuted]
    small = ((case, *run) for run in _small_and_large(case, seed))
    with stage("watched runs", BUDGETS.audit.watched_steps) as meter:
        for drawn, dims, at, config in (*known, *small):
            if meter.exhausted:
                return
            seen = observe(drawn, dims, at, config)
            if seen is not None:
                yield seen


def _small_and_large(case: Case, seed: int) -> list[tuple[Dims, int, int]]:
    """The runs of the search for counterexamples at its first shapes, the smallest and the largest in turn; each shape
    under each of the first configurations before inputs of other kinds."""
    from ..refutation.search import SHAPES, runs

    found = list(islice(runs(case, (), seed, None), 3 * SHAPES))
    first = list({(*sorted(d.items()), c): (d, s, c) for d, s, c in reversed(found)}.values())[::-1]
    rest = [r for r in found if r not in first]
    half = (len(first) + 1) // 2
    turns = [r for pair in zip_longest(first[:half], first[: half - 1 : -1]) for r in pair if r is not None]
    return [*turns, *rest]


def _findings(evidence: Evidence, progress: Callable[[str], None]) -> Iterator[Finding]:
    """Of every rule in turn, each place once. A kernel's memory accesses explain its values: rules about values
    are asked where nothing else is wrong, and whether the result is wrong only where no rule says why."""
    from .rules import rules

    found: list[Finding] = []
    for rule in sorted(rules().values(), key=lambda r: r.name == LAST):
        if rule.name in EXPLAINED and any(f.rule in EXPLAINS.get(rule.name, MEMORY_RULES) for f in found):
            continue
        progress(rule.name)
        found += _checked(rule, evidence)
    return iter(found)


def _checked(rule: Rule, evidence: Evidence) -> Iterator[Finding]:
    """The findings of one rule. A rule that cannot go on says so."""
    told: set[object] = set()
    if evidence.meter.exhausted:
        evidence.unknown.append(f"{rule.name}: the steps of the rules were spent before it was asked")
    try:
        for f in rule.check(evidence):
            if f.place not in told:
                told.add(f.place)
                yield f
    except (TriliftError, RecursionError) as error:
        evidence.unknown.append(f"{rule.name}: {error}")
