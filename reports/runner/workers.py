"""Where work is done: functions on a `concurrent.futures` executor, each call in a process of its own.

    local(jobs)        threads of this process, each of which waits for one child
    cluster(address)   the workers of a Dask cluster, through `client.get_executor()`

A call that crashes or takes too long harms no other, and is reported as an `Outcome`. On a cluster a call whose worker
died is made again by another one, and so are all calls where the scheduler was restarted. A worker has to run what we
would run: it refuses a call where its packages or the user's file differ from ours."""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Executor, Future, InvalidStateError, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache, partial
from importlib import metadata
from threading import Event as Flag
from threading import Lock, Thread
from typing import Any
from uuid import uuid4
from weakref import ref

import click

from trilift.lift.runtime.isolate import Event, Outcome, run_all

from ..base import fingerprint
from ..base.version import VERSION
from .stopping import Lost as Lost

CONNECT = 5.0  # seconds for a scheduler to answer, and for a first worker
BACK_SECONDS = 30.0  # for a scheduler to come back
EMPTY_SECONDS = 60.0  # for a worker to come back where none is left
LOOK_SECONDS = 2.0  # between two looks at how many workers there are
SUBMISSIONS = 4  # of one call: after a scheduler was restarted, or after its workers died
SAME = ("egglog", "numpy", "torch", "triton", "z3-solver")  # distributions whose versions have to agree
# Errors with which a worker ends that cannot read a call, by the name of their class.
DIFFERENT = ("AttributeError", "ImportError", "RuntimeError", "TypeError", "UnpicklingError")
Function = Callable[..., Any]
Hear = Callable[[Any], None]
Files = dict[str, str | None]  # path -> hash


class _Again(Lost):
    """The end of a call that is due to the cluster, not to the call: it may be given again."""


class Killed(_Again):
    """A call every worker of which died."""


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
    before = fingerprint.watched()
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
    Thread(target=workers.watch, daemon=True).start()
    try:
        yield workers
    finally:
        workers.ended.set()
        with suppress(Exception):  # it may have gone away
            workers.stop()
        client.close(timeout=2)


def connected(address: str) -> Any:
    """A client of a scheduler that has a worker. Raises click.UsageError."""
    try:
        from distributed import Client
    except ImportError:
        raise click.UsageError("--cluster needs dask and distributed: pip install 'trilift[cluster]'") from None
    for name in ("client", "core", "comm"):  # a lost connection is told by us
        logging.getLogger(f"distributed.{name}").setLevel(logging.CRITICAL)
    try:
        asyncio.run(asyncio.wait_for(_greeted(address), CONNECT))  # a Client waits without end for what says nothing
        client = Client(address, timeout=BACK_SECONDS, set_as_default=False)
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
class _Order:
    """A call on the cluster: `send` gives it to Dask, `out` is its end for us."""

    out: Future[object]
    send: Callable[[], Future[object]]
    left: int = SUBMISSIONS


@dataclass
class Remote(Workers):
    """`client`: of the scheduler; `heard`: who hears of which call; `ended`: set when the calls are not wanted."""

    client: Any = None
    remote = True
    topic: str = field(default_factory=lambda: f"trilift-{uuid4().hex}")
    heard: dict[str, Hear] = field(default_factory=dict)
    ended: Flag = field(default_factory=Flag)

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
        files = hashed([file] if file else [])
        out: Future[Any] = Future()
        self.heard[name] = hear
        out.add_done_callback(lambda done: self.heard.pop(name, None))
        with self.lock:
            self.calls[out] = _Call()
        out.add_done_callback(self.forget)
        send = partial(self.executor.submit, _there, function, task, ours(), files, self.topic, name)
        self._send(_Order(out, send))
        return out

    def _send(self, order: _Order) -> None:
        """Gives a call to the cluster. Raises Lost."""
        order.left -= 1
        try:
            made = order.send()
        except Exception as e:
            raise Lost(f"the cluster is gone: {_short(e)}") from None
        there = ref(made)  # whoever holds a result that was given makes the cluster keep it, or make it again
        order.out.add_done_callback(lambda done: done.cancelled() and (call := there()) and call.cancel())
        made.add_done_callback(lambda done: self._passed(done, order))

    def _passed(self, made: Future[object], order: _Order) -> None:
        """The end of a call on the cluster: it is given again where that is due to the cluster, else it is ours."""
        found = _end(made)
        if isinstance(found, _Again) and order.left and not self.stopped and not order.out.done():
            try:
                self.client.subscribe_topic(self.topic, self.told)  # a new scheduler knows of none
                return self._send(order)
            except Exception as e:
                found = e if isinstance(e, Lost) else Lost(f"the cluster is gone: {_short(e)}")
        if order.out.cancelled():
            order.out.set_running_or_notify_cancel()
            return None
        with suppress(InvalidStateError):  # another thread has ended it
            if isinstance(found, BaseException):
                order.out.set_exception(found)
            else:
                order.out.set_result(found[0])
        return None

    def watch(self) -> None:
        """In a thread of its own: ends all calls where no worker is left to make them."""
        since = time.monotonic()
        while not self.ended.wait(LOOK_SECONDS):
            if self._count() or not self.calls:
                since = time.monotonic()
            elif time.monotonic() - since > EMPTY_SECONDS:
                return self._give_up(Lost(f"the cluster has had no worker for {EMPTY_SECONDS:g} s"))
        return None

    def _count(self) -> int:
        """How many workers there are; 0 where the scheduler does not answer."""
        try:
            return len(self.client.nthreads())
        except Exception:
            return 0

    def _give_up(self, why: Lost) -> None:
        with self.lock:
            waiting = list(self.calls)
        for future in waiting:
            with suppress(InvalidStateError):
                future.set_exception(why)

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


def _end(made: Future[object]) -> tuple[object] | Lost:
    """The result of a call, or the reason why it has none."""
    if made.cancelled():
        return _Again("the cluster is gone: its scheduler returned the work")
    error = made.exception()
    return (made.result(),) if error is None else _lost(error)


def _lost(error: BaseException) -> Lost:
    if isinstance(error, Lost):
        return error
    if isinstance(error, ModuleNotFoundError):
        return Lost(f"a worker has no {error.name}: the workers need the packages that are installed here")
    return _named(type(error).__name__, _short(Exception(error)))


def _named(name: str, text: str) -> Lost:
    """The end that an error of the cluster is, by the name of its class."""
    if name == "KilledWorker":
        return Killed(text)
    if name in DIFFERENT:
        return Lost(
            f"a worker cannot read the call ({name}: {text}): its trilift is not the one that is installed here"
        )
    return Lost(f"{name}: {text}")


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
        how = "another" if os.path.exists(other) else "no"
        raise Lost(f"the worker {worker.address} has {how} {other}: workers need the same files at the same paths")
    multiprocessing.current_process().daemon = False  # a worker's children are ours to end

    def hear(message: tuple[str, Any]) -> None:
        if message[0] == "event":
            worker.log_event(topic, (name, message[1]))

    return function(*task, hear)


def memory_bytes() -> int | None:
    """On a worker: the memory that one call may take, None where the worker has no limit."""
    from distributed import get_worker

    worker = get_worker()
    most = worker.memory_manager.memory_limit
    return most // worker.state.nthreads if most else None


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
        "trilift": f"{VERSION} of source {fingerprint.of_text(*fingerprint.own_source())[:12]}",
        "settings": " ".join(f"{k}={v}" for k, v in sorted(settings.items())),
    }
