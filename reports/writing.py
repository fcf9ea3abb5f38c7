"""`trilift write`: tests of the cases of each target, written to a file, or to a folder where there are several files.

What a file holds, for each case: the proved formula as PyTorch in float64, a bound of the rounding error with its
derivation, a strategy for calls, and tests that

    it equals its formula, at every element, at the sizes where something changes, and writes nothing else
    the comparison rejects results that are wrong
    it writes every element, and gives the same bits twice
    each law holds that follows from the formula
    calls that the contract excludes are refused; those that are accepted are reported (xfail, and never made where
    they could damage the process)
    it is right on inputs that it is known to fail on: strict xfail with what is wrong as the reason. The bug is shown
    and the run stays green; once the kernel is repaired the test fails until its mark is taken off

A case without a formula, or whose formula PyTorch cannot compute, has the tests that remain, and the file says why.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .progress import Progress
from .targets import Target

if TYPE_CHECKING:
    from verify.suite import Suite

    from .written.facts import Facts


@dataclass(frozen=True, slots=True)
class Asked:
    """How it was asked for. `cache`: the folder of what is kept, where failures of earlier runs are."""

    seed: int
    examples: int
    timeout: float
    cache: str


def write(
    targets: Sequence[Target], output: str, *, seed: int, examples: int, timeout: float, cache: str, quiet: bool
) -> int:
    """Writes the files; returns the exit code: 0, 2 for a case that cannot be called, 3 where there is none."""
    from lift.errors import TriliftError

    paths = _paths(targets, output)
    codes: set[int] = set()
    with Progress(quiet) as progress:
        for target, path in paths.items():
            try:
                text = _text(target, path, Asked(seed, examples, timeout, cache), progress)
            except TriliftError as error:
                click.echo(str(error), err=True)
                codes.add(2)
                continue
            if not text:
                click.echo(f"nothing to write: no case in {target.file}", err=True)
                codes.add(3)
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            click.echo(f"wrote {path}")
    return next((c for c in (2, 3) if c in codes), 0) if paths else 3


def _paths(targets: Sequence[Target], output: str) -> dict[Target, Path]:
    """Where the tests of each target go. Raises click.UsageError for several files and no folder."""
    folder = os.path.isdir(output) or output.endswith(os.sep)
    if len(targets) > 1 and not folder and os.path.splitext(output)[1]:
        raise click.UsageError(f"the tests of {len(targets)} files need a folder: -o {os.path.splitext(output)[0]}/")
    if len(targets) == 1 and not folder:
        return {targets[0]: Path(output)}
    found: dict[Target, Path] = {}
    for t in targets:
        stem = f"test_{Path(t.file).stem}"
        taken = [p.stem for p in found.values()]
        found[t] = Path(output) / f"{stem if stem not in taken else f'{stem}_{len(found)}'}.py"
    return found


def _text(target: Target, path: Path, asked: Asked, progress: Progress) -> str:
    """The file's text, "" without a case."""
    from lift.load import load
    from verify.suite import suite

    from .cli import VERSION
    from .written import written
    from .written.facts import facts

    found: list[tuple[Suite, Facts]] = []
    for case in load(target.file, target.cases):
        if target.only and case.name not in target.only:
            continue

        def hear(stage: str, name: str = case.name) -> None:
            progress.hear(target.file, name, f"stage:{stage}")

        hear("suite")
        found.append((suite(case, seed=asked.seed, timeout=asked.timeout, progress=hear), facts(case, asked.seed)))
        progress.hear(target.file, case.name, "ok")
    command = f"trilift write {_spelled(target)} -o {path} --seed {asked.seed} --max-examples {asked.examples}"
    return written(found, target.file, str(path), command, VERSION, asked.examples) if found else ""


def _spelled(target: Target) -> str:
    """The target as it is given to the command."""
    return " ".join(f"{target.file}::{c}" for c in target.cases) or target.file
