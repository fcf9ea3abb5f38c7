"""Optimises cases for a table, each in a process of its own, and keeps the accepted file of each.

An emitted file is proved equal to its own reference, and to the reference of the case, or else to its function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from trilift.lift.runtime.isolate import run

from ...records.emitted_heading import heading

TIMEOUT = 900.0  # seconds of a case, from the search to its proofs
PROOF = 120.0  # of a proof
Event = Callable[[Any], None]


@dataclass(frozen=True, slots=True)
class Accepted:
    """The outcome of one case. `verdict`: of the file against its own reference; `same`: of the file against the case,
    "" if no file was accepted; `original`: of the case's own kernels, "" if it has none; all times in seconds, those of
    the model and the roofline too."""

    name: str
    file: str
    sizes: dict[str, int]
    verdict: str = ""
    same: str = ""
    original: str = ""
    against: str = ""
    bound: float | None = None
    kernels: int = 0
    model: float = 0.0
    roofline: float = 0.0
    states: int = 0
    values: int = 0
    candidates: int = 0
    search: float = 0.0
    seconds: float = 0.0
    graph: str = ""
    source: str = ""
    steps: tuple[str, ...] = ()
    contract: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def accepted(self) -> bool:
        return bool(self.source)


def accepted(
    file: str, name: str, sizes: Mapping[str, int], seed: int, timeout: float = TIMEOUT, proof: float = PROOF,
    engine: str = "mugraph",
) -> Accepted:  # fmt: skip
    """The first plan of the case, by this engine, whose file is accepted."""
    found = run(_optimised, file, name, dict(sizes), seed, proof, engine, timeout=timeout, context="forkserver")
    if found.failure is None:
        return Accepted(**found.value)
    last = (found.log.strip().splitlines() or [""])[-1]
    return Accepted(name, file, dict(sizes), notes=(f"{found.failure} {last}".strip(),), seconds=found.seconds)


def _optimised(
    file: str, name: str, sizes: dict[str, int], seed: int, proof: float, engine: str, event: Event
) -> dict[str, Any]:
    from trilift.superopt.optimize import Question, optimised
    from trilift.superopt.search.best_first import Limits

    found = optimised(Question(file, name, sizes, Limits(engine=engine), seed=seed, timeout=proof), say=event)
    f, best = found.found, found.best
    out = Accepted(
        name, file, found.sizes, original=found.original, against=found.against, roofline=f.roofline, states=f.states,
        values=f.values, candidates=f.candidates, search=f.seconds, seconds=found.seconds,
        notes=(*found.notes, *(str(e.acceptance.steps[-1].text) for e in found.tried if not e.accepted)),
    )  # fmt: skip
    data = asdict(out)
    if best is not None:
        judged = best.acceptance
        data |= {
            "verdict": judged.verdict, "same": best.same, "bound": judged.bound, "kernels": len(best.graph.kernels),
            "model": best.seconds, "graph": best.data, "source": best.source, "contract": judged.contract,
            "steps": tuple(f"{s.name} {s.seconds:.1f} s: {s.text}" for s in judged.steps),
        }  # fmt: skip
    return data


def kernel(a: Accepted, seed: int) -> str:
    """The file with its heading."""
    at = ",".join(f"{n}={v}" for n, v in a.sizes.items())
    command = f"{a.file}::{a.name} --at {at} --seed {seed} -o {a.name}.py"
    verdicts = (a.verdict, a.same, a.against)
    return heading(command, verdicts, a.kernels, a.model, a.roofline) + a.source
