"""The record of one case: one entry of the JSON's "cases", plain data."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, TypedDict

from trilift.lift import Case, Lifted, lift
from trilift.lift.capture.trace import Trace
from trilift.lift.errors import NotLifted, OutOfBounds, Place, TriliftError, Unsupported
from trilift.lift.replay.check import Mismatch
from trilift.lift.replay.output import Output
from trilift.lift.runtime import budget
from trilift.lift.runtime.budget import BUDGETS, OutOfSteps, limited
from trilift.lift.terms.definedness import left_undefined_at

from . import audit_record, proof_record, steps
from .entries import Error, Finding, Formula, KernelLocation, Record
from .entries import Output as OutputEntry
from .error_record import error_of, kind
from .forms import joined, printed
from .options import Options
from .unfinished import empty


def record(case: Case, options: Options, event: Callable[[Any], None], file: str = "") -> Record:
    """Lifts the case, and proves or audits it if asked to; `event` hears of stages, and of the record before the proof.
    Errors become part of the record."""
    found = _examined(case, options, event, file)
    return {**found, "steps": budget.spent()} if options.debug else found


def _examined(case: Case, options: Options, event: Callable[[Any], None], file: str) -> Record:
    found, lifted = _lifted(case, options, event, file)
    if options.proving is None or any(e["kind"] == "case" for e in found["errors"]):
        return found
    event(found)
    if options.audit:
        return audit_record.audited(case, lifted, found, options, event)
    return proof_record.proved(case, lifted, found, options, event)


def _lifted(case: Case, options: Options, event: Callable[[Any], None], file: str) -> tuple[Record, Lifted | None]:
    """The result of lifting, as a record and as it is."""
    base: Record = {**empty(file, case.name, "", ""), **proof_record.scope(case)}

    def launched(trace: Trace) -> None:
        base["kernels"] = kernels(trace)
        event(len(trace.launches))

    limit = BUDGETS.lift.steps if options.proving is not None else math.inf
    try:
        with limited("lifting", limit) as meter:
            lifted = lift(
                case,
                options.seed,
                lambda stage: event(f"stage:{stage}"),
                launched,
                top_down=options.top_down,
                prune=options.prune,
            )
            meter.check("formula")  # an output may have kept the error to itself
    except OutOfSteps:
        late = NotLifted("no formula was found in the steps that lifting has before a proof", case.place)
        return {**base, **told([late]), "reason": summary([late])}, None
    except RecursionError:
        deep = NotLifted(proof_record.NESTED, case.place)
        return {**base, **told([deep]), "reason": summary([deep])}, None
    except TriliftError as e:
        return {**base, **told([e]), "reason": summary([e])}, None
    failed: list[TriliftError] = [o.error for o in lifted.outputs if o.error is not None]
    unrelated = [lifted.relations] if isinstance(lifted.relations, Unsupported) else []
    errors = told([*failed, *unrelated])
    forms = {o.name: printed(o.formula, case) for o in lifted.outputs if o.formula is not None}
    found: Record = {
        **base,
        **verdict(lifted),
        "formula": joined(forms, len(lifted.outputs)) if forms else None,
        "lift": summary(failed),
        "findings": [*errors["findings"], *undefined(lifted), *wrong_results(lifted)],
        "seconds": {**base["seconds"], **{k: round(s, 4) for k, s in lifted.seconds.items()}},
        "launches": len(lifted.traces[0].launches),
        "outputs": [output(o, forms.get(o.name), options.explain) for o in lifted.outputs],
        "errors": errors["errors"],
        "explain": steps.explain(lifted) if options.explain and options.proving is None else [],
        "blocks": blocks(lifted),
        "kernels": kernels(lifted.traces[0]),
    }
    return found, lifted


def kernels(trace: Trace) -> list[KernelLocation]:
    """Where the kernels stand that are launched, each once."""
    at = dict.fromkeys((launch.kernel, launch.file, launch.line) for launch in trace.launches)
    return [{"name": name, "file": file, "line": line} for name, file, line in at]


def blocks(lifted: Lifted) -> dict[str, int]:
    """The compile-time integers of the launches, as the first launch that has each of them gives it."""
    out: dict[str, int] = {}
    for launch in lifted.traces[0].launches:
        for name in sorted(launch.constexprs):
            value = launch.args.get(name)
            if isinstance(value, int) and not isinstance(value, bool):
                out.setdefault(name, value)
    return out


class Told(TypedDict):
    """The entries of a record that come from errors."""

    lift: str
    findings: list[Finding]
    errors: list[Error]


class Compared(TypedDict):
    """The verdict on a case from runs at single shapes."""

    verdict: str
    against: str
    reason: str


def told(errors: Sequence[TriliftError]) -> Told:
    """Each error once: a finding if the kernel is wrong, an error if we or the case are."""
    distinct = list({str(e): e for e in errors}.values())
    return {
        "lift": summary(distinct),
        "findings": [out_of_bounds(e) for e in distinct if isinstance(e, OutOfBounds)],
        "errors": [error_of(e) for e in distinct if not isinstance(e, OutOfBounds)],
    }


def summary(errors: Sequence[TriliftError]) -> str:
    """ "ok", or what the first error is: "unsupported: tt.foo at kernel.py:31"."""
    if not errors:
        return "ok"
    e = errors[0]
    return f"{kind(e)}: {e.what}" + (f" at {e.place}" if e.place else "")


def verdict(lifted: Lifted) -> Compared:
    """Lifting proves nothing: UNKNOWN, unless the kernel was seen to differ from its reference."""
    if wrong_results(lifted):
        return {"verdict": "REFUTED", "against": "reference", "reason": "the kernel differs from the reference"}
    worst = max((c.error for c in lifted.checks), default=0.0)
    reason = f"not proved: compared with the kernel at single shapes, largest relative error {worst:.1e}"
    return {"verdict": "UNKNOWN", "against": "reference" if lifted.case.reference else "formula", "reason": reason}


def output(o: Output, forms: Formula | None, explain: bool) -> OutputEntry:
    """One output: its printed forms or why it has none; the laws used if asked for, since finding them takes time."""
    laws = [law.name for law in o.simplified.laws] if explain and o.simplified else []
    return {
        "name": o.name,
        "text": forms and forms["text"],
        "latex": forms and forms["latex"],
        "torch": forms and forms["torch"],
        "laws": laws,
        "strategies": dict(Counter(o.strategies)),
        "lift": summary([o.error] if o.error else []),
    }


def out_of_bounds(e: OutOfBounds) -> Finding:
    """A finding: an access outside every tensor, seen while the kernel was executed at a small shape."""
    place = e.place or Place("", 0)
    message = f"{e.what}: {e.why}" if e.why else e.what
    return _finding("out-of-bounds", message, place, {})


def wrong_result(lifted: Lifted, m: Mismatch) -> Finding:
    """A finding: the element where the kernel and its reference differ most."""
    launch = lifted.traces[-1].launches[-1]
    element = f"{m.output}[{', '.join(map(str, m.index))}]" if m.index else m.output
    message = f"{element} is {m.got:.6g}, the reference gives {m.expected:.6g}"
    if m.shapes is not None:
        message = f"{m.output} has shape {list(m.shapes[0])}, that of the reference has {list(m.shapes[1])}"
    example = {**m.dims, "element": element, "got": _plain(m.got), "expected": _plain(m.expected)}
    return _finding("wrong-result", message, Place(launch.file, launch.line), example)


def wrong_results(lifted: Lifted) -> list[Finding]:
    """Outputs that are defined and yet not what the reference says."""
    unread = (Unsupported, OutOfBounds)
    vague = {o.name for o in lifted.outputs if labels(o) or isinstance(o.error, unread)}
    return [wrong_result(lifted, m) for m in lifted.mismatches if m.output not in vague]


def undefined(lifted: Lifted) -> list[Finding]:
    """A finding per undefined value that is not known to reach no output: of a masked load without `other`, of memory
    never written. NaN that the kernel itself writes is none. A formula does not know which inputs have no two equal
    elements: whether stores through one of these reach all elements the runs and the proof say."""
    apart = any(s.distinct for s in lifted.case.tensors.values())
    found = ((o, label) for o in lifted.outputs for label in labels(o) if label != "nan")
    return [undefined_value(lifted, o, label) for o, label in found if left_undefined_at(label) or not apart]


def labels(o: Output) -> list[str]:
    """Where the undefined values in an output's formula come from."""
    return sorted({str(t.attr) for t in o.formula.term.walk() if t.op == "undef"}) if o.formula else []


def undefined_value(lifted: Lifted, o: Output, label: str) -> Finding:
    """The finding for one source of undefined values."""
    place, last = left_undefined_at(label), lifted.traces[-1].launches[-1]
    source = f"the {label} leaves undefined" if place else "was in memory before, which nobody has written"
    what = f"`{o.name}` may depend on what {source}"
    return _finding("undefined-value" if place else "unwritten-output", what, place or Place(last.file, last.line), {})


def _finding(rule: str, message: str, place: Place, example: dict[str, Any]) -> Finding:
    return {"rule": rule, "message": message, "file": place.file, "line": place.line, "counterexample": example,
            "replay": None}  # fmt: skip


def _plain(x: float) -> float | str:
    return x if math.isfinite(x) else str(x)
