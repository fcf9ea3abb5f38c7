"""The search for µGraphs that compute a program.

In: a program and limits. Out: µGraphs, the cheapest first, each tested to be the program.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trilift.lazy import face

if TYPE_CHECKING:
    from .algorithm1 import enumerate_blocks as enumerate_blocks
    from .best_first import Limits as Limits
    from .best_first import Reached as Reached
    from .best_first import Search as Search
    from .best_first import graphs as graphs
    from .best_first import search as search
    from .stabilise import stabilised as stabilised
    from .stabilise import unstable as unstable
    from .verifier import Invalid as Invalid
    from .verifier import verify as verify

__all__, __getattr__ = face(
    __name__,
    {
        "algorithm1": "enumerate_blocks",
        "best_first": "Limits Reached Search graphs search",
        "stabilise": "stabilised unstable",
        "verifier": "Invalid verify",
    },
)
