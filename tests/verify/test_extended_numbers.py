"""Values that are no finite numbers in normal form: -inf, +inf and NaN as IEEE 754 has them, and sets without elements.

Each row has twins that must not be shown.
"""

from __future__ import annotations

import itertools
import math

import pytest

from trilift.lift.terms import construct as T
from trilift.lift.terms.definedness import is_finite, is_number
from trilift.lift.terms.ops import OPS
from trilift.lift.terms.term import Axis, Term
from trilift.verify.integers.solver import Solver
from trilift.verify.loops.agreement import agree
from trilift.verify.normal_form.algebra import MINUS_INF, NAN, PLUS_INF, Algebra, Context, Split, Undecided
from trilift.verify.normal_form.poly import ZERO

N, X = T.size("N"), T.read("x", [0])
J = Axis("j", N)
ELEMENT = T.read("x", [T.axis(J)])
KEEP = T.make("ne", T.read("keep", [T.axis(J)], T.INT), 0)
MASKED = T.where(KEEP, ELEMENT, -math.inf)
TOP = T.fold("amax", J, MASKED)
NONE = T.where(T.make("lt", N, 0), X, -math.inf)  # -inf, since no size is negative


def f(op: str, *args: T.TermLike) -> Term:
    return OPS[op].on_terms(*args)


def algebra() -> tuple[Algebra, Context]:
    a = Algebra(Solver())
    return a, a.context([T.make("le", 1, N)])


SPECIAL = {-math.inf: MINUS_INF, math.inf: PLUS_INF}
PLACES = (-math.inf, -2.0, 0.0, 3.0, math.inf)


def hidden(v: float) -> Term:
    """The number behind a condition that only the proof decides, so that construction folds nothing."""
    return T.where(T.make("le", 1, N), v, X)


@pytest.mark.parametrize("op", ["add", "mul", "max", "min"])
def test_two_numbers_are_combined_as_numpy_does(op: str) -> None:
    a, ctx = algebra()
    for x, y in itertools.product(PLACES, repeat=2):
        want = float(OPS[op].numpy(x, y))
        got = a.normal(f(op, hidden(x), hidden(y)), ctx)
        assert got is (NAN if math.isnan(want) else SPECIAL.get(want, a.normal(T.const(want), ctx))), (x, y)


@pytest.mark.parametrize("op", ["exp", "exp2", "abs", "tanh", "sqrt", "log", "floor", "erf", "sin", "recip"])
def test_a_function_has_its_value_at_infinity(op: str) -> None:
    a, ctx = algebra()
    limits = {
        "exp": (ZERO, PLUS_INF), "exp2": (ZERO, PLUS_INF), "abs": (PLUS_INF, PLUS_INF), "tanh": (-1, 1),
        "sqrt": (NAN, PLUS_INF), "log": (NAN, PLUS_INF), "floor": (MINUS_INF, PLUS_INF), "erf": (-1, 1),
        "sin": (NAN, NAN), "recip": (ZERO, ZERO),
    }  # fmt: skip
    for v, want in zip((-math.inf, math.inf), limits[op], strict=True):
        got = a.normal(T.make(op, hidden(v)), ctx)
        assert got is (a.normal(T.const(want), ctx) if isinstance(want, int) else want)


def test_nan_stays_nan_and_is_told_by_comparisons() -> None:
    a, ctx = algebra()
    nan = T.sub(hidden(math.inf), hidden(math.inf))
    for t in (nan + 1, nan * 0, T.recip(nan), f("exp", nan), f("abs", nan), f("tanh", nan), f("erf", nan), -nan):
        assert a.normal(t, ctx) is NAN
    for op, want in (("lt", False), ("le", False), ("eq", False), ("ne", True)):
        assert a.condition(T.make(op, nan, X), ctx) is T.const(want)
    with pytest.raises(Undecided):
        a.normal(f("max", nan, X), ctx)  # NaN in one program, x in another


def test_zero_over_zero_is_nan_and_one_over_zero_is_left_open() -> None:
    a, ctx = algebra()
    zero = f("exp", hidden(-math.inf))
    assert a.normal(T.div(zero, zero), ctx) is NAN
    with pytest.raises(Undecided):
        a.normal(T.recip(zero), ctx)


@pytest.mark.parametrize("t", [TOP - TOP, 0 * TOP, TOP + math.inf, f("sin", TOP), TOP * X], ids=repr)
def test_what_may_be_nan_is_no_number(t: Term) -> None:
    assert is_number(TOP) and not is_finite(TOP) and not is_number(t)


@pytest.mark.parametrize("t", [f("exp", TOP), TOP + X, 1 / (1 + f("exp", X)), f("max", TOP, 0), 2 * TOP], ids=repr)
def test_what_cannot_be_nan_is_a_number(t: Term) -> None:
    assert is_number(t)


# ---- sets that data make empty ---------------------------------------------------------------------------------------

SHIFTED = T.fold("sum", J, f("exp", MASKED - TOP))


def shown(left: Term, right: Term) -> bool:
    a, ctx = algebra()
    with a.collecting() as owed:
        try:
            return agree(a, left, right, ctx) and not any(kind == "finite" for kind, _, _ in owed)
        except (Undecided, Split):
            return False


EMPTY = T.make("eq", TOP, -math.inf)
SAFE = T.where(EMPTY, 0, TOP)
NAN_ROW = T.sub(hidden(math.inf), hidden(math.inf))
SAFE_SUM = T.fold("sum", J, f("exp", MASKED - SAFE))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (SAFE_SUM, T.where(EMPTY, 0, SHIFTED)),
        (T.where(EMPTY, 1.0, T.where(f("lt", -math.inf, TOP), 2.0, 3.0)), T.where(EMPTY, 1.0, 2.0)),
        (SHIFTED, T.where(EMPTY, NAN_ROW, SAFE_SUM)),
        (T.where(T.make("eq", SAFE_SUM, 0), 1, SAFE_SUM), T.where(EMPTY, 1, SAFE_SUM)),
    ],
)
def test_rows_without_an_element_are_a_case(left: Term, right: Term) -> None:
    assert shown(left, right)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (SAFE_SUM, SHIFTED),
        (SHIFTED, T.where(EMPTY, 0, SHIFTED)),
        (T.where(EMPTY, 1, SAFE_SUM), SAFE_SUM),
        (T.where(EMPTY, 0.0, 1.0), T.const(1.0)),
        (T.where(T.make("eq", TOP - TOP, 0), 1.0, 0.0), T.const(1.0)),
    ],
)
def test_their_wrong_twins_are_not(left: Term, right: Term) -> None:
    assert not shown(left, right)


def test_an_element_contradicts_an_empty_set_and_only_its_own() -> None:
    a, ctx = algebra()
    with pytest.raises(Split) as raised:
        a.condition(EMPTY, ctx)
    none = a.given(ctx, T.make("not", raised.value.literal))
    element = lambda name: T.make("ne", 0, T.read(name, [0], T.INT))  # noqa: E731
    assert not a.impossible(none) and not a.impossible(a.given(none, element("other")))
    assert a.impossible(a.given(none, element("keep")))
    assert not a.impossible(a.given(none, T.make("ne", 0, T.read("keep", [N], T.INT))))
