"""Calls on workers, here and on a Dask cluster: what becomes of those that crash, are stopped or lose their worker."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Executor, Future
from pathlib import Path
from typing import Any

import click
import pytest

from trilift.reports.base.progress import Progress
from trilift.reports.base.targets import Target
from trilift.reports.commands.gathering import WHOLE, gather
from trilift.reports.records.options import Options, Proving
from trilift.reports.runner import cluster as cluster_runs
from trilift.reports.runner import dispatch, workers
from trilift.reports.runner.workers import Lost, Workers

distributed = pytest.importorskip("distributed", reason="the extra `cluster` is not installed")
Event = Callable[[Any], None]
ROOT = Path(__file__).parents[2]


def square(x: int, seconds: float, event: Event) -> int:
    event(f"{x} begins")
    time.sleep(seconds)
    return x * x


def crash(event: Event) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def raising(event: Event) -> None:
    raise ValueError("no")


def noted(x: int, folder: str, event: Event) -> int:
    """Leaves a mark each time it runs, with the worker that it runs for."""
    server = os.getppid()
    worker = Path(f"/proc/{server}/stat").read_text().rsplit(")", 1)[1].split()[1]
    Path(folder, f"{x}-{worker}-{os.getpid()}").touch()
    time.sleep(1.0)
    return x * x


def value(future: Any) -> Any:
    """What the function of a call returned."""
    outcome = future.result(60)
    assert outcome.failure is None, outcome.log
    return outcome.value[0]


# ---- here ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def here() -> Iterator[Workers]:
    with workers.local(2) as pool:
        yield pool


def test_values_events_and_failures(here: Workers) -> None:
    heard: list[str] = []
    good = [here.submit(square, k, 0.0, seconds=60, hear=heard.append) for k in range(4)]
    bad = [here.submit(f, seconds=60) for f in (crash, raising)]
    late = here.submit(square, 1, 60.0, seconds=0.5)
    assert [value(f) for f in good] == [0, 1, 4, 9]
    assert sorted(heard) == [f"{k} begins" for k in range(4)]
    assert [f.result().failure for f in bad] == ["SIGKILL", "exception"]
    assert late.result().failure == "timeout"


def test_a_call_that_is_not_wanted_ends_at_once(here: Workers) -> None:
    begun: list[str] = []
    long = here.submit(square, 1, 60.0, seconds=100, hear=begun.append)
    other = here.submit(square, 2, 1.0, seconds=100)
    while not begun:
        time.sleep(0.02)
    start = time.monotonic()
    here.cancel(long)
    with pytest.raises(CancelledError):
        long.result(timeout=10)
    assert time.monotonic() - start < 5 and value(other) == 4


def test_after_the_end_nothing_runs() -> None:
    with workers.local(1) as pool:
        running, waiting = (pool.submit(square, k, 60.0, seconds=100) for k in (1, 2))
        time.sleep(0.2)
    for future in (running, waiting):
        with pytest.raises(CancelledError):
            future.result(timeout=0)
    with pytest.raises(CancelledError):
        pool.submit(square, 1, 0.0, seconds=1)


# ---- a cluster that fails, without one -------------------------------------------------------------------------------


class KilledWorker(Exception):
    """As Dask calls a call whose workers died."""


class Failing(Executor):
    """An executor of a cluster whose first calls end as they are told to."""

    def __init__(self, *ends: BaseException | None) -> None:
        self.ends, self.calls = list(ends), 0

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.calls += 1
        made: Future[Any] = Future()
        end = self.ends.pop(0) if self.ends else 7
        if end is None:
            made.cancel()
            made.set_running_or_notify_cancel()
        elif isinstance(end, BaseException):
            made.set_exception(end)
        elif end != "never":
            made.set_result(end)
        return made


class Silent:
    """A client without workers."""

    def subscribe_topic(self, topic: str, handler: Any) -> None:
        pass

    def nthreads(self) -> dict[str, int]:
        return {}


def pool(*ends: Any) -> workers.Remote:
    return workers.Remote(Failing(*ends), client=Silent())


@pytest.mark.parametrize("ends", [(), (None,), (None, KilledWorker("4 died"), None)])
def test_a_call_that_the_cluster_lost_is_given_again(ends: tuple[Any, ...]) -> None:
    made = pool(*ends)
    assert made.direct(square, 1, 0.0).result(5) == 7
    assert made.executor.calls == len(ends) + 1 and not made.calls and not made.heard  # type: ignore[attr-defined]


def test_a_call_is_not_given_for_ever() -> None:
    made = pool(*[KilledWorker("4 died")] * 9)
    with pytest.raises(workers.Killed, match="4 died"):
        made.direct(square, 1, 0.0).result(5)
    assert made.executor.calls == workers.SUBMISSIONS  # type: ignore[attr-defined]
    with pytest.raises(Lost, match="returned the work"):
        pool(*[None] * 9).direct(square, 1, 0.0).result(5)


def test_an_error_of_the_call_is_not_given_again() -> None:
    made = pool(ModuleNotFoundError("no", name="triton"))
    with pytest.raises(Lost, match="a worker has no triton"):
        made.direct(square, 1, 0.0).result(5)
    assert made.executor.calls == 1  # type: ignore[attr-defined]
    with pytest.raises(Lost, match="its trilift is not the one that is installed here"):
        pool(TypeError("too many")).direct(square, 1, 0.0).result(5)


def test_calls_end_where_no_worker_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "EMPTY_SECONDS", 0.2)
    monkeypatch.setattr(workers, "LOOK_SECONDS", 0.05)
    made = pool("never")
    future = made.direct(square, 1, 0.0)
    made.watch()
    with pytest.raises(Lost, match="has had no worker for 0.2 s"):
        future.result(5)


def test_a_run_that_loses_its_cluster_gives_what_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    done, lost, late = Future[Any](), Future[Any](), Future[Any]()
    done.set_result(([{"name": "a", "lift": "ok"}], {}))
    lost.set_exception(Lost("gone"))
    late.set_result(([{"name": "c", "lift": "ok"}], {}))
    target = Target("cases.py")
    calls = [cluster_runs._Call(target, n, f) for n, f in (("a", done), ("b", lost), ("c", late))]
    monkeypatch.setattr(cluster_runs, "_calls", lambda *_: calls)
    monkeypatch.setattr(workers, "cluster", lambda address: contextlib.nullcontext())
    records, heard = cluster_runs.run([target], Options(), lambda *_: None, lambda *_: None), list[str]()
    with pytest.raises(Lost, match="gone"):
        for r in records:
            heard.append(r["name"])
    assert heard == ["a", "c"]
    gathered = gather(cluster_runs.run([target], Options(), lambda *_: None, lambda *_: None), WHOLE, Progress(True),
                      lambda r: 0)  # fmt: skip
    assert [r["name"] for r in gathered.records] == ["a", "c"]
    assert gathered.incomplete == "gone" and gathered.exit_code(0) == 2


# ---- a cluster -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, worker_dashboard_address=None
    ) as made:
        yield made


@pytest.fixture(scope="module")
def there(cluster: Any) -> Iterator[Workers]:
    with workers.cluster(cluster.scheduler_address) as pool:
        yield pool


def test_a_cluster_gives_the_same(there: Workers) -> None:
    heard: list[str] = []
    good = [there.submit(square, k, 0.0, seconds=60, hear=heard.append) for k in range(4)]
    bad = there.submit(crash, seconds=60)
    assert [value(f) for f in good] == [0, 1, 4, 9]
    assert bad.result(60).failure == "SIGKILL"
    for _ in range(100):
        if len(heard) < 4:
            time.sleep(0.05)
    assert sorted(heard) == [f"{k} begins" for k in range(4)]


def test_nothing_is_lost_with_a_worker(there: Workers, tmp_path: Path) -> None:
    futures = [there.submit(noted, k, str(tmp_path), seconds=60) for k in range(8)]
    seen: set[str] = set()
    while len(seen) < 3:
        new = {*os.listdir(tmp_path)} - seen
        seen |= new
        time.sleep(0.02)
    call, victim, _ = min(new).split("-")  # it has just begun
    os.kill(int(victim), signal.SIGKILL)
    assert [value(f) for f in futures] == [k * k for k in range(8)]
    assert sum(name.startswith(f"{call}-") for name in os.listdir(tmp_path)) == 2


def test_what_differs_there_is_refused(there: Workers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "ours", lambda: {"triton": "0.0"})
    with pytest.raises(Lost, match=r"the worker tcp://.* has triton .*, but this machine has 0\.0"):
        there.submit(square, 1, 0.0, seconds=60).result(60)
    monkeypatch.undo()
    file = tmp_path / "a.py"
    file.write_text("x = 1")
    future = there.submit(square, 1, 0.0, seconds=60, file=str(file))
    assert value(future) == 1
    monkeypatch.setattr(workers.fingerprint, "of_file", lambda path: "another")
    with pytest.raises(Lost, match="has another .*a.py: workers need the same files"):
        there.submit(square, 1, 0.0, seconds=60, file=str(file)).result(60)


def test_an_address_where_nobody_answers() -> None:
    start = time.monotonic()
    with pytest.raises(click.UsageError, match="no Dask scheduler answers there"), workers.cluster("tcp://127.0.0.1:9"):
        pass
    with pytest.raises(click.UsageError, match="no Dask scheduler answers there"), workers.cluster("nonsense://x"):
        pass
    assert time.monotonic() - start < 12


def test_a_server_that_says_nothing() -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        address = f"tcp://127.0.0.1:{mute.getsockname()[1]}"
        start = time.monotonic()
        with pytest.raises(click.UsageError, match="no Dask scheduler answers there"), workers.cluster(address):
            pass
        assert time.monotonic() - start < 12


def test_without_the_extra() -> None:
    code = "import sys; sys.modules['distributed'] = None; from trilift.reports.cli import main; main()"
    arguments = ["optimize", "tests/reports/test_executor.py", "-o", "x.py", "--cluster", "tcp://127.0.0.1:9"]
    done = subprocess.run([sys.executable, "-c", code, *arguments], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2 and "pip install 'trilift[cluster]'" in done.stderr


CASES = """
import torch, triton, triton.language as tl
from trilift import case


