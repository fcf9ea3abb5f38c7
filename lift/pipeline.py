"""A Triton kernel in, its formula out.

case -> traces at several shapes -> pointwise specs -> formula -> simplified formula
                                       checked against the kernel itself in float64 at further shapes
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice, product
from typing import TYPE_CHECKING

from .cases.declaration import Case
from .errors import CaseError, NotLifted, Unsupported

if TYPE_CHECKING:
    from .capture.relate import Relation
    from .capture.trace import Trace
    from .cases.shapes import Dims
    from .replay.check import Check, Mismatch
    from .replay.output import Output, Outputs

STAGES = ("capture", "lift", "check", "simplify")
EDGE_PROGRAMS = 64  # of all launches there
EDGES = 6  # sizes beside the numbers of the code at which a formula is checked, at most
EDGE_ELEMENTS = 20_000  # of the largest input there
CONFIGS = 24  # autotune configurations checked at most; Lifted says how many there are


@dataclass(frozen=True, slots=True)
class Lifted:
    """The results for one case. `relations`: the launches' numbers as terms over dims, or the error that names one
    that fits nothing. `checks` held; `mismatches` are outputs whose kernel differs from the reference."""

    case: Case
    traces: tuple[Trace, ...]
    relations: tuple[Relation, ...] | Unsupported
    outputs: tuple[Output, ...]
    checks: tuple[Check, ...]
    mismatches: tuple[Mismatch, ...]
    seconds: dict[str, float]  # by stage: capture, lift, check, simplify


@dataclass(slots=True)
class Clock:
    """Seconds by stage; `progress` hears the name of each stage as it begins."""

    progress: Callable[[str], None] = lambda stage: None
    seconds: dict[str, float] = field(
        default_factory=lambda: {"capture": 0.0, "lift": 0.0, "check": 0.0, "simplify": 0.0}
    )

    @contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        self.progress(stage)
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[stage] += time.perf_counter() - start


@contextmanager
def collected_later() -> Iterator[None]:
    """Context manager: the garbage collector is off inside the block. Terms live as long as their session and form no
    cycles, so a collector would only walk them again and again; reference counts free the terms that a session
    drops."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def further(case: Case, dims: dict[str, int | float], seed: int) -> Trace | None:
    """A trace for one more check, None where the host function does not take these dims."""
    from .capture.run import capture

    try:
        return capture(case, dims, seed=seed)
    except (CaseError, Unsupported):
        return None


def across(case: Case, traces: Sequence[Trace], found: Outputs) -> Iterator[Dims]:
    """Sizes beyond the largest block that does not follow from them, where the traces have none, if there is a formula
    to check."""
    from .cases.shapes import beyond

    if any(o.formula for o in found):
        largest = max(frozenset.intersection(*(t.blocks for t in traces)), default=1)
        yield from beyond(case, largest, [t.dims for t in traces], traces[0].dims)


def edges(case: Case, like: Dims, found: Outputs, seed: int) -> Iterator[Trace]:
    """Traces of few programs at sizes where a formula that holds elsewhere often fails, if there is one to check: an
    integer scalar is small, no tile has padded lanes, or a size is beside a number that the code has in it."""
    from .cases.likely_sizes import beside
    from .cases.shapes import elements, of_small_scalars, unpadded

    if any(o.formula for o in found):
        light = lambda shapes: (d for d in shapes if elements(case, d) <= EDGE_ELEMENTS)  # noqa: E731
        rest = islice(light(chain(unpadded(case, like), beside(case, like))), EDGES)
        tried = chain(islice(light(of_small_scalars(case, like)), EDGES), rest)
        traces = (further(case, d, seed) for d in tried)
        yield from (t for t in traces if t and t.programs <= EDGE_PROGRAMS)


def fixed(case: Case, seen: Sequence[Mapping[str, int | float]]) -> str:
    """The first size that is the same at all shapes that were tried, though the case lets it be another; empty if there
    is none: a tensor of ten axes of one size is too large at any other."""
    from .cases.shapes import around

    for n in case.names:
        v = int(seen[0][n])
        if all(d[n] == v for d in seen) and any(around(case, {n: w}, seen[0]) for w in (v + 1, 2 * v, v - 1) if w > 0):
            return f"{n} = {v}"
    return ""


def _refused(only: str, o: Output) -> Output:
    """Raises NotLifted."""
    raise NotLifted(
        f"no formula for {o.name}: only {only} was tried", why="other sizes make tensors that are too large"
    )


@collected_later()
def lift(
    case: Case,
    seed: int = 0,
    progress: Callable[[str], None] = lambda stage: None,
    captured: Callable[[Trace], None] = lambda trace: None,
    **synthesis: bool,
) -> Lifted:
    """The formulas of a case's outputs. An output that cannot be lifted has an `error`; the others are unharmed.

    Raises CaseError where the host function cannot be run, Unsupported where nothing of it can be read. `captured`
    hears of the first trace as soon as there is one. `synthesis` goes to `synthesise`: top_down, prune.
    """
    from .capture.run import capture, launching
    from .cases.shapes import another
    from .replay import check, output
    from .ttir.specialised import CONSTANT

    if case.mistake is not None:
        raise case.mistake
    clock = Clock(progress)
    with clock("capture"):
        traces = launching(case, 3, seed)
        if all(t.another for t in traces):
            raise Unsupported(traces[0].another, case.place, CONSTANT)
        shapes = [t.dims for t in traces]
        captured(traces[0])
        relations = output.related(traces)
    trial = check.Trial(case, seed)
    with clock("lift"):
        found = output.synthesised(traces[:2], synthesis, traces[2:])
    with clock("check"):
        trial = trial.fitting(traces[2])
        found = trial.against_kernel(found, traces[2:], "raw")
    known = traces[:2]
    for more in (lambda: capture(case, another(case, shapes, seed), seed=seed), lambda: traces[2]):
        if not output.undecided(found):
            break
        with clock("lift"):  # two shapes did not tell: a third small one, then the one that crosses blocks
            known = (*known, more())
            again = output.synthesised(known, synthesis, traces[2:])
        with clock("check"):
            found = output.either(found, trial.against_kernel(again, traces[2:], "raw"))
    with clock("simplify"):
        found = output.simplified(found)
    with clock("check"):
        found = trial.against_kernel(found, traces[2:], "formula")
        for config in range(1, min(traces[2].configs, CONFIGS)):
            tuned = capture(case, shapes[2], config=config, seed=seed)
            found = trial.against_kernel(found, (tuned,), "formula")
        elsewhere = another(case, [*shapes, *(t.dims for t in known[2:])], seed)
        for dims in (elsewhere, *across(case, traces, found)):
            if (longer := further(case, dims, seed)) is not None:
                found = trial.against_kernel(found, (longer,), "formula")
        for edge, sign in product(edges(case, traces[0].dims, found, seed), (-1, 1)):
            found = trial.signed(sign).against_kernel(found, (edge,), "formula")
        if only := fixed(case, [*shapes, *(c.dims for c in trial.checks)]):
            found = tuple(o.then(partial(_refused, only)) for o in found)
        mismatches = trial.against_reference(traces[2])
    return Lifted(case, traces, relations, found, tuple(trial.checks), mismatches, clock.seconds)
