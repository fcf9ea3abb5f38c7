"""What the normal form must not conclude: side conditions that are owed, divisors that may be 0, guards that count."""

from __future__ import annotations

import pytest

from trilift.lift.runtime.budget import Meter, OutOfSteps
from trilift.lift.terms import construct as T
from trilift.lift.terms.term import Axis, Term
from trilift.verify.integers.solver import Solver
from trilift.verify.loops.invariant import agree
from trilift.verify.normal_form.algebra import Algebra, Context, Undecided
from trilift.verify.normal_form.numbers import met

N, M = T.size("N"), T.size("M")
J, K = Axis("j", N), Axis("k", M)
j, k = T.axis(J), T.axis(K)
x, y = (T.read(n, (T.const(0),)) for n in "xy")
xj, yj = (T.read(n, (j,)) for n in "xy")
at = T.read("at", (j,), T.INT)
SIZES = frozenset([T.make("le", 1, N), T.make("le", 1, M)])


def algebra() -> tuple[Algebra, Context]:
    a = Algebra(Solver(resources=500_000), meter=Meter("test", 500_000))
    return a, a.context(SIZES)


def positive(c: Term) -> Term:
    return T.make("lt", 0, c)


def both(op: str) -> Term:
    """A comparison of two truths, as a number."""
    return T.where(T.node(op, (positive(x), positive(y)), None, T.BOOL), 1, 0)


def rows(stride: Term) -> Term:
    """The sum over k < M and j < N of element stride * k + j."""
    return T.fold("sum", K, T.fold("sum", J, T.read("x", (T.add(T.mul(stride, k), j),))))


def flat(size: Term) -> Term:
    """The sum of the elements below a size."""
    w = Axis("w", size)
    return T.fold("sum", w, T.read("x", (T.axis(w),)))


def total(c: Term, t: Term) -> Term:
    """The sum over j of t where c."""
    return T.fold("sum", J, T.where(c, t, 0))


COUNT = total(T.make("ne", at, 0), T.const(1))  # how many integers of a row are not 0


def said_equal(left: Term, right: Term) -> bool:
    """Whether they are said to be equal, and nothing is owed for it. Out of steps, nothing is said, as in a proof."""
    a, ctx = algebra()
    try:
        with a.collecting() as owed:
            return agree(a, left, right, ctx) and not owed
    except (Undecided, OutOfSteps):
        return False


MET = [  # a term with an indicator in it: is it nonzero, nonnegative, positive?
    (T.where(positive(x), 1, 0), (False, True, False)),
    (T.where(positive(x), 0, 1), (False, True, False)),
    (T.where(positive(x), 2, 1), (True, True, True)),
    (T.where(positive(x), -1, 1), (True, False, False)),
    (T.where(positive(x), 1, -1), (True, False, False)),
    (T.where(T.make("eq", x, 0), 1, y), (False, False, False)),
    (T.where(T.make("eq", x, 0), 0, x), (False, False, False)),
    (T.where(positive(x), x, 1), (True, True, True)),
    (T.where(positive(x), 1, x), (False, False, False)),
    (T.make("abs", x), (False, True, False)),
    (T.add(1, T.make("abs", x)), (True, True, True)),
    (T.sub(T.make("abs", x), 1), (False, False, False)),
    (COUNT, (False, True, False)),
    (T.add(COUNT, T.make("exp", x)), (True, True, True)),
    (T.mul(COUNT, T.make("exp", x)), (False, True, False)),
    (T.sub(T.make("exp", x), COUNT), (False, False, False)),
    (T.add(T.make("exp", x), total(T.make("ne", at, 0), at)), (False, False, False)),
]


@pytest.mark.parametrize(("t", "expected"), MET, ids=[repr(t) for t, _ in MET])
def test_a_side_condition_is_met_for_every_value_of_an_indicator(t: Term, expected: tuple[bool, ...]) -> None:
    a, ctx = algebra()
    n = a.normal(t, ctx).term
    assert tuple(met(a, kind, n, ctx) for kind in ("nonzero", "nonneg", "positive")) == expected


OWED = [
    (T.div(x, y), {"nonzero"}),
    (T.make("sqrt", x), {"nonneg"}),
    (T.make("log", x), {"positive"}),
    (T.recip(T.make("sqrt", x)), {"positive"}),
    (T.add(x, T.div(1, y)), {"nonzero"}),
    (T.fold("amax", J, T.make("log", xj)), {"positive"}),
    (T.fold("sum", J, T.div(xj, yj)), {"nonzero"}),
    (T.make("exp", T.make("log", x)), {"positive"}),
    (T.add(x, y), set()),
    (T.make("exp", x), set()),
    (T.div(x, T.add(1, T.make("exp", y))), set()),
]


@pytest.mark.parametrize(("t", "kinds"), OWED, ids=[repr(t) for t, _ in OWED])
def test_a_comparison_owes_that_its_operands_are_numbers(t: Term, kinds: set[str]) -> None:
    for compared in (T.make("lt", 0, t), T.make("le", t, y), T.make("eq", t, 2)):
        a, ctx = algebra()
        with a.collecting() as owed:
            a.condition(compared, ctx)
        assert kinds <= {k for k, _, _ in owed} and (kinds or not owed), (compared, owed)


