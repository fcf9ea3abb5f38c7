"""The integer side of proofs: which conditions on sizes and indices hold.

In: conditions and facts, as terms over integers. Out: implied, contradicted or unknown. `solver` is the only file that
imports z3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trilift.lazy import face

if TYPE_CHECKING:
    from .logical_index import asking as asking
    from .quotient import Ask as Ask
    from .quotient import canonical as canonical
    from .quotient import equalities as equalities
    from .quotient import expand as expand
    from .quotient import reduce as reduce
    from .quotient import replace as replace
    from .quotient import to_term as to_term
    from .solver import Facts as Facts
    from .solver import Solver as Solver

__all__, __getattr__ = face(
    __name__,
    {
        "logical_index": "asking",
        "quotient": "Ask canonical equalities expand reduce replace to_term",
        "solver": "Facts Solver",
    },
)
