"""Mutants: kernels with one mistake, and what tests and provers say of them.

In: the IR of a kernel. Out: modules with one change each, and whether running them tells them from the original.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trilift.lazy import face

if TYPE_CHECKING:
    from .emulation import emulated as emulated
    from .mutant_filter import Crashed as Crashed
    from .mutant_filter import Killed as Killed
    from .mutant_filter import Mutation as Mutation
    from .mutant_filter import verdict_by_execution as verdict_by_execution
    from .mutants import Mutant as Mutant
    from .mutants import in_turn as in_turn
    from .soundness_gate import FAILURES as FAILURES
    from .soundness_gate import Prove as Prove
    from .soundness_gate import Tried as Tried

__all__, __getattr__ = face(
    __name__,
    {
        "emulation": "emulated",
        "mutant_filter": "Crashed Killed Mutation verdict_by_execution",
        "mutants": "Mutant in_turn",
        "soundness_gate": "FAILURES Prove Tried",
    },
)
