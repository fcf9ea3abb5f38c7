"""The record of one case: one entry of the JSON's "cases", plain data."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from lift import Case, Lifted, lift, printer
from lift.errors import CaseError, NotLifted, TriliftError, Unsupported
from lift.output import Output
from lift.spec import Formula

from . import steps
from .runner import Options, Record, empty

KINDS = {Unsupported: "unsupported", CaseError: "case", NotLifted: "not-lifted"}
FORMS = ("text", "latex", "torch")
SEPARATOR = {"text": "\n", "latex": "\n", "torch": "\n\n"}


def record(case: Case, options: Options, event: Callable[[Any], None]) -> Record:
    """Lifts the case; `event` hears of stages. Errors become part of the record."""
    try:
        stages = {"top_down": options.top_down, "prune": options.prune}
        lifted = lift(case, options.seed, lambda stage: event(f"stage:{stage}"), **stages)
    except TriliftError as e:
        return {
            **empty(file_of(case), case.name, "", e.what),
            "lift": summary([e]),
            "reason": summary([e]),
            "errors": [error_of(e)],
        }
    failed: list[TriliftError] = [o.error for o in lifted.outputs if o.error is not None]
    errors = [*failed, lifted.relations] if isinstance(lifted.relations, Unsupported) else failed
    return {
        **empty(file_of(case), case.name, "", ""),
        **verdict(lifted),
        "formula": formulas(lifted),
        "lift": summary(failed),
        "findings": [finding(lifted, m) for m in lifted.mismatches],
        "seconds": {**empty("", "", "", "")["seconds"], **{k: round(s, 4) for k, s in lifted.seconds.items()}},
        "launches": len(lifted.traces[0].launches),
        "outputs": [output(o, options.explain) for o in lifted.outputs],
        "errors": [error_of(e) for e in errors],
        "explain": steps.explain(lifted) if options.explain else [],
    }


def file_of(case: Case) -> str:
    return case.place.file if case.place else ""


def summary(errors: list[TriliftError]) -> str:
    """ "ok", or what the first error is: "unsupported: tt.foo at kernel.py:31"."""
    if not errors:
        return "ok"
    e = errors[0]
    return f"{KINDS[type(e)]}: {e.what}" + (f" at {e.place}" if e.place else "")


def verdict(lifted: Lifted) -> Record:
    """Lifting proves nothing: UNKNOWN, unless the kernel was seen to differ from its reference."""
    if lifted.mismatches:
        return {"verdict": "REFUTED", "against": "reference", "reason": "the kernel differs from the reference"}
    worst = max((c.error for c in lifted.checks), default=0.0)
    reason = f"not proved: compared with the kernel at single shapes, largest relative error {worst:.1e}"
    return {"verdict": "UNKNOWN", "against": "reference" if lifted.case.reference else "formula", "reason": reason}


def formulas(lifted: Lifted) -> Record | None:
    """All outputs that were lifted, in each printed form; None if there is none."""
    found = [forms(o.formula) for o in lifted.outputs if o.formula is not None]
    return {form: SEPARATOR[form].join(f[form] for f in found) for form in FORMS} if found else None


def forms(formula: Formula) -> dict[str, str]:
    """One formula in each printed form."""
    return {"text": printer.text(formula), "latex": printer.latex(formula), "torch": printer.torch(formula)}


def output(o: Output, explain: bool) -> Record:
    """One output: its printed forms or why it has none; the laws used if asked for, since finding them takes time."""
    printed = forms(o.formula) if o.formula else dict.fromkeys(FORMS)
    laws = [law.name for law in o.simplified.laws] if explain and o.simplified else []
    return {"name": o.name, **printed, "laws": laws, "lift": summary([o.error] if o.error else [])}


def error_of(e: TriliftError) -> Record:
    """An error as plain data, as `draw.error` takes it."""
    place = (
        {"file": e.place.file, "line": e.place.line, "column": e.place.column}
        if e.place
        else {"file": "", "line": 0, "column": 0}
    )
    return {"kind": KINDS[type(e)], "what": e.what, **place, "why": e.why, "help": e.help}


def finding(lifted: Lifted, m: Any) -> Record:
    """A wrong-result finding: the element where the kernel and its reference differ most."""
    launch = next(iter(lifted.traces[-1].launches), None)
    element = f"{m.output}[{', '.join(map(str, m.index))}]"
    message = f"{element} is {m.got:.6g}, the reference gives {m.expected:.6g}"
    return {
        "rule": "wrong-result",
        "message": message,
        "file": launch.file if launch else file_of(lifted.case),
        "line": launch.line if launch else 0,
        "counterexample": {
            **m.dims,
            "output": m.output,
            "index": list(m.index),
            "got": _plain(m.got),
            "expected": _plain(m.expected),
        },
        "replay": None,
    }


def _plain(x: float) -> float | str:
    return x if math.isfinite(x) else str(x)
