"""`trilift report tiles`: what equality saturation of tile programs makes of Trinity's programs and of Mirage's.

Every search is measured alone, in a process without PyTorch; what it finds is emitted and accepted as any other
file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from trilift.lift.runtime.isolate import run

from ...base.progress import Progress
from ...base.targets import resolve
from ...records.options import Options
from ..experiment import Experiment, Result, Row, Table, by_name, tabled
from ..folders import CORPUS
from ..summary import searches as summary
from . import mirage, trinity
from .accepted_files import Accepted, accepted, kernel
from .search_runs import saturated, searched

BUDGET = 60.0  # seconds of a search
GRACE = 240.0  # seconds of a process beside these
PATIENCE, PROOF = 1800.0, 300.0  # of a whole block, from the search to its proofs, and of one proof
BATCH = mirage.EMITTED
MICRO = 1e6
SEARCHES = ("program", "for", "bodies", "e-classes", "e-nodes", "programs", "saturated", "saturation s", "extraction s",
            "CPU s", "MB", "candidates")  # fmt: skip
BEST = (
    "program",
    "for",
    "one kernel us",
    "through memory",
    "fewest kernels",
    "us",
    "best of any number us",
    "emitted us",
    "roofline us",
)
PAPER = ("program", "saturation s", "extraction s", "profiling s, 8 GPUs", "speed-up over TensorRT, H100")
PUBLISHED = {  # Trinity, ASPLOS 2026
    "swi_glu": ("10", "30", "226", "1.10x"), "vanilla": ("7", "54", "142", "1.71x"),
    "qk_norm": ("10", "167", "198", "1.63x"), "pre_norm": ("14", "922", "226", "1.43x"),
    "ro_co": ("60", "592", "58", "1.37x"), "key_former": ("49", "1305", "105", "1.29x"),
}  # fmt: skip
EMITTED = ("program", "for", "kernels", "us", "roofline us", "of its own reference", "against the case",
           "with acceptance s", "or why not")  # fmt: skip
ENGINES = ("program", "µGraphs us", "kernels", "s", "tile programs us", "kernels", "s", "of its own reference",
           "against the case", "with acceptance s", "or why not")  # fmt: skip
BOTH = f"both engines, Mirage's programs at batch {BATCH}"
COLUMNS = {
    "e-graphs": SEARCHES,
    "what was extracted": BEST,
    "what was emitted": EMITTED,
    "what the paper says of its own search": PAPER,
    BOTH: ENGINES,
}
NOTES = (
    "Times of kernels come from the model in superopt/mugraph/cost.py; none is measured. At nominal tiles they are "
    "upper bounds of the model's times at the best tiles. `emitted us`: the time of the best µGraph with a maximum "
    "under each exponential, · if no extracted nest is a µGraph of at most four kernels; a file may have five. Of four "
    "candidates the first accepted one is emitted: it compiles for sm_90, its numbers hold up, and it is proved.",
    "`programs`: the number of tile programs in the e-graphs without a loop inside a loop over the same axis, counted "
    "exactly. `saturated`: no limit was reached; `no`: the e-graphs hold a part of what the rules make. The paper "
    "counts 2e17 programs, 434 e-classes and 2,058 e-nodes for the vanilla block. No e-graph has an axis that the "
    "whole program may be looped over: the bodies of blocks are without these loops.",
    "`saturation s`, `extraction s`: wall-clock time; `CPU s`: processor time of both.",
    "`through memory`: the tensors that a block of the one kernel stores tile by tile and loads again itself. In "
    "key_former and ro_co the worth of an entry of the cache depends on its exponentials and on their sums over the "
    "whole cache, and the tiles are gone by then. Such a kernel is extracted, and not emitted.",
)
Searched = tuple[str, str, dict[str, Any]]  # program, for which sizes, what `saturated` says or {"failed"}


@dataclass
class Measured:
    """All that was measured, in order."""

    trinity: list[Searched] = field(default_factory=list)
    emitted: list[tuple[str, Accepted]] = field(default_factory=list)  # for which sizes
    mirage: list[tuple[Searched, dict[str, Any], Accepted]] = field(default_factory=list)


def measure(name: str, options: Options, quiet: bool) -> Result:
    """The tables; exit code 4 where a search failed, or one of Mirage's programs has no accepted file."""
    out = Measured()
    with Progress(quiet) as progress:
        for file, sizes, (case, model, data) in _programs(progress.say):
            out.trinity.append(_searched(case, model, data, options.seed, progress.say))
            progress.say(f"emit {case} for {model}")
            made = accepted(file, case, sizes, options.seed, PATIENCE, PROOF, "tiles")
            out.emitted.append((model, made))
            progress.say(f"{case} for {model}: {_said(made)}")
        for p in (p for p in mirage.programs() if p.batch == BATCH):
            found = _searched(p.name, f"batch {BATCH}", p.data, options.seed, progress.say)
            other = run(searched, p.data, BUDGET, options.seed, timeout=BUDGET + GRACE, context="spawn")
            progress.say(f"emit {p.name}")
            made = accepted(p.file, p.name, p.sizes, options.seed, engine="tiles")
            progress.say(f"{p.name}: {_said(made)}")
            out.mirage.append((found, other.value if other.failure is None else {"failed": other.failure}, made))
    every = [*(a for _, a in out.emitted), *(a for *_, a in out.mirage)]
    failed = any("failed" in r for *_, r in out.trinity) or not all(a.accepted for a in every)
    texts = [(f"tiles/{n}_{m}.txt", _text(r)) for n, m, r in out.trinity if "failed" not in r]
    texts += [(f"kernels/tiles_{a.name}_{m}.py", kernel(a, options.seed)) for m, a in out.emitted if a.accepted]
    return Result(f"report {name}", _tables(out), _data(out), 4 if failed else 0, made=tuple(texts))


