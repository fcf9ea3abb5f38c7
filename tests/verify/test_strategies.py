"""Strategies: drivers that take the first row that closes a goal, and records that name it."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click import UsageError

from trilift import verify
from trilift.lift.runtime.strategy import Closers, Strategy, decide, first
from trilift.reports.base import explanations
from trilift.reports.base.targets import Target
from trilift.reports.experiments import registry
from trilift.reports.experiments.corpora import strategy_counts
from trilift.reports.records import conditions
from trilift.reports.records.options import Options

sys.path[:0] = [str(Path(__file__).parents[1] / folder) for folder in ("helpers", "kernels")]
import kernels_invariant as kernels  # noqa: E402

INVARIANTS = {  # of each loop variable the strategy that gave its closed form
    "argmax_each": {"running-maximum": 1, "index-of-an-extreme": 1},
    "welford": {"rescaled-sum": 2, "sum-of-deviations": 2},  # for each of two outputs
    "while_sum": {"sum": 2},
}


def row(name: str, attempt: Any) -> Strategy:
    return Strategy(name, "a test", attempt, "ours", "none")


@pytest.mark.smoke
def test_the_first_row_that_closes_the_goal_is_named() -> None:
    closers = Closers()
    rows = [row("none", lambda x: None), row("half", lambda x: x / 2), row("double", lambda x: 2 * x)]
    assert first(closers, rows, 4) == 2
    assert closers.names == ["half"]
    assert first(closers, rows[:1], 4) is None and closers.names == ["half"]


@pytest.mark.smoke
def test_a_goal_may_be_replaced_closed_or_given_up() -> None:
    closers = Closers()
    less = row("less", lambda engine, x: x - 1 if x > 1 else None)
    done = row("done", lambda engine, x: True if x == 1 else None)
    never = row("never", lambda engine, x: False)
    assert decide(closers, [less, less, done, never], None, 3)
    assert closers.names == ["less", "less", "done"]
    assert not decide(closers, [never, done], None, 1)
    assert not decide(closers, [less], None, 1)
    assert closers.names == ["less", "less", "done"]


@pytest.mark.smoke
@pytest.mark.parametrize("outcome", [None, False, ValueError])
def test_what_a_failed_attempt_closed_on_its_way_is_forgotten(outcome: Any) -> None:
    closers = Closers(["before"])

    def attempt() -> Any:
        closers.names.append("within")
        if outcome is ValueError:
            raise ValueError
        return outcome

    try:
        closers.attempt(row("outer", attempt))
    except ValueError:
        assert outcome is ValueError
    assert closers.names == ["before"]


@pytest.mark.smoke
def test_what_closes_goals_inside_is_listed_once() -> None:
    closers = Closers(["before"])
    with closers.listing() as inside:
        closers.names += ["a", "b", "a"]
    assert inside == ["a", "b"]


@pytest.mark.smoke
def test_every_strategy_and_every_identity_is_explained() -> None:
    tables = (explanations.laws(), explanations.identities(), explanations.strategies())
    assert [n for n, k in Counter(name for table in tables for name in table).items() if k > 1] == []
    assert {s.goal for s in explanations.strategies().values()} == {
        "equality", "agreement", "invariant", "contract", "synthesis", "plan",
    }  # fmt: skip
    for name, strategy in explanations.strategies().items():
        page = explanations.explain(name)
        assert page.startswith(name) and strategy.source in page and strategy.example in page
    for name, identity in explanations.identities().items():
        assert str(identity).splitlines()[0] in explanations.explain(name)


@pytest.mark.parametrize("name", INVARIANTS)
def test_a_proof_names_what_closed_its_goals(name: str) -> None:
    proofs = verify.prove(getattr(kernels, name), fallback=False)
    counted = [conditions.strategies(p) for p in proofs]
    assert sum((Counter(c["invariant"]) for c in counted), Counter()) == INVARIANTS[name]
    assert all(c["equality"]["normal-forms"] for c in counted)
    said = "\n".join(step["text"] for step in conditions.explain(proofs))
    assert all(strategy in said for strategy in INVARIANTS[name])


def test_a_corpus_is_counted_by_strategy() -> None:
    """Two cases, one of them with a formula that was found by cuts."""
    proof = verify.prove(kernels.while_sum, fallback=False)[0]
    records = [
        {"name": "one", "outputs": [], "proofs": [{"strategies": conditions.strategies(proof)}]},
        {"name": "two", "outputs": [{"strategies": {"addends": 3}}], "proofs": []},
    ]
    found = {c.strategy: c for c in strategy_counts.counts(records)}
    assert found.keys() == {n for n, row in explanations.strategies().items() if row.goal != "plan"}
    assert (found["sum"].goals, found["sum"].cases) == (2, ("one",))
    assert (found["addends"].goals, found["addends"].cases) == (3, ("two",))
    table = strategy_counts.result("a test", records)
    assert ("invariant", "sum", "2", "1", "one") in table.tables[0].rows
    assert "decayed-sum" in table.notes[0] and "addends" not in table.notes[0]


def test_plans_are_counted_where_kernels_were_emitted() -> None:
    records = [{"name": "gated", "optimize": {"engine": "tiles"}}, {"name": "plain", "optimize": {"engine": "mugraph"}}]
    found = {c.strategy: c for c in strategy_counts.counts(records)}
    assert (found["tiles"].goals, found["tiles"].cases) == (1, ("gated",))
    assert (found["mugraph"].goals, found["unfused"].goals) == (1, 0)


def test_corpora_are_counted_together(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []

    def records(targets: list[Target], *_: Any) -> Iterator[dict[str, Any]]:
        asked.append(sorted({Path(t.file).parent.name for t in targets}))
        for folder in asked[-1]:
            yield {"name": folder, "outputs": [{"strategies": {"addends": 3}}], "proofs": []}

    monkeypatch.setattr(strategy_counts.dispatch, "records", records)
    usual = registry.find("strategies")
    usual.run(Options(), True)
    both = usual.of(["broken", "operators", "broken"]).run(Options(), True)
    everything = usual.of(["sound", "all"]).run(Options(), True)
    assert asked == [["operators"], ["broken", "operators"], ["broken", "operators", "packages", "sound"]]
    (row,) = (r for r in both.data["strategies"] if r["strategy"] == "addends")
    assert (row["goals"], sorted(row["cases"])) == (6, ["broken", "operators"])
    assert both.title == "strategies over broken, operators"
    assert everything.title == "strategies over operators, packages, broken, sound"
    with pytest.raises(UsageError, match="mirage has no choice of corpora"):
        registry.find("mirage").of(["all"])
