"""The table of Trinity's programs: what each one reads, writes and computes, and the least time that this takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from trilift.lift.runtime.isolate import run

from ...base.progress import Progress
from ...base.targets import resolve
from ...records.options import Options
from ..experiment import Experiment, Result, Row, by_name, tabled
from ..folders import CORPUS
from ..summary import searches as summary

MODELS = ("llama", "falcon")
GRACE = 120.0  # seconds of a process
COLUMNS = {
    "programs": ("program", "model", "sizes", "inputs", "outputs", "operators", "as written", "MB", "roofline us"),
}
NOTES = (
    "`operators`: stores of the tile program, of one operation each, where factors stand before sums that do not "
    "depend on them; `as written`: of the program as it stands, e / z @ v and not (e @ v) / z. A view of a tensor, the "
    "old and the new part of a cache, is an input or output of its own.",
    "`roofline`: bytes, products and exponentials at the full rates of superopt/mugraph/cost.py; no measurement.",
)


@dataclass(frozen=True, slots=True)
class Program:
    """A case for one model. `operators`, `written`: statements of its lowering, factors before sums and not; `bytes`
    and `seconds` at least."""

    file: str
    name: str
    model: str
    sizes: dict[str, int]
    inputs: int
    outputs: int
    operators: int
    written: int
    bytes: float
    seconds: float


def measure(name: str, options: Options, quiet: bool) -> Result:
    """The table of all programs. Raises RuntimeError where one cannot be read."""
    found: list[Program] = []
    with Progress(quiet) as progress:
        for target in resolve([str(CORPUS / name)]):
            progress.say(f"read {target.file}")
            outcome = run(_programs, target.file, timeout=GRACE, context="forkserver")
            if outcome.failure:
                raise RuntimeError(f"{target.file}: {outcome.failure}\n{outcome.log}")
            found += outcome.value
    return Result(f"corpus {name}", tabled(COLUMNS, {"programs": map(_row, found)}), _data(found), 0)


EXPERIMENTS = by_name(Experiment("trinity", measure, COLUMNS, NOTES, summary))


def _programs(file: str, event: Callable[[Any], None]) -> list[Program]:
    """Each case of a file for each model."""
    from trilift.lift.capture.case_files import by_file, load

    return [_program(file, c, m, by_file(file).sizes(m)) for c in load(file) for m in MODELS]


def _program(file: str, case: Any, model: str, sizes: dict[str, int]) -> Program:
    from trilift.superopt.mugraph.cost import Model
    from trilift.superopt.program.views import of_case
    from trilift.superopt.tiles.tile_program import lowered, stores

    first, written = of_case(case, sizes), of_case(case, sizes, hoist=False)
    counts = [len(list(stores(lowered(p).body))) for p in (first, written)]
    least = Model(first)
    return Program(
        file, case.name, model, sizes, len(first.inputs), len(first.outputs), counts[0], counts[1], least.bytes,
        least.roofline,
    )  # fmt: skip


def _row(p: Program) -> Row:
    sizes = ", ".join(f"{n}={v}" for n, v in p.sizes.items())
    counts = (str(p.inputs), str(p.outputs), str(p.operators), str(p.written))
    return (p.name, p.model, sizes, *counts, f"{p.bytes / 1e6:.2f}", f"{p.seconds * 1e6:.2f}")


def _data(found: Sequence[Program]) -> dict[str, Any]:
    from ...base.version import VERSION

    cases = [
        {
            "name": p.name, "file": p.file, "model": p.model, "sizes": p.sizes, "inputs": p.inputs,
            "outputs": p.outputs, "operators": p.operators, "operators_as_written": p.written, "bytes": p.bytes,
            "roofline_us": p.seconds * 1e6,
        }
        for p in found
    ]  # fmt: skip
    return {"schema": 1, "version": VERSION, "cases": cases}
