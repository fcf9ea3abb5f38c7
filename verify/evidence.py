"""What the audit rules look at: the proof's own conditions and clauses, and runs of the kernel that were watched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .verdict import Proof

if TYPE_CHECKING:
    from lift import Lifted
    from lift.case import Case

    from .against import Targets
    from .observe import Observation
    from .prover import Proving


@dataclass
class Evidence:
    """All that is known of one case after its proof was tried. `goal`: what its outputs should be, None where neither
    a reference nor a formula can be read; `provings`: the executed settings, with conditions, contract and programs;
    `proofs`: the verdict of each output; `runs`: watched executions in float64 at small shapes and at the edges of
    blocks, smallest first, each on inputs of one kind."""

    case: Case
    lifted: Lifted | None
    goal: Targets | None
    proofs: Sequence[Proof]
    provings: Sequence[Proving]
    runs: Sequence[Observation]
    seed: int = 0
    deadline: float = float("inf")  # of time.process_time()
    unknown: list[str] = field(default_factory=list)  # what a rule could not decide, in words
    kept: dict[str, Any] = field(default_factory=dict, repr=False)  # what one rule leaves for the next
