"""One process for each kernel: guess a signature, lower, parse, check that operations have a meaning, execute."""

from __future__ import annotations

import hashlib
import json
import os
import select
import signal
import sys
import time
import traceback
from dataclasses import asdict
from typing import Any

from trilift.lift.errors import TriliftError

from .guess import Guess, climb, unwrapped
from .modules import Found, Result

LOADING_SECONDS = 60
ABORTS = 30  # guesses that may abort Triton before a kernel is given up


def pool(todo: list[Found], jobs: int, done: Any) -> list[Result]:
    """Results in the order of `todo`; at most `jobs` processes at a time. `done` hears each result as it comes."""
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
        self.deadline = time.monotonic() + LOADING_SECONDS
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
            cause = f"no answer in {LOADING_SECONDS} s" if late else "Triton aborts the process"
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
            found.package, found.name, found.place, f"internal error: {type(error).__name__}: {error}", detail, "crash"
        )
    data = (json.dumps(asdict(result)) + "\n").encode()
    while data:
        data = data[os.write(write, data) :]
    os._exit(0)


def examine(found: Found, banned: set[str], say: Any) -> Result:
    """The result for one kernel; guesses in `banned` are not tried again. `say` hears each guess before it is tried."""
    from trilift.lift.ttir import lower, reader

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
        module = reader.parse(text)
        result.operations = sum(1 for _ in module.walk())
        result.stage = "start"
        start(module, result)
    except TriliftError as error:
        result.cause, result.detail = error.why or error.what, result.detail or str(error)
    result.seconds = round(time.perf_counter() - begin, 3)
    return result


def hash_of(guess: Guess) -> str:
    return hashlib.sha1(repr(guess).encode()).hexdigest()[:16]


def start(module: Any, result: Result) -> None:
    """Check that every operation has a meaning; execute program (0, 0, 0) in float64 on buffers of zeros."""
    from trilift.lift.interpreter.interpret import missing

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

    from trilift.lift.capture.trace import Buffer, TensorRef
    from trilift.lift.interpreter.interpret import run
    from trilift.lift.interpreter.machine import cell
    from trilift.lift.interpreter.memory import Memory
    from trilift.lift.terms.domain import Float64

    memory, args, count = Memory(Float64()), [], 1 << 18  # pointers start inside: sizes of 1 give offsets below 0
    for i, value in enumerate(module.entry.args):
        pointee = value.type.pointee
        if pointee is None or value.type.element != "ptr":
            args.append(1)
            continue
        size = max(1, pointee.bits // 8)
        buffer = Buffer((i + 1) << 32, size * count, f"input:{value.name}", None)
        memory.define(TensorRef(buffer.address, (count,), (1,), cell(pointee), buffer), np.zeros(count))
        args.append(buffer.address + size * (count >> 4))
    run(module, args, (1, 1, 1), memory)
