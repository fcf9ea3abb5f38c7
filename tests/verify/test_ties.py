"""Kernels that differ where two numbers are equal, and nowhere else: no draw of a field finds them."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import kernels_ties as K
import numpy as np
import pytest

from trilift.lift.cases.declaration import Case
from trilift.lift.terms import construct as T
from trilift.lift.terms.domain import FLOAT64
from trilift.lift.terms.ops import OPS
from trilift.verify import prove
from trilift.verify.refutation import ties
from trilift.verify.runs.goals import targets

X, Y = T.read("x", (0,)), T.read("y", (0,))
SPECIAL = [Fraction(n, 4) for n in (0, 1, -1, 2, -2, 3, -3, 6, -6, 10, -10, 4, -4)]


@pytest.mark.parametrize("c", K.WRONG, ids=lambda c: c.name)
def test_what_differs_at_a_tie_is_seen(c: Case) -> None:
    said = ties.contradiction(c, targets(c), "out")
    assert said.startswith("out[0] is ") and said.endswith("in exact arithmetic")


@pytest.mark.parametrize("c", K.AT_FLOATS, ids=lambda c: c.name)
def test_a_run_on_those_numbers_differs_there(c: Case) -> None:
    found = ties.counterexample(c, targets(c), "out")
    assert found is not None and found.output == "out" and found.got != found.expected
    assert found.why.endswith("in exact arithmetic")
    assert found.arguments is not None and "ARGUMENTS = {" in found.replay


@pytest.mark.parametrize(
    ("v", "dtype", "held"),
    [
        (Fraction(2049, 2048), "f32", True), (Fraction(2049, 2048), "f16", False), (Fraction(1, 10), "f64", False),
        (Fraction(300), "i8", False), (Fraction(7), "i8", True), (Fraction(1, 2), "i32", False),
    ],
)  # fmt: skip
def test_a_number_is_run_only_where_its_dtype_has_it(v: Fraction, dtype: str, held: bool) -> None:
    assert ties.is_held(v, dtype) == held


def test_a_tie_that_no_float_meets_is_not_run() -> None:
    c = K.thresholded_not_at_the_limit
    assert ties.counterexample(c, targets(c), "out") is None


def test_a_number_between_two_constants_is_run() -> None:
    """0.1 of float64 is below float32(0.1), which is not above itself."""
    right, wrong = K.IN_DOUBLE
    found = ties.counterexample(wrong, targets(wrong), "out", apart=True)
    assert found is not None and (found.got, found.expected) == (1, 0)
    assert "0.100000001" in found.why
    assert ties.counterexample(wrong, targets(wrong), "out") is None
    assert ties.counterexample(right, targets(right), "out", apart=True) is None


@pytest.mark.parametrize("c", K.RIGHT, ids=lambda c: c.name)
def test_nothing_is_seen_of_right_ones(c: Case) -> None:
    assert ties.contradiction(c, targets(c), "out") == ""


@pytest.mark.slow
@pytest.mark.parametrize("c", [*K.WRONG, K.IN_DOUBLE[1]], ids=lambda c: c.name)
def test_it_is_neither_proved_nor_tested(c: Case) -> None:
    (proof,) = prove(c)
    assert proof.verdict.value == ("UNKNOWN" if c is K.thresholded_not_at_the_limit else "REFUTED")


@pytest.mark.parametrize("op", sorted(ties.RATIONAL.rows))
def test_a_rational_value_is_the_one_of_numpy(op: str) -> None:
    count = 2 if op in ("add", "mul", "max", "min", "eq", "ne", "lt", "le", "pow") else 1
    for a in SPECIAL:
        for b in SPECIAL[: len(SPECIAL) if count == 2 else 1]:
            xs = [bool(a > 0)] if op == "not" else [a, b][:count]
            exact = ties.RATIONAL[op](*xs)
            if exact is not None:
                row: Any = FLOAT64.apply(op, *(np.asarray(x if op == "not" else float(x)) for x in xs))
                assert float(exact) == float(row), (op, xs)
    assert op in OPS


def test_an_argument_that_decides_needs_no_other() -> None:
    at_zero = {X: Fraction(0), Y: Fraction(2)}
    one = T.const(1.0)
    assert ties.value(T.make("where", T.make("lt", X, Y), one, T.recip(X)), at_zero) == 1
    assert ties.value(T.make("where", T.make("lt", Y, X), one, T.recip(X)), at_zero) is None
    assert ties.value(T.make("and", T.make("lt", Y, X), T.make("lt", T.recip(X), Y)), at_zero) is False
    assert ties.value(T.make("or", T.make("lt", Y, X), T.make("lt", T.recip(X), Y)), at_zero) is None


def test_what_is_no_rational_number_is_unknown() -> None:
    assert ties.value(T.make("exp", X), {X: Fraction(0)}) is None
    assert ties.value(T.node("add", (X, T.const(float("inf"))), None, T.REAL), {X: Fraction(1)}) is None
    assert ties.value(T.make("lt", X, T.const(float("inf"))), {X: Fraction(1)}) is True
