"""Indicators of one quantity, points that save a search, and sums of functions with pieces."""

from __future__ import annotations

import sys
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trilift.lift.cases.declaration import Case
from trilift.lift.terms import construct as T
from trilift.lift.terms.term import Term
from trilift.verify import prove
from trilift.verify.integers.solver import Solver
from trilift.verify.normal_form import poly as P
from trilift.verify.normal_form.algebra import Algebra
from trilift.verify.normal_form.numeric_refuter import refuted, value
from trilift.verify.normal_form.poly import Poly, atom, number
from trilift.verify.normal_form.rules import indicator as thresholds
from trilift.verify.normal_form.zero import zero

sys.path[:0] = [str(Path(__file__).parents[1] / folder) for folder in ("helpers", "kernels")]
import kernels_thresholds as K  # noqa: E402

X = T.read("x", [T.size("i")])
Y = T.read("y", [T.size("i")])


def algebra() -> Algebra:
    return Algebra(Solver())


def indicator(kind: str, slope: int, at: Fraction) -> Term:
    """[slope (x - at) > 0] or [.. = 0]."""
    p = P.scaled(atom(X), slope) - number(slope * at)
    return T.node(kind, (p.term,), None, T.REAL)


places = st.fractions(min_value=-3, max_value=3, max_denominator=2)
indicators = st.builds(indicator, st.sampled_from(thresholds.KINDS), st.sampled_from([1, -1, 2]), places)


@given(indicators, indicators)
def test_products(s: Term, t: Term) -> None:
    found = thresholds.product([s, t])
    assert found is not None
    for at in range(-14, 15):  # in quarters
        here = {X: Fraction(at, 4)}
        both = value(atom(s), here) * value(atom(t), here)
        assert value(found[2], here) == both


def test_other_quantities_stay() -> None:
    s = T.node("positive?", (atom(X).term,), None, T.REAL)
    t = T.node("positive?", (atom(Y).term,), None, T.REAL)
    assert thresholds.product([s, t]) is None


def pieces() -> list[tuple[Poly, bool]]:
    a = algebra()
    ctx = a.context([])
    x, y = X, Y
    d = T.add(x, T.mul(-1, y))
    size = T.make("abs", d)
    small, smaller = T.make("le", size, 1), T.make("lt", size, 1)
    terms = [
        (T.add(size, T.mul(-1, T.make("abs", T.mul(-1, d)))), True),
        (T.add(T.make("sign", x), T.make("sign", T.mul(-1, x))), True),
        (T.add(T.mul(T.make("sign", d), d), T.mul(-1, size)), True),
        (T.add(T.mul(T.make("sign", x), d), T.mul(-1, size)), False),
        (T.add(T.where(small, x, y), T.mul(-1, T.where(smaller, x, y))), False),
        (T.add(T.where(small, T.mul(d, d), 1), T.mul(-1, T.where(smaller, T.mul(d, d), 1))), True),
    ]  # fmt: skip
    return [(a.normal(t, ctx), same) for t, same in terms]


@pytest.mark.parametrize("k", range(6))
def test_pieces(k: int) -> None:
    p, same = pieces()[k]
    a = algebra()
    ctx = a.context([])
    assert zero(a, p, ctx) is same
    assert not (same and refuted(p, ctx))


def test_facts_are_met_by_points() -> None:
    a = algebra()
    p = a.normal(T.add(T.make("abs", X), T.mul(-1, X)), a.context([]))
    assert refuted(p, a.context([]))
    assert not refuted(p, a.context([T.make("lt", 0, X)]))


def test_elements_at_two_places_are_not_judged() -> None:
    a = algebra()
    other = T.read("x", [T.size("j")])
    assert not refuted(atom(X) - atom(other), a.context([]))


def verdict(c: Case) -> set[str]:
    return {p.verdict.value for p in prove(c, fallback=False, timeout=60)}


@pytest.mark.parametrize("form", K.RIGHT)
def test_proved(form: str) -> None:
    assert verdict(K.RIGHT[form]) == {"PROVED"}


@pytest.mark.parametrize("form", K.WRONG)
def test_never_proved(form: str) -> None:
    assert "PROVED" not in verdict(K.WRONG[form])
