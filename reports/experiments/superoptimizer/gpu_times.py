"""Emitted kernels on a GPU, beside the kernels they are from, PyTorch as it is, torch.compile and attention of PyTorch:

    make gpu                        times the files in build/results/kernels, within ten minutes
    trilift report gpu-times        the page of these timings

The command `trilift report mirage legacy` writes the files; summary.json lists their sizes.

Every row is written as soon as it is measured. Inputs are normal numbers times 0.3, so that kernels without a maximum
under their exponentials do not overflow. The expected outputs are those of a float64 computation on the same inputs."""

from __future__ import annotations

import importlib
import importlib.util
import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import click

from ...base.fingerprint import ROOT
from ...records.options import Options
from .. import summary
from ..experiment import Experiment, Result, Row, by_name, tabled
from ..folders import RAW, SUMMARY

if TYPE_CHECKING:
    from trilift.lift.cases.declaration import Case
    from trilift.superopt.accept.timing import Device, Measured

FILE = RAW / "gpu-times.json"
NOTHING = "nothing was emitted yet: trilift report mirage legacy"
BUDGET = 540.0  # seconds
MICRO = 1e6
SOURCES = ("mirage", "legacy")
Function = Callable[..., Any]
Timed = dict[str, Any]


@dataclass(frozen=True)
class Job:
    """One case at one set of sizes: `file` was emitted for it."""

    case: Case
    sizes: Mapping[str, int]
    file: Path
    model: float | None  # microseconds of the model, where the file was emitted for these sizes
    roofline: float | None
    source: ModuleType


def jobs(path: Path = SUMMARY) -> Iterator[Job]:
    """The jobs for the files that the superoptimizer's tables list as emitted, at all sizes that the tables have for
    each. Raises click.ClickException if a file is missing."""
    from trilift.lift.capture.case_files import load

    for rows in (summary.emitted(name, path) for name in SOURCES):
        files = {r["name"]: _emitted(r) for r in rows if r.get("emitted")}
        for r in rows:
            if r["name"] not in files or "sizes" not in r:
                continue
            case = next(c for c in load(str(ROOT / r["file"])) if c.name == r["name"])
            model = r.get("model_us") if r.get("emitted") else None
            source = _module(ROOT / r["file"])
            yield Job(case, r["sizes"], files[r["name"]], model, r.get("roofline_us"), source)


def _emitted(r: Mapping[str, Any]) -> Path:
    """The file of a row."""
    found = RAW / "kernels" / Path(r["emitted"]).name
    if not found.is_file():
        raise click.ClickException(f"{found.name} is not there: trilift report mirage legacy writes it")
    return found


def _module(path: Path) -> ModuleType:
    """A file as a module; one of this project by its own name, as it may import its neighbours."""
    if path.is_relative_to(ROOT / "corpus"):
        return importlib.import_module(".".join(("trilift", *path.relative_to(ROOT).with_suffix("").parts)))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def rivals(job: Job) -> dict[str, Function]:
    """The functions to time for a job, by name: the emitted file first."""
    import torch

    plain = job.case.reference.fn or job.case.fn
    out: dict[str, Function] = {"emitted": getattr(_module(job.file), job.case.name)}
    if job.case.reference.fn is not None:
        out["legacy"] = job.case.fn
    out["eager"] = plain
    out["compile"] = torch.compile(plain, mode="max-autotune-no-cudagraphs")
    own: dict[str, Function] = getattr(job.source, "RIVALS", {}).get(job.case.name, {})
    return out | own


def timed(
    work: list[Job], device: Device, where: str, path: Path, budget: float, say: Callable[[str], None]
) -> list[Timed]:
    """All rows, written to `path` after each: first whether every emitted function is right, then the times, the sizes
    first for which the files were emitted. Functions beyond the budget of seconds are named, without times."""
    start = time.monotonic()
    rows: dict[tuple[str, str, str], Timed] = {}

    def add(job: Job, name: str, found: Measured) -> None:
        rows[job.case.name, _at(job.sizes), name] = {
            "case": job.case.name, "sizes": dict(job.sizes), "function": name, "model_us": job.model,
            "roofline_us": job.roofline, **found.record()}  # fmt: skip
        say(f"{job.case.name} {_at(job.sizes)} {name}: {_told(found)}")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({**about(where), "rows": list(rows.values())}, indent=1) + "\n")

    for job in work:
        add(job, "emitted", _checked(job, where))
    for job in sorted(work, key=lambda j: j.model is None):
        if time.monotonic() - start > budget:
            say(f"{job.case.name}: not timed, the {budget:.0f} s are over")
            continue
        for name, found in _measured(job, device, where):
            add(job, name, found)
    return list(rows.values())


def _checked(job: Job, where: str) -> Measured:
    """How far the outputs of the emitted function are from the float64 computation, without times."""
    from trilift.superopt.accept.timing import checked, inputs, wanted

    xs = inputs(job.case, job.sizes, where)
    return checked(getattr(_module(job.file), job.case.name), xs, wanted(job.case, xs))


def _measured(job: Job, device: Device, where: str) -> Iterator[tuple[str, Measured]]:
    from trilift.superopt.accept.timing import inputs, measured, turns, wanted

    sets = turns(inputs(job.case, job.sizes, where), device)
    right = wanted(job.case, sets[0])
    for name, f in rivals(job).items():
        yield name, measured(f, sets, right, device)


