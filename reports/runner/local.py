"""Cases of files, each in a process of its own: a worker per file loads it, and forks a child per case.

A record is one entry of the JSON's "cases", made where the terms are, so that plain data crosses between processes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from trilift.lift.runtime import memory_limit
from trilift.lift.runtime.isolate import Event, Outcome, Said, run_all, stream

from ..base.targets import Target
from ..records.entries import Record
from ..records.options import Options
from ..records.unfinished import broken, failed, unproved
from .stopping import Stopped

# What reading a reference and proving need, imported once where cases are proved; `lift.pytorch.preload` does the rest.
PROVER = (
    "networkx",
    "sympy",
    "torch._decomp",
    "torch._dynamo",
    "torch.export._trace",
    "torch.fx.experimental.proxy_tensor",
    "torch.fx.experimental.symbolic_shapes",
    "trilift.verify.runs.goals",
    "trilift.verify.configurations.launches",
    "trilift.verify.proof.prover",
    "trilift.verify.refutation.search",
    "trilift.verify.wording.user_terms",
    "trilift.lift.pytorch.preload",
)
GRACE_SECONDS = 15.0  # seconds beyond a case's own timeout before its file's worker counts as stuck


def run(
    targets: Sequence[Target],
    options: Options,
    on_event: Callable[[str, str, Any], None] = lambda *_: None,
    on_loaded: Callable[[str, Sequence[str]], None] = lambda *_: None,
) -> Iterator[Record]:
    """The record of every case, made now, by processes of this machine; each as soon as those before it have been
    given. `on_loaded(file, paths)` hears which files were imported for it. Where the run is stopped, gives what there
    is, and raises Stopped."""
    inner = max(1, options.jobs // max(1, len(targets)))
    told = "verdict" if options.proving else "lift"
    files = [_File(t) for t in targets]
    waiting = deque(files)

    def hear(index: int, message: tuple[str, str, Any]) -> None:
        kind, name, value = message
        if kind == "record":
            files[index].found.append(value)
        if kind == "cases":
            files[index].order = [*value]
        if kind == "loaded":
            on_loaded(targets[index].file, value)
        elif kind != "delayed":
            on_event(targets[index].file, name, value if kind != "record" else value[told])

    tasks = [(t, options, inner) for t in targets]
    preload = PROVER if options.proving else ()
    patience = options.timeout + GRACE_SECONDS
    try:
        for index, what in stream(_file, tasks, options.jobs, patience, "forkserver", renew=True, preload=preload):
            if isinstance(what, Said):
                hear(index, what.value)
            else:
                files[index].outcome = what
            yield from _ready(waiting)
    except Stopped:
        for f in waiting:
            yield from f.rest()
        raise


@dataclass(slots=True)
class _File:
    """The records of a file that are not given yet. `order`: the names of the cases that are not, in its order;
    `outcome`: of its worker, when that has ended."""

    target: Target
    found: list[Record] = field(default_factory=list)
    order: list[str] = field(default_factory=list)
    outcome: Outcome | None = None

    def ready(self) -> Iterator[Record]:
        """Those before which none is missing."""
        while self.order and (record := next((r for r in self.found if r["name"] == self.order[0]), None)):
            self.order.pop(0)
            self.found.remove(record)
            yield record

    def rest(self) -> Iterator[Record]:
        """All, in order; and one more where the worker did not finish."""
        place = {name: k for k, name in enumerate(self.order)}
        yield from sorted(self.found, key=lambda r: place.get(r["name"], len(place)))
        if self.outcome is not None and self.outcome.failure is not None:
            yield failed(self.target.file, "", self.outcome)
        self.found, self.order = [], []


def _ready(waiting: deque[_File]) -> Iterator[Record]:
    """The records before which none is missing; takes from the left the files that are done."""
    while waiting:
        yield from waiting[0].ready()
        if waiting[0].outcome is None:
            return
        yield from waiting.popleft().rest()


def _file(target: Target, options: Options, jobs: int, event: Event) -> list[str]:
    """Loads a file and runs its cases; returns their names in the file's order."""
    from trilift.lift.capture.case_files import load_all

    from ..base.fingerprint import loaded, watched

    memory_limit.limit(options.memory or memory_limit.machine_bytes() // options.jobs)
    before = watched()
    try:
        cases = load_all(target.file, target.cases)
    except Exception as e:
        event(("record", "", broken(target.file, "", e)))
        return [""]
    cases = [c for c in cases if not target.only or c.name in target.only]
    names = [c.name for c in cases]
    event(("loaded", "", loaded(before)))
    event(("cases", "", names))
    launches: dict[int, int] = {}
    lifted: dict[int, Record] = {}

    def hear(index: int, what: Any) -> None:
        if isinstance(what, int):
            launches[index] = what
        elif isinstance(what, dict):
            lifted[index] = cast(Record, what)
        elif isinstance(what, list):
            event(("loaded", names[index], what))
        else:
            event(("stage", names[index], what))

    for index, outcome in run_all(
        _case,
        [(target.file, c, options, before) for c in cases],
        jobs,
        options.timeout,
        "fork",
        hear,
        on_delay=lambda: event(("delayed", "", None)),
    ):
        failure = outcome.failure is not None
        record = failed(target.file, names[index], outcome, options.debug) if failure else outcome.value
        if failure and index in lifted:
            record = unproved(lifted[index], record)
        event(("record", names[index], {**record, "launches": launches.get(index, record["launches"])}))
    return names


def _case(file: str, case: Any, options: Options, before: Collection[str], event: Event) -> Record:
    from ..base.fingerprint import loaded
    from ..records.record import record

    try:
        return record(case, options, event, file)
    finally:
        event(loaded(before))
