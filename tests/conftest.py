"""Fixtures: golden texts with --update-golden, marks that skip where the machine lacks what a test needs, and `slow`.

A test that took more than SLOW_SECONDS when durations were last recorded (`make durations`, tests/durations.json) is
slow: `make test` passes over it, `make test-all` runs it. Of a function whose every instance is slow, the quickest
instance is not, unless it took more than SPARED_SECONDS, so that `make test` runs nearly each function.
"""

from __future__ import annotations

import importlib.util
import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from trilift.lift.runtime.session import collect_rarely

GOLDEN = Path(__file__).parent / "goldens"
DURATIONS = Path(__file__).parent / "durations.json"
SLOW_SECONDS = 2.0  # of a test that `make test` runs
SPARED_SECONDS = 5.0  # of the only instance of a function that it runs
RECORDED_SECONDS = 1.0  # what a test takes at least to be recorded
os.environ["TRILIFT_CACHE_DIR"] = tempfile.mkdtemp(prefix="trilift-tests-")  # no result of an earlier run counts
os.environ["TRILIFT_CACHE_KEY"] = "of the tests"  # and none is made for the user
os.environ["TRILIFT_DAEMON"] = "0"  # nor is one asked that the user has started


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write what is printed now to tests/goldens")
    parser.addoption("--record-durations", action="store_true", help="write to tests/durations.json what tests take")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """golden(name, text): text must equal tests/goldens/<name>; with --update-golden it becomes that file."""

    def compare(name: str, text: str) -> None:
        path = GOLDEN / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        assert path.exists(), f"{path} is missing: run pytest with --update-golden"
        assert text == path.read_text()

    return compare


def pytest_configure(config: pytest.Config) -> None:
    collect_rarely()
    if config.getoption("--record-durations") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Durations(), "durations")


class Durations:
    """The seconds of every test, set-up included, written when the last one has ended."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0.0) + report.duration

    def pytest_sessionfinish(self) -> None:
        """Tests that were not run keep what is recorded."""
        seconds = {**(json.loads(DURATIONS.read_text()) if DURATIONS.exists() else {}), **self.seconds}
        long = {name: round(s, 1) for name, s in sorted(seconds.items()) if s >= RECORDED_SECONDS}
        DURATIONS.write_text(json.dumps(long, indent=0) + "\n")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """With `-m smoke`, a file that does not contain the word is not imported: imports are a third of the time."""
    fast = config.getoption("markexpr") == "smoke" and collection_path.name.startswith("test_")
    return True if fast and collection_path.suffix == ".py" and "smoke" not in collection_path.read_text() else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in slow(items, json.loads(DURATIONS.read_text()) if DURATIONS.exists() else {}):
        item.add_marker("slow")
    _skip_what_the_machine_lacks(items)


def slow(items: list[pytest.Item], seconds: dict[str, float]) -> list[pytest.Item]:
    """The tests that took too long; the quickest instance of a function may take longer."""
    functions: dict[str, list[pytest.Item]] = {}
    for item in items:
        functions.setdefault(item.nodeid.partition("[")[0], []).append(item)
    found = []
    for instances in functions.values():
        instances = sorted(instances, key=lambda i: seconds.get(i.nodeid, 0.0))
        limits = [SPARED_SECONDS, *[SLOW_SECONDS] * (len(instances) - 1)]
        found += [i for i, most in zip(instances, limits, strict=True) if seconds.get(i.nodeid, 0.0) > most]
    return found


def _skip_what_the_machine_lacks(items: list[pytest.Item]) -> None:
    marks = {"gpu": (_gpu, "needs a GPU"), "packages": (_packages, "needs the packages of `make packages`")}
    for name, (present, reason) in marks.items():
        marked = [i for i in items if i.get_closest_marker(name)]
        if marked and not present():
            for item in marked:
                item.add_marker(pytest.mark.skip(reason=reason))


def _gpu() -> bool:
    import torch

    return torch.cuda.is_available()


def _packages() -> bool:
    return all(importlib.util.find_spec(p) for p in ("liger_kernel", "flag_gems", "fla"))
