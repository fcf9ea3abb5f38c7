"""The sweep: every kernel in the modules of installed packages, lowered with a guessed signature, parsed, and started.

    python -m corpus.sweep [PACKAGE...] [--jobs N] [--sample N --seed S] [--out FILE] [--resume]

Each kernel has a process of its own: a bad signature can abort it. Results are lines of JSON, one a kernel; a run with the same
file continues where the last one stopped.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import pkgutil
import random
import select
import signal
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from lift.errors import TriliftError

from .guess import Guess, climb, unwrapped
from .usage import callees, usage

PACKAGES = ("liger_kernel", "flag_gems", "fla", "torchao", "attn_gym", "gemlite", "xformers")
# backends of accelerators that Triton's NVIDIA target does not compile for; kernels there are counted apart
OTHER_HARDWARE = ("._aipu", "._amd", "._arm", "._ascend", "._cambricon", "._enflame", "._hygon", "._iluvatar", "._kunlunxin",
                  "._metax", "._mthreads", "._sunrise", "._thead", "._tsingmicro", "._spacemit", ".triton_ascend", ".ascend",
                  ".npu", ".tilelang", ".rocm", ".amd")  # fmt: skip
SECONDS = 60
ABORTS = 30  # guesses that may abort Triton before a kernel is given up
STAGES = ("guess", "parse", "start", "done", "crash")  # of kernels; other results are counted apart


@dataclass
class Result:
    """What became of one kernel. `cause` is "" when it parsed and can start; `ran`: one program was executed on zero buffers."""

    package: str
    kernel: str
    place: str
    cause: str = ""
    detail: str = ""
    stage: str = "guess"  # the stage that failed: guess, parse, start; or "done"
    ran: str = ""
    operations: int = 0
    attempts: int = 0
    seconds: float = 0.0
    missing: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Found:
    """A kernel object found in a package's module."""

    package: str
    name: str
    place: str
    kernel: Any


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="corpus.sweep", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("packages", nargs="*", default=list(PACKAGES))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--sample", type=int, default=0, help="only this many kernels, drawn at random")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--out", type=Path, default=None, help="lines of JSON; kernels that are there already are not repeated"
    )
    parser.add_argument("--match", default="", help="only kernels whose name or place contains this")
    options = parser.parse_args(arguments)
    results = sweep(options.packages, options.jobs, options.sample, options.seed, options.out, options.match)
    print(table(results))
    return 0