WRONG = [  # left, right: differ somewhere
    (total(T.make("eq", T.mul(at, at), 4), T.mul(at, xj)), T.mul(2, total(T.make("eq", T.mul(at, at), 4), xj))),
    (total(T.make("ne", j, 3), T.const(1)), T.sub(N, 1)),
    (total(T.make("lt", j, 3), T.const(1)), T.const(3)),
    (total(T.make("le", 2, j), T.const(1)), T.sub(N, 2)),
    (total(T.make("eq", j, 3), xj), T.read("x", (T.const(3),))),
    (T.fold("amax", J, T.where(T.make("lt", j, 3), xj, 0)), T.fold("amax", J, T.where(T.make("lt", j, 3), xj, -1))),
    (total(positive(xj), xj), T.fold("sum", J, xj)),
    (T.make("log", T.mul(x, y)), T.add(T.make("log", x), T.make("log", y))),
    (T.make("log", T.mul(x, x)), T.mul(2, T.make("log", x))),
    (T.make("sqrt", T.mul(x, x)), x),
    (T.div(T.mul(x, y), y), x),
    (T.make("abs", T.mul(x, y)), T.mul(x, T.make("abs", y))),
    (T.make("max", T.mul(x, y), T.mul(x, x)), T.mul(x, T.make("max", y, x))),
    (T.fold("sum", J, T.mul(xj, yj)), T.mul(T.fold("sum", J, xj), T.fold("sum", J, yj))),
    (T.where(positive(x), T.where(positive(y), 1, 0), 0), T.where(positive(T.mul(x, y)), 1, 0)),
    (T.make("floordiv", T.add(N, M), 2), T.add(T.make("floordiv", N, 2), T.make("floordiv", M, 2))),
    (T.make("mod", T.mul(2, N), 4), T.mul(2, T.make("mod", N, 4))),
    (T.make("floordiv", T.make("floordiv", N, M), 2), T.make("floordiv", N, T.add(M, 2))),
]  # fmt: skip
INNER = T.fold("sum", J, T.read("x", (k, j)))
WRONG += [
    (T.fold("sum", K, T.mul(INNER, INNER)), T.fold("sum", K, INNER)),
    (T.fold("sum", K, T.mul(INNER, INNER)), T.fold("sum", K, T.fold("sum", J, T.mul(*[T.read("x", (k, j))] * 2)))),
    (T.fold("sum", K, T.recip(INNER)), T.fold("sum", K, T.fold("sum", J, T.recip(T.read("x", (k, j)))))),
    (both("eq"), T.where(T.make("or", T.make("not", positive(x)), positive(y)), 1, 0)),
    (both("eq"), T.where(T.make("or", positive(x), T.make("not", positive(y))), 1, 0)),
    (both("lt"), T.where(positive(y), 1, 0)),
    (both("le"), T.where(T.make("not", positive(x)), 1, 0)),
    (rows(T.sub(N, 1)), flat(T.mul(M, T.sub(N, 1)))),
    (rows(T.sub(N, 1)), flat(T.mul(M, N))),
    (rows(T.add(N, 1)), flat(T.mul(M, N))),
    (rows(N), flat(T.mul(M, T.add(N, 1)))),
]
RIGHT = [
    (
        both("eq"),
        T.sub(
            1,
            T.where(
                T.make("and", positive(x), T.make("not", positive(y))),
                1,
                T.where(T.make("and", positive(y), T.make("not", positive(x))), 1, 0),
            ),
        ),
    ),
    (rows(N), flat(T.mul(M, N))),
    (total(T.make("eq", at, 2), T.mul(at, xj)), T.mul(2, total(T.make("eq", at, 2), xj))),
    (total(T.make("lt", j, M), T.const(1)), T.make("min", N, M)),
    (T.make("log", T.mul(T.make("exp", x), 3)), T.add(x, T.make("log", T.const(3)))),
    (T.make("log", T.mul(-3, x)), T.make("log", T.mul(x, -3))),
    (T.make("abs", T.mul(-2, x)), T.mul(2, T.make("abs", x))),
    (T.make("floordiv", T.add(T.mul(4, N), 3), 4), N),
    (T.make("mod", T.add(T.mul(4, N), 3), 4), T.const(3)),
    (T.make("floordiv", T.make("floordiv", N, M), 2), T.make("floordiv", N, T.mul(2, M))),
]


@pytest.mark.parametrize("row", range(len(WRONG)))
def test_unlike_terms_are_not_said_to_be_equal(row: int) -> None:
    assert not said_equal(*WRONG[row]) and not said_equal(*WRONG[row][::-1])


@pytest.mark.parametrize("row", range(len(RIGHT)))
def test_their_right_twins_are_equal(row: int) -> None:
    assert said_equal(*RIGHT[row])
