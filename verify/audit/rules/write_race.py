"""write-race: two programs, or two lanes of one, write one element, and the value that stays depends on the order.

{p != q, both store to e, values differ}      the outputs change when the programs run backwards
program_id is never read                      every program of the grid does all of the work
two stores of one program, tiles unlike       no barrier between: lanes of other threads may be first
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from trilift.lift.ttir.ir import Module, Op

from ...model.slices import ancestors, parents
from ...runs.large import MEMORY, Refused, Undecided, bases, launches, reaching
from ...runs.observe import Observation, Watched
from ...runs.races import Clash, backwards, clashes, in_other_turns, unordered, unwaited
from ..finding import Finding, Rule, Step
from ..report_helpers import example, number, replay, smallest

if TYPE_CHECKING:
    from ..evidence import Evidence


def check(evidence: Evidence) -> Iterator[Finding]:
    """A finding for each line whose store races, at the smallest run."""
    found: dict[object, list[tuple[Observation, Finding]]] = {}
    for run in evidence.runs:
        for f in _of_run(evidence, run):
            found.setdefault(f.place, []).append((run, f))
    for seen in found.values():
        best = smallest([r for r, _ in seen])
        yield next(f for r, f in seen if r is best)
    yield from _all_alike(evidence)


def _of_run(evidence: Evidence, run: Observation) -> Iterator[Finding]:
    if run.outputs is None:
        return
    for page in run.launches:
        for c in unordered(page):
            yield _finding(run, page, c, "with no barrier between, threads of one program may store in either order")
        for c in clashes(page):
            if c.kind == "write" and (changed := backwards(run)) and not _of_the_caller(evidence, run, page, c):
                yield _finding(run, page, c, f"`{next(iter(changed))}` changes when the programs run backwards")
        for c in unwaited(page):
            if c.kind == "write" and (turns := in_other_turns(run)):
                yield _finding(run, page, c, f"`{next(iter(turns.changed))}` changes when the programs take turns")


def _of_the_caller(evidence: Evidence, run: Observation, page: Watched, c: Clash) -> bool:
    """Whether elements meet because integers were loaded that say where to store, as for `out[index] = x`: whoever
    passes the index decides whether it repeats. Where the reference gives something else, as for sums, it is a race."""
    above = ancestors([c.first.op.operands[0], c.second.op.operands[0]], parents(page.launch.module()))
    indexed = any(op.name == "tt.load" and op.results[0].type.element.startswith("i") for op in above)
    return indexed and not evidence.wrong(run)


def _all_alike(evidence: Evidence) -> Iterator[Finding]:
    """Launches of several programs none of which asks which one it is, so that all of them store the same."""
    stores = {e.kernel: op for e in evidence.launches if (op := _unasked(e.module())) is not None}
    if not stores:
        return
    case, start = evidence.case, bases(evidence.case, evidence.seed)[0]

    def programs(dims: Mapping[str, Any], kernel: str) -> int:
        return max((math.prod(e.grid) for e in launches(case, dims) if e.kernel == kernel), default=0)

    for kernel, op in stores.items():
        try:
            several = reaching(case, start, partial(programs, kernel=kernel), 2, MEMORY)[:1]
        except (Refused, Undecided):
            continue
        for dims in several:
            e = next(e for e in launches(case, dims) if e.kernel == kernel and math.prod(e.grid) > 1)
            yield Finding(
                "write-race",
                f"all {math.prod(e.grid)} programs write the same elements: {kernel} never reads its program_id",
                op.place,
                {**dims, "grid": str(e.grid)},
                "compute the offsets from tl.program_id, or launch one program",
                "",
                (
                    Step(e.place, f"{kernel} is launched on a grid of {e.grid}"),
                    Step(op.place, "every program stores here"),
                ),
            )


def _unasked(module: Module) -> Op | None:
    """The store of a tile in a kernel that never reads a program id and has no atomics. That every program stores one
    and the same number is not a mistake."""
    names = {op.name for op in module.walk()}
    if "tt.get_program_id" in names or any(n.startswith("tt.atomic") for n in names):
        return None
    return next((op for op in module.walk() if op.name == "tt.store" and op.operands[0].type.shape), None)


def _finding(run: Observation, page: Watched, c: Clash, why: str) -> Finding:
    name = run.name(c.address)
    first, second = (f"program {number(p)}" for p in (c.first.program, c.second.program))
    who = f"{first} and {second}" if first != second else f"two stores of {first}"
    return Finding(
        "write-race",
        f"{who} write one element of `{name}`, {c.before:.6g} and {c.after:.6g}",
        c.second.op.place,
        example(run, c.second.program, other_program=number(c.first.program)),
        "give each element to one program, or add with tl.atomic_add to zeroed memory"
        if first != second
        else "store once, or put tl.debug_barrier() between the stores",
        replay(run, why=f"the order of programs decides what {name} holds: {why}"),
        (
            Step(page.launch.host, f"{page.launch.kernel} is launched on a grid of {page.launch.grid}"),
            Step(c.first.op.place, f"{first} stores {c.before:.6g} to an element of `{name}`"),
            Step(c.second.op.place, f"{second} stores {c.after:.6g} to the same element: {why}"),
        ),
    )


RULE = Rule("write-race", "error", "Two programs write one element, and the order decides which value stays.", check)
