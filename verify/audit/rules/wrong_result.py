"""wrong-result: the kernel computes something else than its reference, at an input that is shown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from trilift.lift.ttir.ir import Op

from ...refutation.search import Failure
from ...runs.observe import Observation, element
from ..finding import Finding, Rule, Step
from ..report_helpers import example, replay, smallest

if TYPE_CHECKING:
    from ..evidence import Evidence


def check(evidence: Evidence) -> Iterator[Finding]:
    """A finding for each output that differs from a reference, unless a call was made that the kernel is not written
    for, or what differs is not defined."""
    if evidence.goal is None or evidence.goal.against != "reference" or evidence.proved:
        return
    failed: dict[str, list[tuple[Observation, Failure]]] = {}
    for run in evidence.runs:
        got = evidence.outcome(run)
        if isinstance(got, Failure) and got.output and not _otherwise_told(evidence, run):
            failed.setdefault(got.output, []).append((run, got))
    for seen in failed.values():
        best = smallest([r for r, _ in seen])
        yield _finding(best, next(f for r, f in seen if r is best))


def _otherwise_told(evidence: Evidence, run: Observation) -> bool:
    """Whether another rule says what is wrong: undefined, unwritten, racing, or outside of the contract."""
    from ...runs.races import backwards
    from . import broken_contract, undefined_value

    if run.outputs is None or any(run.unwritten(n).any() for n in run.trace.outputs):
        return True
    told = evidence.contracted(run) or broken_contract.dense(evidence, run) is not None
    return (
        told or bool(list(undefined_value.sources(run))) or bool(backwards(run)) or broken_contract.uninitialised(run)
    )


def _finding(run: Observation, f: Failure) -> Finding:
    written = element(f.output, f.index)
    store = writer(run, f.output, f.index)
    last = run.trace.launches[-1]
    return Finding(
        "wrong-result",
        f"`{written}` has {f.why}"
        if f.why.startswith("shape")
        else f"`{written}` is {f.got:.6g}, the reference gives {f.expected:.6g}",
        store.place if store is not None else last.host,
        example(run, element=written, got=_plain(f.got), expected=_plain(f.expected)),
        "run the replay script; `trilift lift` prints what the kernel computes",
        replay(run, f.output, f.index, f.got, f.expected, f.why),
        (
            Step(last.host, f"{last.kernel} is launched on a grid of {last.grid}"),
            Step(store.place if store is not None else None, f"`{written}` becomes {f.got:.6g}"),
        ),
    )


def writer(run: Observation, output: str, index: tuple[int, ...]) -> Op | None:
    """The store or atomic that wrote an element last."""
    ref = run.trace.outputs.get(output) or run.trace.inputs.get(output)
    if ref is None:
        return None
    address = int(ref.addresses()[index])
    touches = (t for page in reversed(run.launches) for t in reversed(page.touches) if t.kind != "load")
    hit = next((t.op for t in touches if address in t.addresses), None)
    stores = (t.op for page in reversed(run.launches) for t in reversed(page.touches) if t.kind != "load")
    return hit if hit is not None else next(stores, None)


def _plain(x: float) -> float | str:
    return x if abs(x) < float("inf") else str(x)


RULE = Rule("wrong-result", "error", "The kernel's result differs from its reference.", check)
