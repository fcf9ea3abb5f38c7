"""The prover's verdicts on programs and their mutants, found in a process of their own that stays warm.

program -> its verdict from its file, as `trilift prove` finds it; its goal and configurations are kept
mutant  -> `quick`, and the same host function: the program's configurations with the mutant's kernels; what is
           PROVED so is proved once more from the mutant's file alone, which decides
        -> else: from its file alone
"""

from __future__ import annotations

import importlib
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

    from trilift.lift.capture.trace import Trace
    from trilift.lift.cases.declaration import Case
    from trilift.lift.terms.term import Term
    from trilift.lift.ttir.ir import Module
    from trilift.verify import Examined
    from trilift.verify.model.verdict import Clause, Counterexample

    from .draws import Declared, Planned

SECONDS = 20.0  # of the processor, for one proof: its steps end it before
LIMITS = {  # steps, less than where a user waits: what is not decided within is UNKNOWN
    "proof": {"steps": 3_000_000, "together_steps": 1_000_000, "contract_steps": 500_000, "clauses_steps": 250_000},
    "search": {"steps": 400_000, "shrink_steps": 100_000, "beyond_steps": 200_000},
    "fields": {"proof_steps": 400_000},
    "solver": {"resources": 2_000_000},
}
TRACED = 2  # runs in which the kernels of a mutant are found


@dataclass(frozen=True, slots=True)
class Told:
    """The verdict of a program: that of its worst output. `clauses`: those that a caller must meet; `notes`: those
    that say what was tried. `within`: of each run "in", "out", "integers" where only clauses that the kernel's integers
    fit may exclude it, or "data" where other clauses over data may. `given`: the
    counterexample's numbers and tensors. `way`: "file", or "shared" where the program's configurations were used."""

    verdict: str
    reason: str = ""
    clauses: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    within: tuple[str, ...] = ()
    seconds: float = 0.0
    given: Mapping[str, object] | None = None
    way: str = "file"


@dataclass(frozen=True, slots=True)
class Task:
    """One program and its mutants: `sources` of the case files, the program's first; of each whether it has the host
    function of the program; `inputs` and, of each source, `runs`: how values are drawn for the executions; `quick`:
    what is not proved is UNKNOWN; `unproved`: how many mutants of a program that is not proved are tried."""

    sources: tuple[str, ...]
    same_host: tuple[bool, ...]
    inputs: Sequence[Declared]
    runs: tuple[Sequence[Planned], ...]
    quick: bool
    unproved: int = 1


Event = Callable[[tuple[int, int, Told]], None]


def examine(tasks: Sequence[Task], event: Event) -> None:
    """Tells `event` (number of the task, index, Told) of every case file: each program, then its mutants."""
    from trilift.lift.runtime.session import Session

    limit()
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        for number, task in enumerate(tasks):
            with Session():
                for k, told_ in _told(task, Path(folder), number):
                    event((number, k, told_))


def limit() -> None:
    """Gives this process the budgets of LIMITS."""
    budgets = importlib.import_module("trilift.lift.runtime.budget").BUDGETS
    for stage, steps in LIMITS.items():
        for name, n in steps.items():
            object.__setattr__(getattr(budgets, stage), name, n)


def _told(task: Task, folder: Path, number: int) -> Iterator[tuple[int, Told]]:
    paths = [folder / f"program_{number}_{k}.py" for k in range(len(task.sources))]
    for path, source in zip(paths, task.sources, strict=True):
        path.write_text(source)
    first, known = _first(str(paths[0]), task)
    yield 0, first
    most = len(paths) if first.verdict == "PROVED" else 1 + task.unproved
    for k in range(1, min(most, len(paths))):
        shared = _shared(str(paths[k]), known, task) if known and task.quick and task.same_host[k] else None
        again = shared is None or shared.verdict in ("PROVED", "CRASH")
        yield k, told(str(paths[k]), task, k) if again or shared is None else shared


def _first(path: str, task: Task) -> tuple[Told, Examined | None]:
    """The verdict of a program, and what was found out about it."""
    from trilift.verify import examine as examined

    found: list[Examined] = []

    def prove(case: Case) -> Examined:
        found.append(examined(case, timeout=SECONDS, fallback=not task.quick))
        return found[0]

    told_ = _verdict(path, task, 0, prove)
    return told_, found[0] if found and len(found[0].configurations) and told_.verdict != "CRASH" else None


def told(path: str, task: Task, number: int = 0) -> Told:
    """The verdict of the one case of a file, which is source `number` of the task."""
    from trilift.verify import examine as examined

    return _verdict(path, task, number, lambda case: examined(case, timeout=SECONDS, fallback=not task.quick))


def _shared(path: str, known: Examined, task: Task) -> Told | None:
    """The verdict of the program's configurations with the kernels of the mutant; None where they are not found."""
    from trilift import verify
    from trilift.lift.capture.case_files import load
    from trilift.lift.capture.run import capture
    from trilift.lift.cases.shapes import choose
    from trilift.lift.errors import TriliftError

    try:
        (case,) = load(path)
        shapes = choose(known.case, TRACED)
        changes = [_changes(capture(known.case, d), capture(case, d)) for d in shapes]
    except (TriliftError, ValueError):  # other launches
        return None
    modules = {k: v for c in changes for k, v in c.items()}
    events = [e for c in known.configurations for e in c.events]
    if any(id(m) not in modules for e in events if (m := getattr(e, "module", None)) is not None):
        return None
    launches = max(sum(hasattr(e, "module") for e in c.events) for c in known.configurations)

    def changed(m: Module) -> Module:
        return modules[id(m)]

    def prove(_: Case) -> Examined:
        return verify.examine(known.case, timeout=SECONDS, fallback=False, known=known,
                            replace=dict.fromkeys(range(launches), changed))  # fmt: skip

    found = _verdict(path, None, 0, prove)
    return Told(found.verdict, found.reason, seconds=found.seconds, way="shared")


