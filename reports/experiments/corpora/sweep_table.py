"""`trilift corpus sweep`: every kernel in the modules of the installed packages, and what is missing to read it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from ...base.progress import Progress
from ...records.options import Options
from ..experiment import Experiment, Result, Row, by_name, tabled
from ..summary import kernels as summary

KERNEL_STAGES = ("guess", "parse", "start", "done", "crash")  # the others are counted apart
ENOUGH = 0.95  # of the kernels
COLUMNS = {
    "kernels": ("package", "kernels", "parsed", "startable", "%", "executed", "apart"),
    "missing, by cause": ("kernels", "stage", "cause"),
    "apart": ("count", "why"),
}


def measure(name: str, options: Options, quiet: bool) -> Result:
    """Kernels by package, causes of what is missing; exit code 4 if fewer than 95 % can start."""
    from importlib.util import find_spec

    from ...discovery.sweep import PACKAGES, sweep

    with Progress(quiet) as progress:
        installed = [p for p in PACKAGES if find_spec(p)]
        progress.say(f"reading the kernels of {', '.join(installed)}")
        found = sweep(installed, options.jobs)
    kernels = [r for r in found if r.stage in KERNEL_STAGES]
    startable = sum(r.stage == "done" for r in kernels)
    rows = {"kernels": _packages(found), "missing, by cause": _causes(kernels), "apart": _apart(found)}
    code = 0 if kernels and startable >= ENOUGH * len(kernels) else 4 if kernels else 3
    return Result(f"corpus {name}", tabled(COLUMNS, rows), {"kernels": [asdict(r) for r in found]}, code)


EXPERIMENTS = by_name(Experiment("sweep", measure, COLUMNS, summary=summary))


def _packages(found: Sequence[Any]) -> list[Row]:
    names = dict.fromkeys(r.package for r in found)
    return [*(_row(p, [r for r in found if r.package == p]) for p in names), _row("all", found)]


def _row(name: str, found: Sequence[Any]) -> Row:
    kernels = [r for r in found if r.stage in KERNEL_STAGES]
    parsed = sum(r.stage in ("start", "done") for r in kernels)
    startable = sum(r.stage == "done" for r in kernels)
    executed = sum(r.ran == "ran" for r in kernels)
    share = f"{100 * startable / len(kernels):.1f}" if kernels else "-"
    return (name, str(len(kernels)), str(parsed), str(startable), share, str(executed), str(len(found) - len(kernels)))


def _causes(kernels: Sequence[Any]) -> list[Row]:
    counted = Counter((r.stage, r.cause.splitlines()[0][:120] if r.cause else "") for r in kernels if r.stage != "done")
    return [(str(n), stage, cause) for (stage, cause), n in counted.most_common()]


def _apart(found: Sequence[Any]) -> list[Row]:
    counted = Counter(r.stage for r in found if r.stage not in KERNEL_STAGES)
    return [(str(n), why) for why, n in counted.most_common()]
