"""Where work is done: functions on a `concurrent.futures` executor, each call in a process of its own.

    local(jobs)        threads of this process, each of which waits for one child
    cluster(address)   the workers of a Dask cluster, through `client.get_executor()`

A call that crashes or takes too long harms no other, and is reported as an `Outcome`. On a cluster a call whose worker
died is made again by another one. A worker has to run what we would run: it refuses a call where its packages or
the user's file differ from ours."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from importlib import metadata
from threading import Lock
from typing import Any
from uuid import uuid4
from weakref import ref

import click

from trilift.lift.runtime.isolate import Event, Outcome, run_all

from ..base import fingerprint

CONNECT = 5.0  # seconds for a scheduler to answer, and for a first worker
SAME = ("egglog", "numpy", "torch", "triton", "z3-solver")  # distributions whose versions have to agree
Function = Callable[..., Any]
Hear = Callable[[Any], None]
Files = dict[str, str | None]  # path -> hash


class Lost(click.ClickException):
    """A call that no worker can make: the cluster went away, or it is not as we are."""

    exit_code = 2


class Killed(Lost):
    """A call that ended every worker that tried it."""


class _Stopped(Exception):
    """Raised in the thread of a call that is not wanted any more."""


@dataclass
class _Call:
    """One call of ours. `process`: of its child, while there is one."""

    process: int = 0
    stopped: bool = False

    def heard(self, message: tuple[str, Any], hear: Hear) -> None:
        kind, value = message
        if kind == "process":
            self.process = value
        elif not self.stopped:
            hear(value)
        if self.stopped:
            raise _Stopped

    def stop(self) -> None:
        self.stopped = True
        if self.process:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process, signal.SIGKILL)


@dataclass
class Workers:
    """`submit` gives a future of an Outcome whose value is (what the function returned, the files that it loaded, with
    their hashes); it raises CancelledError once all is stopped."""

    executor: Executor
    stopped: bool = False
    remote = False
    calls: dict[Future[Outcome], _Call] = field(default_factory=dict)
    lock: Any = field(default_factory=Lock)

    def submit(
        self, function: Function, *task: Any, seconds: float, file: str = "", hear: Hear = lambda said: None,
        preload: Sequence[str] = (),
    ) -> Future[Outcome]:  # fmt: skip
        """`function(*task, event)`, killed after so many seconds; `hear` hears of its events. `file`: the user's;
        `preload`: modules that are imported once for all calls."""
        if self.stopped:
            raise CancelledError
        call = _Call()
        future = self.executor.submit(_here, call, function, task, seconds, tuple(preload), hear)
        with self.lock:
            self.calls[future] = call
        future.add_done_callback(self.forget)
        return future

    def placed(self, file: str) -> str:
        """The name of a file where calls run."""
        return file

    def forget(self, future: Future[Outcome]) -> None:
        with self.lock:
            self.calls.pop(future, None)

    def cancel(self, future: Future[Outcome]) -> None:
        """The call is not wanted any more: its future is cancelled, or ends soon."""
        if not future.cancel() and (call := self.calls.get(future)) is not None:
            call.stop()

    def stop(self) -> None:
        """Cancels all calls, and takes no more."""
        self.stopped = True
        self.executor.shutdown(wait=False, cancel_futures=True)
        with self.lock:
            running = list(self.calls)
        for future in running:
            self.cancel(future)


@contextmanager
def local(jobs: int) -> Iterator[Workers]:
    """Processes of this machine, at most so many at a time."""
    workers = Workers(ThreadPoolExecutor(jobs, "trilift"))
    try:
        yield workers
    finally:
        workers.stop()
        workers.executor.shutdown()


def _here(
    call: _Call, function: Function, task: tuple[Any, ...], seconds: float, preload: Sequence[str], hear: Hear
) -> Outcome:
    """In a thread of ours. Raises CancelledError where the call was stopped."""
    if call.stopped:
        raise CancelledError
    try:
        return _isolated(function, task, seconds, preload, lambda message: call.heard(message, hear))
    except _Stopped:
        raise CancelledError from None
    finally:
        call.process = 0
        if call.stopped:
            raise CancelledError


def _isolated(function: Function, task: tuple[Any, ...], seconds: float, preload: Sequence[str], hear: Hear) -> Outcome:
    tell = lambda _, message: hear(message)  # noqa: E731
    return next(run_all(_child, [(function, task)], 1, seconds, "forkserver", tell, preload=preload))[1]


def _child(function: Function, task: tuple[Any, ...], event: Event) -> tuple[Any, Files]:
    """In the child: the value, and the files that were imported for it."""
    before = frozenset(sys.modules)
    event(("process", os.getpid()))
    value = function(*task, lambda said: event(("event", said)))
    return value, hashed(p for p in fingerprint.loaded(before) if os.path.exists(p) or not _temporary(p))


def hashed(paths: Iterable[str]) -> Files:
    """The files with their hashes."""
    return {p: fingerprint.of_file(p) for p in sorted(set(paths))}


def differing(files: Files) -> str:
    """The first file whose content is not what it was there, or was before; "" if there is none."""
    return next((p for p, h in files.items() if fingerprint.of_file(p) != h), "")


def _temporary(path: str) -> bool:
    """Whether a file is one that a call writes to load it, and removes."""
    return path.startswith(os.path.join(tempfile.gettempdir(), "trilift-"))


# ---- a cluster -------------------------------------------------------------------------------------------------------


@contextmanager
def cluster(address: str) -> Iterator[Remote]:
    """The workers behind a Dask scheduler. Raises click.UsageError where none answers."""
    client = connected(address)
    workers = Remote(client.get_executor(pure=False), client=client)
    client.subscribe_topic(workers.topic, workers.told)
    try:
        yield workers
    finally:
        with suppress(Exception):  # it may have gone away
            workers.stop()
        client.close(timeout=2)


def connected(address: str) -> Any:
    """A client of a scheduler that has a worker. Raises click.UsageError."""
    try:
        from distributed import Client
    except ImportError:
        raise click.UsageError("--cluster needs dask and distributed: pip install 'trilift[cluster]'") from None
    try:
        asyncio.run(asyncio.wait_for(_greeted(address), CONNECT))  # a Client waits without end for what says nothing
        client = Client(address, timeout=CONNECT, set_as_default=False)
    except Exception as e:  # an address may be wrong in many ways
        raise click.UsageError(f"--cluster {address}: no Dask scheduler answers there ({_short(e)})") from None
    try:
        client.wait_for_workers(1, timeout=CONNECT)
    except Exception as e:
        client.close(timeout=2)
        raise click.UsageError(f"--cluster {address}: the scheduler has no workers ({_short(e)})") from None
    return client


async def _greeted(address: str) -> None:
    """Asks a scheduler who it is."""
    from distributed.core import rpc
    from distributed.security import Security

    async with rpc(address, connection_args=Security().get_connection_args("client")) as scheduler:
        await scheduler.identity()


def _short(e: Exception) -> str:
    return str(e).strip().splitlines()[0] if str(e).strip() else type(e).__name__


@dataclass
class Remote(Workers):
    """`client`: of the scheduler; `heard`: who hears of which call."""

    client: Any = None
    remote = True
    topic: str = field(default_factory=lambda: f"trilift-{uuid4().hex}")
    heard: dict[str, Hear] = field(default_factory=dict)

    def submit(
        self, function: Function, *task: Any, seconds: float, file: str = "", hear: Hear = lambda said: None,
        preload: Sequence[str] = (),
    ) -> Future[Outcome]:  # fmt: skip
        return self.direct(_isolated, function, task, seconds, tuple(preload), file=file, hear=hear)

    def direct(self, function: Function, *task: Any, file: str = "", hear: Hear = lambda said: None) -> Future[Any]:
        """`function(*task, event)` on a worker, in its own process; the function isolates what may do harm."""
        if self.stopped:
            raise CancelledError
        name = uuid4().hex
        try:
            made = self.executor.submit(
                _there, function, task, ours(), hashed([file] if file else []), self.topic, name
            )
        except Exception as e:
            raise Lost(f"the cluster is gone: {_short(e)}") from None
        self.heard[name] = hear
        out: Future[Any] = Future()
        out.add_done_callback(lambda done: self.heard.pop(name, None))
        there = ref(made)  # whoever holds a result that was given makes the cluster keep it, or make it again
        out.add_done_callback(lambda done: done.cancelled() and (call := there()) and call.cancel())
        with self.lock:
            self.calls[out] = _Call()
        out.add_done_callback(self.forget)
        made.add_done_callback(lambda done: _passed(done, out))
        return out

    def placed(self, file: str) -> str:
        return os.path.abspath(file) if file else ""

    def told(self, event: Any) -> None:
        """An event of a call, on the client's own thread."""
        _, (name, said) = event
        if (hear := self.heard.get(name)) is not None:
            hear(said)

    def stop(self) -> None:
        self.stopped = True
        with self.lock:
            running = list(self.calls)
        for future in running:
            self.cancel(future)
        self.executor.shutdown(wait=False)


