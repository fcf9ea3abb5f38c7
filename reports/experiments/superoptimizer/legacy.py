"""The table of legacy code: the launches of each case, and the kernel that takes their place.

Two verdicts share a reference: that of the original, and that of the emitted file, which is proved against the
original's launches too. The floor of both is computed alike: the time of each launch, and each of its tensors once
through memory."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from trilift.lift.runtime.isolate import run

from ...base.progress import Progress
from ...base.targets import resolve
from ...records.options import Options
from ..experiment import Experiment, Result, by_name, tabled
from ..experiment import Row as Cells
from ..folders import CORPUS
from ..summary import searches as summary
from .accepted_files import PROOF, Accepted, accepted, kernel

GRACE = 300.0  # seconds of a process
MICRO = 1e6
SIZE = 1024  # of every dim
HEAD = ("case", "launches", "of PyTorch", "kernels", "floor before us", "floor after us", "unfused us", "model us",
        "roofline us", "the original", "emitted", "against the reference", "against the original", "s",
        "why not")  # fmt: skip
COLUMNS = {"legacy kernels": HEAD}
NOTES = (
    f"At {SIZE} for every dim, in the model of the H200; no time is a measurement. `floor`: the launches of the "
    "original (operations of PyTorch between them included), and of what was emitted, with the tensors of each once "
    "through memory. `model us`: of what was emitted, with all that the model knows; `unfused us`: the same of the "
    "program as it is written, one kernel for each operation; of the original's kernels only the floor is known.",
    "`the original`, `emitted` and `against the reference` are verdicts for all sizes: of the original kernels, of the "
    "emitted file against its own reference and against the case's; `against the original`: of the emitted file "
    "against what the original's launches compute.",
)


@dataclass(frozen=True, slots=True)
class Before:
    """The launches of a case: kernels by name, the number of PyTorch operations, and the least time that they take, in
    seconds."""

    kernels: tuple[str, ...] = ()
    torch: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Row:
    """A case before and after; `original`: the verdict of the emitted file against the original's launches; `floor`:
    what the emitted file launches; `unfused`: seconds of one kernel for each operation."""

    before: Before
    after: Accepted
    original: str = ""
    floor: Before = Before()
    unfused: float | None = None


def measure(name: str, options: Options, quiet: bool) -> Result:
    """The table; exit code 4 where a case has no accepted file."""
    with Progress(quiet) as progress:
        rows = list(_rows(options, progress.say))
    files = tuple((f"kernels/legacy_{r.after.name}.py", kernel(r.after, options.seed)) for r in rows if r.after.source)
    tables = tabled(COLUMNS, {"legacy kernels": map(_row, rows)})
    return Result(f"corpus {name}", tables, _data(rows), 4 if len(files) < len(rows) else 0, made=files)


EXPERIMENTS = by_name(Experiment("legacy", measure, COLUMNS, NOTES, summary))


def _rows(options: Options, say: Callable[[str], None]) -> Iterator[Row]:
    for target in resolve([str(CORPUS / "legacy")]):
        file = target.file
        found = run(_names, target.file, timeout=GRACE, context="forkserver")
        for name in found.value if found.failure is None else (Path(file).stem,):
            say(f"{file}::{name}")
            after = accepted(file, name, {}, options.seed)
            sizes, task = after.sizes, (target.file, name, options.seed)
            before = run(_before, *task, sizes, timeout=GRACE, context="forkserver")
            row = Row(before.value or Before(), after)
            if after.source:
                found = run(_compared, *task, asdict(after), timeout=GRACE, context="forkserver")
                row = replace(row, **(found.value or {"original": str(found.failure)}))
            yield row


def _names(file: str, event: Callable[[Any], None]) -> tuple[str, ...]:
    from trilift.lift.capture.case_files import load

    return tuple(c.name for c in load(file))


def _before(file: str, name: str, seed: int, sizes: dict[str, int], event: Callable[[Any], None]) -> Before:
    """Of one run on CPU tensors, with nothing launched."""
    from trilift.lift.capture.case_files import load
    from trilift.lift.capture.run import capture
    from trilift.lift.capture.trace import Launch, TensorRef
    from trilift.superopt.mugraph.cost import H200

    case = load(file, [name])[0]
    trace = capture(case, sizes or dict.fromkeys(case.names, SIZE), seed=seed)
    kernels, torch, seconds = [], 0, 0.0
    for e in trace.events:
        if isinstance(e, Launch):
            kernels.append(e.kernel)
            tensors = [x for x in e.args.values() if isinstance(x, TensorRef)]
        elif (tensors := _moved(e)) != []:
            torch += 1
        else:
            continue
        seconds += H200.launch + sum(map(_bytes, dict.fromkeys(tensors))) / H200.memory
    return Before(tuple(kernels), torch, seconds)


def _moved(e: Any) -> list[Any]:
    """The tensors of an operation of PyTorch that computes; none of one that makes or views memory."""
    from trilift.lift.capture.trace import TensorRef

    read = [x for x in (*e.args, *e.kwargs.values()) if isinstance(x, TensorRef)]
    known = {x.buffer.address for x in read}
    fresh = [x for x in e.outputs if x.buffer.address not in known]
    computes = read and "empty" not in str(e.func) and (fresh or e.func._schema.is_mutable)
    return [*read, *e.outputs] if computes else []


def _bytes(x: Any) -> int:
    count = 1
    for n in x.shape:
        count *= n
    return count * int(x.itemsize)


def _compared(file: str, name: str, seed: int, after: dict[str, Any], event: Callable[[Any], None]) -> dict[str, Any]:
    """The rest of a row: the verdict of an emitted file against what the launches compute, and its floor."""
    from trilift.lift.capture.case_files import load
    from trilift.lift.errors import Unsupported
    from trilift.superopt.jobs import proved
    from trilift.superopt.mugraph.json import from_json
    from trilift.superopt.search.unfused import unfused

    with tempfile.TemporaryDirectory(prefix="trilift-") as folder:
        path = Path(folder) / "emitted.py"
        path.write_text(after["source"])
        (emitted,) = load(str(path))
        floor = _before(str(path), emitted.name, seed, after["sizes"], event)
        said = proved(emitted, seed, PROOF, load(file, [name])[0])
    try:
        written = unfused(from_json(after["graph"]).program)[1]
    except Unsupported:
        written = None
    return {"original": said, "floor": floor, "unfused": written}


def _row(r: Row) -> Cells:
    a, b = r.after, r.before
    counts, before, roof = (a.name, str(len(b.kernels)), str(b.torch)), _us(b.seconds), _us(a.roofline)
    if not a.accepted:
        rest = (a.original, "-", "-", "-", f"{a.seconds:.1f}", "; ".join(a.notes))
        return (*counts, "-", before, "-", "-", "-", roof, *rest)
    own = a.verdict if a.bound is None else f"{a.verdict}, at most {a.bound:.0e}"
    times = (before, _us(r.floor.seconds), _us(r.unfused), _us(a.model), roof)
    return (*counts, str(a.kernels), *times, a.original, own, a.same, r.original, f"{a.seconds:.1f}", "")


def _us(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds * MICRO:.2f}"


def _data(rows: list[Row]) -> dict[str, Any]:
    from ...base.version import VERSION

    return {"schema": 1, "version": VERSION, "cases": [_case(r) for r in rows]}


def _case(r: Row) -> dict[str, Any]:
    a = r.after
    optimize = {
        "engine": "mugraph", "states": a.states, "values": a.values, "candidates": a.candidates, "kernels": a.kernels,
        "seconds": a.search, "model_us": a.model * MICRO, "roofline_us": a.roofline * MICRO,
        "emitted": f"build/results/kernels/legacy_{a.name}.py" if a.accepted else None,
        "verdict": a.verdict or "UNKNOWN", "bound": a.bound, "same": a.same, "against_original": r.original,
        "steps": list(a.steps), "contract": list(a.contract), "notes": list(a.notes),
    }  # fmt: skip
    before = {**asdict(r.before), "floor_us": r.before.seconds * MICRO}
    optimize |= {"floor_us": r.floor.seconds * MICRO, "unfused_us": r.unfused and r.unfused * MICRO}
    return {"name": a.name, "file": a.file, "sizes": a.sizes, "against": a.against, "original": a.original,
            "before": before, "optimize": optimize}  # fmt: skip
