"""The lines of a replay script for a finding that has no element: a run is watched again, and its accesses are told.

{an access leaves its tensor}        the error of the access
{programs or lanes in any order}     each pair of accesses that meet, and the elements that change with the order
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from trilift.lift.cases.declaration import Case
from trilift.lift.ttir.ir import Op

from ..runs.observe import Backwards, Observation, Stale, Watched, element, observe
from ..runs.races import Clash, at_once, backwards, clashes, in_other_turns, unordered, unwaited
from ..runs.trials import Dims

Outputs = Mapping[str, np.ndarray]  # by name


def faults(case: Case, dims: Dims, seed: int, config: int) -> str | list[str]:
    """The error that ended a run, or the lines that tell what is wrong with the order of its accesses, none where
    nothing is. Raises RuntimeError where it cannot be watched."""
    run = observe(case, dims, seed, config)
    if run is None:
        raise RuntimeError("the run cannot be watched: the host function refuses it, or it is too large")
    return str(run.trouble) if run.trouble is not None else list(_races(run))


def _races(run: Observation) -> Iterator[str]:
    """Two stores by lanes of one program; accesses of two programs, where an output changes with their order."""
    changed = list(_changed(run))
    for page in run.launches:
        yield from (_told(run, page, c) for c in unordered(page))
        yield from (_told(run, page, c) for c in (*clashes(page), *unwaited(page)) if changed)
    yield from changed


def _told(run: Observation, page: Watched, c: Clash) -> str:
    first, second = (f"program {t.program} at line {_line(t.op)}" for t in (c.first, c.second))
    where = f"{page.launch.kernel}: one element of {run.name(c.address)}"
    if c.kind == "write":
        return f"{where} is stored as {c.before:.6g} by {first}, as {c.after:.6g} by {second}"
    return f"{where} is loaded by {first}, {c.before:.6g} before the launch, and stored as {c.after:.6g} by {second}"


def _line(op: Op) -> str:
    return str(op.place.line) if op.place is not None else "?"


def _changed(run: Observation) -> Iterator[str]:
    """The first element of each output that changes where programs run backwards, or see no store of another one."""
    for differing, kind, how in (
        (backwards, Backwards, "where they run backwards"),
        (at_once, Stale, "where none sees the stores of another one"),
    ):
        for name, where in differing(run).items():
            other = run.again(kind=kind)
            yield _element(name, where, run.outputs or {}, other or {}, how)
    if any(next(unwaited(page), None) is not None for page in run.launches) and (turns := in_other_turns(run)):
        for name, where in turns.changed.items():
            yield _element(name, where, run.outputs or {}, run.again(kind=turns.kind) or {}, "where they take turns")


def _element(
    name: str, where: np.ndarray, one: Mapping[str, np.ndarray], other: Mapping[str, np.ndarray], how: str
) -> str:
    index = tuple(int(i) for i in np.argwhere(where)[0])
    a, b = (float(x[name][index]) for x in (one, other))
    return f"{element(name, index)} is {a:.9g} where programs run in order, {b:.9g} {how}"