EXPERIMENTS = by_name(Experiment("tiles", measure, COLUMNS, NOTES, summary))


def _said(a: Accepted) -> str:
    if not a.accepted:
        return "; ".join(a.notes)
    return f"{a.kernels} kernels, {a.verdict}, {a.same} against the case, {a.seconds:.0f} s"


def _programs(say: Callable[[str], None]) -> Iterator[tuple[str, dict[str, int], tuple[str, str, str]]]:
    """File, sizes, and name, model and program of each case of the corpus."""
    for target in resolve([str(CORPUS / "trinity")]):
        say(f"read {target.file}")
        outcome = run(_read, target.file, timeout=GRACE, context="forkserver")
        if outcome.failure:
            raise RuntimeError(f"{target.file}: {outcome.failure}\n{outcome.log}")
        yield from ((target.file, *found) for found in outcome.value)


def _read(file: str, event: Callable[[Any], None]) -> list[tuple[dict[str, int], tuple[str, str, str]]]:
    from trilift.lift.capture.case_files import by_file, load
    from trilift.superopt.mugraph.graph import MuGraph
    from trilift.superopt.mugraph.json import to_json
    from trilift.superopt.program.views import of_case

    sizes = by_file(file).sizes
    return [
        (sizes(m), (c.name, m, to_json(MuGraph(of_case(c, sizes(m)), (), {}))))
        for c in load(file)
        for m in trinity.MODELS
    ]


def _searched(name: str, at: str, data: str, seed: int, say: Callable[[str], None]) -> Searched:
    say(f"saturate {name} for {at}")
    found = run(saturated, data, BUDGET, seed, timeout=BUDGET + GRACE, context="spawn")
    return name, at, found.value if found.failure is None else {"failed": found.failure}


# ---- tables ----------------------------------------------------------------------------------------------------------


def _tables(m: Measured) -> tuple[Table, ...]:
    every = [*m.trinity, *(found for found, *_ in m.mirage)]
    rows: dict[str, list[Row]] = {
        "e-graphs": [_size_row(s) for s in every],
        "what was extracted": [_best_row(s) for s in m.trinity],
        "what was emitted": [_emitted_row(at, a) for at, a in m.emitted],
        "what the paper says of its own search": [(n, *row) for n, row in PUBLISHED.items()],
        BOTH: [_engines_row(*row) for row in m.mirage],
    }
    return tabled(COLUMNS, rows)


