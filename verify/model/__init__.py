"""The records that the stages of a proof hand to one another.

No logic but one rule: `verdict` is the only file that constructs PROVED.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trilift.lazy import face

if TYPE_CHECKING:
    from .configuration import SymbolicLaunch as SymbolicLaunch
    from .configuration import View as View
    from .program import PIDS as PIDS
    from .program import Access as Access
    from .program import Program as Program
    from .verdict import Clause as Clause
    from .verdict import Condition as Condition
    from .verdict import Counterexample as Counterexample
    from .verdict import Proof as Proof
    from .verdict import Verdict as Verdict

__all__, __getattr__ = face(
    __name__,
    {
        "configuration": "SymbolicLaunch View",
        "program": "Access PIDS Program",
        "verdict": "Clause Condition Counterexample Proof Verdict",
    },
)