def _changes(a: Trace, b: Trace) -> dict[int, Module]:
    """The modules of the second run by the ids of those of the first."""
    return {id(x.module()): y.module() for x, y in zip(a.launches, b.launches, strict=True)}


def _verdict(path: str, task: Task | None, number: int, prove: Callable[[Case], Examined]) -> Told:
    """The verdict that `prove` gives on the one case of a file, as plain data."""
    from trilift.lift.capture.case_files import load
    from trilift.lift.errors import TriliftError

    start = time.process_time()
    try:
        (case,) = load(path)
        examined = prove(case)
    except TriliftError as e:
        return Told("UNREADABLE", str(e.what), seconds=time.process_time() - start)
    except Exception as e:
        return Told("CRASH", f"{type(e).__name__}: {e}", seconds=time.process_time() - start)
    proofs = examined.proofs
    order = ("REFUTED", "UNKNOWN", "TESTED", "PROVED")
    worst = min(proofs, key=lambda p: order.index(p.verdict.value))
    clauses = {c.text: c for p in proofs for c in p.contract}
    firm = [c for c in clauses.values() if c.term is not None or c.kind != "config"]
    return Told(
        worst.verdict.value,
        worst.reason,
        tuple(c.text for c in firm),
        tuple(c.text for c in clauses.values() if c not in firm),
        tuple(_within(firm, examined, task.inputs, r) for r in task.runs[number]) if task else (),
        time.process_time() - start,
        _given(case, worst.counterexample) if worst.counterexample else None,
    )


def _within(clauses: Sequence[Clause], examined: Examined, inputs: Sequence[Declared], run: Planned) -> str:
    """Whether an input meets the clauses, as `Told.within` says."""
    from trilift.lift.terms.fit import value

    from .draws import tensors

    found = {}
    for c in clauses:
        try:
            found[c] = None if c.term is None else value(c.term, run["numbers"])
        except (ArithmeticError, TypeError, ValueError):
            found[c] = None
    if False in found.values():
        return "out"
    over_data = [c for c, v in found.items() if v is None]
    if not over_data:
        return "in"
    arrays = {n: x.numpy() for n, x in tensors(inputs, run).items()}
    held = [_everywhere(c.term, arrays, run["numbers"]) if c.term is not None else None for c in over_data]
    if False in held or not _fits(examined, arrays, run):
        return "out"
    left = [c for c, h in zip(over_data, held, strict=True) if h is None]
    return "in" if not left else "integers" if all(c.kind == "nowrap" for c in left) else "data"


def _everywhere(term: Term, arrays: Mapping[str, np.ndarray], numbers: Mapping[str, int | float]) -> bool | None:
    """Whether a clause holds at every element of the tensors that it reads, which are one or read alike; None where
    that is not known."""
    import numpy as np

    from trilift.lift.errors import TriliftError
    from trilift.lift.language.evaluate import evaluate
    from trilift.lift.terms import construct as T
    from trilift.lift.terms.term import Axis

    reads = [t for t in term.walk() if t.op == "read"]
    sizes = {arrays[t.attr].size for t in reads if t.attr in arrays}
    if len({t.args for t in reads}) != 1 or len(sizes) != 1 or any(t.attr not in arrays for t in reads):
        return None
    element = Axis("element", T.const(sizes.pop()))
    flat = T.rewrite(term, lambda t: T.read(t.attr, (T.axis(element),), t.type) if t.op == "read" else None)
    try:
        with np.errstate(all="ignore"):
            return bool(np.all(evaluate(flat, (element,), {n: x.ravel() for n, x in arrays.items()}, numbers)))
    except (TriliftError, ArithmeticError, TypeError, ValueError, KeyError):
        return None


def _fits(examined: Examined, arrays: Mapping[str, np.ndarray], run: Planned) -> bool:
    """Whether the integers of the reference fit their dtypes on an input; True where that is not known."""
    from trilift.lift.errors import TriliftError
    from trilift.verify.runs.readings import met

    owed = examined.goal.owed
    if any(run["numbers"].get(n, 0) < 1 for n in examined.case.names):  # the goal is that of positive scalars
        return True
    try:
        return not owed or met(owed, arrays, run["numbers"])
    except (TriliftError, ArithmeticError, TypeError, ValueError, KeyError):
        return True


def _given(case: Case, c: Counterexample) -> dict[str, object]:
    """The counterexample as a run: its numbers, and its tensors as lists, with their strides."""
    import numpy as np

    from trilift.verify.runs.adversary import arguments, arrays
    from trilift.verify.runs.given_arguments import given

    case = given(case, c.arguments)
    why = c.why or f"{c.output}{list(c.index)}: {c.got}, not {c.expected}"
    values = {n: x.ravel().tolist() for n, x in arrays(case, arguments(case, c.dims, c.seed)).items()}
    drawn = case.named(case.sample(c.dims, np.random.default_rng(c.seed)))  # as the launches were captured with
    strides = {n: [*x.stride()] for n, x in drawn.items()}
    return {"numbers": dict(c.dims), "seed": c.seed, "style": "given", "why": why, "values": values, "strides": strides}