def _passed(made: Future[Any], out: Future[Any]) -> None:
    """The end of a call on the cluster, as ours."""
    if not out.set_running_or_notify_cancel():
        return
    if made.cancelled():
        out.set_exception(Lost("the cluster is gone: its scheduler returned the work"))
    elif (error := made.exception()) is not None:
        out.set_exception(_lost(error))
    else:
        out.set_result(made.result())


def _lost(error: BaseException) -> Lost:
    if isinstance(error, Lost):
        return error
    if isinstance(error, ModuleNotFoundError):
        return Lost(f"a worker has no {error.name}: the workers need the packages that are installed here")
    kind = Killed if type(error).__name__ == "KilledWorker" else Lost
    return kind(f"{type(error).__name__}: {_short(Exception(error))}")


def _there(
    function: Function, task: tuple[Any, ...], expected: Mapping[str, str], files: Files, topic: str, name: str
) -> Any:
    """On a worker. Raises Lost where it is not as the client is."""
    from distributed import get_worker

    worker = get_worker()
    for what, wanted in expected.items():
        if (found := ours().get(what)) != wanted:
            raise Lost(f"the worker {worker.address} has {what} {found}, but this machine has {wanted}")
    if other := differing(files):
        raise Lost(f"the worker {worker.address} has no such {other}: workers need the same files at the same paths")
    multiprocessing.current_process().daemon = False  # a worker's children are ours to end

    def hear(message: tuple[str, Any]) -> None:
        if message[0] == "event":
            worker.log_event(topic, (name, message[1]))

    return function(*task, hear)


@cache
def ours() -> dict[str, str]:
    """The environment that must be the same where results are made: versions, our own source, Triton's settings."""
    python = ".".join(map(str, sys.version_info[:3]))
    settings = {
        k: v for k, v in os.environ.items() if k.startswith("TRITON_") and not k.startswith(fingerprint.IRRELEVANT)
    }
    settings.setdefault("TRITON_DEFAULT_FP_FUSION", "1")
    return {
        "Python": python,
        **{name: metadata.version(name) for name in SAME},
        "trilift": fingerprint.of_text(*fingerprint.own_source()),
        "settings": " ".join(f"{k}={v}" for k, v in sorted(settings.items())),
    }