def sweep(
    packages: Any, jobs: int = 2, sample: int = 0, seed: int = 0, out: Path | None = None, match: str = ""
) -> list[Result]:
    """Results for every kernel of the packages (of a sample, drawn with `seed`). Imports the packages under a pretended device."""
    from lift.fake_cuda import pretend

    os.environ.setdefault("GEMS_VENDOR", "nvidia")
    done = {(r.package, r.place): r for r in _read(out)}
    results: list[Result] = []
    with pretend(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _lenient_autotune()
        for package in packages:
            found, apart = discover(package)
            results += apart
            found = [f for f in found if match in f.name or match in f.place]
            if sample:
                found = sorted(random.Random(seed).sample(found, min(sample, len(found))), key=lambda f: f.place)
            results += [done[f.package, f.place] for f in found if (f.package, f.place) in done]
            todo = [f for f in found if (f.package, f.place) not in done]
            results += pool(todo, jobs, lambda r: _write(out, r))
    return results


def _lenient_autotune() -> None:
    """Autotune keys that are no arguments, an error in triton 3.9, are dropped: kernels of older packages then import."""
    from triton.runtime.autotuner import Autotuner

    init = Autotuner.__init__

    def lenient(self: Any, fn: Any, arg_names: Any, configs: Any, key: Any, *rest: Any, **named: Any) -> None:
        init(self, fn, arg_names, configs, [k for k in key if k in arg_names], *rest, **named)

    Autotuner.__init__ = lenient


# --- what there is


def discover(package: str) -> tuple[list[Found], list[Result]]:
    """The kernels of a package's modules, and what is counted apart: helpers, other hardware, modules that do not import."""
    apart: list[Result] = []
    modules = list(_modules(package, apart))
    objects: dict[str, tuple[str, Any]] = {}
    for module in modules:
        for name, value in list(vars(module).items()):
            if (fn := _kernel(value)) is not None and fn.fn.__module__.startswith(package):
                code = fn.fn.__code__
                place = f"{_short(code.co_filename)}:{fn.starting_line_number}"
                known = objects.get(place)
                if known is None or known[1] is fn or _wraps(value, known[1]):
                    objects[place] = (name, value)
    called = {id(helper) for _, value in objects.values() for helper, _ in callees(_kernel(value))}
    found = []
    for place, (name, value) in sorted(objects.items()):
        fn = _kernel(value)
        kind = _kind(fn, value, called)
        if kind == "kernel":
            found.append(Found(package, name, place, value))
        else:
            apart.append(Result(package, name, place, stage=kind))
    return found, apart


def _modules(package: str, apart: list[Result]) -> Iterator[Any]:
    try:
        root = importlib.import_module(package)
    except BaseException as error:
        apart.append(Result(package, package, "", stage="import", cause=f"{type(error).__name__}: {error}"[:200]))
        return
    for info in pkgutil.walk_packages(root.__path__, package + ".", onerror=lambda name: None):
        if "__main__" in info.name or any(part in info.name + "." for part in (".tests.", ".benchmarks.")):
            continue
        try:
            with redirect_stdout(sys.stderr):
                importlib.import_module(info.name)
        except BaseException as error:
            apart.append(Result(package, info.name, "", stage="import", cause=f"{type(error).__name__}: {error}"[:200]))
    for name, module in sorted(sys.modules.items()):
        if module is not None and (name == package or name.startswith(package + ".")):
            yield module


def _kernel(value: Any) -> Any:
    """The JITFunction inside a module's attribute, or None."""
    from triton.runtime.jit import JITFunction, KernelInterface

    if not isinstance(value, KernelInterface):
        return None
    while not isinstance(value, JITFunction):
        value = getattr(value, "fn", None)
        if value is None:
            return None
    return value


def _wraps(value: Any, inner: Any) -> bool:
    while value is not inner and hasattr(value, "fn"):
        value = value.fn
    return value is inner


def _kind(fn: Any, value: Any, called: set[int]) -> str:
    if type(fn).__name__.startswith("Gluon"):
        return "gluon"
    if any(part in "." + fn.fn.__module__ for part in OTHER_HARDWARE):
        return "other hardware"
    if not usage(fn).stores or (value is fn and id(fn) in called):
        return "helper"
    return "kernel"


# --- one process a kernel


def pool(todo: list[Found], jobs: int, done: Any) -> list[Result]:
    """Results in the order of `todo`; at most `jobs` processes at a time. `done` is called with each result as it comes."""
    results: dict[int, Result] = {}
    running: dict[int, _Child] = {}
    waiting = list(enumerate(todo))[::-1]
    while waiting or running:
        while waiting and len(running) < jobs:
            index, found = waiting.pop()
            child = _Child(index, found, set())
            running[child.pipe] = child
        ready, _, _ = select.select(list(running), [], [], 1.0)
        for child in [running[fd] for fd in ready] + [c for c in running.values() if time.monotonic() > c.deadline]:
            if child.pipe not in running or not (result := child.poll()):
                continue
            del running[child.pipe]
            if isinstance(result, _Child):
                running[result.pipe] = result
                continue
            results[child.index] = result
            done(result)
    return [results[k] for k in sorted(results)]


class _Child:
    """A forked process that examines one kernel; its pipe carries the guess it tries, then the result."""

    def __init__(self, index: int, found: Found, banned: set[str]) -> None:
        self.index, self.found, self.banned, self.text = index, found, banned, b""
        self.deadline = time.monotonic() + SECONDS
        sys.stdout.flush()
        self.pipe, write = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            _in_child(found, banned, write)
        os.close(write)

    def poll(self) -> Result | _Child | None:
        """The result if the process has ended; a new process without the guess that aborted it; None if it goes on."""
        late = time.monotonic() > self.deadline
        if late:
            os.kill(self.pid, signal.SIGKILL)
        else:
            chunk = os.read(self.pipe, 1 << 16)
            self.text += chunk
            if chunk:
                return None
        os.close(self.pipe)
        os.waitpid(self.pid, 0)
        lines = self.text.decode(errors="replace").splitlines()
        if lines and lines[-1].startswith("{"):
            return Result(**json.loads(lines[-1]))
        tried = lines[-1] if lines else ""
        if late or len(self.banned) >= ABORTS or not tried:
            cause = f"no answer in {SECONDS} s" if late else "Triton aborts the process"
            return Result(
                self.found.package, self.found.name, self.found.place, cause, tried, "guess", attempts=len(lines)
            )
        return _Child(self.index, self.found, self.banned | {tried})


def _in_child(found: Found, banned: set[str], write: int) -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    os.dup2(2, 1)
    try:
        result = examine(found, banned, lambda line: os.write(write, (line + "\n").encode()))
    except BaseException as error:
        detail = "".join(traceback.format_exception(error)[-3:])
        result = Result(
            found.package, found.name, found.place, f"our error: {type(error).__name__}: {error}", detail, "crash"
        )
    data = (json.dumps(asdict(result)) + "\n").encode()
    while data:
        data = data[os.write(write, data) :]
    os._exit(0)


def examine(found: Found, banned: set[str], say: Any) -> Result:
    """Guess a signature, lower, parse, look for operations without a meaning, execute one program. `say` hears each guess first."""
    from lift import lower, ttir

    result = Result(found.package, found.name, found.place)
    begin = time.perf_counter()
    fn, _, _ = unwrapped(found.kernel)

    def attempt(guess: Guess) -> str:
        tag = f"{hash_of(guess)}"
        if tag in banned:
            raise TriliftError("Triton aborts the process")
        say(tag)
        result.attempts += 1
        return lower.text(fn, guess.signature, guess.constexprs, guess.options)

    try:
        guess, text = climb(found.kernel, attempt)
        result.detail = repr(guess)
        result.stage = "parse"
        module = ttir.parse(text)
        result.operations = sum(1 for _ in module.walk())
        result.stage = "start"
        start(module, result)
    except TriliftError as error:
        result.cause, result.detail = error.why or error.what, result.detail or str(error)
    result.seconds = round(time.perf_counter() - begin, 3)
    return result


def hash_of(guess: Guess) -> str:
    import hashlib

    return hashlib.sha1(repr(guess).encode()).hexdigest()[:16]


def start(module: Any, result: Result) -> None:
    """Check that every operation has a meaning; execute program (0, 0, 0) in float64 on buffers of zeros."""
    from lift.interpret import missing

    gaps = [f"{name} at {place}" for name, place in missing(module)]
    if gaps:
        result.missing, result.cause = gaps, " ".join(sorted({g.split(" at ")[0] for g in gaps}))
        return
    result.stage = "done"
    signal.signal(signal.SIGALRM, _late)
    signal.alarm(5)
    try:
        _execute(module)
        result.ran = "ran"
    except TimeoutError:
        result.ran = "ran out of time"
    except TriliftError as error:
        result.ran = f"{type(error).__name__}: {error.what}: {error.why}"
    finally:
        signal.alarm(0)


def _late(*_: Any) -> None:
    raise TimeoutError


def _execute(module: Any) -> None:
    import numpy as np

    from lift.domain import Float64
    from lift.interpret import run
    from lift.machine import cell
    from lift.memory import Memory
    from lift.trace import Buffer, TensorRef

    memory, args, count = Memory(Float64()), [], 1 << 18
    for i, value in enumerate(module.entry.args):
        pointee = value.type.pointee
        if pointee is None or value.type.element != "ptr":
            args.append(1)
            continue
        size = max(1, pointee.bits // 8)
        buffer = Buffer((i + 1) << 32, size * count, f"input:{value.name}", None)
        memory.define(TensorRef(buffer.address, (count,), (1,), cell(pointee), buffer), np.zeros(count))
        args.append(buffer.address)
    run(module, args, (1, 1, 1), memory)


# --- the table


def table(results: list[Result]) -> str:
    """Kernels by package, then what is missing by cause."""
    kernels = [r for r in results if r.stage in STAGES]
    lines = [f"{'package':14} {'kernels':>8} {'parsed':>8} {'startable':>10} {'executed':>9}   apart"]
    for package in [*dict.fromkeys(r.package for r in results), "all"]:
        mine = [r for r in kernels if package in ("all", r.package)]
        apart = Counter(r.stage for r in results if r not in kernels and package in ("all", r.package))
        parsed, startable = [r for r in mine if r.stage in ("start", "done")], [r for r in mine if r.stage == "done"]
        ran = sum(r.ran == "ran" for r in startable)
        note = ", ".join(f"{n} {'modules not imported' if k == 'import' else k}" for k, n in sorted(apart.items()))
        lines.append(
            f"{package:14} {len(mine):8} {_share(parsed, mine)} {_share(startable, mine):>10} {ran:9}   {note}"
        )
    causes = Counter((r.stage, _cause(r.cause)) for r in kernels if r.stage != "done")
    lines += ["", "what is missing"] + [f"{n:5}  {stage}: {cause}" for (stage, cause), n in causes.most_common()]
    runs = Counter(_cause(r.ran) for r in kernels if r.stage == "done" and r.ran != "ran")
    lines += ["", "startable, but one program on zeros did not end"] + [
        f"{n:5}  {cause}" for cause, n in runs.most_common()
    ]
    return "\n".join(lines)


def _share(part: list[Result], whole: list[Result]) -> str:
    return f"{100 * len(part) / len(whole):7.1f}%" if whole else f"{'-':>8}"


def _cause(text: str) -> str:
    """A cause without what differs from kernel to kernel."""
    import re

    return re.sub(r"0x[0-9a-f]+|\b\d+\b", "#", text)[:140]


def _short(file: str) -> str:
    return file.rpartition("site-packages/")[2]


def _read(out: Path | None) -> Iterator[Result]:
    if out is not None and out.exists():
        for line in out.read_text().splitlines():
            yield Result(**json.loads(line))


def _write(out: Path | None, result: Result) -> None:
    if out is not None:
        with out.open("a") as file:
            file.write(json.dumps(asdict(result)) + "\n")


if __name__ == "__main__":
    sys.exit(main())