def about(where: str) -> dict[str, Any]:
    """Date, device, clocks and versions."""
    import torch
    import triton

    out: dict[str, Any] = {"schema": 1, "date": datetime.now(UTC).isoformat(timespec="seconds"), "device": "processor"}
    if where == "cuda":
        p = torch.cuda.get_device_properties(0)
        out |= {"device": p.name, "multiprocessors": p.multi_processor_count, "memory": p.total_memory,
                "l2": p.L2_cache_size, "cuda": torch.version.cuda, "clocks": clocks()}  # fmt: skip
    return out | {"torch": torch.__version__, "triton": triton.__version__}


def clocks() -> dict[str, str]:
    """The clocks, temperature, power and driver version that nvidia-smi prints now, by field; {} if it is not
    installed."""
    import shutil
    import subprocess

    fields = ("clocks.sm", "clocks.mem", "temperature.gpu", "power.draw", "driver_version")
    if shutil.which("nvidia-smi") is None:
        return {}
    command = ["nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader", "--id=0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    return dict(zip(fields, (v.strip() for v in done.stdout.strip().split(",")), strict=False))


# ---- the page --------------------------------------------------------------------------------------------------------

COLUMNS = {
    "Timings": (
        "case", "sizes", "function", "cold us", "low - high", "warm us", "slower, cold", "error", "model us",
        "roofline us",
    ),
}  # fmt: skip


def result(data: Mapping[str, Any]) -> Result:
    """The timings as a table: microseconds, and how many times slower than the emitted kernel a function is."""
    ours = {(r["case"], _at(r["sizes"])): r for r in data["rows"] if r["function"] == "emitted"}
    rows = [_cells(r, ours.get((r["case"], _at(r["sizes"])))) for r in data["rows"]]
    said = [f"{k} {data[k]}" for k in ("device", "torch", "triton", "cuda") if data.get(k)]
    said += [f"{k} {v}" for k, v in data.get("clocks", {}).items()]
    notes = (f"Timed on {data['date']}: {', '.join(said)}.",)
    return Result("emitted kernels on a GPU", tabled(COLUMNS, {"Timings": rows}), {"timings": dict(data)}, 0, notes)


def measure(name: str, options: Options, quiet: bool) -> Result:
    """The timings of this machine's GPU, taken now; without one, those in build/results that were taken last. Raises
    click.ClickException where there are none."""
    from trilift.superopt.accept.timing import device, present

    if kind := present():
        timed(list(jobs()), device(kind), kind, FILE, BUDGET, lambda text: click.echo(text, err=True))
    if not FILE.is_file():
        raise click.ClickException("nothing was timed yet, and there is no GPU: `make gpu` on a machine with one")
    data = json.loads(FILE.read_text())
    return result(data.get("timings", data))


EXPERIMENTS = by_name(Experiment("gpu-times", measure, COLUMNS, summary=summary.timings))


def _cells(r: Timed, own: Timed | None) -> Row:
    if r["cold"] is None:
        error = "" if r["before"] is None else f"{r['before']:.1e}"
        return (r["case"], _at(r["sizes"]), r["function"], r["why"] or "not timed", *[""] * 3, error, *[""] * 2)
    cold, warm = r["cold"], r["warm"]
    slower = f"{cold['median'] / own['cold']['median']:.2f}" if own and own["cold"] else ""
    span = f"{cold['low'] * MICRO:.2f} - {cold['high'] * MICRO:.2f}"
    graph = "" if cold["captured"] else " (no graph)"
    number = lambda x: "" if x is None else f"{x:.2f}"  # noqa: E731
    return (r["case"], _at(r["sizes"]), r["function"] + graph, f"{cold['median'] * MICRO:.2f}", span,
            f"{warm['median'] * MICRO:.2f}", slower, f"{r['before']:.1e}", number(r["model_us"]),
            number(r["roofline_us"]))  # fmt: skip


def _at(sizes: Mapping[str, int]) -> str:
    return " ".join(f"{n}={v}" for n, v in sizes.items())


def _told(m: Measured) -> str:
    if m.cold is None or m.warm is None:
        return m.why if m.before is None else f"{m.why or 'right'}, relative error {m.before:.1e}"
    return f"{m.cold.median * MICRO:.2f} us cold, {m.warm.median * MICRO:.2f} us warm"


@click.command()
@click.option("--budget", default=BUDGET, show_default=True, help="seconds in all")
@click.option("-o", "output", default=str(FILE), show_default=True, help="the JSON that is written")
@click.argument("names", nargs=-1)
def main(budget: float, output: str, names: tuple[str, ...]) -> None:
    """Time the emitted kernels on this machine's GPU."""
    from trilift.superopt.accept.timing import device, present

    kind = present()
    if not kind:
        click.echo("no GPU: nothing was timed; what is emitted is ranked by the model", err=True)
        raise SystemExit(3)
    work = [j for j in jobs() if not names or j.case.name in names]
    if not work:
        click.echo(NOTHING, err=True)
        raise SystemExit(3)
    timed(work, device(kind), kind, Path(output), budget, lambda text: click.echo(text, err=True))
    click.echo(output)


if __name__ == "__main__":
    main()
