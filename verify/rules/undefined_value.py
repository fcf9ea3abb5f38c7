"""undefined-value: a masked lane without `other`, or memory that nobody initialised, reaches an output.

What is undefined is NaN in one run and two numbers in two more; an output that is not the same in all of them depends
on it. 0 * undefined counts: the hardware may find NaN there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from lift.errors import Place

from ..finding import Finding, Rule, Step
from ..observe import FINITE, Observation, Poisoned, differing, element
from ..seen import example, replay, smallest

if TYPE_CHECKING:
    from ..evidence import Evidence

LABEL = re.compile(r"(?P<what>.*) at (?P<file>.*?):(?P<line>\d+)(:(?P<column>\d+))?$")
Source = tuple[str, str, np.ndarray]  # label, output, which elements


def check(evidence: Evidence) -> Iterator[Finding]:
    """A finding for each source of undefined values, at the smallest run in which an output depends on it."""
    found: dict[str, list[tuple[Observation, str, np.ndarray]]] = {}
    for run in evidence.runs:
        for label, output, where in sources(run):
            found.setdefault(label, []).append((run, output, where))
    for label, seen in found.items():
        best = smallest([r for r, _, _ in seen])
        _, output, where = next(s for s in seen if s[0] is best)
        yield _finding(best, label, output, where)


def sources(run: Observation) -> Iterator[Source]:
    """The labels of what is undefined and reaches an output in this run, loads only: memory that is never written is
    another rule's, and so are atomics on it."""
    if run.outputs is None:
        return
    domain = Poisoned(FINITE[0])
    high, low = run.again(domain), run.again(Poisoned(FINITE[1]))
    if not {**differing(high, low), **differing(run.outputs, high)}:
        return
    for label in sorted(domain.labels):
        if LABEL.match(label) is None:
            continue
        others = dict.fromkeys(domain.labels - {label}, 0.0)
        values = (*FINITE, float("nan"))
        a, b, c = (run.again(Poisoned(0.0, {**others, label: v})) for v in values)
        reached = {**differing(a, b), **differing(a, c)}
        yield from ((label, output, where) for output, where in list(reached.items())[:1])


def _finding(run: Observation, label: str, output: str, where: np.ndarray) -> Finding:
    m = LABEL.match(label)
    assert m is not None
    place = Place(m["file"], int(m["line"]), int(m["column"] or 0))
    index = tuple(int(i) for i in np.argwhere(where)[0])
    written = element(output, index)
    launch = next((p.launch for p in run.launches if _has(p.launch, place)), run.launches[-1].launch)
    return Finding(
        "undefined-value",
        f"{m['what']} reaches `{written}`: its masked lanes are undefined",
        place,
        example(run, element=written),
        "pass other= to the load, or mask what is done with it",
        replay(run, output, index, float("nan"), 0.0, why=f"{label} reaches {written}"),
        (
            Step(launch.host, f"{launch.kernel} is launched on a grid of {launch.grid}"),
            Step(place, "lanes whose mask is false are undefined"),
            Step(launch.host, f"`{written}` is not the same for other contents of those lanes"),
        ),
    )


def _has(launch: object, place: Place) -> bool:
    module = launch.module()  # type: ignore[attr-defined]
    return any(op.place == place for op in module.walk())


RULE = Rule(
    "undefined-value", "error", "A masked lane without `other`, or uninitialised memory, reaches an output.", check
)
