"""Tests of a case on mutants of its kernels: which of them fail. One case in this process, each mutant in a child.

killed      a test fails                      survived    all pass
timeout     a launch, or all tests together, did not come to an end: counted as killed, and told
unreached   no launch ran the mutant          crashed     the mutant cannot be executed as the tests call it
error       pytest failed before or after a test: a defect of the tests
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any
from unittest import mock

from trilift.lift.runtime.isolate import Event, Outcome, run_all
from trilift.verify.mutation.mutant_filter import Crashed, Killed, verdict_by_execution
from trilift.verify.mutation.mutants import Mutant
from trilift.verify.mutation.soundness_gate import Tried

from .mutants import selection

if TYPE_CHECKING:
    from trilift.lift.cases.declaration import Case
    from trilift.verify.mutation.emulation import Emulation

    from .usual_tests import Usual

OUTCOMES = ("killed", "timeout", "survived", "unreached", "crashed", "error")
DEAD = ("killed", "timeout")
PATIENCE = 60.0  # seconds for the tests of one mutant, or
FACTOR = 6.0  # times what they take on the original
ARGUMENTS = ("-s", "-c", os.devnull, "-W", "ignore")
PLUGINS = ("cacheprovider", "terminal", "faulthandler", "unraisableexception", "threadexception")  # not needed


@dataclass(frozen=True, slots=True)
class Tested:
    """One mutant. `execution`: whether the gate's executions tell it from the original: killed, survived, crashed;
    what follows is "" and None where they do not. `written`: see above; `by`: the test and the first line of its
    failure; `allclose`, `fixed`: whether the common ways of testing tell it apart."""

    file: str
    case: str
    launch: int
    kernel: str
    number: int
    kind: str
    text: str
    identifier: str
    execution: str
    evidence: str
    written: str = ""
    by: str = ""
    allclose: bool | None = None
    fixed: bool | None = None
    seconds: float = 0.0

    @property
    def counts(self) -> bool:
        return self.execution == "killed"


@dataclass(frozen=True, slots=True)
class Original:
    """The tests of a case on the kernel as it is. `outcome`: "green", or why the tests cannot be used. `failing`: tests
    that fail and are left out on mutants; `passed`: how many remain, and mutants are judged only if some do."""

    file: str
    case: str
    outcome: str
    passed: int = 0
    failing: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def green(self) -> bool:
        return self.outcome == "green"


# ---- pytest ----------------------------------------------------------------------------------------------------------


@dataclass
class Watch:
    """A pytest plugin that collects failures. `failed`: test and first line of its failure; `ids`: pytest's names of
    these tests; `errors`: failures outside of tests. Before each test it connects the reads of the emulated machine to
    the checks of that test's file."""

    emulation: Emulation | None = None
    passed: int = 0
    failed: list[str] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def pytest_runtest_call(self, item: Any) -> None:
        running = getattr(item.module, "RUNNING", None)
        if self.emulation is not None:
            self.emulation.watch = running and (lambda addresses: running.memory.check_reads(addresses))

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.passed += report.when == "call" and report.passed
        if report.failed:
            (self.failed if report.when == "call" else self.errors).append(f"{_name(report)}: {_first(report)}")
            self.ids.append(report.nodeid)

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.errors.append(f"{_name(report)}: {_first(report)}")


def _name(report: Any) -> str:
    return str(report.nodeid).rpartition("::")[2]


def _first(report: Any) -> str:
    """The line of a failure that says what is wrong."""
    crash = getattr(report.longrepr, "reprcrash", None)
    lines = str(crash.message if crash is not None else report.longrepr).strip().splitlines()
    return (lines or [""])[0 if crash is not None else -1][:200]


def tested(path: str, *more: str, emulation: Emulation | None = None) -> tuple[int, Watch]:
    """Exit code of pytest on a file of tests, in this process, and what it heard. The file's module stays loaded."""
    import pytest

    watch = Watch(emulation)
    arguments = [*ARGUMENTS, *(f"-pno:{p}" for p in PLUGINS), "--rootdir", str(Path(path).parent), *more, path]
    try:
        return int(pytest.main(arguments, [watch])), watch
    except SystemExit:
        return int(pytest.ExitCode.INTERNAL_ERROR), watch


