"""Defects that no test notices and that none has to: each was read, and is here with the reason.

A defect that is neither noticed nor here is open: a test is missing.
"""

from __future__ import annotations

KINDS = {
    "equivalent": "the same results for every input",
    "refuses more": "less is proved, nothing wrong",
    "guess": "what it changes proposes something that is proved afterwards",
    "slower": "the same results in more steps, or in another order",
    "outside": "not on the way to a verdict: a message, a report, a setting",
}
SURVIVORS: dict[str, tuple[str, str]] = {}  # key of the defect -> kind, reason
