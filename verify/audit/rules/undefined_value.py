"""undefined-value: a masked lane without `other`, or uninitialised memory, reaches an output.

Undefined values are NaN in one run and two numbers in two more; an output that is not the same in all of them depends
on it. 0 * undefined counts: the hardware may find NaN there.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from trilift.lift.errors import Place

from ...runs.observe import FINITE, Observation, Poisoned, differing, element
from ..finding import Finding, Rule, Step
from ..report_helpers import example, replay, smallest

if TYPE_CHECKING:
    from ..evidence import Evidence

LABEL = re.compile(r"(?P<what>.*) at (?P<file>.*?):(?P<line>\d+)(:(?P<column>\d+))?$")


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """Something undefined that reaches elements of an output, and the place where it is loaded."""

    place: Place
    what: str
    output: str
    elements: np.ndarray


def check(evidence: Evidence) -> Iterator[Finding]:
    """A finding for each source of undefined values, at the smallest run in which an output depends on it."""
    found: dict[Place, list[tuple[Observation, Source]]] = {}
    for run in evidence.runs:
        for source in sources(run):
            found.setdefault(source.place, []).append((run, source))
    for seen in found.values():
        best = smallest([r for r, _ in seen])
        yield _finding(best, next(s for r, s in seen if r is best))


def sources(run: Observation) -> Iterator[Source]:
    """The undefined values that reach an output in this run: masked lanes, and memory that a load finds as it was
    allocated. Atomics on such memory are another rule's."""
    if run.outputs is None:
        return
    domain = Poisoned(FINITE[0])
    high, low = run.again(domain), run.again(Poisoned(FINITE[1]))
    if not {**differing(high, low), **differing(run.outputs, high)}:
        return
    for label in sorted(domain.labels):
        where = _place(run, label)
        if where is None:
            continue
        others = dict.fromkeys(domain.labels - {label}, 0.0)
        a, b, c = (run.again(Poisoned(0.0, {**others, label: v})) for v in (*FINITE, math.nan))
        for output, changed in {**differing(a, b), **differing(a, c)}.items():
            if not (unset := run.unwritten(output) if output in run.trace.outputs else changed & False)[changed].all():
                yield Source(*where, output, changed & ~unset)
                break


def _place(run: Observation, label: str) -> tuple[Place, str] | None:
    """Where the undefined value comes from, and what it is."""
    m = LABEL.match(label)
    if m is not None:
        return Place(m["file"], int(m["line"]), int(m["column"] or 0)), "a masked lane"
    for _, op, address in run.memory.unset:
        ref = run.buffer(address)
        if ref is not None and ref.buffer.origin == label and op.place is not None:
            return op.place, f"an element of `{run.name(address)}` that was never written"
    return None


def _finding(run: Observation, s: Source) -> Finding:
    index = tuple(int(i) for i in np.argwhere(s.elements)[0])
    written = element(s.output, index)
    launch = next((p.launch for p in run.launches if _has(p.launch, s.place)), run.launches[-1].launch)
    masked = s.what == "a masked lane"
    return Finding(
        "undefined-value",
        f"{s.what} reaches `{written}`" + (": without `other` it is undefined" if masked else ""),
        s.place,
        example(run, element=written),
        "pass other= to the load, or mask the value before it is used"
        if masked
        else "allocate it with torch.zeros, or mask the load",
        replay(run, s.output, index, math.nan, 0.0, why=f"{s.what} reaches {written}"),
        (
            Step(launch.host, f"{launch.kernel} is launched on a grid of {launch.grid}"),
            Step(s.place, "lanes whose mask is false are undefined" if masked else f"the load reads {s.what}"),
            Step(launch.host, f"`{written}` changes with the undefined contents"),
        ),
    )


def _has(launch: object, place: Place) -> bool:
    module = launch.module()  # type: ignore[attr-defined]
    return any(op.place == place for op in module.walk())


RULE = Rule(
    "undefined-value", "error", "A masked lane without `other`, or uninitialised memory, reaches an output.", check
)
