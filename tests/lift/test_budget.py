"""Budgets count steps: what counts, who is stopped, what is said, and that no clock has a part in it."""

from __future__ import annotations

import time

import pytest

from trilift.lift.errors import TriliftError
from trilift.lift.runtime import budget
from trilift.lift.runtime.budget import BUDGETS, COSTS, Guard, Meter, OutOfSteps, OutOfTime, limited, spend, stage

pytestmark = pytest.mark.smoke
ONE = round(COSTS["operation"])  # steps


def test_work_counts_for_every_stage_around_it() -> None:
    with stage("outer") as outer:
        spend("operation", 2)
        with stage("inner") as inner:
            spend("operation", 3)
    assert (outer.spent, inner.spent) == (5 * ONE, 3 * ONE)
    assert inner.kinds == {"operation": 3}


def test_work_of_another_budget_is_not_of_the_stage_that_waits_for_it() -> None:
    with stage("proof", 4 * ONE) as proof:
        spend("operation", 1)
        with proof.paused(), stage("host function") as host:
            spend("operation", 30)
            assert host.spent == 30 * ONE
        spend("operation", 2)
        assert (proof.spent, proof.exhausted) == (3 * ONE, False)
        assert proof.kinds == {"operation": 3}
        spend("operation", 2)
        assert proof.exhausted


def test_a_stage_that_waits_ends_with_the_one_around_it() -> None:
    with stage("suite", 10 * ONE) as suite, stage("proof", 9 * ONE, suite) as proof:
        with proof.paused():
            spend("operation", 8)
        assert not proof.exhausted
        spend("operation", 3)
        assert suite.exhausted and proof.exhausted


def test_a_stage_is_asked_and_a_limited_one_is_stopped() -> None:
    with stage("search", 2 * ONE) as meter:
        spend("operation", 3)
        assert meter.exhausted
    with pytest.raises(OutOfSteps), limited("run", 2 * ONE):
        spend("operation", 3)


def test_the_error_says_which_budget_how_many_steps_and_at_what() -> None:
    meter = Meter("proof", 1_000)
    with pytest.raises(OutOfSteps) as error:
        meter.spend("normal form", 10)
    assert isinstance(error.value, TriliftError)
    assert (error.value.stage, error.value.steps, error.value.at) == ("proof", 1_000, "normal form")
    assert str(error.value) == "out of steps: the proof may take 1,000: at a normal form"
    assert str(OutOfSteps("run", 5, "operation")) == "out of steps: the run may take 5: at an operation"


def test_an_inner_stage_ends_with_the_one_around_it() -> None:
    outer = Meter("proof", 2 * ONE)
    inner = Meter("proof of one configuration", 100 * ONE, outer)
    with pytest.raises(OutOfSteps, match="the proof may take"):
        inner.spend("operation", 3)
    with pytest.raises(OutOfSteps, match="the first run"), limited("first run", ONE), limited("second run", 9 * ONE):
        spend("operation", 2)


def test_a_limit_ends_with_its_block() -> None:
    with pytest.raises(OutOfSteps), limited("run", ONE):
        spend("operation", 2)
    spend("operation", 1_000)


def test_only_known_work_counts() -> None:
    with pytest.raises(KeyError):
        spend("magic")


def test_a_guard_is_no_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    guard = Guard(30.0)
    meter = Meter("proof", 1_000_000, guard=guard)
    meter.spend("normal form")
    monkeypatch.setattr(time, "process_time", lambda: guard.end + 1)
    with pytest.raises(OutOfTime, match="^time ran out after 30 s, during the proof$"):
        meter.spend("normal form")
    with pytest.raises(OutOfTime):  # an inner stage has it too
        Meter("proof of one configuration", 10, meter).check()
    assert guard.left == 0 and guard.struck and not meter.exhausted


def test_what_was_spent_is_told_by_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "_LEDGER", {})
    for _ in range(2):
        with stage("search", 1_000):
            spend("operation")
    with stage("all"):
        pass
    assert budget.spent() == ["all: 0 steps in 1 of any number", f"search: {2 * ONE} steps in 2 of 1,000"]


def test_budgets_are_one_text_for_people_and_keys() -> None:
    lines = str(BUDGETS).splitlines()
    assert [line.partition(":")[0] for line in lines] == list(BUDGETS.__slots__)
    assert f"{BUDGETS.search.steps:,} steps" in next(line for line in lines if line.startswith("search"))


def test_the_outer_limit_is_one_number() -> None:
    """Where nothing heavy may be imported it is written out."""
    import inspect

    from trilift import api
    from trilift.reports.cli import PROOF_TIMEOUT
    from trilift.reports.records.options import Proving

    command = PROOF_TIMEOUT(lambda timeout: None)
    written = [inspect.signature(f).parameters["timeout"].default for f in (api.prove, api.equal, api.audit, api.write)]
    written += [Proving().timeout, command.__click_params__[0].default]
    assert set(written) == {budget.GUARD_SECONDS}
