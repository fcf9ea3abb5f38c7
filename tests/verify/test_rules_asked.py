"""Rules of an audit: one that could not be asked is named, and runs are executed again only where it decides."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from trilift.lift.runtime import budget
from trilift.lift.runtime.budget import Meter
from trilift.verify.audit.evidence import Evidence
from trilift.verify.audit.examination import _checked
from trilift.verify.audit.finding import Finding, Rule
from trilift.verify.audit.rules import broken_contract

SPENT = "always: the steps of the rules were spent before it was asked"


def always(evidence: Evidence) -> Iterator[Finding]:
    """The findings of a rule that finds something everywhere."""
    yield Finding("always", "something", None)


def evidence(meter: Meter, runs: tuple[Any, ...] = ()) -> Evidence:
    return Evidence(SimpleNamespace(), None, None, (), (), runs, meter=meter)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "spent, said", [(0, []), (11, ["always: the steps of the rules were spent before it was asked"])]
)
def test_a_rule_after_the_last_step_is_named(spent: int, said: list[str]) -> None:
    meter = Meter("rules", 10)
    budget.count("comparison", spent)
    e = evidence(meter)
    assert [f.rule for f in _checked(Rule("always", "warning", "", always), e)] == ["always"]
    assert e.unknown == said


def test_runs_within_the_contract_are_not_executed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    monkeypatch.setattr(Evidence, "excluded", lambda self, run: run.clause)
    monkeypatch.setattr(Evidence, "wrong", lambda self, run, config=None: asked.append(run.clause) or False)
    runs = [SimpleNamespace(outputs={}, clause=c) for c in (None, "N <= 64", None)]
    assert not list(broken_contract._blocks(evidence(Meter("rules", 10), tuple(runs))))
    assert asked == ["N <= 64"]
