"""The table of Mirage's programs: searches, what they find beside what the paper found, the files that are emitted.

Searches are measured alone, without compiling, in processes without PyTorch; then Algorithm 1 on the same programs,
then one emitted and accepted file for each program, last the µGraphs that Mirage saved."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from trilift.lift.runtime.isolate import run

from ...base.progress import Progress
from ...base.targets import resolve
from ...records.options import Options
from ..experiment import Experiment, Result, Row, Table, by_name, tabled
from ..folders import CORPUS
from ..summary import searches as summary
from . import published
from .accepted_files import Accepted, accepted, kernel
from .search_runs import PRUNING, enumerated, searched
from .structures import BEST

BATCHES = (1, 8, 16)
EMITTED = 8  # the batch size at which plans of emitted files are ranked
BUDGET = 60.0  # seconds of a search
BASELINE = 10.0  # seconds of Algorithm 1
GRACE = 120.0  # seconds of a process beside these
MICRO = 1e6
SEARCHED = ("program", "batch", "values", "states", "candidates", "s", "MB", "kernels", "model us", "roofline us",
            "of roofline", "its structure", "field test")  # fmt: skip
ALGORITHM = ("program", "roles", "operators", "pruning", "states", "tests", "found", "s", "ended", "MB")
FILES = ("program", "kernels", "model us", "of its own reference", "against the case", "s", "file, or why not")
FOUND = f"emitted files, ranked at batch {EMITTED}"
COLUMNS = {
    "searches": SEARCHED,
    "what the paper found, and its figures": (
        "program", "the paper's best structure", "published search", "published speed-up",
    ),
    "Algorithm 1": ALGORITHM,
    FOUND: FILES,
    "µGraphs that Mirage saved": published.HEAD,
}  # fmt: skip
NOTES = (
    "Times of kernels are those of a model of the H200 (superopt/mugraph/cost.py) and no measurements. `s` of a search "
    "is the whole search in one process on one core, from the saturation on, without reading the case, emitting or "
    "compiling; "
    "`MB` is the most memory of that process, the interpreter included.",
    "`its structure`: the place of the first plan that has the structure which the paper found best, with its time "
    "relative to the first plan; it is asked of kernels, modes and operators of the µGraph.",
    "Algorithm 1 (superopt/search/algorithm1.py) is our re-creation at the level of blocks, with the roles of axes "
    "and the number of operators of the best single kernel, and ended after a time; `found` are the graphs that "
    "compute the "
    "program. Published figures are Mirage's own, on its machines.",
)


@dataclass(frozen=True, slots=True)
class Program:
    """A case of the corpus at a batch size; `data`: the program as JSON."""

    file: str
    name: str
    batch: int
    sizes: dict[str, int]
    data: str


@dataclass
class Measured:
    """All that was measured, in order."""

    searches: list[tuple[Program, dict[str, Any]]] = field(default_factory=list)
    baseline: list[tuple[Program, str, dict[str, Any]]] = field(default_factory=list)
    files: list[Accepted] = field(default_factory=list)
    judged: list[Row] = field(default_factory=list)


def measure(name: str, options: Options, quiet: bool) -> Result:
    """Tables and files of all programs; exit code 4 where a program has no accepted file, or a search found nothing."""
    with Progress(quiet) as progress:
        every = list(programs())
        found = _measured(every, options, progress.say)
    failed = any(not r.get("plans") for _, r in found.searches) or not all(a.accepted for a in found.files)
    files = tuple((f"kernels/{a.name}.py", kernel(a, options.seed)) for a in found.files if a.accepted)
    return Result(f"corpus {name}", _tables(found), _data(found), 4 if failed else 0, made=files)


EXPERIMENTS = by_name(Experiment("mirage", measure, COLUMNS, NOTES, summary))


def programs() -> Iterator[Program]:
    """Every case at every batch size. Raises RuntimeError where one cannot be read."""
    for target in resolve([str(CORPUS / "mirage")]):
        for batch in BATCHES:
            outcome = run(_read, target.file, batch, timeout=GRACE, context="forkserver")
            if outcome.failure:
                raise RuntimeError(f"{target.file}: {outcome.failure}\n{outcome.log}")
            yield from (Program(target.file, n, batch, s, data) for n, s, data in outcome.value)


def _read(file: str, batch: int, event: Callable[[Any], None]) -> list[tuple[str, dict[str, int], str]]:
    """Name, sizes and program of each case of a file."""
    from trilift.lift.capture.case_files import by_file, load
    from trilift.superopt.jobs import read

    sizes = by_file(file).sizes(batch)
    return [(c.name, sizes, read(file, c.name, sizes, 0, event)["program"]) for c in load(file)]


# ---- measurements ----------------------------------------------------------------------------------------------------


def _measured(programs: Sequence[Program], options: Options, say: Callable[[str], None]) -> Measured:
    out = Measured()
    for p in programs:
        say(f"search {p.name} at batch {p.batch}")
        found = run(searched, p.data, BUDGET, options.seed, timeout=BUDGET + GRACE, context="spawn")
        out.searches.append((p, found.value if found.failure is None else {"failed": found.failure}))
    for p in (p for p in programs if p.batch == EMITTED):
        for pruning in PRUNING:
            say(f"Algorithm 1 on {p.name}, {pruning}")
            made = run(enumerated, p.data, pruning, BASELINE, options.seed, timeout=BASELINE + GRACE, context="spawn")
            out.baseline.append((p, pruning, made.value if made.failure is None else {"failed": made.failure}))
    for p in (p for p in programs if p.batch == EMITTED):
        say(f"emit {p.name}")
        out.files.append(accepted(p.file, p.name, p.sizes, options.seed))
    say("judge what was saved")
    judged = run(_judged, options.seed, timeout=BUDGET + GRACE, context="forkserver")
    out.judged = judged.value if judged.failure is None else [(judged.failure, *("-" for _ in published.HEAD[1:]))]
    return out


def _judged(seed: int, event: Callable[[Any], None]) -> list[Row]:
    return published.judged(seed=seed)


# ---- tables ----------------------------------------------------------------------------------------------------------


def _tables(m: Measured) -> tuple[Table, ...]:
    figures = published.FIGURES
    rows: dict[str, list[Row]] = {
        "searches": [searched_row(p, r) for p, r in m.searches],
        "what the paper found, and its figures": [
            (n, s.text, figures[n].search, figures[n].speed) for n, s in BEST.items()
        ],
        "Algorithm 1": [_baseline_row(p, how, r) for p, how, r in m.baseline],
        FOUND: [_file_row(a) for a in m.files],
        "µGraphs that Mirage saved": m.judged,
    }
    return tabled(COLUMNS, rows)


def searched_row(p: Program, r: dict[str, Any]) -> Row:
    """One search: what it took, and the best plan."""
    if not r.get("plans"):
        why = r.get("failed", "no plan")
        return (p.name, str(p.batch), *("-" for _ in SEARCHED[3:]), why)
    from trilift.superopt.mugraph.json import from_json

    best = r["plans"][0]
    tested = f"at most {r['bound']:.0e}" if r["equal"] and r["bound"] < 1 else "equal, no bound" if r["equal"] else "no"
    return (
        p.name, str(p.batch), str(r["values"]), str(r["states"]), str(r["candidates"]), f"{r['seconds']:.2f}",
        f"{r['memory']:.0f}", str(len(from_json(best["graph"]).kernels)), f"{best['seconds'] * MICRO:.2f}",
        f"{r['roofline'] * MICRO:.2f}", f"{best['seconds'] / r['roofline']:.1f}x", place(p.name, r["plans"]), tested,
    )  # fmt: skip


def place(name: str, plans: Sequence[dict[str, Any]]) -> str:
    """Which plan is the first with the paper's structure."""
    from trilift.superopt.mugraph.json import from_json

    at = next((k for k, x in enumerate(plans) if BEST[name].holds(from_json(x["graph"]))), None)
    if at is None:
        return "not found"
    slower = plans[at]["seconds"] / plans[0]["seconds"]
    return "the best" if at == 0 else f"plan {at + 1}, {slower:.2f}x"


