"""Normal forms: what is equal only where something is defined, or not at all, must not pass for equal."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from trilift.lift.terms import construct as T
from trilift.lift.terms.term import Axis, Term
from trilift.verify.integers.solver import Solver
from trilift.verify.loops.invariant import agree
from trilift.verify.normal_form.algebra import Algebra, SideConditions, Split, Undecided
from trilift.verify.normal_form.poly import tidy

N, P = T.size("N"), T.size("pid0")
FACTS = frozenset([T.make("le", 1, N), T.make("le", 0, P), T.make("lt", P, N)])
J = Axis("j", N)
X, Y, XJ = T.read("x", [0]), T.read("y", [0]), T.read("x", [T.axis(J)])
SUM = T.fold("sum", J, XJ)
POSITIVE = T.where(T.make("lt", 0, X), 1, 0)
SO_FAR = T.fold("amax", J, T.where(T.make("lt", T.axis(J), P), XJ, -math.inf))  # of nothing where pid0 = 0


def asked(left: Term, right: Term) -> tuple[bool, SideConditions]:
    """Whether they are shown to be equal, and what that rests on."""
    a = Algebra(Solver())
    with a.collecting() as side_conditions:
        try:
            same = agree(a, left, right, a.context(FACTS))
        except (Undecided, Split):
            same = False
    return same, side_conditions


DIFFERENT = {
    "small coefficients": (T.mul(1e-10, SUM), T.mul(2e-10, SUM)),
    "a small coefficient and 0": (T.mul(1e-10, SUM), T.const(0)),
    "a very small coefficient and 0": (T.mul(1e-13, SUM), T.const(0)),
    "exp of a large negative number": (T.make("exp", T.sub(X, 800)), T.const(0)),
    "exp of other large numbers": (T.make("exp", T.sub(X, 800)), T.make("exp", T.sub(X, 900))),
    "remainder of reals": (T.make("mod", X, 1), T.const(0)),
    "floor of reals": (T.make("floordiv", X, 1), X),
    "floor of a multiple": (T.make("floordiv", T.mul(4, X), 2), T.mul(2, X)),
    "truncated reals": (T.make("truncdiv", X, 1), X),
    "less, of truths": (
        T.where(T.make("lt", T.make("lt", 0, X), T.make("lt", 0, Y)), 1, 0),
        T.where(T.make("ne", T.make("lt", 0, X), T.make("lt", 0, Y)), 1, 0),
    ),
    "a maximum of nothing": (T.where(T.make("lt", -math.inf, SO_FAR), 1, 0), T.const(1)),
    "a maximum of nothing, shifted": (T.where(T.make("lt", SO_FAR, T.add(SO_FAR, 1)), 1, 0), T.const(1)),
    "a maximum of nothing, cancelled": (T.sub(SO_FAR, SO_FAR), T.const(0)),
    "infinity for no value": (
        T.fold(
            "amax",
            J,
            T.where(T.make("lt", T.axis(J), N), XJ, math.inf) + T.where(T.make("lt", P, T.axis(J)), math.inf, 0),
        ),
        T.fold("amax", J, T.where(T.make("lt", P, T.axis(J)), math.inf, Y)),
    ),
    "what is undefined": (T.undef("u"), T.undef("u")),
    "a root of a square": (T.make("sqrt", T.mul(X, X)), X),
    "a logarithm of a product": (T.make("log", T.mul(X, Y)), T.add(T.make("log", X), T.make("log", Y))),
    "a logarithm of a square": (T.make("log", T.mul(X, X)), T.mul(2, T.make("log", X))),
    "the number of nothing": (T.fold("sum", Axis("k", T.sub(P, 3)), T.const(1)), T.sub(P, 3)),
    "a shift of a negative number": (T.make("shr", T.sub(P, 5), 1), T.make("truncdiv", T.sub(P, 5), 2)),
    "remainders of negative numbers": (T.make("mod", T.sub(P, N), N), T.make("truncmod", T.sub(P, N), N)),
    "axes exchanged": (
        T.fold("sum", J, T.fold("sum", Axis("k", N), T.read("z", [T.axis(J), T.axis(Axis("k", N)), T.axis(J)]))),
        T.fold("sum", J, T.fold("sum", Axis("k", N), T.read("z", [T.axis(Axis("k", N)), T.axis(J), T.axis(J)]))),
    ),
}


SQUARES = T.add(T.mul(X, X), T.mul(Y, Y))
SCALED = T.make("sqrt", T.add(T.mul(N, X, X), T.mul(N, Y, Y)))
R, K = Axis("r", N), Axis("k", N)


def outer(bound: Term | int) -> Term:
    """sum[r < N] exp(sum[k < N: r < bound] z[r, k])."""
    row = T.fold("sum", K, T.where(T.make("lt", T.axis(R), bound), T.read("z", [T.axis(R), T.axis(K)]), 0))
    return T.fold("sum", R, T.make("exp", row))


SAME = {
    "a root of what shares a positive factor": (SCALED, T.mul(T.make("sqrt", N), T.make("sqrt", SQUARES))),
    "a condition of an inner sum that holds": (outer(N), outer(T.add(N, 3))),
    "a maximum of inner sums": tuple(
        T.fold("amax", R, T.fold("sum", K, T.where(c, T.read("z", [T.axis(R), T.axis(K)]), 0)))
        for c in (T.make("lt", T.axis(R), N), T.const(True))
    ),
}
DIFFERENT |= {
    "a root of what shares a factor": (SCALED, T.mul(N, T.make("sqrt", SQUARES))),
    "a root of what shares a factor, without it": (SCALED, T.make("sqrt", SQUARES)),
    "a condition of an inner sum that is open": (outer(N), outer(P)),
}


APART = T.sub(X, Y)
SAME |= {
    "a root of a square of any sign": (T.make("sqrt", T.mul(4, X, X)), T.mul(2, T.make("abs", X))),
    "a root of the square of a difference": (T.make("sqrt", T.mul(APART, APART)), T.make("abs", APART)),
    "a ceiling": (T.make("ceil", T.sub(X, N)), T.sub(T.mul(-1, T.make("floor", T.mul(-1, X))), N)),
}
DIFFERENT |= {
    "a root of a square of any sign, doubled": (T.make("sqrt", T.mul(4, X, X)), T.make("abs", X)),
    "a root of a square that is 0 below 0": (T.make("sqrt", T.mul(X, X)), T.make("max", X, 0)),
    "a root of a sum of squares": (T.make("sqrt", SQUARES), T.make("abs", APART)),
    "a logarithm of a square of one sign": (T.make("log", T.mul(X, X)), T.mul(2, T.make("log", T.make("max", X, 0)))),
    "a ceiling and a floor": (T.make("ceil", X), T.add(T.make("floor", X), 1)),
    "half an integer out of a floor": (
        T.make("floor", T.add(X, T.mul(0.5, N))),
        T.add(T.make("floor", X), T.mul(0.5, N)),
    ),
    "a whole addend of a truncation": (T.make("trunc", T.sub(X, N)), T.sub(T.make("trunc", X), N)),
    "a remainder of another sign": (T.make("fmod", X, Y), T.sub(X, T.mul(Y, T.make("floor", T.div(X, Y))))),
}


ZJ = T.read("z", [T.axis(J)])
MAGNITUDE = T.where(T.make("lt", 0, XJ), XJ, T.mul(-1, XJ))


def top(body: Term, below: Term = N, start: float = -math.inf) -> Term:
    """max(start, amax[j < below] body)."""
    found = T.fold("amax", J, T.where(T.make("lt", T.axis(J), below), body, -math.inf))
    return found if start == -math.inf else T.make("max", start, found)


def shares(factor: Term) -> tuple[Term, Term]:
    """amax(factor exp(x)) and factor exp(amax(x))."""
    return top(T.mul(factor, T.make("exp", XJ))), T.mul(factor, T.make("exp", top(XJ)))


def moved(by: int) -> Term:
    """amax[by <= j < N + by] y (j - by)."""
    i = Axis("i", T.add(N, by))
    value = T.where(T.make("le", by, T.axis(i)), T.mul(Y, T.sub(T.axis(i), by)), -math.inf)
    return T.fold("amax", i, value)


FEW = T.fold("sum", Axis("k", T.const(3)), T.read("z", [T.axis(Axis("k", T.const(3)))]))
THREE = T.add(*(T.read("z", [k]) for k in range(3)))
Q = Axis("q", N)
WK, YQ, YK = (
    T.read("w", [T.axis(R), T.axis(K)]),
    T.read("y", [T.axis(R), T.axis(Q)]),
    T.read("y", [T.axis(R), T.axis(K)]),
)


def scores(*factors: Term) -> Term:
    """exp of a sum of products."""
    return T.make("exp", T.fold("sum", R, T.mul(*factors)))


def idle(below: Term) -> Term:
    """amax[r < N, j < N: r <= pid0, r < below] x[j]: r is only there or not."""
    c = T.make("and", T.make("le", T.axis(R), P), T.make("lt", T.axis(R), below))
    return T.fold("amax", R, T.fold("amax", J, T.where(c, XJ, -math.inf)))


SAME |= {
    "a product of sums in exp": (
        scores(T.fold("sum", K, WK), T.fold("sum", Q, YQ)),
        scores(T.fold("sum", Q, T.fold("sum", K, T.mul(WK, YQ)))),
    ),
    "a maximum over what is only there": (idle(N), top(XJ)),
    "a start below every magnitude": (top(MAGNITUDE, start=0), top(MAGNITUDE)),
    "a start below what is added": (top(T.add(MAGNITUDE, 2), start=2), T.add(top(MAGNITUDE), 2)),
    "the larger of two numbers, one for some values": (top(T.const(0), P, start=1), T.const(1)),
    "a maximum of exponentials": shares(T.const(1)),
    "a maximum of shares": shares(T.recip(T.fold("sum", J, T.make("exp", XJ)))),
    "a maximum that moves with its index": (moved(5), top(T.mul(Y, T.axis(J)))),
    "exp of a few values": (T.make("exp", FEW), T.make("exp", THREE)),
}
DIFFERENT |= {
    "a product of sums in exp, over one index": (
        scores(T.fold("sum", K, WK), T.fold("sum", Q, YQ)),
        scores(T.fold("sum", K, T.mul(WK, YK))),
    ),
    "a square of sums in exp": (
        scores(T.fold("sum", K, WK), T.fold("sum", K, WK)),
        scores(T.fold("sum", K, T.mul(WK, WK))),
    ),
    "a root of a root of a size": (
        T.recip(T.add(1, T.make("sqrt", T.make("sqrt", N)))),
        T.recip(T.add(1, T.make("sqrt", N))),
    ),
    "a root of a root of a sum with a size": (
        T.make("sqrt", T.mul(T.make("sqrt", N), T.add(1, T.mul(X, X)))),
        T.make("sqrt", T.mul(N, T.add(1, T.mul(X, X)))),
    ),
    "a maximum over what may not be there": (idle(P), top(XJ)),
    "a start above some": (top(XJ, start=0), top(XJ)),
    "a start above some magnitudes": (top(MAGNITUDE, start=1), top(MAGNITUDE)),
    "a start below every magnitude, of nothing": (top(MAGNITUDE, P, start=0), top(MAGNITUDE, P)),
    "a start below some of what is subtracted": (top(T.sub(Y, MAGNITUDE), start=0), top(T.sub(Y, MAGNITUDE))),
    "numbers for some values": (top(T.const(2), P, start=1), T.const(1)),
    "a maximum of exponentials, of nothing": (
        top(T.make("exp", XJ), P, start=-1),
        T.make("max", -1, T.make("exp", top(XJ, P))),
    ),
    "a maximum of exponentials with a factor of any sign": shares(Y),
    "a maximum of exponentials with a factor below 0": shares(T.const(-1)),
    "a maximum of exponentials with a factor that varies": (
        top(T.mul(T.make("abs", ZJ), T.make("exp", XJ))),
        T.mul(top(T.make("abs", ZJ)), T.make("exp", top(XJ))),
    ),
    "a maximum that moves with its index by another step": (moved(5), top(T.mul(Y, T.add(T.axis(J), 1)))),
    "exp of a few values less one": (T.make("exp", FEW), T.make("exp", T.add(*(T.read("z", [k]) for k in range(2))))),
    "exp of a few values exchanged": (T.make("exp", FEW), T.make("exp", T.add(THREE, XJ))),
}


def mean_square(x: Term) -> Term:
    """x^2 / N + 10^-6."""
    return T.add(T.mul(x, x, T.recip(N)), 1e-6)


DIFFERENT["a root with the size of one term moved out"] = (
    T.make("sqrt", mean_square(X)),
    T.mul(T.make("sqrt", T.add(T.mul(X, X), 1e-6)), T.recip(T.make("sqrt", N))),
)


@pytest.mark.parametrize("k", [-1, 1])
@pytest.mark.parametrize("x", [X, Y, XJ, T.read("x", [T.mul(N, T.axis(J))]), T.read("w", [N]), T.make("exp", Y)])
def test_a_root_in_normal_form_is_its_own(x: Term, k: int) -> None:
    """Whichever term of a sum comes first before what its terms share moves out of the root, and after."""
    a = Algebra(Solver())
    ctx = a.context(FACTS)
    once = a.normal(T.make("pow", T.make("sqrt", mean_square(x)), k), ctx)
    assert a.normal(once.term, ctx) is once
    divided = T.mul(T.make("sqrt", T.add(T.mul(x, x), T.mul(1e-6, N))), T.recip(T.make("sqrt", N)))
    assert asked(T.make("sqrt", mean_square(x)), divided)[0]


@pytest.mark.parametrize("name", SAME)
def test_what_is_the_same_is_equal(name: str) -> None:
    assert asked(*SAME[name]) == (True, {})


def test_a_sum_has_one_origin_whatever_steps_between_the_rows_of_other_tensors() -> None:
    """sum[P <= i < P + N] x[s i - s P] = sum[i < N] x[s i], where P is a stride of y."""
    p, s = T.size("P"), T.size("stride(x,0)")
    moved, still = (Axis("i", T.add(p, N)), Axis("i", N))
    at = lambda i, by: T.read("x", [T.add(T.mul(s, T.axis(i)), T.mul(-1, by, s))])  # noqa: E731
    left = T.fold("sum", moved, T.where(T.make("le", p, T.axis(moved)), at(moved, p), 0))
    a = Algebra(Solver(), strides={"x": frozenset([s]), "y": frozenset([p])})
    ctx = a.context(T.make("le", 1, n) for n in (N, p, s))
    assert a.normal(left, ctx) is a.normal(T.fold("sum", still, at(still, 0)), ctx)


@pytest.mark.parametrize("name", DIFFERENT)
def test_what_differs_is_not_equal(name: str) -> None:
    assert not asked(*DIFFERENT[name])[0]


OWED = {
    "divided by 0 or 1": (T.div(X, POSITIVE), T.mul(X, POSITIVE), "nonzero"),
    "cancelled": (T.div(X, X), T.const(1), "nonzero"),
    "a root squared": (T.mul(T.make("sqrt", X), T.make("sqrt", X)), X, "nonneg"),
    "a root to a negative power": (T.make("pow", T.make("sqrt", X), -2), T.recip(X), "nonneg"),
}


@pytest.mark.parametrize("name", OWED)
def test_what_holds_where_defined_is_owed_for(name: str) -> None:
    left, right, kind = OWED[name]
    same, side_conditions = asked(left, right)
    assert not same or kind in {k for k, _, _ in side_conditions}


DEFINED = {
    "a logarithm of a square of any sign": (
        T.make("log", T.mul(X, X)), T.mul(2, T.make("log", T.make("abs", X))), "positive"
    ),
    "a remainder of reals": (
        T.make("fmod", X, Y), T.sub(X, T.mul(Y, T.make("trunc", T.div(X, Y)))), "nonzero"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", DEFINED)
def test_what_holds_where_defined_is_shown(name: str) -> None:
    left, right, kind = DEFINED[name]
    same, side_conditions = asked(left, right)
    assert same
    assert kind in {k for k, _, _ in side_conditions}


def test_a_shift_mentions_no_inner_variable() -> None:
    """sum[i] [0 < sum[k] z[k + i]]: the outer variable is not moved by the inner one."""
    i, k = Axis("i", N), Axis("k", N)
    inner = T.fold("sum", k, T.read("z", [T.add(T.axis(k), T.axis(i))]))
    outer = T.fold("sum", i, T.where(T.make("lt", 0, inner), T.read("x", [0]), 0))
    a = Algebra(Solver())
    assert not a.normal(outer, a.context(FACTS)).term.free


PID, LANE = T.size("pid0"), T.size("lane")
WITHIN = frozenset([T.make("le", 0, PID), T.make("le", 0, LANE), T.make("lt", LANE, 32)])
PAIR = T.make("floordiv", PID, 2)
QUOTIENTS = {  # (number, divisor): the quotient, or None where it is another one for some program
    "a lane below what is shared": ((T.add(T.mul(32, PID), LANE), 64), PAIR),
    "a lane above what is shared": ((T.add(T.mul(16, PID), LANE), 64), None),
    "a remainder and its quotient": ((T.add(PID, T.mul(62, PAIR), 61), 64), PAIR),
    "a remainder that goes over": ((T.add(PID, T.mul(62, PAIR), 63), 64), None),
    "a remainder and another multiple": ((T.add(PID, T.mul(61, PAIR)), 64), None),
}


@pytest.mark.parametrize("name", QUOTIENTS)
def test_quotients_are_seen_where_the_rest_is_small(name: str) -> None:
    (number, divisor), expected = QUOTIENTS[name]
    a = Algebra(Solver())
    ctx = a.context(WITHIN)
    found = a.normal(T.make("floordiv", number, divisor), ctx)
    assert (found is a.normal(PAIR, ctx)) is (expected is not None)


def test_a_number_of_f32_is_the_nearest() -> None:
    """float32's pi is a rounding of pi, and not of 355 / 113, which rounds to its neighbour."""
    single, neighbour = (float(np.float32(v)) for v in (math.pi, 355 / 113))
    assert neighbour == np.nextafter(np.float32(single), np.float32(4))
    assert tidy(neighbour) == Fraction(355, 113) and tidy(single) != Fraction(355, 113)
    assert asked(T.mul(single, X), T.mul(math.pi, X))[0]
    assert not asked(T.mul(single, X), T.mul(neighbour, X))[0]
