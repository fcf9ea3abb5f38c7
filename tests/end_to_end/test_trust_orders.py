"""Programs of one launch that wait for each other: an order that no atomic promises is never TESTED."""

from pathlib import Path

import pytest

from trilift.lift.capture.case_files import load
from trilift.lift.cases.shapes import choose
from trilift.verify.audit.examination import audit
from trilift.verify.runs.observe import observe
from trilift.verify.runs.races import at_once, unpromised

CASES = {c.name: c for c in load(str(Path(__file__).parents[1] / "kernels" / "kernels_orders.py"))}
WRONG = sorted(n for n in CASES if n.startswith("wrong_"))
RIGHT = sorted(n for n in CASES if n.startswith("right_"))


@pytest.mark.parametrize("name", WRONG)
def test_an_order_that_no_atomic_promises_is_seen(name):
    assert "an order that nothing promises" in unpromised(CASES[name], choose(CASES[name], 3, 0))


@pytest.mark.parametrize("name", RIGHT)
def test_release_and_acquire_are_an_order(name):
    assert unpromised(CASES[name], choose(CASES[name], 3, 0)) == ""


def test_programs_at_once_lose_updates() -> None:
    run = observe(CASES["wrong_updates_are_lost"], {"N": 9}, 0)
    assert run is not None and list(at_once(run)) == ["out"]


@pytest.mark.parametrize(("name", "rules"), [
    ("wrong_ticket_before_the_store", {"read-write-race"}),
    ("wrong_last_two", {"read-write-race", "write-race"}),
    ("right_ticket_after_the_store", set()),
])  # fmt: skip
def test_accesses_that_no_atomic_orders_are_findings(name, rules):
    found = [f for f in audit(CASES[name]).findings if f.rule.endswith("-race")]
    assert {f.rule for f in found} == rules
    lines = (Path(__file__).parents[1] / "kernels" / "kernels_orders.py").read_text(encoding="utf-8").splitlines()
    assert all(f.place is not None and "tl.store" in lines[f.place.line - 1] for f in found)
