"""`trilift report matrix`: whether trilift says the same with other versions of Python and Triton.

For each pair uv makes an environment with this checkout in it. There the formula, verdict and contract of every
operator are compared with the golden text of the tests.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from ..base.fingerprint import ROOT
from ..base.progress import Progress
from ..base.tested_versions import Versions, minor
from ..records.options import Options
from . import summary
from .experiment import Experiment, Result, Row, by_name, tabled

PYTHONS = ("3.11", "3.12", "3.13")
TRITONS = ("3.6", "3.7", "3.8", "3.9")
TORCH = "torch==2.13.0"
CORPUS = "operators"
LIMIT_SECONDS = 1800.0  # of one step in an environment
HEADING = "environments in which the operators were proved"
COLUMNS = {HEADING: ("python", "torch", "triton", "outcome", "s")}
AS_GOLDEN = "as the golden text"
NOTES = (
    f"Each row is an environment that uv made, with the newest patch level of the versions and `{TORCH}`. The outcome "
    f"is that of `trilift corpus {CORPUS} --check`: formula, verdict and contract of every operator are those of the "
    "golden text, or the first line that differs. Seconds are measured, with making the environment.",
)
VERSIONS = "import platform, torch, triton; print(platform.python_version(), torch.__version__, triton.__version__)"


@dataclass(frozen=True, slots=True)
class Trial:
    """One environment: versions as they were found there, or as they were asked for where it could not be made."""

    python: str
    torch: str
    triton: str
    outcome: str
    seconds: float

    @property
    def good(self) -> bool:
        return self.outcome == AS_GOLDEN

    @property
    def row(self) -> Row:
        return (self.python, self.torch, self.triton, self.outcome, f"{self.seconds:.0f}")

    @property
    def tested(self) -> Versions:
        return Versions(minor(self.python), minor(self.torch), minor(self.triton))


def measure(name: str, options: Options, quiet: bool) -> Result:
    """All pairs, one after the other. The exit code is 1 where one does not say the same, 2 where none could be made.
    Raises click.UsageError without uv, or outside of a checkout."""
    uv = shutil.which("uv", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]))
    if uv is None:
        raise click.UsageError("uv makes the environments, and is not installed: `make matrix` installs it")
    if not (ROOT / "pyproject.toml").exists():
        raise click.UsageError("the matrix is made in a checkout of trilift: other environments install it from there")
    with Progress(quiet) as progress:
        trials = list(tried(uv, options.jobs, progress.say))
    return result(name, trials)


def result(name: str, trials: Sequence[Trial]) -> Result:
    """The table of the trials."""
    made = [t for t in trials if t.torch]
    code = 2 if not made else 0 if all(t.good for t in made) else 1
    shown = tabled(COLUMNS, {HEADING: [t.row for t in trials]})
    return Result(name, shown, {"environments": [asdict(t) for t in trials]}, code)


EXPERIMENTS = by_name(Experiment("matrix", measure, COLUMNS, NOTES, summary=summary.whole))


def tried(uv: str, jobs: int, hear: Callable[[str], None]) -> Iterator[Trial]:
    """A trial of each pair of versions."""
    for python in PYTHONS:
        for triton in TRITONS:
            hear(f"python {python}, triton {triton}")
            with tempfile.TemporaryDirectory(prefix="trilift-matrix-") as folder:
                yield trial(uv, python, triton, Path(folder), jobs)


def trial(uv: str, python: str, triton: str, folder: Path, jobs: int) -> Trial:
    """The environment made in the folder, and the operators proved there."""
    start = time.perf_counter()
    there = folder / "env" / "bin" / "python"
    said = installed(uv, python, triton, folder)
    if said:
        return Trial(python, "", triton, f"not installed: {said}", time.perf_counter() - start)
    found = _run([str(there), "-c", VERSIONS], folder).stdout.split()
    if len(found) != 3:
        return Trial(python, "", triton, "PyTorch or Triton cannot be imported", time.perf_counter() - start)
    options = ("--check", "--no-cache", "--quiet", "--jobs", str(jobs))
    done = _run([str(there), "-m", "trilift", "corpus", CORPUS, *options], ROOT)
    said = outcome(done.returncode, done.stdout, done.stderr)
    return Trial(found[0], found[1], found[2], said, time.perf_counter() - start)


def installed(uv: str, python: str, triton: str, folder: Path) -> str:
    """Makes the environment; the reason where it cannot be made, "" where it was."""
    target = str(folder / "env")
    steps = (
        ["venv", "--quiet", "--python", python, target],
        ["pip", "install", "--quiet", "--python", target, TORCH, f"triton=={triton}.*", "-e", str(ROOT)],
    )
    for step in steps:
        done = _run([uv, *step], folder)
        if done.returncode:
            return _reason(done.stderr)
    return ""


def outcome(code: int, out: str, err: str) -> str:
    """The outcome of a comparison in words: the first line that differs, the error where there is no comparison."""
    if code == 0:
        return AS_GOLDEN
    changed = [x for x in out.splitlines() if re.match(r"[-+](?![-+])", x)]
    return f"differs: {changed[0]}" if changed else f"fails: {_reason(err)}"


def _reason(err: str) -> str:
    lines = [x for line in err.splitlines() if (x := re.sub(r"^\W+", "", line).strip())]
    return next((x for x in lines if x.startswith("Because")), lines[-1] if lines else "no reason was given")


def _run(command: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command, cwd=folder, env=_environment(), capture_output=True, text=True, timeout=LIMIT_SECONDS
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 2, "", f"not done after {LIMIT_SECONDS:.0f} s")


def _environment() -> Mapping[str, str]:
    """That of this process, but for the environment and the paths that it runs in itself."""
    own = ("PYTHONPATH", "VIRTUAL_ENV", "PYTHONHOME")
    return {k: v for k, v in os.environ.items() if k not in own}
