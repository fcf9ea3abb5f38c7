"""Where a term is NaN, and where it is not finite: what the table says is what numpy computes."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from trilift.lift.errors import Place
from trilift.lift.terms import construct as T
from trilift.lift.terms.definedness import (
    decided,
    is_finite,
    is_number,
    left_undefined_at,
    nan_where,
    not_finite_where,
)
from trilift.lift.terms.domain import FLOAT64
from trilift.lift.terms.ops import OPS
from trilift.lift.terms.term import Axis, Term

X, Y = T.scalar("x"), T.scalar("y")
PLACES = (-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 3.0)


def f(op: str, *args: T.TermLike) -> Term:
    return OPS[op].on_terms(*args)


DOUBTFUL = {
    "quotient": X / Y, "inverse": 1 / X, "root": f("sqrt", X), "inverse root": f("rsqrt", X), "share": Y / f("sqrt", X),
    "logarithm": f("log", X), "binary logarithm": f("log2", X + Y), "exponential": f("exp", X / Y), "sum": X / Y + 1,
    "absolute": f("abs", X / Y), "arc sine": f("asin", X), "arc cosine": f("acos", X - Y), "product": Y * Y / (X * Y),
    "choice": T.where(f("lt", X, 0), X / Y, f("sqrt", Y)), "two divisors": T.mul(X - 1, T.recip(X), T.recip(Y)),
    "logarithm and number": f("log", X) + Y, "negated": -f("sqrt", X * Y),
}  # fmt: skip
NUMBERS = (X * Y + 1, f("exp", X) + f("tanh", Y), 1 / T.const(3.0), f("max", X, Y), f("sqrt", T.const(2)), X / 2)


def value(t: Term, env: dict[Term, float]) -> np.ndarray:
    if t.op in ("const", "scalar"):
        return np.asarray(t.attr if t.is_const else env[t])
    return np.asarray(FLOAT64.apply(t.op, *(value(a, env) for a in t.args)))


def places() -> list[dict[Term, float]]:
    return [dict(zip((X, Y), at, strict=True)) for at in itertools.product(PLACES, repeat=2)]


@pytest.mark.parametrize("name", DOUBTFUL)
def test_nan_is_where_the_table_says(name: str) -> None:
    t = DOUBTFUL[name]
    found = nan_where(t)
    assert found is not None and is_number(t) is False
    for env in places():
        assert bool(value(found, env)) == bool(np.isnan(value(t, env))), env


@pytest.mark.parametrize("name", sorted(DOUBTFUL.keys() - {"exponential"}))
def test_no_finite_number_is_where_the_table_says(name: str) -> None:
    found = not_finite_where(DOUBTFUL[name])
    assert found is not None and not is_finite(DOUBTFUL[name])
    for env in places():
        assert bool(value(found, env)) == (not np.isfinite(value(DOUBTFUL[name], env))), env


@pytest.mark.parametrize("name", sorted(DOUBTFUL.keys() - {"exponential"}))
def test_comparisons_that_ask_for_nan_are_decided(name: str) -> None:
    z = DOUBTFUL[name]
    size = f("abs", z)
    asked = {
        f("ne", z, z): np.isnan, f("eq", z, z): lambda v: v == v, f("lt", size, math.inf): np.isfinite,
        f("eq", size, math.inf): np.isinf, f("ne", size, math.inf): lambda v: ~np.isinf(v),
    }  # fmt: skip
    for question, answer in asked.items():
        found = decided(question)
        assert found is not None
        for env in places():
            assert bool(value(found, env)) == bool(answer(value(z, env))), (question, env)


def test_what_is_not_known_is_not_decided() -> None:
    assert nan_where(f("sin", X / Y)) is None and nan_where(X / Y + Y / X) is None
    assert not_finite_where(f("exp", X / Y)) is None
    assert decided(f("lt", X / Y, math.inf)) is None and decided(f("lt", X, Y)) is None


def test_a_product_with_the_inverse_of_what_may_be_infinite_is_not_decided() -> None:
    over = Axis("j", T.size("N"))
    most = T.fold("amax", over, T.read("x", (T.axis(over),)))
    assert not is_finite(most) and nan_where(T.mul(X, T.recip(Y), T.recip(most))) is None
    assert nan_where(T.mul(X, T.recip(Y), T.recip(X + 1))) is not None


@pytest.mark.parametrize("t", NUMBERS, ids=repr)
def test_a_number_is_known_to_be_one(t: Term) -> None:
    assert is_number(t) and is_finite(t)
    assert f("isnan", t) is T.const(False) and f("isfinite", t) is T.const(True)


def test_a_maximum_over_nothing_is_a_number_that_is_not_finite() -> None:
    over = T.Axis("i", T.size("N"))
    t = T.fold("amax", over, T.read("x", [T.axis(over)]))
    assert is_number(t) and not is_finite(t)
    assert not is_number(T.undef("nothing")) and not is_number(1 / T.scalar("n", T.INT))


def test_a_branch_knows_its_condition() -> None:
    """max(where(c, x, -inf), -inf) is finite where c is, unless the c inside is about another, bound axis."""
    n = T.Axis("n", T.size("N"))
    c = T.make("lt", T.axis(n), T.size("M"))
    x, low = T.read("x", (T.axis(n),)), T.const(-math.inf)
    row = T.make("max", T.where(c, x, low), T.where(T.make("lt", T.axis(n), 1), x, low))
    assert not is_finite(row)
    assert is_finite(T.where(c, row, 0.0))
    assert not is_finite(T.where(T.make("not", c), row, 0.0))
    assert not is_finite(T.where(c, T.fold("amax", n, T.where(c, x, low)), 0.0))


@pytest.mark.parametrize(
    ("label", "place"),
    [
        ("masked load at kernel.py:31:17", Place("kernel.py", 31, 17)),
        ("poison at c:/at home/kernel.py:31", Place("c:/at home/kernel.py", 31)),
        ("masked load 4", None),
        ("what an earlier call left in cache", None),
        ("nan", None),
    ],
)
def test_a_label_names_the_operation_that_left_a_value_undefined(label: str, place: Place | None) -> None:
    assert left_undefined_at(label) == place
