"""The tests in one process that has imported everything: each defect is tried in a fork of it.

First every test file runs in a fork while it is recorded which defects each test would reach. A defect then needs only
the tests that reach it, the quickest first, until one fails. Seconds are those of the processor.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import select
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TypedDict

import pytest

from ...base.fingerprint import ROOT
from .drawn import drawn
from .sites import Site
from .switch import SWITCH, Recorder, install

ASSERTIONS = ("AssertionError", "Failed")
WAITED_SECONDS = 1500.0  # of the clock, for one fork
GRACE_SECONDS = 15.0  # of the processor, beyond the recorded ones, for a fork
FORK_MEMORY_BYTES = 10 << 30
Say = Callable[[str], None]


@dataclass(frozen=True)
class Recorded:
    """One test: whether it passed, its seconds, the keys of the defects that it reaches."""

    test: str
    passed: bool
    seconds: float
    reached: tuple[str, ...]


@dataclass(frozen=True)
class Tried:
    """One defect: "noticed" with the test and what it raised, "crash", "time-out", "survived", or "not reached".
    `tests`: those that reach it; `ran`: those of them that the ceiling allows."""

    key: str
    outcome: str
    test: str = ""
    error: str = ""
    tests: int = 0
    ran: int = 0
    seconds: float = 0.0


class Request(TypedDict):
    """A request to a server. `again`: keys of defects that are tried even if they were (none: all that were not);
    `ceiling`: seconds of tests for one defect; `slowest`: seconds of the longest test that counts."""

    count: int
    seed: int
    folder: str
    ceiling: float
    slowest: float
    again: list[str]
    tests: list[str]
    only_record: bool


class Server:
    """A pytest plugin that runs no test itself: forks do."""

    def __init__(self, found: Sequence[Site], asked: Request, say: Say) -> None:
        self.found, self.folder, self.asked, self.say = found, Path(asked["folder"]), asked, say
        self.raised: list[str] = []

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
        """Keeps what a test raised."""
        if call.excinfo is not None and not call.excinfo.errisinstance(pytest.skip.Exception):
            text = " ".join(str(call.excinfo.value).split())[:200]
            self.raised.append(f"{call.excinfo.typename}: {text}")
        yield

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Records the files that are not recorded yet, then tries the defects that were not tried yet."""
        gc.freeze()  # so that the collector of a fork copies no page
        recorded = self.record(session.items)
        if not self.asked["only_record"]:
            self.try_all(session.items, recorded)
        return True

    # ---- recording ---------------------------------------------------------------------------------------------------

    def record(self, items: Sequence[pytest.Item]) -> list[Recorded]:
        """The defects that each test reaches; files in a fork each."""
        path = self.folder / "recorded.jsonl"
        known = {r.test: r for r in map(_recorded, _lines(path))}
        files: dict[str, list[pytest.Item]] = {}
        durations = json.loads((ROOT / "tests" / "durations.json").read_text())
        for i in items:
            if i.nodeid not in known and durations.get(i.nodeid, 0.0) <= self.asked["slowest"]:
                files.setdefault(i.nodeid.partition("::")[0], []).append(i)
        recorder = Recorder(len(self.found))
        for k, (file, of) in enumerate(files.items(), 1):
            for line in forked(partial(self._record, of, recorder), WAITED_SECONDS):
                known[json.loads(line)["test"]] = _recorded(json.loads(line))
                _append(path, line)
            self.say(f"recorded {k} of {len(files)} files: {file}, {len(of)} tests")
        return [known[i.nodeid] for i in items if i.nodeid in known]

    def _record(self, items: Sequence[pytest.Item], recorder: Recorder) -> Iterator[str]:
        SWITCH.on = recorder
        for item, passed, seconds in self.ran(items):
            reached = tuple(self.found[k].key for k in recorder.take())
            yield json.dumps(asdict(Recorded(item.nodeid, passed, round(seconds, 3), reached)))

    def ran(self, items: Sequence[pytest.Item]) -> Iterator[tuple[pytest.Item, bool, float]]:
        """Each test, whether it passed, and its seconds."""
        from _pytest.runner import runtestprotocol

        for item, after in zip(items, [*items[1:], None], strict=True):
            start = _seconds()
            reports = runtestprotocol(item, log=False, nextitem=after)
            yield item, all(r.passed for r in reports), _seconds() - start

    # ---- defects -----------------------------------------------------------------------------------------------------

    def try_all(self, items: Sequence[pytest.Item], recorded: Sequence[Recorded]) -> None:
        """Tries each defect that was not tried, or is to be tried again."""
        path = self.folder / "tried.jsonl"
        known = {t["key"] for t in _lines(path)} - {*self.asked["again"]}
        by_name = {i.nodeid: i for i in items}
        reaching: dict[str, list[Recorded]] = {}
        for r in recorded:
            for key in r.reached if r.passed else ():
                reaching.setdefault(key, []).append(r)
        for number, site in enumerate(self.found):
            if site.key in known or (self.asked["again"] and site.key not in self.asked["again"]):
                continue
            tests = sorted(reaching.get(site.key, []), key=lambda r: r.seconds)
            tried = self.tried(number, site, tests, by_name)
            _append(path, json.dumps(asdict(tried)))
            self.say(f"{number} {tried.outcome}: {site.file}:{site.line} {site.operator} ({tried.seconds:.0f} s)")

    def tried(
        self, number: int, site: Site, tests: Sequence[Recorded], by_name: dict[str, pytest.Item]
    ) -> Tried:  # fmt: skip
        """One defect under the tests that reach it, up to the ceiling."""
        if not tests:
            return Tried(site.key, "not reached")
        chosen = within(tests, self.asked["ceiling"])
        limit = 3 * sum(r.seconds for r in chosen) + GRACE_SECONDS
        ask = lambda: self._try(number, [by_name[r.test] for r in chosen], limit)  # noqa: E731
        start, lines = _seconds(), list(forked(ask, WAITED_SECONDS))
        counts = {"tests": len(tests), "ran": len(chosen), "seconds": round(_seconds() - start, 2)}
        if not lines:
            return Tried(site.key, "time-out", **counts)  # type: ignore[arg-type]
        return Tried(site.key, *json.loads(lines[-1]), **counts)  # type: ignore[arg-type]

    def _try(self, number: int, items: Sequence[pytest.Item], limit: float) -> Iterator[str]:
        resource.setrlimit(resource.RLIMIT_CPU, (int(limit), int(limit) + 5))
        SWITCH.on = number
        for item, passed, _ in self.ran(items):
            if not passed:
                error = self.raised[-1] if self.raised else "no report"
                crash = not error.startswith(ASSERTIONS)
                yield json.dumps(("crash" if crash else "noticed", item.nodeid, error))
                return
        yield json.dumps(("survived", "", ""))


