"""out-of-bounds: a load, store or atomic outside every tensor, seen in a watched run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ...runs.observe import Observation
from ..finding import Finding, Rule, Step
from ..report_helpers import example, kind_of, noun, replay, smallest
from .broken_contract import dense, rank_assumed

if TYPE_CHECKING:
    from ..evidence import Evidence


def check(evidence: Evidence) -> Iterator[Finding]:
    """A finding for each line that leaves its tensor, at the smallest run in which it does."""
    troubled = [r for r in evidence.runs if r.trouble is not None and r.where is not None]
    for place in dict.fromkeys(r.trouble.place for r in troubled if r.trouble is not None):
        run = smallest([r for r in troubled if r.trouble is not None and r.trouble.place == place])
        if dense(evidence, run) is None and rank_assumed(evidence) is None:
            yield _finding(run)


def _finding(run: Observation) -> Finding:
    assert run.trouble is not None and run.where is not None
    program, op = run.where
    kind, why = kind_of(op), _named(run)
    launch = run.launches[-1].launch
    return Finding(
        "out-of-bounds",
        f"{noun(op)} leaves its tensor: {why}",
        run.trouble.place,
        example(run, program),
        f"mask the {kind} with the size of its tensor",
        replay(run, why=str(run.trouble)),
        (
            Step(launch.host, f"{launch.kernel} is launched on a grid of {launch.grid}"),
            Step(run.trouble.place, f"program {program}: the {kind} accesses {why}"),
        ),
    )


def _named(run: Observation) -> str:
    """The element that the access reaches, and its tensor by the user's name."""
    assert run.trouble is not None
    near = getattr(run.trouble, "near", None)
    reached, of, rest = run.trouble.why.partition(" of ")
    if near is None or not of:
        return run.trouble.why
    return f"{reached} of `{run.name(near)}`, which has {rest.rpartition(', which has ')[2]}"


RULE = Rule("out-of-bounds", "error", "A load, store or atomic outside its tensor.", check)
