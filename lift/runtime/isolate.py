"""Functions in child processes: a crash of the compiler, a script that raises or one that never ends harms nobody else.

    run_all(function, tasks) -> (index, Outcome) as they finish
    stream(function, tasks)  -> (index, Said) for each message too

The first level of children comes from a fork server that has imported the heavy modules once; a child may fork its own
children (`context="fork"`), which then find the user's file already loaded.

A limit of time counts the seconds in which a child runs or sleeps, and not those in which it waits for a processor: on
a busy machine it may do as much as on an idle one.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import re
import select
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import forkserver, resource_tracker
from multiprocessing.connection import Connection, wait
from typing import Any

from ..errors import text_of

Event = Callable[[Any], None]
Function = Callable[..., Any]
Task = tuple[Any, ...]
# What the fork server imports once. Not egglog: it starts a thread when imported, which a forked child would not have.
PRELOAD = (
    "numpy.ma",
    "torch",
    "triton",
    "triton.compiler.code_generator",
    "triton.experimental.gluon",
    "triton.tools.tensor_descriptor",
    "trilift.lift.capture.run",
    "trilift.lift.replay.execute",
    "trilift.lift.capture.relate",
    "trilift.lift.cases.shapes",
    "trilift.lift.simplify.saturation",
    "trilift.lift.synthesis.top_down",
)
QUIET = "trilift.quiet_server"  # before these: SIGINT ends the server silently
INTERPRETED = "TRITON_INTERPRET"  # variable under which triton.jit makes no kernel; children start without it
PRELOADED = "_TRILIFT_PRELOADED"  # variable of a process that has imported these: its children need no fork server
SHORTEST_WAIT_SECONDS, LONGEST_WAIT_SECONDS = 0.05, 86_400.0  # the system waits for 24 days at most
NO_MEMORY = re.compile(
    r"memory allocation of \d+ bytes failed|bad_alloc|out of memory|failed to map segment|can(?:not|'t) allocate", re.I
)
LOG_TAIL = 4000  # characters of the child's own output that are kept


@dataclass(frozen=True, slots=True)
class Outcome:
    """`value` is what the function returned, unless `failure` says why it did not: "timeout", "memory", "SIGABRT" (the
    signal that ended it), "exit 3", "KeyboardInterrupt", or "exception"; the traceback of the last two is in `log`.
    `log`: the end of what it wrote."""

    value: Any = None
    failure: str | None = None
    log: str = ""
    seconds: float = 0.0


@dataclass(slots=True)
class _Child:
    """`began` and `heard`, of its last event, are seconds of its own clock."""

    index: int
    process: Any
    connection: Connection
    log: str
    started: float = field(default_factory=time.monotonic)
    began: float = field(init=False)
    heard: float = field(init=False)

    def __post_init__(self) -> None:
        self.began = self.heard = self.clock()

    def clock(self) -> float:
        """Seconds, without those in which it was ready and got no processor."""
        return time.monotonic() - _delay(self.process.pid)

    def left(self, timeout: float, renew: bool) -> float:
        """Seconds until its time is up."""
        return (self.heard if renew else self.began) + timeout - self.clock()


@dataclass(frozen=True, slots=True)
class Said:
    """A message of a child that goes on."""

    value: Any


def run_all(  # noqa: PLR0913 - all that a child needs to know
    function: Function,
    tasks: Iterable[Task],
    jobs: int = 1,
    timeout: float | None = None,
    context: str = "fork",
    on_event: Callable[[int, Any], None] = lambda *_: None,
    renew: bool = False,
    preload: Sequence[str] = (),
    on_delay: Callable[[], None] = lambda: None,
) -> Iterator[tuple[int, Outcome]]:
    """As `stream`, but `event(x)` calls `on_event(index, x)` in this process."""
    with contextlib.closing(stream(function, tasks, jobs, timeout, context, renew, preload, on_delay)) as said:
        for index, what in said:
            if isinstance(what, Said):
                on_event(index, what.value)
            else:
                yield index, what


def stream(
    function: Function,
    tasks: Iterable[Task],
    jobs: int = 1,
    timeout: float | None = None,
    context: str = "fork",
    renew: bool = False,
    preload: Sequence[str] = (),
    on_delay: Callable[[], None] = lambda: None,
) -> Generator[tuple[int, Said | Outcome]]:
    """`function(*task, event)` for every task, each in a process of its own, at most `jobs` at a time; `event(x)` gives
    (index, Said(x)). `timeout` counts seconds from the start, or from the last message if `renew`, without those that a
    child waits for a processor; `on_delay` is called where such a child goes on. `preload`: modules that the fork
    server imports too."""
    make = multiprocessing.get_context(context)
    if context == "forkserver":
        settle()
        if os.environ.get(PRELOADED):
            make = multiprocessing.get_context("fork")
        else:
            _prepare(make, preload)
    todo = list(enumerate(tasks))[::-1]
    running: list[_Child] = []
    try:
        while todo or running:
            while todo and len(running) < jobs:
                index, task = todo.pop()
                running.append(_start(make, index, function, task))
            if not (ready := _ready(running, timeout, renew)):
                on_delay()
            for child in ready:
                what = _hear(child) if child.connection.poll() else _late(child, timeout, renew)
                if isinstance(what, Outcome):
                    running.remove(child)
                    what = _finish(child, what)
                if what is not None:
                    yield child.index, what
    finally:
        for child in running:
            _finish(child, Outcome(failure="interrupted"))


def run(function: Function, *task: Any, timeout: float | None = None, context: str = "fork") -> Outcome:
    """One call in a child process."""
    return next(run_all(function, [task], timeout=timeout, context=context))[1]


def settle() -> None:
    """Settings of the environment of each child. One thread per child: there are as many children as cores. Semaphores
    that ended children leave are not reported."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")
    os.environ.setdefault("PYTHONWARNINGS", "ignore:resource_tracker:UserWarning")


