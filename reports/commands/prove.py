"""`trilift prove` and `trilift equal`: the verdicts of the targets, printed, and the exit code they ask for."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import click

from trilift.lift.runtime.isolate import Outcome, run_all

from ..base import colours
from ..base.progress import Progress
from ..base.targets import Named, Target
from ..records import second_opinion, unfinished, verdict_text
from ..records.entries import Record, Row
from ..records.options import Options, Proving
from ..runner.local import GRACE_SECONDS
from .gathering import WHOLE, Limits, Printing, document, printed


def options(timeout: float, proving: Proving | None, **others: Any) -> Options:
    """Options under which a proof ends by itself within `timeout` seconds; a case that goes on, in stages that look at
    no clock or in code of the user's, is ended after as long again, and GRACE_SECONDS at least. Without `proving` there
    is no proof."""
    if proving is None:
        return Options(timeout=timeout, **others)
    again = timeout * bool(proving.certificate or proving.check)  # for those, when the verdict is known
    return Options(timeout=timeout + max(GRACE_SECONDS, timeout) + again, proving=proving, **others)


def prove(targets: Sequence[Target], form: str, options: Options, quiet: bool, limits: Limits = WHOLE) -> int:
    """Runs and prints the targets; returns the exit code."""
    case = lambda record: colours.echo(verdict_text.case(record))  # noqa: E731
    return printed(targets, options, Printing(form, case, summary, code), quiet, limits)


def equal(first: Named, second: Named, form: str, options: Options, quiet: bool) -> int:
    """Compares two kernels, or a kernel and a PyTorch function, and prints; returns the exit code."""
    with Progress(quiet) as progress:
        record = compared(first, second, options, progress.hear)
    if form == "json":
        click.echo(json.dumps(document([record]), indent=1))
    else:
        colours.echo(verdict_text.case(record))
    return code(record)


def compared(
    first: Named, second: Named, options: Options, on_event: Callable[[str, str, Any], None] = lambda *_: None
) -> Record:
    """The record of a comparison, made in a process of its own."""
    name = f"{first} == {second}"
    hear = lambda _, what: on_event("", name, what)  # noqa: E731
    outcomes: Iterable[tuple[int, Outcome]] = run_all(
        _compare, [(first, second, options)], 1, options.timeout, "forkserver", hear
    )
    outcome = next(iter(outcomes))[1]
    record = outcome.value if outcome.failure is None else unfinished.failed(first.where, name, outcome)
    on_event("", name, record["verdict"])
    return {**record, "name": name}


def _compare(first: Named, second: Named, options: Options, event: Callable[[Any], None]) -> Record:
    """In the child: loads both, the first must be a case."""
    from trilift.lift.capture.case_files import find
    from trilift.lift.errors import CaseError, TriliftError
    from trilift.verify import equal

    from ..records import proof_record

    base: Record = {**unfinished.empty(first.where, str(first), "", ""), "lift": "", "errors": []}
    base = {**base, "against": str(second)}
    proving = options.proving or Proving()
    try:
        a, b = (find(t.where, t.name, t.is_module) for t in (first, second))
        if not hasattr(a, "params"):
            a, b = b, a  # a kernel and a function, in either order
        if not hasattr(a, "params"):
            raise CaseError("neither of the two is a case", help="decorate the kernel's host function with @case(...)")
        base = {**base, **proof_record.scope(a)}
        progress = lambda stage: event(f"stage:{stage}")  # noqa: E731
        found = equal(a, b, seed=options.seed, timeout=proving.timeout, progress=progress)
    except CaseError as e:
        return proof_record.wrong(base, e)
    except TriliftError as e:
        return {**base, "verdict": "UNKNOWN", "reason": proof_record.told(e), "place": proof_record.where(e.place)}
    record = proof_record.merged(base, found, (), str(second), options)
    theirs = lambda p: hasattr(b, "params") and p["output"].startswith(f"{b.name}: ")  # noqa: E731
    return {**record, "proofs": [proof_record.of_other(p, b) if theirs(p) else p for p in record["proofs"]]}


def code(record: Record | Row) -> int:
    """The exit code of one case. TESTED is 0: its bound is printed."""
    if {e["kind"] for e in record["errors"]} & {"case", "internal"}:
        return 2
    if record["verdict"] == "REFUTED" or record["findings"]:
        return 1
    return 0 if record["verdict"] in ("PROVED", "TESTED") else 4


def summary(records: Sequence[Record | Row]) -> str:
    """One line: how many of each verdict, and the seconds of lifting and of proving."""
    words = ("PROVED", "TESTED", "REFUTED", "UNKNOWN")
    counts = ", ".join(f"{n} {w}" for w in words if (n := sum(r["verdict"] == w for r in records)))
    if opinions := [r["checked"] for r in records if "checked" in r]:
        counts += f" ({sum(x['verdict'] == second_opinion.CHECKED for x in opinions)} checked)"
    stages = {s: sum(r["seconds"].get(s, 0.0) for r in records) for s in ("capture", "lift", "check", "simplify")}
    prove = sum(r["seconds"]["prove"] for r in records)
    kept = f", {n} from the cache" if (n := sum(r.get("cached", False) for r in records)) else ""
    said = f"{counts or 'no case'} of {len(records)}{kept}"
    return f"{said}; seconds: lift {sum(stages.values()):.1f}, prove {prove:.1f}"


def checked(against: str | None) -> str | None:
    """The formula or word to prove against. Raises click.UsageError."""
    if against is None or against in ("reference", "formula"):
        return against
    hint = "expected reference, formula or the text of a formula"
    try:
        body = ast.parse(against.strip()).body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as e:  # bytes that are not text; many brackets
        why = e.msg if isinstance(e, SyntaxError) else f"{type(e).__name__}: {e}"
        raise click.UsageError(f"--against: cannot read {against[:200]!r} ({why}); {hint}") from None
    if len(body) != 1 or not isinstance(body[0], ast.Assign | ast.Expr):
        raise click.UsageError(f"--against: cannot read {against!r}; {hint}")
    return against


def certified(path: str | None) -> str:
    """Where certificates go: a file, or a folder that is made. Raises click.UsageError."""
    if not path or not path.endswith(".json"):
        return writable(path, "--certificate")
    writable(str(Path(path).parent), "--certificate")
    return str(Path(path).resolve())


def writable(folder: str | None, option: str) -> str:
    """The folder, made if it is not there. Raises click.UsageError where nothing can be written."""
    if not folder:
        return ""
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise click.UsageError(f"{option}: cannot make the folder {folder}: {e.strerror}") from None
    return str(Path(folder).resolve())
