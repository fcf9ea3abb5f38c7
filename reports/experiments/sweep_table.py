"""`trilift corpus sweep`: every kernel in the modules of the installed packages, and what is missing to read it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from ..base.progress import Progress
from ..records.options import Options
from .corpus import Result

KERNEL_STAGES = ("guess", "parse", "start", "done", "crash")  # the others are counted apart
ENOUGH = 0.95  # of the kernels


def sweep(options: Options, quiet: bool) -> Result:
    """Kernels by package, causes of what is missing; exit code 4 if fewer than 95 % can start."""
    from importlib.util import find_spec

    from ..discovery.sweep import PACKAGES
    from ..discovery.sweep import sweep as run

    with Progress(quiet) as progress:
        installed = [p for p in PACKAGES if find_spec(p)]
        progress.say(f"reading the kernels of {', '.join(installed)}")
        found = run(installed, options.jobs)
    kernels = [r for r in found if r.stage in KERNEL_STAGES]
    startable = sum(r.stage == "done" for r in kernels)
    tables = (
        ("kernels", [("package", "kernels", "parsed", "startable", "%", "executed", "apart"), *_packages(found)]),
        ("missing, by cause", [("kernels", "stage", "cause"), *_causes(kernels)]),
        ("apart", [("count", "why"), *_apart(found)]),
    )
    code = 0 if kernels and startable >= ENOUGH * len(kernels) else 4 if kernels else 3
    return Result("corpus sweep", tables, {"kernels": [asdict(r) for r in found]}, code)


def _packages(found: Sequence[Any]) -> list[tuple[str, ...]]:
    names = dict.fromkeys(r.package for r in found)
    return [*(_row(p, [r for r in found if r.package == p]) for p in names), _row("all", found)]


def _row(name: str, found: Sequence[Any]) -> tuple[str, ...]:
    kernels = [r for r in found if r.stage in KERNEL_STAGES]
    parsed = sum(r.stage in ("start", "done") for r in kernels)
    startable = sum(r.stage == "done" for r in kernels)
    executed = sum(r.ran == "ran" for r in kernels)
    share = f"{100 * startable / len(kernels):.1f}" if kernels else "-"
    return (name, str(len(kernels)), str(parsed), str(startable), share, str(executed), str(len(found) - len(kernels)))


def _causes(kernels: Sequence[Any]) -> list[tuple[str, ...]]:
    counted = Counter((r.stage, r.cause.splitlines()[0][:120] if r.cause else "") for r in kernels if r.stage != "done")
    return [(str(n), stage, cause) for (stage, cause), n in counted.most_common()]


def _apart(found: Sequence[Any]) -> list[tuple[str, ...]]:
    counted = Counter(r.stage for r in found if r.stage not in KERNEL_STAGES)
    return [(str(n), why) for why, n in counted.most_common()]
