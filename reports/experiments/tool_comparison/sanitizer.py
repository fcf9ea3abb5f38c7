"""triton-viz's sanitizer on files with a case: `triton-sanitizer`, as its README documents it, in a process of its own.

It runs the host function on CPU tensors with symbolic program ids and lanes, asks Z3 whether an address can lie outside
every tensor of the launch, prints a report at the first that can, and exits. It sees the shapes that it is run at.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from trilift.lift.runtime.isolate import Outcome, run_all

COMMAND = "triton-sanitizer"
INSTALL = (
    "triton-viz is not installed: no `triton-sanitizer` beside this Python or on the PATH. `make sanitizer-comparison` "
    "makes an environment of its own for it, since triton-viz 3.0 needs triton < 3.8; or `pip install "
    "'trilift[sanitizer]'`"
)
TIMEOUT = 60.0  # seconds for all shapes of a file
CHOOSING = 60.0  # seconds to choose them
CHOSEN, EDGES = 3, 2  # shapes of `lift.cases.shapes.choose`, and at the edges of blocks
TRIED = 12  # edges that are looked at
SCRIPT = Path(__file__).with_name("sanitizer_script.py")
ALARM = re.compile(r"ILLEGAL MEMORY ACCESS DETECTED|Out-Of-Bounds Access Detected")
LINE = re.compile(r"^\s*Line (\d+):", re.MULTILINE)
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
REPORT, SILENT, UNSUPPORTED, LATE, CRASH = "report", "silent", "unsupported", "timeout", "crash"
Dims = Mapping[str, int | float]


@dataclass(frozen=True, slots=True)
class Sanitized:
    """The outcome of one file. `line`: of the report, 0 if it names none; `ran`: the number of shapes that it completed
    or reported at, out of `shapes`; `why`: the first error that it raised; `seconds`: of the runs, without imports."""

    outcome: str
    line: int = 0
    ran: int = 0
    shapes: int = 0
    why: str = ""
    seconds: float = 0.0
    versions: Mapping[str, str] | None = None


def command() -> str:
    """The path of `triton-sanitizer`, "" where there is none."""
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))
    return shutil.which(COMMAND, path=path) or ""


def sanitize(
    files: Sequence[str], jobs: int, seed: int, hear: Callable[[str], None] = lambda file: None
) -> list[Sanitized]:
    """Every file under the sanitizer. Raises FileNotFoundError where it is not installed."""
    program = command()
    if not program:
        raise FileNotFoundError(INSTALL)
    chosen = shapes(files, jobs, seed)

    def one(k: int) -> Sanitized:
        hear(files[k])
        return run(program, files[k], chosen[k], seed)

    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(one, range(len(files))))


# ---- shapes ----------------------------------------------------------------------------------------------------------


def shapes(files: Sequence[str], jobs: int, seed: int) -> list[list[Dims] | Outcome]:
    """The shapes of each file, chosen in a child; its outcome where it has no answer."""
    runs = dict(run_all(_choose, [(f, seed) for f in files], jobs, CHOOSING, "forkserver"))
    return [r.value if r.failure is None else r for r in (runs[k] for k in range(len(files)))]


def _choose(file: str, seed: int, event: Callable[[Any], None]) -> list[Dims]:
    from trilift.lift.capture.case_files import load

    return list(allowed(load(file)[0], seed))


def allowed(case: Any, seed: int) -> Iterator[Dims]:
    """Shapes of a case that its host function takes: small ones, a larger one, and some at the edges of its blocks."""
    from trilift.lift.cases.shapes import choose
    from trilift.verify.runs.trials import blocks_of, boundary_shapes

    chosen = choose(case, CHOSEN, seed)
    traces = [trace(case, d, seed) for d in chosen]
    yield from (d for d, t in zip(chosen, traces, strict=True) if t is not None)
    blocks = next((blocks_of(t) for t in traces if t is not None), [])
    edges = islice(boundary_shapes(case, chosen[0], blocks), TRIED)
    yield from islice((d for d in edges if trace(case, d, seed) is not None), EDGES)


def trace(case: Any, dims: Dims, seed: int) -> Any:
    """The trace of the host function at these dims; None where it refuses them or launches more than RUN_PROGRAMS."""
    from trilift.lift.capture.run import capture
    from trilift.lift.errors import TriliftError
    from trilift.verify.runs.trials import RUN_PROGRAMS

    try:
        found = capture(case, dims, seed=seed)
    except TriliftError:
        return None
    return found if found.programs <= RUN_PROGRAMS else None


# ---- runs ------------------------------------------------------------------------------------------------------------


def run(program: str, file: str, chosen: Sequence[Dims] | Outcome, seed: int, timeout: float = TIMEOUT) -> Sanitized:
    """One file at its shapes."""
    if isinstance(chosen, Outcome):
        return Sanitized(CRASH, why=f"no shapes: {chosen.failure}")
    root = str(SCRIPT.parents[4])  # where the package trilift is imported from
    env = {**os.environ, "PYTHONPATH": root, "OMP_NUM_THREADS": "1"}
    env.pop("TRITON_INTERPRET", None)  # it interprets by itself
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        arguments = [program, str(SCRIPT), str(Path(file).resolve()), json.dumps(chosen), str(log), str(seed)]
        try:
            done = subprocess.run(arguments, env=env, capture_output=True, text=True, timeout=timeout, cwd=folder)
            said, end, late = done.stdout, done.stderr.strip().splitlines()[-1:], 0.0
        except subprocess.TimeoutExpired as e:
            said, end, late = _text(e.stdout), [], timeout
        lines = log.read_text().splitlines() if log.exists() else []
    return told(said, [json.loads(x) for x in lines], len(chosen), late, "".join(end))


def _text(said: str | bytes | None) -> str:
    return said.decode(errors="replace") if isinstance(said, bytes) else said or ""


def told(said: str, log: Sequence[Mapping[str, Any]], count: int, late: float, end: str) -> Sanitized:
    """The outcome from the sanitizer's output and the script's log. `late`: the seconds after which it was stopped, 0
    if it ended by itself; `end`: the last line of its stderr. A report counts whatever else happened; the file is
    silent if it has no report and at least one shape completed."""
    said = COLOUR.sub("", said)
    versions = next((x["versions"] for x in log if "versions" in x), None)
    tried = [x for x in log if "state" in x]
    returned = sum(x["state"] == "returned" for x in tried)
    why = next((x["why"] for x in tried if x["state"] == "raised"), "")
    seconds = late or sum(x["seconds"] for x in tried)
    if ALARM.search(said):
        line = LINE.search(said)
        return Sanitized(REPORT, int(line[1]) if line else 0, returned + 1, count, why, seconds, versions)
    raised = UNSUPPORTED if why else CRASH
    outcome = SILENT if returned else LATE if late else raised
    return Sanitized(outcome, 0, returned, count, why or (end if outcome == CRASH else ""), seconds, versions)