def _baseline_row(p: Program, pruning: str, r: dict[str, Any]) -> Row:
    if "failed" in r:
        return (p.name, "-", "-", pruning, "-", "-", "-", "-", r["failed"], "-")
    roles = ", ".join(f"{a} {m}" for a, m in r["roles"].items())
    ended = "complete" if r["complete"] else "cut"
    numbers = (str(r["states"]), str(r["tests"]), str(r["found"]), f"{r['seconds']:.2f}")
    return (p.name, roles, str(r["operators"]), pruning, *numbers, ended, f"{r['memory']:.0f}")


def _file_row(a: Accepted) -> Row:
    if not a.accepted:
        return (a.name, "-", "-", "-", "-", f"{a.seconds:.1f}", "; ".join(a.notes))
    own = a.verdict if a.bound is None else f"{a.verdict}, at most {a.bound:.0e}"
    model = f"{a.model * MICRO:.2f}"
    return (a.name, str(a.kernels), model, own, a.same, f"{a.seconds:.1f}", f"build/results/kernels/{a.name}.py")


# ---- data ------------------------------------------------------------------------------------------------------------


def _data(m: Measured) -> dict[str, Any]:
    from ...base.version import VERSION

    emitted = {a.name: a for a in m.files}
    return {
        "schema": 1, "version": VERSION,
        "cases": [_case(p, r, emitted.get(p.name) if p.batch == EMITTED else None) for p, r in m.searches],
        "algorithm1": [{"name": p.name, "pruning": how, **r} for p, how, r in m.baseline],
        "published": {n: asdict(f) for n, f in published.FIGURES.items()},
        "saved": [dict(zip(published.HEAD, row, strict=True)) for row in m.judged],
    }  # fmt: skip


def _case(p: Program, r: dict[str, Any], a: Accepted | None) -> dict[str, Any]:
    plans = r.get("plans") or []
    found = {k: x for k, x in r.items() if k in ("values", "states", "candidates", "seconds", "memory", "failed")}
    optimize: dict[str, Any] = {"engine": "mugraph", **found, "plans": len(plans)}
    if plans:
        from trilift.superopt.mugraph.json import from_json

        optimize |= {
            "kernels": len(from_json(plans[0]["graph"]).kernels), "model_us": plans[0]["seconds"] * MICRO,
            "roofline_us": r["roofline"] * MICRO, "structure": place(p.name, plans),
            "field_equal": r["equal"], "field_bound": r["bound"],
        }  # fmt: skip
    if a is not None:
        path = f"build/results/kernels/{a.name}.py" if a.accepted else None
        optimize |= {"emitted": path, "verdict": a.verdict or "UNKNOWN", "bound": a.bound, "same": a.same,
                     "steps": list(a.steps), "contract": list(a.contract), "notes": list(a.notes)}  # fmt: skip
    return {"name": p.name, "file": p.file, "batch": p.batch, "sizes": p.sizes, "optimize": optimize}