def _prepare(make: Any, preload: Sequence[str]) -> None:
    make.set_forkserver_preload([QUIET, *PRELOAD, *preload])
    resource_tracker.ensure_running()  # it unblocks the signal
    with _STARTING, _replaced("PYTHONSAFEPATH", "1"), _replaced(INTERPRETED, None), _deaf():
        forkserver.ensure_running()  # safe path: a file queue.py of the user's is not the module queue


_STARTING = threading.Lock()  # the environment is of all threads


@contextmanager
def _replaced(name: str, text: str | None) -> Iterator[None]:
    """Context manager: an environment variable has another text, or is not set."""
    before = os.environ.pop(name, None)
    os.environ.update({} if text is None else {name: text})
    try:
        yield
    finally:
        os.environ.pop(name, None)
        os.environ.update({} if before is None else {name: before})


@contextmanager
def _deaf() -> Iterator[None]:
    """Context manager: SIGINT waits until its end; in a process that is started inside, until QUIET is imported."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _start(make: Any, index: int, function: Function, task: Task) -> _Child:
    here, there = make.Pipe(duplex=False)
    inherited = here.fileno() if make.get_start_method() == "fork" else None
    handle, log = tempfile.mkstemp(prefix="trilift-", suffix=".log")
    os.close(handle)
    process = make.Process(target=_main, args=(there, inherited, log, function, task))
    try:
        process.start()
    except BaseException:
        os.unlink(log)
        raise
    there.close()
    return _Child(index, process, here, log)


def _main(connection: Connection, reader: int | None, log: str, function: Function, task: Task) -> None:
    """In the child. `reader`: the other end of its connection, where it holds that too."""
    if not _in_group():
        if reader is not None:
            os.close(reader)
        os.setpgrp()  # the user's script may start processes: all of them end with the group
        if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:  # as QUIET leaves it
            signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # where the server cannot import QUIET
        os.environ["_TRILIFT_GROUP"] = str(os.getpid())
        threading.Thread(target=_end_with_reader, args=(connection.fileno(),), daemon=True).start()
    out = os.open(log, os.O_WRONLY | os.O_APPEND)
    for fd in (1, 2):
        os.dup2(out, fd)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.stdout = sys.stderr = os.fdopen(1, "w", buffering=1, closefd=False)
    try:
        answer = ("value", function(*task, lambda x: connection.send(("event", x))))
    except KeyboardInterrupt:  # of the user's code: Ctrl-C does not reach this process
        answer = ("KeyboardInterrupt", traceback.format_exc())
    except MemoryError:
        answer = ("memory", traceback.format_exc())
    except BaseException as e:
        may_be = isinstance(e, RuntimeError | OSError | ImportError)  # of PyTorch's allocator, of the loader
        short = may_be and NO_MEMORY.search(text_of(e))
        answer = ("memory" if short else "exception", traceback.format_exc())
    with contextlib.suppress(OSError):
        connection.send(answer)
    connection.close()


def _end_with_reader(pipe: int) -> None:
    """Ends this process and all that it started once nobody can hear of it, since the command was killed. The fork
    server, which made it, lives as long as it does."""
    poll = select.poll()
    poll.register(pipe, 0)  # POLLERR: the other end is closed
    poll.poll()
    os.killpg(0, signal.SIGKILL)


def _in_group() -> bool:
    return "_TRILIFT_GROUP" in os.environ


def _ready(running: list[_Child], timeout: float | None, renew: bool) -> list[_Child]:
    """The children that sent something, ended, or ran out of time; waits for one."""
    connections = [c.connection for c in running]
    if timeout is None:
        heard = wait(connections)
        return [c for c in running if c.connection in heard]
    patience = min(c.left(timeout, renew) for c in running)
    heard = wait(connections, min(max(SHORTEST_WAIT_SECONDS, patience), LONGEST_WAIT_SECONDS))
    return [c for c in running if c.connection in heard or c.left(timeout, renew) <= 0]


def _delay(pid: int) -> float:
    """The seconds in which a process was ready and got no processor; 0 where the system does not tell."""
    try:
        with open(f"/proc/{pid}/schedstat") as f:
            return int(f.read().split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0


def _hear(child: _Child) -> Said | Outcome:
    try:
        kind, value = child.connection.recv()
    except (EOFError, OSError):
        child.process.join(5)
        return Outcome(failure=_end(child.process.exitcode))
    child.heard = child.clock()
    if kind == "event":
        return Said(value)
    return Outcome(value=value) if kind == "value" else Outcome(failure=kind, log=value)


def _late(child: _Child, timeout: float | None, renew: bool) -> Outcome | None:
    return Outcome(failure="timeout") if timeout is not None and child.left(timeout, renew) <= 0 else None


def _end(code: int | None) -> str:
    if code is not None and code < 0:
        return signal.Signals(-code).name
    return f"exit {code}"


def _finish(child: _Child, outcome: Outcome) -> Outcome:
    """The outcome with the log and the time; nothing of the child is left running."""
    if not _in_group():
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.process.pid, signal.SIGKILL)
    if child.process.is_alive():
        child.process.kill()
    child.process.join()
    child.connection.close()
    with open(child.log, errors="replace") as f:
        said = f.read()[-LOG_TAIL:]
    os.unlink(child.log)
    failure = "memory" if _ended_by_itself(outcome) and NO_MEMORY.search(said) else outcome.failure
    return Outcome(outcome.value, failure, said + outcome.log, time.monotonic() - child.started)


def _ended_by_itself(outcome: Outcome) -> bool:
    """Whether code other than Python's ended the process: by a signal, or an exit code."""
    return outcome.failure is not None and (outcome.failure == "SIGABRT" or outcome.failure.startswith("exit "))
