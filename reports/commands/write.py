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
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from trilift.lift.runtime import memory_limit
from trilift.lift.runtime.budget import GUARD_SECONDS
from trilift.lift.runtime.isolate import Event, Outcome, run_all

from ..base import written_files
from ..base.plain_text import plain
from ..base.progress import Progress
from ..base.targets import Target
from ..runner import failures
from ..runner.local import GRACE_SECONDS, PROVER
from ..runner.stopping import Stopped, stoppable

if TYPE_CHECKING:
    from trilift.lift.cases.declaration import Case

    from ..testgen.file import Printed

PRELOAD = (
    *PROVER,
    *(f"trilift.verify.properties.{name}" for name in ("suite", "sizes", "refusals", "laws", "tolerance")),
    "trilift.reports.testgen.file",
)
PROBES_SECONDS = 360.0  # seconds of the runs of a written file without a GPU, three at most


@dataclass(frozen=True, slots=True)
class Asked:
    """How it was asked for. `timeout`: seconds of the processor for a proof; `cache`: the folder of what is kept, where
    failures of earlier runs are; `jobs`: processes at a time; `memory`: bytes of one of them, None for a share of the
    machine's."""

    seed: int
    examples: int
    timeout: float
    cache: str = ""
    jobs: int = 1
    memory: int | None = None

    @property
    def case_seconds(self) -> float:
        """Seconds after which a case is ended, as of `trilift prove`."""
        return self.timeout + max(GRACE_SECONDS, self.timeout)


@dataclass(slots=True)
class _File:
    """The tests of one file, as they become known. `text`: the whole file, None until its last case has ended.
    `failed`: of each case that was not examined, the error of trilift itself."""

    target: Target
    path: str
    names: list[str] = field(default_factory=list)
    parts: dict[str, Printed] = field(default_factory=dict)
    text: str | None = None
    failed: dict[str, str] = field(default_factory=dict)


def write(
    targets: Sequence[Target],
    output: str,
    asked: Asked,
    quiet: bool,
    force: bool = False,
    max_time: float | None = None,
) -> int:
    """Writes each file when its last case has ended; returns the exit code: 0, 2 for a case that cannot be called and
    where trilift itself failed, 3 where there is none. A run that is ended early, by a signal or after `max_time`
    seconds, writes the tests that it has. Raises click.UsageError where a file would replace one that trilift did not
    write; `force` replaces it."""
    paths = _paths(targets, output)
    for planned in paths.values():
        written_files.check("-o", str(planned), force)
    files = [_File(target, str(path)) for target, path in paths.items()]
    codes = set[int]()
    with Progress(quiet) as progress:
        try:
            with stoppable(max_time):
                for f, outcome in _ended(files, asked, progress):
                    codes.add(_finish(f, outcome))
        except Stopped as e:
            progress.warn(f"{e.why}; the cases that had not ended are missing")
            for f in files:
                if f.text is None and f.parts:
                    _put(f, _unfinished(f, asked, e.why), f" with {len(f.parts)} of {len(f.names)} cases")
                    codes.add(_report(f))
            return 2 if 2 in codes else e.code or 0
    return next((c for c in (2, 3) if c in codes), 0) if paths else 3


