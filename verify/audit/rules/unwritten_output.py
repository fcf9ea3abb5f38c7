"""unwritten-output: elements of an output that no program writes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from trilift.lift.capture.trace import TensorRef, TorchOp
from trilift.lift.errors import Place

from ...runs.observe import Observation, element
from ..finding import Finding, Rule, Step
from ..report_helpers import example, replay, smallest

if TYPE_CHECKING:
    from ..evidence import Evidence


def check(evidence: Evidence) -> Iterator[Finding]:
    """A finding for each output with elements that are returned uninitialised."""
    for name in dict.fromkeys(n for r in evidence.runs for n in r.trace.outputs):
        lacking = [
            r for r in evidence.runs if r.outputs is not None and name in r.trace.outputs and r.unwritten(name).any()
        ]
        if lacking and not evidence.contracted(run := smallest(lacking)):
            yield _finding(run, name)


def _finding(run: Observation, name: str) -> Finding:
    missing = run.unwritten(name)
    index = tuple(int(i) for i in np.argwhere(missing)[0])
    made = allocation(run, run.trace.outputs[name])
    last = run.trace.launches[-1]
    written = element(name, index)
    count = f"{int(missing.sum())} of {missing.size} elements"
    return Finding(
        "unwritten-output",
        f"`{written}` is never written: {count} of `{name}` are returned uninitialised",
        made or last.host,
        example(run, element=written),
        "store every element, or allocate with torch.zeros",
        replay(run, name, index, float("nan"), 0.0, why=f"{written} is never written"),
        (
            Step(made, f"`{name}` is allocated uninitialised"),
            Step(last.host, f"after {last.kernel}, launched on {last.grid}, {count} were not written"),
        ),
    )


def allocation(run: Observation, ref: TensorRef) -> Place | None:
    """Where the host function made a tensor."""
    made = (e for e in run.trace.events if isinstance(e, TorchOp))
    return next((e.host for e in made for r in e.outputs if r.buffer.address == ref.buffer.address), None)


RULE = Rule("unwritten-output", "error", "An element of an output that no program writes.", check)