@contextlib.contextmanager
def hurried() -> Iterator[None]:
    """Hypothesis stops at the first failure, and draws the same examples every time; pytest takes no plugins along."""
    from hypothesis import HealthCheck, Phase, settings

    quick = settings(
        database=None, deadline=None, derandomize=True, phases=(Phase.explicit, Phase.generate), print_blob=False,
        report_multiple_bugs=False, suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    before = settings.get_current_profile_name()
    settings.register_profile("mutation", quick)
    settings.load_profile("mutation")
    try:
        with mock.patch.dict(os.environ, {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}):
            yield
    finally:
        settings.load_profile(before)


class Own(ModuleType):
    """A module that keeps its functions: what stands in for libdevice in Triton's interpreter cannot be compiled. Named
    so that Triton's compiler takes it for a part of its language, as it does a module."""

    __module__ = "triton.language.extra.libdevice"

    def __setattr__(self, name: str, value: Any) -> None:
        pass


@contextlib.contextmanager
def compiling() -> Iterator[None]:
    """Tests do not complete the interpreter, which runs nothing here."""
    from triton.language.extra import cuda, libdevice

    modules: tuple[ModuleType, ...] = (libdevice, cuda.libdevice)
    for module in modules:
        object.__setattr__(module, "__class__", Own)
    try:
        yield
    finally:
        for module in modules:
            object.__setattr__(module, "__class__", ModuleType)


# ---- one case --------------------------------------------------------------------------------------------------------


def scored(
    case: Case, tests: str, count: int, seed: int = 0, done: Collection[str] = (), starting: Event = lambda key: None
) -> Iterator[Tested | Original]:
    """The tests of the file `tests` on the case as it is; then, with those that pass, `count` mutants of its launches
    in turn, without those that are `done`; `starting` hears of each."""
    from trilift.verify.mutation.emulation import emulated

    from .usual_tests import usual

    with emulated(case.fn) as emulation, hurried(), compiling():
        original = on_original(case, tests, emulation)
        yield original
        if not original.passed:
            return
        tried, ways = Tried.of(case, seed), usual(case, seed)
        patience = max(PATIENCE, FACTOR * original.seconds)
        arguments = (tests, "-x", *(f"--deselect={name}" for name in original.failing))
        for launch, mutant in islice(selection(tried, seed), count):
            key = f"{launch} {mutant.identifier}"
            if key not in done:
                starting(key)
                yield on_mutant(tried, launch, mutant, arguments, emulation, ways, patience)


def on_original(case: Case, tests: str, emulation: Emulation) -> Original:
    start = time.perf_counter()
    code, watch = tested(tests, emulation=emulation)
    told = [*watch.errors, *watch.failed]
    outcome = "green" if code == 0 and watch.passed else "; ".join(told) or f"pytest ends with {code}"
    if emulation.trouble:
        outcome += f"; a launch cannot be executed here: {emulation.trouble}"
    file, passed = case.place.file if case.place else "", 0 if watch.errors else watch.passed
    return Original(file, case.name, outcome, passed, tuple(watch.ids), time.perf_counter() - start)


def on_mutant(
    tried: Tried, launch: int, mutant: Mutant, tests: Sequence[str], emulation: Emulation, ways: Usual, patience: float
) -> Tested:
    """Judges a mutant by executions, then by the tests of its case if executions tell it from the original. The tests
    run in a child process."""
    ran = verdict_by_execution(tried.first, launch, mutant)
    evidence = ran.why if isinstance(ran, Killed) else ran.reason if isinstance(ran, Crashed) else ""
    if isinstance(ran, Killed):
        evidence += " at " + ", ".join(f"{k} = {v}" for k, v in ran.counterexample.dims.items())
    heard: dict[str, Any] = {}
    start = time.perf_counter()
    if isinstance(ran, Killed):
        task = (launch, mutant, tests, emulation, ways)
        [(_, outcome)] = run_all(_mutated, [task], 1, patience, "fork", lambda _, said: heard.update(said))
        heard = {**heard, **_said(outcome)}
    return Tested(
        file=tried.case.place.file if tried.case.place else "",
        case=tried.case.name,
        launch=launch,
        kernel=tried.first[0].trace.launches[launch].kernel,
        number=mutant.number,
        kind=mutant.kind,
        text=mutant.text,
        identifier=mutant.identifier,
        execution=type(ran).__name__.lower(),
        evidence=evidence,
        seconds=time.perf_counter() - start,
        **heard,
    )


def _mutated(
    launch: int, mutant: Mutant, tests: Sequence[str], emulation: Emulation, ways: Usual, event: Event
) -> dict[str, str]:
    """In a child: the common ways of testing, then the written tests."""
    emulation.mutate(launch, mutant)
    event({"allclose": ways.allclose()})
    event({"fixed": ways.fixed()})
    emulation.changed, emulation.late, emulation.trouble = 0, False, ""
    code, watch = tested(*tests, emulation=emulation)
    return {"written": _outcome(code, watch, emulation), "by": ([*watch.failed, *watch.errors] or [""])[0]}


def _outcome(code: int, watch: Watch, emulation: Emulation) -> str:
    if watch.errors or code not in (0, 1):
        return "error"
    if emulation.late:
        return "timeout"
    if code == 1:
        return "crashed" if emulation.trouble else "killed"
    return "survived" if emulation.changed else "unreached"


def _said(outcome: Outcome) -> dict[str, Any]:
    """The fields of Tested that the child returned; if it failed, `written` is "timeout" or "error" and `by` holds the
    failure and the last line of its log."""
    if outcome.failure is None:
        return dict(outcome.value)
    last = (outcome.log.strip().splitlines() or [""])[-1]
    return {"written": "timeout" if outcome.failure == "timeout" else "error", "by": f"{outcome.failure} {last}"}
