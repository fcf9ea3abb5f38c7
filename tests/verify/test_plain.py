"""The plain encoding: what Z3 decides alone, and that it decides nothing that is false."""

from __future__ import annotations

import pytest

from trilift.lift.errors import Unsupported
from trilift.lift.language.parse import formula
from trilift.lift.terms import construct as T
from trilift.lift.terms.term import Axis
from trilift.verify.integers import solver
from trilift.verify.proof import smt_baseline

M, N = T.size("M"), T.size("N")
SHAPE = {"M": 2, "N": 3}
pytestmark = pytest.mark.smoke


def element(text: str) -> T.Term:
    """Element [1, 2] of a formula over x[M, N]."""
    f = formula(text, {"x": (M, N), "y": (M, N)}, axes=(Axis("m", M), Axis("n", N)))
    return smt_baseline.instance(f.term, dict(zip(f.axes, (1, 2), strict=True)), SHAPE)


def decided(a: str, b: str) -> bool:
    return solver.contradiction(smt_baseline.question(element(a), element(b)), 5.0)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("x + y", "y + x"),
        ("(x + y) * (x - y)", "x * x - y * y"),
        ("where(x < y, y, x)", "max(x, y)"),
        ("abs(x)", "max(x, -x)"),
        ("exp(x) * exp(y)", "exp(x + y)"),
        ("x + sum(x, -1) + sum(y, -1)", "sum(x + y, -1) + x"),
        ("sqrt(abs(x)) * sqrt(abs(x))", "abs(x)"),
        ("x / 3", "x * (1 / 3)"),
    ],
)
def test_what_is_equal_is_decided(a: str, b: str) -> None:
    assert decided(a, b)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("x + y", "x - y"),
        ("(x + y) * (x - y)", "x * x + y * y"),
        ("where(x <= y, x, y)", "max(x, y)"),
        ("abs(x)", "max(x, x)"),
        ("exp(x) * exp(y)", "exp(x * y)"),
        ("x + sum(x, -1)", "x + sum(y, -1)"),
        ("sqrt(x) * sqrt(x)", "x"),
        ("sin(x)", "cos(x)"),
    ],
)
def test_what_is_not_is_not(a: str, b: str) -> None:
    quick = smt_baseline.question(element(a), element(b))
    assert not solver.contradiction(quick, 0.5)


def test_folds_are_written_out() -> None:
    x = [T.make("read", T.const(1), T.const(k), attr="x") for k in range(3)]
    assert element("y + sum(x, -1)") is T.add(T.make("read", T.const(1), T.const(2), attr="y"), *x)
    assert element("softmax(x, -1)").op == "mul"


def test_an_operation_without_a_word_is_named() -> None:
    with pytest.raises(Unsupported, match="bitand"):
        smt_baseline.question(T.make("bitand", T.size("a"), T.size("b")), T.const(0))
    with pytest.raises(Unsupported, match="inf"):
        smt_baseline.question(T.const(float("-inf")), T.const(0.0))


A, P = (T.axis(Axis(n, T.size("*"))) for n in "ip")
X = T.read("x", (A,))
MASKED = T.where(T.make("lt", A, N), T.make("exp", X), T.undef("masked"))


@pytest.mark.parametrize(
    ("fact", "left", "right"),
    [
        (T.make("lt", A, N), MASKED, T.make("exp", X)),
        (T.make("eq", A, P), X, T.read("x", (P,))),
        (T.make("lt", 0, N), T.add(T.mul(N, T.make("floordiv", A, N)), T.make("mod", A, N)), A),
    ],
)
def test_conditions_for_all_shapes(fact: T.Term, left: T.Term, right: T.Term) -> None:
    """Decided under the fact that they need, and not without it."""
    goal = T.node("eq", (left, right), None, T.BOOL)
    assert solver.contradiction(smt_baseline.implication([fact], goal), 5.0)
    if left.op != "add":
        assert not solver.contradiction(smt_baseline.implication([], goal), 1.0)


def test_an_undefined_value_is_another_one_everywhere() -> None:
    u = T.undef("masked")
    assert not solver.contradiction(smt_baseline.implication([], T.node("eq", (u, u), None, T.BOOL)), 1.0)
