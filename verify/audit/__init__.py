"""Findings: what is wrong with a kernel, each with the smallest input on which it can be seen.

In: the proof of a case, and runs of its kernel that were watched. Out: an audit, the findings of all rules. A rule is a
module of `verify.audit.rules`, with its page.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trilift.lazy import face

if TYPE_CHECKING:
    from .accumulation import MOVES as MOVES
    from .accumulation import narrow_sums as narrow_sums
    from .evidence import Evidence as Evidence
    from .evidence import usual as usual
    from .examination import Audited as Audited
    from .examination import audit as audit
    from .finding import Finding as Finding
    from .finding import Step as Step
    from .unlaunched import findings as findings

__all__, __getattr__ = face(
    __name__,
    {
        "accumulation": "MOVES narrow_sums",
        "evidence": "Evidence usual",
        "examination": "Audited audit",
        "finding": "Finding Step",
        "unlaunched": "findings",
    },
)
