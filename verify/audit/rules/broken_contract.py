"""broken-contract: the wrapper lets a call through that the kernel is not written for.

a grid axis y or z above 65535           strides that the kernel does not look at
a row longer than the block              sums added by atomics to memory that is not zeroed
one autotune configuration is wrong      a kernel that autotuning runs again on what it has changed itself
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace as changed
from typing import TYPE_CHECKING, Any

import numpy as np

from trilift.lift.capture.trace import Buffer, Launch, TensorRef, Trace
from trilift.lift.cases.declaration import Case
from trilift.lift.errors import TriliftError
from trilift.lift.interpreter.interpret import Run
from trilift.lift.language.case_spec import Spec
from trilift.lift.replay.reference import values
from trilift.lift.terms import construct as T

from ...refutation.search import Failure, Passed, Question, attempt, executed, moved_apart
from ...runs.adversary import arguments
from ...runs.large import AXIS, MEMORY, Refused, Undecided, bases, fits, launches, nbytes, reaching
from ...runs.observe import FINITE, UNINITIALISED, Observation, Poisoned, differing, element
from ..finding import Finding, Rule, Step
from ..report_helpers import example, replay, smallest
from .undefined_value import LABEL
from .unwritten_output import allocation

if TYPE_CHECKING:
    from ..evidence import Evidence


FLATTENED = 4  # shapes at which a lower rank is tried


def check(evidence: Evidence) -> Iterator[Finding]:
    """Findings of every kind, one for each place."""
    yield from _grids(evidence)
    yield from _ranks(evidence)
    yield from _blocks(evidence)
    yield from _first(evidence, _configuration)
    yield from _first(evidence, _strides)
    yield from _first(evidence, _accumulators)
    yield from _first(evidence, _tuned)


def _first(evidence: Evidence, of: Any) -> Iterator[Finding]:
    """The finding of the smallest run that has one."""
    for run in sorted(evidence.runs, key=lambda r: sum(x.size for x in r.inputs.values())):
        found = of(evidence, run)
        if found is not None:
            yield found
            return


# ---- the grid --------------------------------------------------------------------------------------------------------


def _grids(evidence: Evidence) -> Iterator[Finding]:
    """Launches with more programs along y or z than a device takes, at the smallest sizes."""
    case = evidence.case
    start = bases(case, evidence.seed)[0]

    def widest(dims: Mapping[str, Any]) -> float:
        return max((max(e.grid[1:]) for e in launches(case, dims)), default=0)

    try:
        found = reaching(case, start, widest, AXIS + 1, MEMORY)
    except (Refused, Undecided):
        return
    for dims, made in ((d, made) for d in found if fits(made := launches(case, d))):
        e = next(e for e in made if max(e.grid[1:]) > AXIS)
        axis = 1 if e.grid[1] > AXIS else 2
        yield Finding(
            "broken-contract",
            f"{e.kernel} is launched on a grid of {e.grid}: axis {'xyz'[axis]} ends at {AXIS}",
            e.place,
            {**dims, "grid": str(e.grid)},
            "put the large count on axis x, which takes 2^31 - 1, or loop over it",
            "",
            (Step(e.place, f"inputs of {nbytes(case, dims) / 2**20:.1f} MiB give a grid of {e.grid}"),),
        )
        return


# ---- the block -------------------------------------------------------------------------------------------------------


def _blocks(evidence: Evidence) -> Iterator[Finding]:
    """The contract under which it was proved is narrower than what the wrapper takes: a call that shows it."""
    outside = [(r, c) for r in evidence.runs if r.outputs is not None and (c := evidence.excluded(r)) is not None]
    seen = [(r, c) for r, c in outside if _fails(evidence, r)]
    for run in [smallest([r for r, _ in seen])] if seen else []:
        clause = next(c for r, c in seen if r is run)
        failure = evidence.outcome(run)
        yield _finding(
            run, f"the kernel is correct only for {clause.text}, but its wrapper accepts other calls: {_told(failure)}",
            f"refuse calls that violate {clause.text}, or loop over the rest", failure, {"contract": clause.text},
        )  # fmt: skip


def _fails(evidence: Evidence, run: Observation) -> bool:
    return evidence.wrong(run)


def _told(outcome: Any) -> str:
    if not isinstance(outcome, Failure):
        return ""
    if not outcome.output:
        return outcome.why
    return f"`{element(outcome.output, outcome.index)}` is {outcome.got:.6g} instead of {outcome.expected:.6g}"


def _finding(run: Observation, message: str, hint: str, outcome: Any, more: Mapping[str, Any] | None = None) -> Finding:
    """At the line that launches the kernel."""
    last = run.trace.launches[-1]
    f = outcome if isinstance(outcome, Failure) else Failure("", (), math.nan, math.nan)
    shown = {"element": element(f.output, f.index)} if f.output else {}
    return Finding(
        "broken-contract",
        message,
        last.host,
        example(run, None, **shown, **(more or {})),
        hint,
        replay(run, f.output, f.index, f.got, f.expected, f.why or message),
        (Step(last.host, f"{last.kernel} is launched on a grid of {last.grid}"), Step(last.host, _told(f) or message)),
    )


# ---- the rank --------------------------------------------------------------------------------------------------------


def _ranks(evidence: Evidence) -> Iterator[Finding]:
    run = rank_assumed(evidence)
    if run is not None:
        ranks = {n: len(s.shape or ()) for n, s in evidence.case.tensors.items()}
        name = max(ranks, key=lambda n: ranks[n])
        outcome = evidence.outcome(run)
        yield _finding(
            run, f"`{name}` has rank {ranks[name]}, but the kernel is correct only with the first two axes merged",
            f"flatten `{name}` to rank {ranks[name] - 1} in the wrapper, or refuse other ranks", outcome,
        )  # fmt: skip


def rank_assumed(evidence: Evidence) -> Observation | None:
    """The smallest run that goes wrong, where all that do are right once the first two axes of every tensor are one."""
    if "rank" not in evidence.kept:
        evidence.kept["rank"] = _rank_assumed(evidence)
    found: Observation | None = evidence.kept["rank"]
    return found


def _rank_assumed(evidence: Evidence) -> Observation | None:
    flat = None if evidence.proved else flattened(evidence.case)
    if flat is None or evidence.goal is None or evidence.goal.fn is None:
        return None
    failing = [r for r in evidence.runs if r.trouble is not None or _fails(evidence, r)]
    some = {tuple(sorted(r.dims.items())): r for r in failing}.values()
    question = Question(flat, evidence.goal)
    right = [
        _same_meaning(evidence, flat, r) and isinstance(attempt(question, r.dims, r.seed, r.config), Passed)
        for r in list(some)[:FLATTENED]
    ]
    return smallest(failing) if len(right) > 1 and all(right) else None


def _same_meaning(evidence: Evidence, flat: Case, run: Observation) -> bool:
    """Whether the reference gives the same numbers for the flattened inputs."""
    assert evidence.goal is not None and evidence.goal.fn is not None
    try:
        a, b = (values(c, evidence.goal.fn, arguments(c, run.dims, run.seed)) for c in (evidence.case, flat))
    except TriliftError:
        return False
    pairs = list(zip(a.values(), b.values(), strict=False))
    return bool(pairs) and all(x.size == y.size and np.allclose(x.ravel(), y.ravel(), equal_nan=True) for x, y in pairs)


def flattened(case: Case) -> Case | None:
    """The case with the first two axes of its tensors as one; None where none has more than two."""
    ranked = max(case.tensors.values(), key=lambda s: len(s.shape or ()), default=None)
    if ranked is None or ranked.shape is None or len(ranked.shape) < 3:
        return None
    first, second = ranked.shape[:2]

    def merged(s: Any) -> Any:
        if isinstance(s, list | tuple):
            return type(s)(map(merged, s))
        if not isinstance(s, Spec) or s.shape is None or s.shape[:2] != (first, second):
            return s
        return changed(s, shape=(T.mul(first, second), *s.shape[2:]))

    return changed(case, params={n: merged(s) for n, s in case.params.items()})


# ---- autotune configurations -----------------------------------------------------------------------------------------


def _configuration(evidence: Evidence, run: Observation) -> Finding | None:
    if run.outputs is None or not evidence.only_configured(run):
        return None
    outcome = evidence.outcome(run)
    message = f"autotune configuration {run.config} gives a wrong result, the first a right one: {_told(outcome)}"
    return _finding(run, message, "compute the grid from the configuration: grid = lambda META: ...", outcome)


def _tuned(evidence: Evidence, run: Observation) -> Finding | None:
    """A tuned launch that changes what it reads, and is run again on it."""
    if run.outputs is None:
        return None
    for k, page in enumerate(run.launches):
        e = page.launch
        if e.config[1] < 2 or "*" in e.restored:
            continue
        loaded = {int(a) for t in page.touches if t.kind == "load" for a in t.addresses[:64]}
        written = [
            t
            for t in page.touches
            if t.kind == "atomic" or (t.kind == "store" and not loaded.isdisjoint(t.addresses[:64].tolist()))
        ]
        names = [n for n, x in e.args.items() if isinstance(x, TensorRef) and _touched(x, written)]
        if not written or set(names) <= e.restored:
            continue
        changed = differing(run.outputs, run.again(kind=repeated(run.trace, k)))
        if changed:
            output, where = next(iter(changed.items()))
            index = tuple(int(i) for i in np.argwhere(where)[0])
            found = _finding(
                run, f"autotuning runs {e.kernel} several times on `{names[0]}`, which it changes: "
                f"`{element(output, index)}` depends on the number of runs",
                f'tell the autotuner: restore_value=["{names[0]}"], or reset_to_zero for a sum', None,
            )  # fmt: skip
            return Finding(found.rule, found.message, e.host, found.example, found.hint, "", found.steps)
    return None


def _touched(ref: TensorRef, written: list[Any]) -> bool:
    low, high = ref.buffer.address, ref.buffer.address + ref.buffer.nbytes
    return any(t.addresses.size and low <= int(t.addresses[0]) < high for t in written)


def repeated(trace: Trace, which: int) -> type[Run]:
    """A run in which one launch is made twice."""
    count = iter(range(len(trace.launches)))

    class Twice(Run):
        def launch(self, args: Any, grid: tuple[int, int, int]) -> None:
            super().launch(args, grid)
            if next(count) == which:
                super().launch(args, grid)

    return Twice


# ---- strides ---------------------------------------------------------------------------------------------------------


def _strides(evidence: Evidence, run: Observation) -> Finding | None:
    name = dense(evidence, run)
    if name is None:
        return None
    outcome = evidence.outcome(run)
    strides = next(
        x.strides for e in run.trace.launches for n, x in e.args.items() if n == name and isinstance(x, TensorRef)
    )
    message = f"the strides of `{name}` are {strides}, but the kernel ignores them: {_told(outcome)}"
    return _finding(run, message, f"pass {name}.contiguous(), or the strides of `{name}` and use them", outcome)


def dense(evidence: Evidence, run: Observation) -> str | None:
    """The parameter whose strides the kernel ignores: it is right once that tensor is dense; None if there is none."""
    loose = dict.fromkeys(n for e in run.trace.launches for n, x in e.args.items() if _loose(x))
    if not loose or not _fails(evidence, run):
        return None
    for name in loose:

        def execute(trace: Trace, inputs: Mapping[str, np.ndarray], name: str = name) -> Any:
            return executed(trace, inputs, densely(trace, name))

        got = evidence.outcome(run, execute)
        if isinstance(got, Passed):
            return name
    return None


def _loose(x: Any) -> bool:
    """Whether it is a tensor with gaps, or with elements that share memory."""
    if not isinstance(x, TensorRef) or math.prod(x.shape) < 2:
        return False
    step = 1
    for n, s in reversed(list(zip(x.shape, x.strides, strict=True))):
        if n > 1 and s != step:
            return True
        step *= n
    return False


def densely(trace: Trace, name: str) -> type[Run]:
    """A run in which the tensor that launches get as `name` is copied to dense memory, and back."""
    launches_ = iter(moved_apart(trace).launches)

    class Dense(Run):
        def launch(self, args: Any, grid: tuple[int, int, int]) -> None:
            e = next(launches_)
            given = list(args)
            copies: list[tuple[TensorRef, TensorRef]] = []
            for k, x in enumerate(e.operands):
                if isinstance(x, TensorRef) and x == e.args.get(name) and _loose(x):
                    copy = _copy(x, len(copies))
                    self.memory.define(copy, self.memory.fetch(x))
                    given[k] = np.asarray(copy.address, np.int64)
                    copies.append((x, copy))
            super().launch(given, grid)
            for x, copy in copies:
                self.memory.define(x, self.memory.fetch(copy))

    return Dense


def _copy(x: TensorRef, k: int) -> TensorRef:
    strides = tuple(int(np.prod(x.shape[d + 1 :])) for d in range(len(x.shape)))
    size = math.prod(x.shape) * x.itemsize
    address = (1 << 60) + (k << 40)
    return TensorRef(address, x.shape, strides, x.dtype, Buffer(address, size, "copy", None))


# ---- accumulators ----------------------------------------------------------------------------------------------------


def uninitialised(run: Observation) -> bool:
    """Whether an output depends on memory that nobody wrote and atomics add to."""
    return _added(run) is not None


def _added(run: Observation) -> tuple[Launch, TensorRef, str, np.ndarray] | None:
    """(launch, tensor, output, elements): atomics add to the tensor, which the host function did not initialise."""
    if run.outputs is None:
        return None
    adding = [(p, t) for p in run.launches for t in p.touches if t.kind == "atomic" and t.addresses.size]
    if not adding:
        return None
    domain = Poisoned(FINITE[0])
    changed = differing(run.again(domain), run.again(Poisoned(FINITE[1])))
    if not changed or not any(LABEL.match(x) is None for x in domain.labels):
        return None
    for page, t in adding:
        ref = run.buffer(int(t.addresses[0]))
        if ref is not None and ref.buffer.origin.startswith(UNINITIALISED):
            output, where = next(iter(changed.items()))
            return page.launch, ref, output, where
    return None


def _accumulators(evidence: Evidence, run: Observation) -> Finding | None:
    found = _added(run)
    if found is None:
        return None
    e, ref, output, where = found
    name = run.name(ref.buffer.address)
    index = tuple(int(i) for i in np.argwhere(where)[0])
    made = allocation(run, ref)
    return Finding(
        "broken-contract",
        f"{e.kernel} adds to `{name}` with atomics but never sets it to zero: `{element(output, index)}` is undefined",
        made or e.host,
        example(run, element=element(output, index)),
        "allocate it with torch.zeros",
        replay(
            run,
            output,
            index,
            math.nan,
            0.0,
            f"{element(output, index)} is the sum plus the previous contents of memory",
        ),
        (Step(made, f"`{name}` is allocated uninitialised"), Step(e.host, f"{e.kernel} adds to it with atomics")),
    )


RULE = Rule("broken-contract", "error", "The wrapper accepts a call that the kernel does not handle.", check)
