"""Counterexamples, and the precondition under which there are none.

In: a case whose proof did not go through. Out: an input on which the kernel is wrong, with a script that shows it, or a
contract.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trilift.lazy import face

if TYPE_CHECKING:
    from .contract import CONTRACTS as CONTRACTS
    from .contract import infer as infer
    from .replay_script import Stored as Stored
    from .search import Failure as Failure
    from .search import Passed as Passed
    from .search import Question as Question
    from .search import Skipped as Skipped
    from .search import attempt as attempt
    from .search import executed as executed
    from .search import runs as runs

__all__, __getattr__ = face(
    __name__,
    {
        "contract": "CONTRACTS infer",
        "replay_script": "Stored",
        "search": "Failure Passed Question Skipped attempt executed runs",
    },
)
