"""Cases of files, each in a process of its own: a worker per file loads it, and forks a child per case.

A record is one entry of the JSON's "cases", made where the terms are, so that plain data crosses between processes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from lift.isolate import Event, Outcome, run_all

from .targets import Target

Record = dict[str, Any]
# What reading a reference and proving need, imported once where cases are proved; `lift.warm` does the rest.
PROVER = (
    "networkx",
    "sympy",
    "torch._decomp",
    "torch._dynamo",
    "torch.export._trace",
    "torch.fx.experimental.proxy_tensor",
    "torch.fx.experimental.symbolic_shapes",
    "verify.against",
    "verify.launches",
    "verify.prover",
    "verify.refute",
    "verify.wording",
    "lift.warm",
)
GRACE = 15.0  # seconds beyond a case's own timeout before its file's worker counts as stuck


@dataclass(frozen=True, slots=True)
class Proving:
    """How to prove: against "reference", "formula" or a formula's text (None: the reference if there is one), seconds
    per proof, folders for SMT-LIB and replay scripts, and whether loop invariants are guessed."""

    against: str | None = None
    timeout: float = 30.0
    smt_dir: str = ""
    replay: str = ""
    invariants: bool = True


@dataclass(frozen=True, slots=True)
class Options:
    """How to run: seconds per case, processes, the seed, whether records tell the steps; top_down and prune as in
    `lift.synthesis.synthesise`. With `proving` a case is proved too, and `timeout` counts from its last stage; with
    `audit` it is audited. `debug`: what failed is told in full. `cache`: the folder of records that were made before,
    "" for none; `cluster`: the address of a Dask scheduler whose workers make them, "" for processes here."""

    timeout: float = 120.0
    jobs: int = 1
    seed: int = 0
    explain: bool = False
    top_down: bool = True
    prune: bool = True
    proving: Proving | None = None
    audit: bool = False
    debug: bool = False
    cache: str = ""
    cluster: str = ""


def records(
    targets: Sequence[Target], options: Options, on_event: Callable[[str, str, Any], None] = lambda *_: None
) -> Iterator[Record]:
    """The record of every case, in the order of targets and files; from the cache if there is one and it has it.
    `on_event(file, case, what)` hears of stages."""
    from . import cache

    return (cache.records if cache.usable(options) else run)(targets, options, on_event)


def run(
    targets: Sequence[Target],
    options: Options,
    on_event: Callable[[str, str, Any], None] = lambda *_: None,
    on_loaded: Callable[[str, Sequence[str]], None] = lambda *_: None,
) -> Iterator[Record]:
    """The record of every case, made now. `on_loaded(file, paths)` hears which files were imported for it."""
    if options.cluster:
        from . import clustered

        yield from clustered.run(targets, options, on_event, on_loaded)
        return
    inner = max(1, options.jobs // max(1, len(targets)))
    told = "verdict" if options.proving else "lift"
    got: dict[int, list[Record]] = {}
    done: dict[int, Outcome] = {}
    shown = 0

    def hear(index: int, message: tuple[str, str, Any]) -> None:
        kind, name, value = message
        if kind == "record":
            got.setdefault(index, []).append(value)
        if kind == "loaded":
            on_loaded(targets[index].file, value)
        else:
            on_event(targets[index].file, name, value if kind != "record" else value[told])

    tasks = [(t, options, inner) for t in targets]
    preload = PROVER if options.proving else ()
    runs = run_all(_file, tasks, options.jobs, options.timeout + GRACE, "forkserver", hear, renew=True, preload=preload)
    for index, outcome in runs:
        done[index] = outcome
        while shown in done:
            yield from _complete(targets[shown], got.get(shown, []), done[shown])
            shown += 1


def _complete(target: Target, found: list[Record], outcome: Outcome) -> list[Record]:
    """The records of one file in its order; if its worker did not finish, that is one more record."""
    order = outcome.value if outcome.failure is None else [r["name"] for r in found]
    out = sorted(found, key=lambda r: order.index(r["name"]))
    return out if outcome.failure is None else [*out, failed(target.file, "", outcome)]


def _file(target: Target, options: Options, jobs: int, event: Event) -> list[str]:
    """Loads a file and runs its cases; returns their names in the file's order."""
    from lift.load import load

    from .versions import loaded

    before = frozenset(sys.modules)
    try:
        cases = load(target.file, target.cases)
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
            lifted[index] = what
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
        renew=options.proving is not None,
    ):
        failure = outcome.failure is not None
        record = failed(target.file, names[index], outcome, options.debug) if failure else outcome.value
        if failure and index in lifted:
            record = unproved(lifted[index], record)
        event(("record", names[index], {**record, "launches": launches.get(index, record["launches"])}))
    return names


def _case(file: str, case: Any, options: Options, before: Collection[str], event: Event) -> Record:
    from .record import record
    from .versions import loaded

    try:
        return record(case, options, event, file)
    finally:
        event(loaded(before))


def unproved(lifted: Record, failure: Record) -> Record:
    """The record of a case that was lifted, and whose proof did not come back."""
    reason, errors = f"proof: {failure['reason']}", [*lifted["errors"], *failure["errors"]]
    return {**lifted, "verdict": "UNKNOWN", "bound": None, "reason": reason, "errors": errors}


def failed(file: str, name: str, outcome: Outcome, debug: bool = False) -> Record:
    """The record of a child that did not come back, with the end of what it wrote; with `debug` all that is known."""
    kind, what, help = _FAILURES.get(outcome.failure or "", _FAILURES["crash"])
    why = outcome.log.strip() if debug else _tail(outcome.log)
    return empty(file, name, kind, what.format(outcome.failure), why=why, help=help)


_FAILURES = {
    "timeout": ("timeout", "not finished in the time given", "--timeout SECONDS allows more"),
    "exception": ("internal", "trilift itself failed", "please report this with the file"),
    "crash": ("crash", "the process that read it ended with {}", "a kernel that the compiler cannot take may abort it"),
}


def _tail(log: str) -> str:
    return "\n".join(log.strip().splitlines()[-6:])


def broken(file: str, name: str, e: Exception) -> Record:
    """The record of a file or case that raised: its own fault (a CaseError), or the user's script."""
    from lift.errors import TriliftError

    from .record import error_of

    if isinstance(e, TriliftError):
        return {**empty(file, name, "case", e.what), "errors": [error_of(e)]}
    return empty(file, name, "case", f"loading the file raised {type(e).__name__}", why=str(e))


def empty(file: str, name: str, kind: str, what: str, why: str = "", help: str = "") -> Record:
    """A record without a formula."""
    error = {"kind": kind, "what": what, "file": file, "line": 0, "column": 0, "why": why, "help": help}
    return {
        "name": name,
        "file": file,
        "formula": None,
        "lift": f"{kind}: {what}",
        "verdict": "UNKNOWN",
        "against": "formula",
        "bound": None,
        "reason": f"{kind}: {what}",
        "contract": [],
        "findings": [],
        "seconds": {"capture": 0.0, "lift": 0.0, "simplify": 0.0, "prove": 0.0, "audit": 0.0},
        "launches": 0,
        "outputs": [],
        "errors": [error],
        "explain": [],
        "dims": [],
        "where": "",
        "place": None,
        "proofs": [],
        "blocks": {},
        "kernels": [],
        "undecided": [],
        "suppressed": [],
    }