def _ended(files: Sequence[_File], asked: Asked, progress: Progress) -> Iterator[tuple[_File, Outcome]]:
    """Each file, when its process has ended."""

    def hear(index: int, event: tuple[str, str, object]) -> None:
        kind, name, what = event
        if isinstance(what, list):
            files[index].names = what
        if kind == "part":
            files[index].parts[name] = cast("Printed", what)
        elif kind == "internal":
            files[index].failed[name] = str(what)
        elif kind != "delayed":
            progress.hear(files[index].target.file, name, what)

    inner = max(1, asked.jobs // max(1, len(files)))
    tasks = [(f.target, asked, inner) for f in files]
    patience = asked.case_seconds + GRACE_SECONDS
    for index, outcome in run_all(_parts, tasks, asked.jobs, patience, "forkserver", hear, renew=True, preload=PRELOAD):
        f = files[index]
        if outcome.value:
            parts = [(outcome.value, f.target, f.path, asked)]
            [(_, outcome)] = run_all(_complete, parts, 1, PROBES_SECONDS + GRACE_SECONDS, "forkserver")
        yield f, outcome


def _finish(f: _File, outcome: Outcome) -> int:
    """Writes a file whose cases have ended; returns its exit code."""
    f.text = outcome.value or ""
    if outcome.failure is not None:
        click.echo(plain(f"{f.target.file}: {_said(outcome)}"), err=True)
        return 2
    if not f.text:
        click.echo(f"nothing to write: no case in {f.target.file}", err=True)
        return 3
    _put(f, f.text)
    return _report(f)


def _report(f: _File) -> int:
    """Says which cases were not examined because trilift itself failed; returns the exit code of that."""
    for name, said in f.failed.items():
        click.echo(
            plain(f"error[internal]: {f.target.file}::{name}: {said}; please report this with the file"), err=True
        )
    return 2 if f.failed else 0


def _put(f: _File, text: str, how: str = "") -> None:
    Path(f.path).parent.mkdir(parents=True, exist_ok=True)
    written_files.replace(f.path, text)
    click.echo(f"wrote {f.path}{how}")


def _unfinished(f: _File, asked: Asked, why: str) -> str:
    """The file with the cases that have ended; of the others it says why they are missing."""
    from ..testgen.file import assembled, skipped

    parts = [f.parts.get(name) or skipped(name, why) for name in f.names]
    return assembled(parts, f.target.file, f.path, _command(f.target, f.path, asked), versions(), asked.examples)


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


def text_of(target: Target, path: str, asked: Asked) -> str:
    """The text of the file `path`, "" without a case. Each case is examined in a child of this process."""
    silent = lambda said: None  # noqa: E731
    parts = _parts(target, asked, asked.jobs, silent)
    return _complete(parts, target, path, asked, silent) if parts else ""


def _parts(target: Target, asked: Asked, jobs: int, event: Event) -> list[Printed]:
    """The tests of the cases of a file. Each is examined in a child of this process."""
    from trilift.lift.capture.case_files import load

    memory_limit.limit(asked.memory or memory_limit.machine_bytes() // asked.jobs)
    cases = [c for c in load(target.file, target.cases) if not target.only or c.name in target.only]
    event(("names", "", [c.name for c in cases]))
    return parts_of(cases, target.file, asked, jobs, event)


def _complete(parts: list[Printed], target: Target, path: str, asked: Asked, _: Event) -> str:
    """The file of these tests, which are tried without a GPU."""
    from ..testgen.file import complete

    return complete(parts, target.file, path, _command(target, path, asked), versions(), asked.examples)


def _command(target: Target, path: str, asked: Asked) -> str:
    """The command that writes the file."""
    command = f"trilift write {_spelled(target)} -o {path} --seed {asked.seed} --max-examples {asked.examples}"
    return command + f" --timeout {asked.timeout:g}" * (asked.timeout != GUARD_SECONDS)


def versions() -> str:
    """The dependencies of a file's text, beside its target."""
    from ..base.version import VERSION

    return f"{VERSION} with Triton {metadata.version('triton')} and PyTorch {metadata.version('torch')}"


def parts_of(cases: Sequence[Case], file: str, asked: Asked, jobs: int, event: Event) -> list[Printed]:
    """The tests of each case: with all that can be found out; where that ends badly, with what a few runs show."""
    from ..testgen.file import skipped

    made: dict[int, Printed] = {}
    notes: dict[int, tuple[str, ...]] = {}

    def note(case: int, outcome: Outcome) -> None:
        if _internal(outcome):
            event(("internal", cases[case].name, _said(outcome)))

    def end(case: int, what: str, part: Printed) -> None:
        made[case] = part
        event(("part", cases[case].name, part))
        event(("ended", cases[case].name, what))

    for examined in (True, False):
        left = [k for k in range(len(cases)) if k not in made]
        tasks = [(cases[k], file, asked, notes.get(k, ()), examined) for k in left]
        hear = lambda task, stage: event(("stage", cases[left[task]].name, f"stage:{stage}"))  # noqa: B023, E731
        delayed = lambda: event(("delayed", "", None))  # noqa: E731
        for task, outcome in run_all(_tests, tasks, jobs, asked.case_seconds, "fork", hear, on_delay=delayed):
            case, why = left[task], notes.get(left[task], ())
            note(case, outcome)
            if outcome.failure is None:
                end(case, "ok" if examined else why[0], outcome.value)
            elif examined:
                notes[case] = (f"it was not examined: {_said(outcome)}",)
            else:
                end(case, _said(outcome), skipped(cases[case].name, _said(outcome)))
    return [made[k] for k in range(len(cases))]


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


def _internal(outcome: Outcome) -> bool:
    """Whether trilift itself failed: it raised an error that is none of its own."""
    return outcome.failure == "exception" and not _last_line(outcome).startswith("trilift.")


def _said(outcome: Outcome) -> str:
    """Why a process gave nothing, in a line."""
    last = _last_line(outcome)
    if _internal(outcome):
        return f"trilift itself failed: {last}"
    name, _, what = last.partition(": ")
    if outcome.failure == "exception":
        return what or name
    known = outcome.failure in ("timeout", "memory")
    return f"{'' if known else 'the process ended with '}{outcome.failure}: {last}".rstrip(": ")


def _last_line(outcome: Outcome) -> str:
    """Of what the process wrote; after an exception its name and text."""
    return next((line for text in reversed(outcome.log.splitlines()) if (line := text.strip())), "")


def _spelled(target: Target) -> str:
    """The target as it is given to the command."""
    return " ".join(f"{target.file}::{c}" for c in target.cases) or target.file
