"""The expanded normal form: what must cancel cancels, and values do not change."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trilift.lift.errors import NotLifted
from trilift.lift.terms import construct as T
from trilift.lift.terms.construct import make, recip
from trilift.lift.terms.domain import FLOAT64
from trilift.lift.terms.expansion import Expansion, expand
from trilift.lift.terms.term import Term, read

x = [read("x", [i]) for i in range(4)]
exp = lambda t: make("exp", t)  # noqa: E731


def value(t: Term, xs: np.ndarray) -> float:
    if t.op == "const":
        return t.attr
    if t.op == "read":
        return xs[t.args[0].attr]
    return float(FLOAT64.apply(t.op, *(np.float64(value(a, xs)) for a in t.args)))


def test_online_softmax_loses_its_scale() -> None:
    m1 = make("max", x[0], x[1])
    m2 = make("max", m1, x[2], x[3])
    total = (exp(x[0] - m1) + exp(x[1] - m1)) * exp(m1 - m2) + exp(x[2] - m2) + exp(x[3] - m2)
    got = expand(exp(x[0] - m2) * recip(total))
    assert got is expand(exp(x[0]) * recip(exp(x[0]) + exp(x[1]) + exp(x[2]) + exp(x[3])))
    assert not any(t.op == "max" for t in got.walk())


def test_welford_mean_is_the_mean() -> None:
    mean = x[0]
    for k in (1, 2, 3):
        mean = mean + (x[k] - mean) * (1 / (k + 1))
    assert expand(mean) is expand((x[0] + x[1] + x[2] + x[3]) * 0.25)


def test_different_terms_stay_different() -> None:
    memo = Expansion()
    assert memo.normal(exp(x[0]) + 1) is not memo.normal(exp(x[0]) - 1)
    assert memo.normal(recip(x[0] + 1)) is not memo.normal(recip(x[0] + 2))


def test_too_large_is_an_error() -> None:
    big = T.add(*(read("y", [i]) for i in range(200)))
    with pytest.raises(NotLifted):
        expand(big * (big + 1) * (big + 2))


terms = st.recursive(
    st.sampled_from([*x, T.const(2), T.const(-1), T.const(0.5)]),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda p: p[0] + p[1]),
        st.tuples(inner, inner).map(lambda p: p[0] * p[1]),
        inner.map(lambda t: exp(t * 0.25)),
        inner.map(lambda t: recip(exp(t * 0.25) + 1)),
        st.tuples(inner, inner).map(lambda p: make("max", *p)),
    ),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None)
@given(terms, st.integers(0, 2**32 - 1))
def test_values_do_not_change(t: Term, seed: int) -> None:
    xs = np.random.default_rng(seed).normal(size=4)
    want = value(t, xs)
    if np.isfinite(want) and abs(want) < 1e12:
        assert np.isclose(value(expand(t), xs), want, rtol=1e-8, atol=1e-8)
