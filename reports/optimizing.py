"""`trilift optimize`: a faster kernel for each case of the targets, proved as emitted, written to a file or folder."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lift.errors import TriliftError, Unsupported

from .progress import Progress
from .targets import Target

if TYPE_CHECKING:
    from lift.case import Case
    from superopt.optimize import Emitted, Optimised

MICRO = 1e6


@dataclass(frozen=True, slots=True)
class Asked:
    """How it was asked for. `sizes`: of dims, at which plans are ranked; `budget`: seconds of the search."""

    sizes: Mapping[str, int]
    budget: float
    kernels: int
    operators: int
    seed: int
    timeout: float
    form: str


def sizes(text: str) -> dict[str, int]:
    """The numbers of "M=16,K=4096". Raises click.UsageError."""
    found: dict[str, int] = {}
    for part in filter(None, (p.strip() for p in text.split(","))):
        name, _, number = part.partition("=")
        if not name.isidentifier() or not number.strip().isdigit() or int(number) < 1:
            raise click.UsageError(f"--at takes sizes as M=16,K=4096, and not {part!r}")
        found[name] = int(number)
    return found


def optimize(targets: Sequence[Target], output: str, asked: Asked, quiet: bool) -> int:
    """Writes the files and prints what was found; returns the exit code: 0, 4 where nothing was accepted, 3 where there
    is no program to search, 2 for a case that cannot be read."""
    codes: set[int] = set()
    records: list[dict[str, Any]] = []
    cases = list(_cases(targets))
    known = {n for case, _, _ in cases if case for n in case.names}
    if cases and (unknown := [n for n in asked.sizes if n not in known]):
        raise click.UsageError(f"--at: no case has a size {unknown[0]}; there are {', '.join(sorted(known)) or 'none'}")
    with Progress(quiet) as progress:
        for case, target, error in cases:
            if case is None:
                click.echo(f"{target.file}: {error}", err=True)
                codes.add(2)
                continue
            name = f"{target.file}::{case.name}"
            try:
                found = _optimised(case, target, output, asked, progress)
            except Unsupported as e:
                click.echo(f"{name}: no program to search: {e}", err=True)
                codes.add(3)
                continue
            except TriliftError as e:
                click.echo(f"{name}: {e}", err=True)
                codes.add(2)
                continue
            path = _written(found, output, case) if found.best else None
            codes.add(0 if found.best else 4)
            records.append(record(found, target.file, path))
            if asked.form == "text":
                click.echo("\n".join(told(found, name, path)))
    if asked.form == "json":
        from .cli import VERSION

        click.echo(json.dumps({"schema": 1, "version": VERSION, "cases": records}, indent=1))
    if not codes:
        click.echo("nothing to optimize: no case", err=True)
    return next((c for c in (2, 4, 3) if c in codes), 0) if codes else 3


def _cases(targets: Sequence[Target]) -> Iterator[tuple[Case | None, Target, str]]:
    from lift.load import load

    for target in targets:
        try:
            found = [c for c in load(target.file, target.cases) if not target.only or c.name in target.only]
        except TriliftError as e:
            yield None, target, str(e)
            continue
        for c in found:
            yield c, target, ""


def _optimised(case: Case, target: Target, output: str, asked: Asked, progress: Progress) -> Optimised:
    import torch
    import triton

    from superopt.optimize import optimise
    from superopt.search import Limits

    from .cli import VERSION

    progress.hear(target.file, "", [case.name])
    limits = Limits(kernels=asked.kernels, operators=asked.operators, seconds=asked.budget)
    at = "".join(f" --at {n}={v}" for n, v in asked.sizes.items() if n in case.names)
    command = f"trilift optimize {target.file}::{case.name}{at} --seed {asked.seed} -o {output}"
    header = [f"Written by {command}", f"trilift {VERSION}, triton {triton.__version__}, torch {torch.__version__}"]
    say = lambda text: progress.hear(target.file, case.name, f"stage:{text}")  # noqa: E731
    own = {n: v for n, v in asked.sizes.items() if n in case.names}
    return optimise(case, own, limits, seed=asked.seed, timeout=asked.timeout, header=header, say=say)


def _written(found: Optimised, output: str, case: Case) -> str:
    """The path of the file that was written."""
    assert found.best is not None
    folder = os.path.isdir(output) or output.endswith(os.sep)
    path = Path(output) / f"{case.name}.py" if folder else Path(output)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(found.best.source, encoding="utf-8")
    return str(path)


def told(found: Optimised, name: str, path: str | None) -> list[str]:
    """What is printed of one case."""
    from superopt.mugraph import text

    f = found.found
    roof = f.model.roofline * MICRO
    at = ", ".join(f"{n}={v}" for n, v in found.sizes.items())
    out = [f"{name}: {'accepted' if found.best else 'nothing accepted'} in {found.seconds:.1f} s"]
    if found.original:
        out.append(f"  the original: {found.original}")
    out += [f"  searched at {at}: {len(f.universe.bits)} values, {f.states} states, {f.candidates} kernels, "
            f"{len(f.plans)} plans kept, {f.seconds:.2f} s"]  # fmt: skip
    if f.excluded is not None:
        out.append(f"  every plan that was not looked at takes more than {f.excluded * MICRO:.2f} us in the model")
    if found.best:
        out.append(
            f"  {found.best.seconds * MICRO:.2f} us in the model of {f.model.hardware.name}, roofline {roof:.2f} us"
        )
        out += [f"  {line}" for line in text(found.best.graph).splitlines()]
    for e in found.tried:
        out += [f"  {line}" for line in str(e.acceptance).splitlines()]
    out += [f"  note: {n}" for n in found.notes]
    return [*out, f"  written to {path}"] if path else out


def record(found: Optimised, file: str, path: str | None) -> dict[str, Any]:
    """One case as plain data."""
    f, best = found.found, found.best
    return {
        "name": found.case.name,
        "file": file,
        "against": found.against,
        "original": found.original,
        "optimize": {
            "engine": "mugraph",
            "states": f.states,
            "values": len(f.universe.bits),
            "candidates": f.candidates,
            "kernels": len(best.graph.kernels) if best else None,
            "seconds": round(f.seconds, 4),
            "model_us": round(best.seconds * MICRO, 3) if best else None,
            "roofline_us": round(f.model.roofline * MICRO, 3),
            "excluded_us": None if f.excluded is None else round(f.excluded * MICRO, 3),
            "emitted": path,
            "verdict": _verdict(best),
            "bound": best.bound if best else None,
            "steps": [_step(e) for e in found.tried],
            "notes": found.notes,
        },
    }


def _verdict(best: Emitted | None) -> str:
    return best.acceptance.verdict if best else "UNKNOWN"


def _step(e: Emitted) -> list[dict[str, Any]]:
    steps = e.acceptance.steps
    return [{"name": s.name, "passed": s.passed, "text": s.text, "seconds": round(s.seconds, 3)} for s in steps]