def within(tests: Sequence[Recorded], ceiling: float) -> list[Recorded]:
    """The first tests that take so many seconds together; at least one."""
    out: list[Recorded] = []
    sum_ = 0.0
    for r in tests:
        sum_ += r.seconds
        if out and sum_ > ceiling:
            break
        out.append(r)
    return out


# ---- forks -----------------------------------------------------------------------------------------------------------


def forked(work: Callable[[], Iterable[str]], waited: float) -> Iterator[str]:
    """The lines that `work` gives in a fork of this process; those so far where the fork ends or takes too long."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(ours)
        _child(work, theirs)
    os.close(theirs)
    end, held = time.monotonic() + waited, b""
    try:
        while (left := end - time.monotonic()) > 0 and select.select([ours], [], [], left)[0]:
            if not (read := os.read(ours, 1 << 16)):
                break
            *lines, held = (held + read).split(b"\n")
            yield from (line.decode() for line in lines)
    finally:
        os.close(ours)
        _ended(child)


def _ended(child: int) -> None:
    """Ends what the fork has left, and takes its exit."""
    try:
        os.killpg(child, signal.SIGKILL)
    except ProcessLookupError:
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def _child(work: Callable[[], Iterable[str]], out: int) -> None:
    """The fork: its own group, no output, a cache of its own."""
    try:
        os.setpgid(0, 0)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for k in (0, 1, 2):
            os.dup2(nowhere, k)
        resource.setrlimit(resource.RLIMIT_DATA, (FORK_MEMORY_BYTES, FORK_MEMORY_BYTES))
        with tempfile.TemporaryDirectory(prefix="trilift-defect-") as folder:
            os.environ["TRILIFT_CACHE_DIR"] = folder
            for line in work():
                os.write(out, line.encode() + b"\n")
    finally:
        os._exit(0)


def _seconds() -> float:
    """Of the processor: this process and its children that ended."""
    t = os.times()
    return t.user + t.system + t.children_user + t.children_system


# ---- files -----------------------------------------------------------------------------------------------------------


def _lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(x) for x in path.read_text().splitlines()] if path.exists() else []


def _append(path: Path, line: str) -> None:
    with path.open("a") as f:
        f.write(line + "\n")


def _recorded(row: dict[str, object]) -> Recorded:
    return Recorded(**{**row, "reached": tuple(row["reached"])})  # type: ignore[arg-type, call-overload]


def main(given: Sequence[str]) -> int:
    """Runs the server of a request, which is JSON."""
    asked: Request = json.loads(given[0])
    found = drawn(asked["count"], asked["seed"])
    install(found)
    server = Server(found, asked, _say)
    base = Path(asked["folder"]) / "pytest"
    options = [
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        "--capture=no",
        "--assert=plain",
        f"--basetemp={base}",
        "-m",
        "not slow",
    ]
    with Quiet():
        return int(pytest.main([*options, *asked["tests"]], plugins=[server]))


class Quiet:
    """Standard output goes nowhere: pytest's reports are not of interest."""

    def __enter__(self) -> None:
        self.kept = os.dup(1)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)

    def __exit__(self, kind: type[BaseException] | None, e: BaseException | None, at: TracebackType | None) -> None:
        os.dup2(self.kept, 1)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