def _size_row(s: Searched) -> Row:
    name, at, r = s
    if "failed" in r:
        return (name, at, *("-" for _ in SEARCHES[3:]), r["failed"])
    return (
        name, at, str(r["bodies"]), str(r["classes"]), str(r["nodes"]), f"{r['programs']:.1e}",
        "yes" if r["whole"] else "no", f"{r['saturating']:.1f}", f"{r['extracting']:.1f}", f"{r['cpu']:.1f}",
        f"{r['memory']:.0f}", str(r["candidates"]),
    )  # fmt: skip


def _best_row(s: Searched) -> Row:
    name, at, r = s
    nests = r.get("nests")
    if not nests:
        return (name, at, *("-" for _ in BEST[2:]))
    first, best = nests[0], min(n["seconds"] for n in nests)
    one = f"{first['seconds'] * MICRO:.1f}" if first["kernels"] == 1 else "-"
    emitted = "·" if r["model"] is None else f"{r['model'] * MICRO:.2f}"
    again = ", ".join(t for k in first["spilled"] for t in k) if first["kernels"] == 1 else ""
    nominal = f"{first['seconds'] * MICRO:.1f}", f"{best * MICRO:.1f}"
    return (name, at, one, again or "-", str(first["kernels"]), *nominal, emitted, f"{r['roofline'] * MICRO:.2f}")


def _engines_row(s: Searched, other: dict[str, Any], a: Accepted) -> Row:
    from trilift.superopt.mugraph.json import from_json

    name, _, r = s
    first = next(iter(other.get("plans") or []), None)
    mine = ("-", "-", "-")
    if first is not None:
        kernels = len(from_json(first["graph"]).kernels)
        mine = (f"{first['seconds'] * MICRO:.2f}", str(kernels), f"{other['seconds']:.2f}")
    theirs = ("-", "-", "-")
    if r.get("model") is not None:
        theirs = (f"{r['model'] * MICRO:.2f}", str(r["kernels"]), f"{r['saturating'] + r['extracting']:.1f}")
    told = (a.verdict, a.same) if a.accepted else ("-", "-")
    return (name, *mine, *theirs, *told, f"{a.seconds:.1f}", "" if a.accepted else "; ".join(a.notes))


def _emitted_row(model: str, a: Accepted) -> Row:
    seconds = f"{a.seconds:.1f}"
    if not a.accepted:
        return (a.name, model, "-", "-", f"{a.roofline * MICRO:.2f}", "-", "-", seconds, "; ".join(a.notes))
    times = f"{a.model * MICRO:.2f}", f"{a.roofline * MICRO:.2f}"
    return (a.name, model, str(a.kernels), *times, a.verdict, a.same, seconds, "")


def _text(r: dict[str, Any]) -> str:
    """The best nests, by the number of kernels, as tile programs."""
    parts = []
    for n in r["nests"]:
        grids = "; ".join(f"({', '.join(g)})" for g in n["grids"])
        again = "".join(f", {t} through memory" for k in n["spilled"] for t in k)
        head = f"# {n['kernels']} kernels, grids {grids}, {n['seconds'] * MICRO:.1f} us at nominal tiles{again}"
        parts.append(f"{head}\n{n['text']}")
    return "\n".join(parts)


def _data(m: Measured) -> dict[str, Any]:
    from ...base.version import VERSION

    rows = [*m.trinity, *(found for found, *_ in m.mirage)]
    return {
        "schema": 1, "version": VERSION,
        "cases": [{"name": n, "for": at, "optimize": {"engine": "tiles", **r}} for n, at, r in rows],
        "mugraph": [{"name": s[0], **{k: v for k, v in other.items() if k != "plans"}} for s, other, _ in m.mirage],
        "emitted": [{"for": at, **_plain(a)} for at, a in m.emitted],
        "accepted": [_plain(a) for *_, a in m.mirage],
    }  # fmt: skip


def _plain(a: Accepted) -> dict[str, Any]:
    return {k: v for k, v in asdict(a).items() if k not in ("graph", "source")}