@triton.jit
def kernel(x, y, n, factor, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, factor * tl.load(x + i, mask=i < n), mask=i < n)


def scaled(x, factor):
    y = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 16),)](x, y, x.numel(), factor, BLOCK=16)
    return y


@case(x="f32[N]")
def double(x):
    return scaled(x, 2)


@double.reference
def _(x):
    return x + x


@case(x="f32[N]")
def triple(x):
    return scaled(x, 3)


@triple.reference
def _(x):
    return x + x
"""


def test_cases_are_proved_there_and_kept_here(cluster: Any, tmp_path: Path) -> None:
    file = tmp_path / "cases.py"
    file.write_text(CASES)
    os.utime(file, (1e9, 1e9))
    how = {"proving": Proving(timeout=200.0), "cache": str(tmp_path / "cache"), "timeout": 300.0}
    options = Options(**how, cluster=cluster.scheduler_address)
    heard: list[Any] = []
    records = list(dispatch.records([Target(str(file))], options, lambda *event: heard.append(event[1:])))
    assert [(r["name"], r["verdict"], r["file"]) for r in records] == [
        ("double", "PROVED", str(file)), ("triple", "REFUTED", str(file)),
    ]  # fmt: skip
    assert ("", ["double", "triple"]) in heard and ("triple", "REFUTED") in heard
    here = list(dispatch.records([Target(str(file))], Options(**how)))
    strip = [{k: v for k, v in r.items() if k != "cached"} for r in here]
    assert strip == records and all(r["cached"] for r in here)


def test_a_file_that_cannot_be_loaded_there(cluster: Any, tmp_path: Path) -> None:
    file = tmp_path / "wrong.py"
    file.write_text("raise ValueError('mine')")
    (record,) = dispatch.records([Target(str(file))], Options(cluster=cluster.scheduler_address))
    assert record["errors"][0]["kind"] == "case" and "mine" in str(record["errors"])
