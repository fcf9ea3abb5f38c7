"""The evidence of the audit rules: the proof's own conditions and clauses, and runs of the kernel that were watched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from trilift.lift.capture.trace import Launch
from trilift.lift.runtime.budget import UNLIMITED, Meter
from trilift.lift.terms.fit import value

from ..model.verdict import Clause, Proof, Verdict
from ..refutation.search import Execute, Failure, Passed, Question, Skipped, attempt

if TYPE_CHECKING:
    from trilift.lift import Lifted
    from trilift.lift.cases.declaration import Case

    from ..proof.prover import Proving
    from ..runs.goals import Targets
    from ..runs.observe import Observation

Outcome = Failure | Passed | Skipped


@dataclass
class Evidence:
    """All that is known of one case after its proof was tried. `goal`: what its outputs should be, None where neither
    a reference nor a formula can be read; `provings`: the executed configurations, with conditions, contract and
    programs; `proofs`: the verdict of each output; `runs`: watched executions in float64 at small shapes and at the
    edges of blocks, smallest first, each on inputs of one kind."""

    case: Case
    lifted: Lifted | None
    goal: Targets | None
    proofs: Sequence[Proof]
    provings: Sequence[Proving]
    runs: Sequence[Observation]
    seed: int = 0
    meter: Meter = field(default=UNLIMITED, repr=False)  # of all rules
    unknown: list[str] = field(default_factory=list)  # what a rule could not decide, in words
    outcomes: dict[tuple[object, ...], Outcome] = field(default_factory=dict, repr=False)
    kept: dict[str, Any] = field(default_factory=dict, repr=False)  # what one rule leaves for the next

    @cached_property
    def launches(self) -> tuple[Launch, ...]:
        """The launches at one shape."""
        if self.lifted is not None:
            return self.lifted.traces[0].launches
        return self.runs[0].trace.launches if self.runs else ()

    @property
    def proved(self) -> bool:
        """Whether every output is proved, for every input that meets the contract."""
        return bool(self.proofs) and all(p.verdict is Verdict.PROVED for p in self.proofs)

    def contracted(self, run: Observation) -> bool:
        """Whether what goes wrong in a run is a call that the kernel is not written for: then that is the finding."""
        from .rules.broken_contract import rank_assumed

        return self.excluded(run) is not None or self.only_configured(run) or rank_assumed(self) is not None

    def excluded(self, run: Observation) -> Clause | None:
        """A clause that the run does not meet, of a contract under which what is refuted was proved."""
        refuted = (p for p in self.proofs if p.verdict is Verdict.REFUTED)
        clauses = (c for p in refuted for c in p.contract if c.term is not None and usual(c))
        strides = {f"stride({n},{d})": s for n, r in run.trace.inputs.items() for d, s in enumerate(r.strides)}
        numbers = {**run.dims, **strides}
        return next((c for c in clauses if c.term is not None and value(c.term, numbers) is False), None)

    def only_configured(self, run: Observation) -> bool:
        """Whether a run goes wrong under its autotune configuration, and not under the first one."""
        return bool(run.config) and self.wrong(run) and not self.wrong(run, config=0)

    def wrong(self, run: Observation, config: int | None = None) -> bool:
        """Whether the kernel was seen to fail: an access out of bounds, or another result than the goal's."""
        return isinstance(self.outcome(run, config=config), Failure)

    def outcome(self, run: Observation, execute: Execute | None = None, config: int | None = None) -> Outcome:
        """A run beside the goal, as the search for counterexamples makes it; `config`: under this configuration."""
        if self.goal is None:
            return Skipped("there is nothing to compare with")
        chosen = run.config if config is None else config
        key = (id(run.case), *sorted(run.dims.items()), run.seed, chosen)
        if execute is not None or key not in self.outcomes:
            found = attempt(Question(run.case, self.goal), run.dims, run.seed, chosen, execute)
            if execute is not None:
                return found
            self.outcomes[key] = found
        return self.outcomes[key]


def usual(c: Clause) -> bool:
    """Whether a clause is one that a kernel is written for: a bound, strides. That sizes are equal, or 1, or that
    a tile has no tail, is none."""
    t = c.term
    if t is None or c.kind not in ("shape", "layout"):
        return False
    strides = any(s.op == "size" and str(s.attr).startswith("stride(") for s in t.walk())
    bounded = t.op in ("le", "lt") and not (t.args[1].is_const and t.args[1].attr <= 1)
    return strides or bounded
