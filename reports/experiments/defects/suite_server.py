"""The tests in one process that has imported everything: each defect is tried in a fork of it.

First every test file runs in a fork while it is recorded which defects each test reaches, and which of them would
change a value there. Another process then tries a defect under the tests in which it changes a value, the quickest
first, until one fails. Seconds are those of the processor.
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
from collections import defaultdict
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
from .switch import SWITCH, install

ASSERTIONS = ("AssertionError", "Failed")
WAITED_SECONDS = 1500.0  # of the clock, for one fork
OTHERS = 10  # tests that reach a defect without a changed value
GRACE_SECONDS = 15.0  # of the processor, beyond the recorded ones, for a fork
FORK_MEMORY_BYTES = 10 << 30
Say = Callable[[str], None]


@dataclass(frozen=True)
class Recorded:
    """One test: whether it passed, its seconds, the keys of the defects that it reaches, and of those that would change
    a value."""

    test: str
    passed: bool
    seconds: float
    reached: tuple[str, ...]
    differ: tuple[str, ...] = ()


@dataclass(frozen=True)
class Tried:
    """One defect: "noticed" with the test and what it raised, "crash", "time-out", "survived", or "not reached".
    `tests`: how many reach it; `differ`: in how many of them it would change a value; `ran`: those that were tried."""

    key: str
    outcome: str
    test: str = ""
    error: str = ""
    tests: int = 0
    differ: int = 0
    ran: tuple[str, ...] = ()
    seconds: float = 0.0


class Request(TypedDict):
    """A request to a server. `recording`: records the tests that were not recorded, or else tries the defects that no
    test has noticed; `of`: keys of the defects that are tried (none: all); `ceiling`: seconds of tests for one defect;
    `slowest`: seconds of the longest test that counts."""

    count: int
    seed: int
    folder: str
    ceiling: float
    slowest: float
    of: list[str]
    tests: list[str]
    recording: bool


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
        """Records the tests, or tries the defects."""
        gc.freeze()  # so that the collector of a fork copies no page
        if self.asked["recording"]:
            self.record(session.items)
        else:
            self.try_all(session.items)
        return True

    # ---- recording ---------------------------------------------------------------------------------------------------

    def record(self, items: Sequence[pytest.Item]) -> None:
        """The defects that each test reaches; files in a fork each."""
        path = self.folder / "recorded.jsonl"
        known = {r.test for r in recorded(self.folder)}
        files: dict[str, list[pytest.Item]] = {}
        durations = json.loads((ROOT / "tests" / "durations.json").read_text())
        for i in items:
            if i.nodeid not in known and durations.get(i.nodeid, 0.0) <= self.asked["slowest"]:
                files.setdefault(i.nodeid.partition("::")[0], []).append(i)
        for k, (file, of) in enumerate(files.items(), 1):
            for line in forked(partial(self._record, of), WAITED_SECONDS):
                _append(path, line)
            self.say(f"recorded {k} of {len(files)} files: {file}, {len(of)} tests")

    def _record(self, items: Sequence[pytest.Item]) -> Iterator[str]:
        """A line for each test; one that fails while changed values are computed runs again without."""
        failed = []
        for item, passed, seconds in self.ran(items):
            failed += [] if passed else [item]
            yield self._line(item, passed, seconds)
        SWITCH.recorder.compares = False
        for item, passed, seconds in self.ran(failed):
            yield self._line(item, passed, seconds)

    def _line(self, item: pytest.Item, passed: bool, seconds: float) -> str:
        reached, differ = (tuple(self.found[k].key for k in keys) for keys in SWITCH.recorder.take())
        return json.dumps(asdict(Recorded(item.nodeid, passed, round(seconds, 3), reached, differ)))

    def ran(self, items: Sequence[pytest.Item]) -> Iterator[tuple[pytest.Item, bool, float]]:
        """Each test, whether it passed, and its seconds."""
        from _pytest.runner import runtestprotocol

        for item, after in zip(items, [*items[1:], None], strict=True):
            start = _seconds()
            reports = runtestprotocol(item, log=False, nextitem=after)
            yield item, all(r.passed for r in reports), _seconds() - start

    # ---- defects -----------------------------------------------------------------------------------------------------

    def try_all(self, items: Sequence[pytest.Item]) -> None:
        """Tries each defect that no test has noticed under the tests that it was not tried under."""
        path = self.folder / "tried.jsonl"
        noticed, before = _tried(path)
        by_name = {i.nodeid: i for i in items}
        all_tests = [r for r in recorded(self.folder) if r.passed and r.test in by_name]
        for number, site in enumerate(self.found):
            if site.key in noticed or (self.asked["of"] and site.key not in self.asked["of"]):
                continue
            tests = [r for r in all_tests if site.key in r.reached]
            chosen = [r for r in ordered(tests, site.key, self.asked["ceiling"]) if r.test not in before[site.key]]
            if chosen or site.key not in before:
                tried = self.tried(number, tests, [by_name[r.test] for r in chosen], sum(r.seconds for r in chosen))
                _append(path, json.dumps(asdict(tried)))
                self.say(f"{number} {tried.outcome}: {site.file}:{site.line} {site.operator} ({tried.seconds:.0f} s)")

    def tried(self, number: int, reaching: Sequence[Recorded], tests: Sequence[pytest.Item], seconds: float) -> Tried:
        """One defect under these tests."""
        key = self.found[number].key
        if not tests:
            return Tried(key, "not reached")
        ask = lambda: self._try(number, tests, 3 * seconds + GRACE_SECONDS)  # noqa: E731
        start, lines = _seconds(), list(forked(ask, WAITED_SECONDS))
        outcome, test, error = json.loads(lines[-1]) if lines else ("time-out", "", "")
        differ = sum(key in r.differ for r in reaching)
        took = round(_seconds() - start, 2)
        return Tried(key, outcome, test, error, len(reaching), differ, tuple(t.nodeid for t in tests), took)

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


def ordered(tests: Sequence[Recorded], key: str, ceiling: float) -> list[Recorded]:
    """The tests that a defect is tried under: those in which it changes a value, the quickest first, then a few others
    that reach it; up to so many seconds."""
    by_time = sorted(tests, key=lambda r: r.seconds)
    differing = [r for r in by_time if key in r.differ]
    return within([*differing, *[r for r in by_time if key not in r.differ][:OTHERS]], ceiling)


def within(tests: Sequence[Recorded], ceiling: float) -> list[Recorded]:
    """The first tests that take so many seconds together; at least one where there is one."""
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


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def _append(path: Path, line: str) -> None:
    with path.open("a") as f:
        f.write(line + "\n")


def recorded(folder: Path) -> list[Recorded]:
    """The last record of each test."""
    found = {r["test"]: r for r in map(json.loads, _lines(folder / "recorded.jsonl"))}
    return [Recorded(**{**r, "reached": (*r["reached"],), "differ": (*r["differ"],)}) for r in found.values()]


def _tried(path: Path) -> tuple[set[str], dict[str, set[str]]]:
    """The defects that were noticed, and the tests that each was tried under."""
    noticed, before = set(), defaultdict[str, set[str]](set)
    for t in map(json.loads, _lines(path)):
        before[t["key"]].update(t["ran"])
        if t["outcome"] in ("noticed", "crash"):
            noticed.add(t["key"])
    return noticed, before


def main(given: Sequence[str]) -> int:
    """Runs the server of a request, which is JSON."""
    asked: Request = json.loads(given[0])
    found = drawn(asked["count"], asked["seed"])
    install(found, asked["recording"])
    server = Server(found, asked, _say)
    base = Path(asked["folder"]) / "pytest"
    options = f"-q -p no:cacheprovider -p no:xdist --capture=no --assert=plain --basetemp={base}".split()
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
