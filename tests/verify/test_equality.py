"""What is said to be equal has the same values: random terms against terms with a mistake."""

from __future__ import annotations

import math
import random
from collections import Counter

import pytest
from random_terms import SIZES, Draw, Numbers, mutated

from trilift.lift.runtime.budget import Meter, OutOfSteps
from trilift.lift.terms import construct as T
from trilift.lift.terms.term import Axis, Term
from trilift.verify.integers.solver import Solver
from trilift.verify.loops.invariant import agree
from trilift.verify.normal_form.algebra import Algebra, Undecided

PAIRS = 120
N, M, P = map(T.size, SIZES)
FACTS = frozenset([T.make("le", 1, N), T.make("le", 1, M), T.make("le", 0, P), T.make("lt", P, N)])


def said_equal(left: Term, right: Term) -> bool:
    """Whether they are shown to be equal; not where that rests on a maximum of nothing."""
    a = Algebra(Solver(resources=500_000), meter=Meter("test", 500_000))
    try:
        with a.collecting() as side_conditions:
            return agree(a, left, right, a.context(FACTS)) and "finite" not in {k for k, _, _ in side_conditions}
    except (Undecided, OutOfSteps):
        return False


def differ(left: Term, right: Term, rng: random.Random) -> bool:
    """Whether they have other values at one of a few numbers."""
    for _ in range(8):
        numbers = Numbers.drawn(rng)
        x, y = numbers.of(left), numbers.of(right)
        if math.isnan(x) or math.isnan(y) or max(abs(x), abs(y)) > 1e9:
            continue
        if abs(x - y) > 1e-5 * max(1, abs(x), abs(y)):
            return True
    return False


def pair(seed: int) -> tuple[Term, Term, random.Random]:
    """A term of few nodes, and the term with a mistake."""
    rng = random.Random(seed)
    draw = Draw(rng)
    while True:
        t = draw.fold((), 2)
        u = mutated(t, rng)
        if u is not t and sum(1 for _ in t.walk()) < 30:
            return t, u, rng


@pytest.mark.parametrize("part", range(4))
def test_what_is_said_to_be_equal_is(part: int) -> None:
    wrong = []
    found: Counter[bool] = Counter()
    for seed in range(part * PAIRS // 4, (part + 1) * PAIRS // 4):
        t, u, rng = pair(seed)
        other = differ(t, u, rng)
        found[other] += 1
        if other and said_equal(t, u):
            wrong.append(seed)
    assert not wrong
    assert found[True] > PAIRS // 16, found


J, K = Axis("j", N), Axis("k", M)
X, Y = (lambda i, name=name: T.read(name, [i]) for name in "xy")
Z = T.read("z", [T.axis(J), T.axis(K)])
HALF = T.make("floordiv", N, 2)


def soft(x: Term) -> Term:
    """log(1 + exp(x))."""
    return T.make("log", T.add(1, T.make("exp", x)))


def stable(x: Term) -> Term:
    return T.add(T.make("max", x, 0), soft(-1 * T.make("abs", x)))


EQUAL = {
    "a sum in two parts": (
        T.fold("sum", J, X(T.axis(J))),
        T.add(
            T.fold("sum", J, T.where(T.make("lt", T.axis(J), HALF), X(T.axis(J)), 0)),
            T.fold("sum", J, T.where(T.make("le", HALF, T.axis(J)), X(T.axis(J)), 0)),
        ),
    ),
    "one element taken out": (
        T.fold("sum", J, X(T.axis(J))),
        T.add(X(P), T.fold("sum", J, T.where(T.make("ne", T.axis(J), P), X(T.axis(J)), 0))),
    ),
    "sums exchanged": (T.fold("sum", J, T.fold("sum", K, Z)), T.fold("sum", K, T.fold("sum", J, Z))),
    "a factor moved out": (T.fold("sum", J, T.mul(X(T.axis(J)), Y(P))), T.mul(Y(P), T.fold("sum", J, X(T.axis(J))))),
    "a logarithm by signs": (soft(X(P)), stable(X(P))),
    "sums by signs": (
        T.fold("sum", J, soft(X(T.axis(J)))),
        T.add(
            T.fold("sum", J, T.make("max", X(T.axis(J)), 0)), T.fold("sum", J, soft(-1 * T.make("abs", X(T.axis(J)))))
        ),
    ),
    "where a product is 0": (
        T.where(T.make("eq", T.mul(X(P), Y(P)), 0), T.make("exp", T.mul(X(P), Y(P), Y(P))), 2),
        T.where(T.make("eq", T.mul(X(P), Y(P)), 0), T.const(1), T.const(2)),
    ),
    "a hyperbolic function": (
        T.make("cosh", X(P)),
        T.mul(0.5, T.make("exp", X(P)) + T.make("exp", -1 * X(P))),
    ),
    "an inverse one": (
        T.make("asinh", X(P)),
        T.make("log", T.make("sqrt", T.add(1, T.mul(X(P), X(P)))) + X(P)),
    ),
    "a maximum shifted": (
        T.fold("amax", J, X(T.axis(J)) + Y(P)),
        T.add(T.fold("amax", J, X(T.axis(J))), Y(P)),
    ),
}


@pytest.mark.parametrize("name", EQUAL)
def test_equal(name: str) -> None:
    assert said_equal(*EQUAL[name])


@pytest.mark.parametrize("name", EQUAL)
def test_equal_no_more_with_a_mistake(name: str) -> None:
    left, right = EQUAL[name]
    rng = random.Random(name)
    seen = 0
    for _ in range(12):
        wrong = mutated(right, rng)
        if differ(left, wrong, rng):
            seen += 1
            assert not said_equal(left, wrong), wrong
    assert seen
