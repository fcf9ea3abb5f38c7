"""`trilift write`: tests of the cases of each target, written to a file, or to a folder where there are several files.

A file holds, for each case: the proved formula as PyTorch in float64, a bound of the rounding error with its
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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trilift.lift.runtime.budget import GUARD_SECONDS
from trilift.lift.runtime.isolate import Event, Outcome, run_all

from ..base import written_files
from ..base.plain_text import plain
from ..base.progress import Progress
from ..base.targets import Target
from ..runner import failures
from ..runner.local import PROVER

if TYPE_CHECKING:
    from trilift.lift.cases.declaration import Case

    from ..testgen.file import Printed

STAGE_SECONDS = 60.0  # seconds of a stage beyond twice what it may take of the processor
PRELOAD = (
    *PROVER,
    *(f"trilift.verify.properties.{name}" for name in ("suite", "sizes", "refusals", "laws", "tolerance")),
    "trilift.reports.testgen.file",
)


@dataclass(frozen=True, slots=True)
class Asked:
    """How it was asked for. `cache`: the folder of what is kept, where failures of earlier runs are."""

    seed: int
    examples: int
    timeout: float
    cache: str

    @property
    def patience(self) -> float:
        """Seconds after which a stage has failed."""
        return 2 * self.timeout + STAGE_SECONDS


def write(
    targets: Sequence[Target],
    output: str,
    *,
    seed: int,
    examples: int,
    timeout: float,
    cache: str,
    quiet: bool,
    force: bool = False,
) -> int:
    """Writes the files; returns the exit code: 0, 2 for a case that cannot be called, 3 where there is none. Raises
    click.UsageError where one would replace a file that trilift did not write; `force` replaces it."""
    paths = _paths(targets, output)
    for planned in paths.values():
        written_files.check("-o", str(planned), force)
    codes: set[int] = set()
    asked = Asked(seed, examples, timeout, cache)
    tasks = [(target, str(path), asked) for target, path in paths.items()]
    with Progress(quiet) as progress:

        def hear(index: int, event: tuple[str, str]) -> None:
            progress.hear(tasks[index][0].file, *event)

        patience = 2 * asked.patience
        for index, outcome in run_all(text_of, tasks, 1, patience, "forkserver", hear, renew=True, preload=PRELOAD):
            target, path, _ = tasks[index]
            if outcome.failure is not None:
                click.echo(plain(f"{target.file}: {_said(outcome)}"), err=True)
                codes.add(2)
                continue
            if not outcome.value:
                click.echo(f"nothing to write: no case in {target.file}", err=True)
                codes.add(3)
                continue
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            written_files.replace(path, outcome.value)
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


def text_of(target: Target, path: str, asked: Asked, event: Event) -> str:
    """The text of the file `path`, "" without a case. Each case is examined in a child of this process."""
    from trilift.lift.capture.case_files import load

    from ..testgen.file import complete

    cases = [c for c in load(target.file, target.cases) if not target.only or c.name in target.only]
    event(("", [c.name for c in cases]))
    parts = [_part(case, target, asked, event) for case in cases]
    command = f"trilift write {_spelled(target)} -o {path} --seed {asked.seed} --max-examples {asked.examples}"
    command += f" --timeout {asked.timeout:g}" * (asked.timeout != GUARD_SECONDS)
    return complete(parts, target.file, path, command, versions(), asked.examples) if parts else ""


def versions() -> str:
    """The dependencies of a file's text, beside its target."""
    from ..base.version import VERSION

    return f"{VERSION} with Triton {metadata.version('triton')} and PyTorch {metadata.version('torch')}"


def _part(case: Case, target: Target, asked: Asked, event: Event) -> Printed:
    """The tests of one case: with all that can be found out; where that ends badly, with what a few runs show."""
    from ..testgen.file import skipped

    notes: list[str] = []
    for examined in (True, False):
        task = (case, target.file, asked, tuple(notes), examined)
        hear = lambda index, stage: event((case.name, f"stage:{stage}"))  # noqa: E731
        [(_, outcome)] = run_all(_tests, [task], 1, asked.patience, on_event=hear, renew=True)
        if outcome.failure is None:
            event((case.name, "ok" if examined else notes[0]))
            found: Printed = outcome.value
            return found
        notes.append(f"it was not examined: {_said(outcome)}" if examined else _said(outcome))
    event((case.name, notes[-1]))
    return skipped(case.name, notes[-1])


def _tests(case: Case, file: str, asked: Asked, notes: tuple[str, ...], examined: bool, event: Event) -> Printed:
    """The tests of a case, made in a process of its own."""
    from trilift.verify.properties.suite import suite

    from ..testgen.case_section import check_names
    from ..testgen.facts import facts
    from ..testgen.file import printed

    check_names(case)
    known = failures.known(file, case.name, asked.cache) if asked.cache else []
    how: dict[str, Any] = {"seed": asked.seed, "timeout": asked.timeout}
    found = suite(case, **how, known=known, notes=notes, examined=examined, progress=event)
    return printed(found, facts(case, asked.seed, found.sizes.first))


def _said(outcome: Outcome) -> str:
    """Why a process gave nothing, in a line."""
    lines: Iterator[str] = (line.strip() for line in reversed(outcome.log.splitlines()))
    last = next((line for line in lines if line), "")
    name, _, what = last.partition(": ")
    return (what or name) if outcome.failure == "exception" else f"{outcome.failure}: {last}".rstrip(": ")


def _spelled(target: Target) -> str:
    """The target as it is given to the command."""
    return " ".join(f"{target.file}::{c}" for c in target.cases) or target.file
