"""`trilift optimize`: a faster kernel for each case of the targets, proved as emitted, written to a file or folder."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import closing, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trilift.lift.errors import TriliftError, Unsupported
from trilift.lift.runtime import memory_limit

from ..base import written_files
from ..base.plain_text import plain
from ..base.progress import Progress
from ..base.targets import Target
from ..records.emitted_heading import heading
from ..runner import workers
from ..runner.answers import Answers
from ..runner.stopping import Stopped
from ..runner.store import Store

if TYPE_CHECKING:
    from trilift.superopt.optimize import Emitted, Optimised

Ask = Callable[..., "Future[Any]"]
Stop = Callable[[], None]
MICRO = 1e6
INTERRUPTED = 130  # the exit code of a shell for a command that Ctrl-C ended


@dataclass(frozen=True, slots=True)
class Asked:
    """How it was asked for. `sizes`: of dims, at which plans are ranked; `budget`: seconds of the search; `engine`: of
    `superopt.search.best_first.Limits`; `jobs`: of a case, and cases, at a time; `memory`: bytes of one of their
    processes, None for a share of the machine's; `cluster`: the address of a Dask scheduler, "" for processes here;
    `cache`: the folder of what was found before, "" for none; `force`: files that trilift did not write are
    replaced; `anyway`: files are written that the model holds no faster than eager PyTorch."""

    sizes: Mapping[str, int]
    budget: float
    kernels: int
    operators: int
    seed: int
    timeout: float
    form: str
    engine: str = "mugraph"
    jobs: int = 1
    memory: int | None = None
    cluster: str = ""
    cache: str = ""
    force: bool = False
    anyway: bool = False

    @property
    def most_bytes(self) -> int | None:
        """Memory of one process: by default a share of this machine's, on a cluster any number."""
        return self.memory or (None if self.cluster else memory_limit.machine_bytes() // self.jobs)


@dataclass(frozen=True, slots=True)
class Named:
    """One case, with its dims; `error`: why its file cannot be read, then without a name."""

    file: str
    name: str = ""
    dims: tuple[str, ...] = ()
    error: str = ""

    def __str__(self) -> str:
        return f"{self.file}::{self.name}" if self.name else self.file


@dataclass
class Told:
    """The results so far: exit codes of cases, and records."""

    codes: set[int] = field(default_factory=set)
    records: list[dict[str, Any]] = field(default_factory=list)

    @property
    def written(self) -> int:
        return sum(r["optimize"]["emitted"] is not None for r in self.records)


def sizes(text: str) -> dict[str, int]:
    """The numbers of "M=16,K=4096". Raises click.UsageError."""
    found: dict[str, int] = {}
    for part in filter(None, (p.strip() for p in text.split(","))):
        name, _, number = part.partition("=")
        if not name.isidentifier() or not number.strip().isdigit() or int(number) < 1:
            raise click.UsageError(f"--at takes sizes like M=16,K=4096, not {part!r}")
        found[name] = int(number)
    return found


def optimize(targets: Sequence[Target], output: str, asked: Asked, quiet: bool) -> int:
    """Writes the files and prints what was found; returns the exit code: 0, 4 where nothing was accepted, 3 where there
    is no program to search, 2 for a case that cannot be read, 130 where Ctrl-C ended it."""
    _check_output(output)
    told = Told()
    where = workers.cluster(asked.cluster) if asked.cluster else workers.local(asked.jobs)
    kept = closing(Store(asked.cache)) if asked.cache else nullcontext(None)
    again = "the same command continues from there" if asked.cache else "results are not kept (--no-cache)"
    ended, cases = 0, list[Named]()
    with kept as store, where as pool:
        ask = Answers(pool, store, asked.most_bytes).ask
        try:
            with Progress(quiet) as progress:
                cases = list(_cases(targets, ask))
                _check_sizes(asked.sizes, cases)
                output = folder_of_several(output, cases)
                for c in cases:
                    written_files.check("-o", str(_path(output, c)), asked.force)
                _each(cases, output, asked, told, progress, ask, pool.stop)
        except (KeyboardInterrupt, Stopped):
            click.echo(f"interrupted: {told.written} of {len(cases)} cases are written; {again}", err=True)
            ended = INTERRUPTED
        except workers.Lost as e:
            click.echo(f"error: {e}; {told.written} of {len(cases)} cases are written; {again}", err=True)
            ended = 2
    if asked.form == "json":
        from ..base.version import VERSION

        click.echo(json.dumps({"schema": 1, "version": VERSION, "cases": told.records}, indent=1))
    if not told.codes and not ended:
        click.echo("nothing to optimize: no case", err=True)
        return 3
    return ended or next((c for c in (2, 4, 3) if c in told.codes), 0)


def _check_output(output: str) -> None:
    """Raises click.UsageError where the files cannot be written, before anything is searched."""
    folder = Path(output) if output.endswith(os.sep) or os.path.isdir(output) else Path(output).parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise click.UsageError(f"-o {output}: {e.strerror}") from None
    if not os.access(folder, os.W_OK):
        raise click.UsageError(f"-o {output}: the folder cannot be written to")


def folder_of_several(output: str, cases: Sequence[Named]) -> str:
    """The output, as a folder where there are several cases. Raises click.UsageError where it is one file."""
    if len(cases) < 2 or os.path.isdir(output) or output.endswith(os.sep):
        return output
    if output.endswith(".py") or os.path.exists(output):
        raise click.UsageError(f"-o {output} is one file, and there are {len(cases)} cases: name a folder")
    return output + os.sep


def _each(
    cases: Sequence[Named], output: str, asked: Asked, told: Told, progress: Progress, ask: Ask, stop: Stop
) -> None:
    """All cases, several at a time, told in their order. After Ctrl-C what is accepted by then is written."""
    progress.hear("", "", [c.name for c in cases if c.name])
    with ThreadPoolExecutor(max(1, min(asked.jobs, len(cases)))) as pool:
        running = [(c, pool.submit(_optimised, c, asked, progress, ask)) for c in cases]
        try:
            while running:
                _tell(*running[0], output, asked, told, progress)
                running.pop(0)
        except BaseException:
            stop()
            for _, future in running:
                future.cancel()
            for case, future in running:
                with suppress(workers.Lost):
                    _tell(case, future, output, asked, told, progress)
            raise


def _tell(case: Named, future: Future[Optimised], output: str, asked: Asked, told: Told, progress: Progress) -> None:
    """Writes and prints the end of one case. Raises workers.Lost."""
    from trilift.superopt.optimize import Broken, Failed

    try:
        found = future.result()
    except CancelledError:
        return
    except (TriliftError, Failed, Broken) as e:
        code = 3 if isinstance(e, Unsupported) else 4 if isinstance(e, Failed) else 2
        if case.name:
            progress.hear(case.file, case.name, "no program to search" if code == 3 else "failed")
        click.echo(plain(f"{case}: {'no program to search: ' if code == 3 else ''}{e}"), err=True)
        told.codes.add(code)
        return
    if found.interrupted and not found.best:
        return
    path = _written(found, output, case, asked) if found.best and (asked.anyway or not found.yours) else None
    progress.hear(case.file, case.name, ended(found))
    told.codes.add(0 if found.best else 4)
    told.records.append(record(found, case.file, path))
    if asked.form == "text":
        click.echo(plain("\n".join(printed(found, str(case), path))))


def _cases(targets: Sequence[Target], ask: Ask) -> Iterator[Named]:
    """The cases of all files, in their order."""
    from trilift.superopt.jobs import Unit

    futures = [(t, ask(Unit("cases", {"names": list(t.cases)}, t.file), lambda said: None)) for t in targets]
    for target, future in futures:
        a = future.result()
        if "error" in a:
            yield Named(target.file, error=a["text"])
        for name, dims in a.get("cases", {}).items():
            if not target.only or name in target.only:
                yield Named(target.file, name, tuple(dims))


def _check_sizes(given: Mapping[str, int], cases: Sequence[Named]) -> None:
    """Raises click.UsageError for a size that no case has."""
    known = {n for c in cases for n in c.dims}
    if known and (unknown := [n for n in given if n not in known]):
        raise click.UsageError(f"--at: no case has a size {unknown[0]}; there are {', '.join(sorted(known))}")


def _optimised(case: Named, asked: Asked, progress: Progress, ask: Ask) -> Optimised:
    """One case. Raises as `superopt.optimize.optimised`, CaseError for a file that cannot be read."""
    from trilift.lift.errors import CaseError
    from trilift.superopt.accept.timing import present
    from trilift.superopt.optimize import Question, optimised
    from trilift.superopt.search.best_first import Limits

    if not case.name:
        raise CaseError(case.error)
    limits = Limits(asked.kernels, asked.operators, seconds=asked.budget, engine=asked.engine)
    own = {n: v for n, v in asked.sizes.items() if n in case.dims}
    question = Question(
        case.file,
        case.name,
        own,
        limits,
        seed=asked.seed,
        timeout=asked.timeout,
        device="" if asked.cluster else present(),
    )
    say = lambda text: progress.hear(case.file, case.name, f"stage:{text}")  # noqa: E731
    return optimised(question, ask, asked.jobs, say)


def _written(found: Optimised, output: str, case: Named, asked: Asked) -> str:
    """The path of the file that was written: what was accepted, below a comment."""
    best = found.best
    assert best is not None
    path = _path(output, case)
    path.parent.mkdir(parents=True, exist_ok=True)
    at = ",".join(f"{n}={v}" for n, v in found.sizes.items())
    command = f"{case} --at {at} --seed {asked.seed} -o {output}"
    proved = next(s.text for s in best.acceptance.steps if s.name == "proved")
    verdicts = (proved, best.same, found.against)
    top = heading(command, verdicts, len(best.graph.kernels), best.seconds, found.found.roofline)
    written_files.replace(path, top + best.source)
    return str(path)


def _path(output: str, case: Named) -> Path:
    folder = os.path.isdir(output) or output.endswith(os.sep)
    return Path(output) / f"{case.name}.py" if folder else Path(output)


def ended(found: Optimised) -> str:
    """The end of a case, in a word or two."""
    return "nothing accepted" if found.best is None else "keep yours" if found.yours else "accepted"


def printed(found: Optimised, name: str, path: str | None) -> list[str]:
    """The printed text of one case."""
    f = found.found
    roof = f.roofline * MICRO
    at = ", ".join(f"{n}={v}" for n, v in found.sizes.items())
    early = ", interrupted" if found.interrupted else ""
    out = [f"{name}: {ended(found)} in {found.seconds:.1f} s{early}"]
    if found.original:
        out.append(f"  the original: {found.original}")
    out += [f"  searched at {at}: {f.values} values, {f.states} states, {f.candidates} kernels, "
            f"{f.plans} plans kept, {f.seconds:.2f} s"]  # fmt: skip
    if found.usual:
        used = ", ".join(f"{n}={found.sizes[n]} ({role})" for n, role in found.usual.items())
        out.append(f"  sizes that --at does not give are the usual ones: {used}")
    if f.excluded is not None:
        out.append(f"  every plan that was not tried takes more than {f.excluded * MICRO:.2f} us in the model")
    if found.best:
        out.append(f"  {found.best.seconds * MICRO:.2f} us in the model of {f.hardware}, roofline {roof:.2f} us")
        if found.eager is not None:
            least, operators = found.eager
            out.append(f"  eager PyTorch: {operators} operators, at least {least * MICRO:.2f} us in the model")
        if found.yours:
            out.append(
                "  keep yours: the model holds the file not to be faster"
                + ("" if path else "; --anyway writes it all the same")
            )
        if found.best.timed:
            warm = found.best.timed["warm"]["median"] * MICRO
            out.append(
                f"  {found.best.measured * MICRO:.2f} us measured here with a cold cache, {warm:.2f} us with a warm one"
            )
        out += [f"  {line}" for line in (found.best.text + "\n" + found.best.arrangement["text"]).splitlines()]
    for e in found.tried:
        out += [f"  {line}" for line in str(e.acceptance).splitlines()]
        out += [f"  against the {found.against} of the case: {e.same}"] if e.same else []
    out += [f"  note: {n}" for n in found.notes]
    return [*out, f"  written to {path}"] if path else out


def record(found: Optimised, file: str, path: str | None) -> dict[str, Any]:
    """One case as plain data."""
    f, best = found.found, found.best
    return {
        "name": found.name,
        "file": file,
        "against": found.against,
        "original": found.original,
        "optimize": {
            "engine": f.engine,
            "states": f.states,
            "values": f.values,
            "candidates": f.candidates,
            "kernels": len(best.graph.kernels) if best else None,
            "arrangement": best.arrangement if best else None,
            "seconds": round(f.seconds, 4),
            "model_us": round(best.seconds * MICRO, 3) if best else None,
            "measured_us": round(best.measured * MICRO, 3) if best and best.timed else None,
            "roofline_us": round(f.roofline * MICRO, 3),
            "eager_us": None if found.eager is None else round(found.eager[0] * MICRO, 3),
            "keep_yours": found.yours,
            "excluded_us": None if f.excluded is None else round(f.excluded * MICRO, 3),
            "emitted": path,
            "verdict": best.verdict if best else "UNKNOWN",
            "bound": best.bound if best else None,
            "steps": [_step(e) for e in found.tried],
            "notes": found.notes,
        },
    }


def _step(e: Emitted) -> list[dict[str, Any]]:
    steps = e.acceptance.steps
    return [{"name": s.name, "passed": s.passed, "text": s.text, "seconds": round(s.seconds, 3)} for s in steps]
