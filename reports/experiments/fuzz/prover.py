"""The prover's verdicts on a program and its mutants, found in a separate process."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trilift.lift.cases.declaration import Case
    from trilift.verify.model.verdict import Clause, Counterexample

SECONDS = 20.0  # of the processor, for one proof: its steps end it before


@dataclass(frozen=True, slots=True)
class Told:
    """The verdict of a program: that of its worst output. `clauses`: those that a caller must meet; `notes`: those
    that say what was tried. `within`: of each run "in", "out" or "data", where a clause is over data. `given`: the
    counterexample's numbers, with its values in lists where they could be drawn again."""

    verdict: str
    reason: str = ""
    clauses: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    within: tuple[str, ...] = ()
    seconds: float = 0.0
    given: Mapping[str, object] | None = None


UNPROVED = 1  # mutants of a program that is not proved, as few of them are


def examine(
    sources: Sequence[str],
    numbers: Sequence[Mapping[str, int | float]],
    quick: bool,
    event: Callable[[tuple[int, Told]], None],
) -> None:
    """Tells `event` (index, Told) of every case file: the program itself, then its mutants."""
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        most = len(sources)
        for k, source in enumerate(sources):
            if k < most:
                path = Path(folder) / f"program_{k}.py"
                path.write_text(source)
                found = told(str(path), numbers, quick)
                event((k, found))
                most = 1 + UNPROVED if k == 0 and found.verdict != "PROVED" else most


def told(path: str, numbers: Sequence[Mapping[str, int | float]], quick: bool = False) -> Told:
    """The verdict of the one case of a file; `quick`: what is not proved is UNKNOWN."""
    from trilift import verify
    from trilift.lift.capture.case_files import load
    from trilift.lift.errors import TriliftError

    start = time.process_time()
    try:
        (case,) = load(path)
        proofs = verify.prove(case, timeout=SECONDS, fallback=not quick)
    except TriliftError as e:
        return Told("UNREADABLE", str(e.what), seconds=time.process_time() - start)
    except Exception as e:
        return Told("CRASH", f"{type(e).__name__}: {e}", seconds=time.process_time() - start)
    order = ("REFUTED", "UNKNOWN", "TESTED", "PROVED")
    worst = min(proofs, key=lambda p: order.index(p.verdict.value))
    clauses = {c.text: c for p in proofs for c in p.contract}
    firm = [c for c in clauses.values() if c.term is not None or c.kind != "config"]
    return Told(
        worst.verdict.value,
        worst.reason,
        tuple(c.text for c in firm),
        tuple(c.text for c in clauses.values() if c not in firm),
        tuple(_within(firm, n) for n in numbers),
        time.process_time() - start,
        _given(case, worst.counterexample) if worst.counterexample else None,
    )


def _within(clauses: Sequence[Clause], numbers: Mapping[str, int | float]) -> str:
    """Whether an input meets the clauses: "data" where that depends on values of tensors."""
    from trilift.lift.terms.fit import value

    found = []
    for c in clauses:
        try:
            found.append(None if c.term is None else value(c.term, numbers))
        except (ArithmeticError, TypeError, ValueError):
            found.append(None)
    return "out" if False in found else "data" if None in found else "in"


def _given(case: Case, c: Counterexample) -> dict[str, object]:
    """The counterexample: its numbers, and what it says."""
    numbers = dict(c.dims)
    return {"numbers": numbers, "seed": c.seed, "why": c.why or f"{c.output}{list(c.index)}: {c.got}, not {c.expected}",
            "replay": c.replay}  # fmt: skip
