"""0 * (x / y) is NaN where y is 0: what vanishes on one side only is owed, or the kernel is wrong."""

from pathlib import Path

import pytest

from trilift.lift.capture.case_files import load
from trilift.lift.terms import construct as T
from trilift.verify.pipeline import prove

CASES = {c.name: c for c in load(str(Path(__file__).parents[1] / "kernels" / "kernels_zero_times.py"))}


@pytest.mark.parametrize("name", sorted(n for n in CASES if n.startswith("right_")))
def test_what_vanishes_alike_is_proved_for_all_values(name):
    (p,) = prove(CASES[name])
    assert p.verdict.value == "PROVED", p.reason
    assert [c.text for c in p.contract if c.kind == "value"] == []


@pytest.mark.parametrize("name", sorted(n for n in CASES if n.startswith("wrong_")))
def test_what_vanishes_on_one_side_is_owed(name):
    (p,) = prove(CASES[name])
    assert p.verdict.value != "PROVED" or [c.text for c in p.contract if c.kind == "value"]


def test_only_numbers_vanish():
    x, y = T.read("x", (T.const(0),), T.REAL), T.read("y", (T.const(0),), T.REAL)
    assert T.mul(0, x) is T.const(0)
    assert T.mul(0, T.div(x, y)) is not T.const(0)
    assert T.add(T.make("log", x), float("-inf")) is not T.const(float("-inf"))
