"""missing-barrier: lanes of one program exchange elements of global memory, and nothing orders them.

{u before v, address(u) = address(v), lane(u) != lane(v), no barrier between}   whole numbers for u and v
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from trilift.lift.terms import construct as T

from ...memory.lane_order import KIND, sides
from ...model.verdict import Condition
from ...wording.user_terms import called, outputs
from ..finding import Finding, Rule, Step

if TYPE_CHECKING:
    from ...proof.prover import Proving
    from ..evidence import Evidence

WHOLE = "const size axis add mul floordiv mod min max lt le eq ne and or not where"
EXACT = frozenset(WHOLE.split())


def check(evidence: Evidence) -> Iterator[Finding]:
    """A finding for each two lines whose order could not be proved and for which the solver finds lanes that meet."""
    for proving in evidence.provings:
        names = outputs(proving.configuration)
        for c in proving.conditions:
            if c.kind == KIND and not c.holds and (at := _meeting(c, proving)) is not None:
                yield _finding(c, at, names, evidence.case.names)


def _meeting(c: Condition, proving: Proving) -> Mapping[str, int] | None:
    """Numbers for which two lanes meet; None where none were found, or where more than whole numbers decide."""
    asked = c.facts | {T.make("not", c.goal)}
    if any(s.op not in EXACT for t in asked for s in t.walk()):
        return None
    return proving.solver.model(asked)


def _finding(c: Condition, at: Mapping[str, int], names: Mapping[str, str], dims: tuple[str, ...]) -> Finding:
    first, second = (called(s, names) for s in sides(c))
    example = {n: at[n] for n in dims if n in at}
    return Finding(
        "missing-barrier",
        f"no tl.debug_barrier() between the {first} and the {second}: lanes of one program meet at one element",
        c.place,
        {**example, "program": at.get("pid0", 0)},
        "put tl.debug_barrier() between both, in every iteration",
        "",
        (
            Step(c.place, f"one lane executes the {first}"),
            Step(c.place, f"another lane executes the {second} of the same element, in a thread that does not wait"),
        ),
    )


RULE = Rule("missing-barrier", "error", "Lanes of one program exchange elements of memory without a barrier.", check)
