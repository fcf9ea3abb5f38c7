"""Scalars of every sign, sizes that no small test meets, orders that nothing promises: nothing wrong is PROVED, and a
wrong kernel is not TESTED."""

from pathlib import Path

import pytest

from trilift.lift.capture.case_files import load
from trilift.lift.cases.declaration import case
from trilift.lift.cases.parts import signed
from trilift.lift.terms import construct as T
from trilift.verify.pipeline import prove

KERNELS = Path(__file__).parents[1] / "kernels"
SCALARS = {c.name: c for c in load(str(KERNELS / "kernels_scalars.py"))}
UNTRIED = {c.name: c for c in load(str(KERNELS / "kernels_untried.py"))}
BRANCHES = {c.name: c for c in load(str(KERNELS / "kernels_branches.py"))}
RIGHT = sorted(n for n in SCALARS if n.startswith("right_"))
WRONG = sorted(n for n in SCALARS if n.startswith("wrong_") and n != "wrong_remainder")


def test_there_are_cases():
    assert len(RIGHT) >= 6 and len(WRONG) >= 7 and len(UNTRIED) >= 5


@pytest.mark.parametrize("name", RIGHT)
def test_right_for_every_sign_is_proved(name):
    (p,) = prove(SCALARS[name])
    assert p.verdict.value == "PROVED", p.reason
    assert not [c.text for c in p.contract if c.kind in ("size", "shape") and "s" in c.text.split()]


@pytest.mark.parametrize("name", WRONG)
def test_wrong_for_some_sign_is_refuted_there(name):
    (p,) = prove(SCALARS[name])
    assert p.verdict.value == "REFUTED" and p.counterexample is not None
    assert p.counterexample.dims["s"] < 1
    assert "s = " not in p.reason or p.counterexample.replay


def test_c_remainder_of_a_negative_scalar_is_not_proved():
    """-3 % 4 is -3 in Triton and 1 in Python: PROVED, if at all, where s is no less than 0."""
    (p,) = prove(SCALARS["wrong_remainder"])
    assert p.verdict.value == "REFUTED" or any(c.text == "0 <= s" for c in p.contract)


def test_sizes_are_at_least_one_and_the_contract_says_so():
    (p,) = prove(SCALARS["right_times"])
    assert "1 <= N" in [c.text for c in p.contract]


@pytest.mark.parametrize("name", sorted(UNTRIED))
def test_wrong_where_the_proof_failed_is_found(name):
    (p,) = prove(UNTRIED[name])
    refuted = "scratch" not in name and "lanes" not in name
    assert p.verdict.value == ("REFUTED" if refuted else "UNKNOWN"), (p.verdict, p.bound)
    if not refuted:
        assert "an order that nothing promises" in p.reason


def by_sign(spec):
    @case(x="f32[N]", s=spec)
    def f(x, s):
        return x * s

    return signed(f)


@pytest.mark.parametrize(
    ("spec", "labels"),
    [
        ("i32", ["", "s = 0", "s < 0"]), ("i64", ["", "s = 0", "s < 0"]), ("u8", ["", "s = 0"]),
        ("i32 < 9", ["", "s = 0"]),
        ("i32 in (-4, 1)", ["s = 0", "s < 0"]), ("i32 in (-4, 0)", ["s < 0"]),
        ("i32 in (2, 9)", [""]), ("i32 > 0", [""]),
        ("f32", [""]), ("bool", [""]), ("i32 in (-N, N)", ["", "s = 0", "s < 0"]),
    ],
)  # fmt: skip
def test_signs_of_a_spec(spec, labels):
    assert [s.label for s in by_sign(spec)] == labels


def test_a_call_gets_the_number_of_its_sign():
    positive, zero, negative = by_sign("i32 in (-7, 7)")
    assert negative.case.fn(x=2, s=3) == -6 and zero.case.fn(x=2, s=0) == 0 and positive.case.fn(x=2, s=3) == 6
    assert negative.numbers({"N": 4, "s": 3}) == {"N": 4, "s": -3} and zero.numbers({"N": 4}) == {"N": 4, "s": 0}
    assert negative.case.holds({"N": 1, "s": 7}) and not negative.case.holds({"N": 1, "s": 8})
    assert positive.case.holds({"N": 1, "s": 6}) and not positive.case.holds({"N": 1, "s": 7})
    assert negative.original(T.make("lt", T.size("s"), 5)) is T.make("lt", T.mul(-1, T.size("s")), 5)


@pytest.mark.parametrize("name", sorted(n for n in BRANCHES if n.startswith("right_")))
def test_every_way_of_a_reference_is_proved(name):
    (p,) = prove(BRANCHES[name])
    assert p.verdict.value == "PROVED", p.reason
    assert [c.text for c in p.contract if c.kind == "shape"] == []


@pytest.mark.parametrize("name", sorted(n for n in BRANCHES if n.startswith("wrong_")))
def test_another_way_of_a_reference_is_no_silent_clause(name):
    (p,) = prove(BRANCHES[name])
    assert p.verdict.value == "REFUTED"
