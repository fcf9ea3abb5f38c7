"""Plans are judged in their order, however many are checked at a time; answers are kept by what they follow from."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from trilift.lift.errors import Unsupported
from trilift.lift.runtime.isolate import Outcome
from trilift.reports.runner import answers
from trilift.reports.runner.answers import Answers
from trilift.reports.runner.store import Store
from trilift.superopt.accept.acceptance import STEPS, Acceptance, Step
from trilift.superopt.jobs import Answer, Unit
from trilift.superopt.optimize import Broken, Failed, Optimised, Question, optimised

pytestmark = pytest.mark.smoke
QUESTION = Question("cases.py", "softmax")
READ = {"program": "P", "against": "function", "eager": None, "sizes": {"M": 4}, "usual": {}, "parameters": ["x"]}
FOUND = {
    "states": 3, "candidates": 2, "best": 2e-6, "roofline": 1e-6, "values": 5, "seconds": 0.1, "excluded": None,
    "note": "",
}  # fmt: skip


def plan(k: int) -> Answer:
    return {"graph": f"plan {k}", "seconds": (k + 1) * 1e-6}


def checked(k: int, accepted: bool = True, same: str = "PROVED") -> Answer:
    steps = tuple(Step(n, accepted or n != "proved", n, 0.0) for n in STEPS)
    judged = asdict(Acceptance(steps, "PROVED" if accepted else ""))
    return {
        "graph": f"plan {k}", "text": "", "source": f"file {k}", "bound": 0.0, "acceptance": judged,
        "same": same if accepted else "", "arrangement": {}, "unstable": "",
    }  # fmt: skip


class Fake:
    """Answers from a table; the check of plan k takes `delay(k)` seconds."""

    def __init__(self, checks: list[Answer], delay: Callable[[int], float] = lambda k: 0.0, **others: Answer) -> None:
        self.checks, self.delay = checks, delay
        self.others = {"read": READ, "search": {**FOUND, "plans": [plan(k) for k in range(len(checks))]}} | others
        self.asked: list[str] = []
        self.pool = ThreadPoolExecutor(8)

    def __call__(self, unit: Unit, hear: Callable[[Any], None]) -> Future[Answer]:
        self.asked.append(unit.kind)
        return self.pool.submit(self.answer, unit)

    def answer(self, unit: Unit) -> Answer:
        if unit.kind != "check":
            return self.others[unit.kind]
        k = int(unit.arguments["graph"].removeprefix("plan "))
        time.sleep(self.delay(k))
        return self.checks[k]


@pytest.mark.parametrize("ahead", [1, 2, 3, 8])
@pytest.mark.parametrize("slow", [0, 1, 2])
def test_the_first_that_is_accepted_wins(ahead: int, slow: int) -> None:
    table = [checked(0, False), checked(1, same="REFUTED"), checked(2), checked(3), checked(4)]
    found = optimised(QUESTION, Fake(table, lambda k: 0.05 * (k == slow)), ahead)
    assert found.best is not None and found.best.source == "file 2"
    assert [e.source for e in found.tried] == ["file 0", "file 1", "file 2"]
    assert found.notes == ["accepted by itself, but REFUTED against the function of the case"]


@pytest.mark.parametrize("ahead", [1, 3])
def test_no_more_files_than_asked_for(ahead: int) -> None:
    nothing: Answer = {"note": "not emitted"}
    checks = [nothing, *(checked(k, False) for k in range(1, 7)), checked(7)]
    plans = {**FOUND, "plans": [plan(k) for k in range(7)]}
    fake = Fake(checks, search=plans, unfused={"error": "Unsupported", "text": "no tiles fit"})
    found = optimised(QUESTION, fake, ahead)
    assert found.best is None and len(found.tried) == 4
    emitted = ["not emitted", "7 plans were found, 4 were emitted"]
    assert found.notes == [*emitted, "no plan was accepted, and the unfused program failed: no tiles fit"]
    assert fake.asked.count("check") == 5
    found = optimised(QUESTION, Fake(checks, search=plans, unfused=plan(7)), ahead)  # after those, as it is written
    assert found.best is not None and found.best.source == "file 7" and len(found.tried) == 5
    assert found.notes == [*emitted, "no plan was accepted: this is the unfused program"]


def test_where_nothing_was_found_the_program_as_it_is_written() -> None:
    fake = Fake([checked(0)], search={**FOUND, "best": None, "plans": []}, unfused=plan(0))
    found = optimised(QUESTION, fake)
    assert found.best is not None and "this is the unfused program" in found.notes[0]
    late = Fake([checked(0)], search={"error": "Failed", "text": "not finished"}, unfused=plan(0))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("trilift.superopt.optimize.program_of", lambda data: None)
        patch.setattr("trilift.superopt.optimize.suited", lambda hardware, program: hardware)
        patch.setattr("trilift.superopt.optimize.Model", lambda program, hardware: SimpleNamespace(roofline=1e-6))
        found = optimised(QUESTION, late)
    assert (
        found.best is not None and found.notes[0] == "not finished" and "this is the unfused program" in found.notes[1]
    )
    none: Answer = {"error": "Unsupported", "text": "no tiles fit"}
    found = optimised(QUESTION, Fake([], search={**FOUND, "best": None, "plans": []}, unfused=none))
    assert found.best is None and "no tiles fit" in found.notes[0]


@pytest.mark.parametrize(("kind", "error"), [("Unsupported", Unsupported), ("Failed", Failed), ("Broken", Broken)])
def test_errors_of_units(kind: str, error: type[Exception]) -> None:
    with pytest.raises(error, match="why"):
        optimised(QUESTION, Fake([], read={"error": kind, "text": "why"}))
    found = optimised(QUESTION, Fake([{"error": kind, "text": "why"}, checked(1)]))  # a check that fails is no result
    assert found.best is not None and found.best.source == "file 1" and found.notes == ["not checked: why"]


def interrupted(done: dict[int, Answer], ahead: int) -> Optimised:
    """Where only these checks came back before all was cancelled."""
    fake = Fake([checked(k) for k in range(5)])

    def ask(unit: Unit, hear: Callable[[Any], None]) -> Future[Answer]:
        out: Future[Answer] = Future()
        if unit.kind != "check":
            return fake(unit, hear)
        k = int(unit.arguments["graph"].removeprefix("plan "))
        if k in done:
            out.set_result(done[k])
        else:
            out.cancel()
        return out

    return optimised(QUESTION, ask, ahead)


def test_what_is_accepted_by_then_is_kept() -> None:
    found = interrupted({2: checked(2)}, 3)
    assert found.interrupted and found.best is not None and found.best.source == "file 2"
    found = interrupted({0: checked(0, False), 2: checked(2, False)}, 3)
    assert found.interrupted and found.best is None
    with pytest.raises(CancelledError):
        optimised(QUESTION, lambda unit, hear: cancelled())


def cancelled() -> Future[Answer]:
    out: Future[Answer] = Future()
    out.cancel()
    return out


# ---- answers ---------------------------------------------------------------------------------------------------------


class Workers:
    """Workers that give one outcome, and count."""

    remote = False

    def __init__(self, outcome: Outcome) -> None:
        self.outcome, self.calls = outcome, 0

    def placed(self, file: str) -> str:
        return file

    def cancel(self, future: Future[Outcome]) -> None:
        future.cancel()

    def submit(self, *task: Any, **how: Any) -> Future[Outcome]:
        self.calls += 1
        out: Future[Outcome] = Future()
        out.set_result(self.outcome)
        return out


def asked(folder: Path, unit: Unit, outcome: Outcome, times: int = 2) -> tuple[Answer, int]:
    """The last answer, and how many calls were made for all."""
    workers, store = Workers(outcome), Store(folder)
    found = [Answers(workers, store).ask(unit, print).result() for _ in range(times)]  # type: ignore[arg-type]
    store.close()
    return found[-1], workers.calls


UNIT = Unit("search", {"program": "P", "seed": 0})


def test_a_unit_is_not_run_again(tmp_path: Path) -> None:
    assert asked(tmp_path, UNIT, Outcome(({"plans": []}, {}))) == ({"plans": []}, 1)
    assert asked(tmp_path, UNIT, Outcome(({"plans": [1]}, {})), 1) == ({"plans": []}, 0)
    assert asked(tmp_path, replace(UNIT, arguments={"program": "P", "seed": 1}), Outcome(({}, {})), 1)[1] == 1
    assert asked(tmp_path, replace(UNIT, kind="unfused"), Outcome(({}, {})), 1)[1] == 1


@pytest.mark.parametrize(
    ("outcome", "said"),
    [
        (Outcome(({"settled": False}, {})), {"settled": False}),
        (Outcome(failure="SIGABRT"), {"error": "Failed", "text": "search: the process ended with SIGABRT"}),
        (Outcome(failure="timeout"), {"error": "Failed", "text": "search: not finished in 120 s"}),
        (Outcome(failure="exception", log="ValueError: no"),
         {"error": "Broken", "text": "search: trilift itself failed: ValueError: no"}),
    ],
)  # fmt: skip
def test_what_is_not_decided_is_asked_again(tmp_path: Path, outcome: Outcome, said: Answer) -> None:
    assert asked(tmp_path, UNIT, outcome) == (said, 2)


def test_a_file_that_changed_counts(tmp_path: Path) -> None:
    file, helper = tmp_path / "cases.py", tmp_path / "helper.py"
    for path in (file, helper):
        path.write_text("1")
        answers.os.utime(path, (1e9, 1e9))
    unit = Unit("read", {"name": "a"}, str(file))
    outcome = Outcome(({}, answers.hashed([str(helper)])))
    assert asked(tmp_path, unit, outcome)[1] == 1
    helper.write_text("2")
    answers.os.utime(helper, (1e9, 1e9))
    assert asked(tmp_path, unit, outcome, 1)[1] == 1
    file.write_text("3")
    answers.os.utime(file, (1e9, 1e9))
    assert asked(tmp_path, unit, Outcome(({}, {})))[1] == 1
