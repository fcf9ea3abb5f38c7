"""What facts say of symbols: the only value they have, what they are equal to; each without the fact."""

from __future__ import annotations

import math

import pytest

from trilift.lift.terms import construct as T
from trilift.lift.terms.term import Axis, Term
from trilift.verify.integers.bounded_solver import BoundedSolver
from trilift.verify.integers.solver import Solver
from trilift.verify.loops.invariant import agree
from trilift.verify.loops.program_symbols import Names
from trilift.verify.model.program import PIDS
from trilift.verify.normal_form.algebra import ALL, Algebra, Undecided
from trilift.verify.normal_form.rules.sum import _conditions, _loosened

M, N, H, P = map(T.size, ("M", "N", "H", "pid0"))
LANE, K = Axis("i", N), Axis("k", M)
i, k = T.axis(LANE), T.axis(K)
FACTS = frozenset([T.make("le", 1, s) for s in (M, N, H)] + [T.make("le", 0, s) for s in (i, P)])


def X(*at: Term) -> Term:
    return T.read("x", list(at))


def Y(at: Term) -> Term:
    return T.node("read", (T.const(at),), "y", T.INT)


def summed(guard: Term, body: Term) -> Term:
    return T.fold("sum", K, T.where(guard, body, 0))


CASES: dict[str, tuple[tuple[Term, ...], Term, Term]] = {
    "a lane of one": (
        (T.make("lt", i, N), T.make("eq", N, 1)),
        X(T.add(Y(P), T.mul(i, M))),
        X(Y(T.add(P, T.mul(i, H)))),
    ),
    "a size of one": ((T.make("eq", N, 1),), T.mul(X(P), N), X(P)),
    "an element of one value": ((T.make("eq", N, 1),), summed(T.const(True), X(k, T.mul(H, Y(k)))),
                                summed(T.const(True), X(k, T.const(0)))),
    "a program that a fact names": (
        (T.make("eq", P, Y(T.const(0))),), X(T.mul(H, P)), X(T.mul(H, Y(T.const(0)))),
    ),
    "an element that a guard names": (
        (),
        summed(T.make("eq", Y(k), P), T.mul(X(k, T.mul(H, Y(k))), X(k, k))),
        summed(T.make("eq", Y(k), P), T.mul(X(k, T.mul(H, P)), X(k, k))),
    ),
}  # fmt: skip


def shown(facts: tuple[Term, ...], left: Term, right: Term) -> bool:
    a = Algebra(BoundedSolver(Solver(resources=1_000_000), bounds={"y": (T.const(0), N)}))
    try:
        return agree(a, left, right, a.context(FACTS | frozenset(facts)))
    except Undecided:
        return False


@pytest.mark.parametrize("name", CASES)
def test_equal_under_the_facts(name: str) -> None:
    assert shown(*CASES[name])


@pytest.mark.parametrize("name", CASES)
def test_not_without_them(name: str) -> None:
    facts, left, right = CASES[name]
    if not facts:
        left, right = (T.rewrite(t, lambda s: T.make("ne", *s.args) if s.op == "eq" else None) for t in (left, right))
    assert not shown(tuple(f for f in facts if f.op != "eq"), left, right)


def test_a_quotient_by_a_product() -> None:
    """(k N + i) // (2 N) = k // 2 for 0 <= i < N, and no longer for 0 <= i."""
    x = T.make("floordiv", T.add(T.mul(k, N), i), T.mul(2, N))
    inside = (T.make("lt", i, N), T.make("le", 0, k))
    assert shown(inside, X(x), X(T.make("floordiv", k, 2)))
    assert not shown(inside[1:], X(x), X(T.make("floordiv", k, 2)))
    assert not shown(inside, X(x), X(T.make("floordiv", k, 3)))


def test_where_a_maximum_is_moves_with_its_variable() -> None:
    """argmax[2 <= k < 6] x[k] = argmax[k < 4] x[k + 2] + 2."""
    near = T.fold("argmax", K, T.where(T.make("lt", k, 4), X(T.add(k, 2)), -math.inf))
    far = T.fold("argmax", K, T.where(T.make("and", T.make("le", 2, k), T.make("lt", k, 6)), X(k), -math.inf))
    long = (T.make("le", 9, M),)
    assert shown(long, T.add(near, 2), far)
    assert not shown(long, near, far)


def test_the_first_of_equal_elements_depends_on_where_they_start() -> None:
    first, third = (T.fold("argmax", K, T.where(T.make("le", n, k), 0.0, -math.inf)) for n in (0, 3))
    assert not shown((T.make("le", 9, M),), first, third)


def test_conditions_of_sums_that_the_facts_decide() -> None:
    """exp(sum[k] where(i < H, x[i, k], 0)) in normal form, as memory holds it, where i < H is known later."""
    a = Algebra(BoundedSolver(Solver(resources=1_000_000)))
    weighed = lambda c: T.make(  # noqa: E731
        "exp", summed(T.const(True), T.mul(X(k), summed(c, X(T.add(T.mul(i, M), k)))))
    )
    held = a.normal(weighed(T.make("lt", i, H)), a.context(FACTS)).term
    assert agree(a, held, weighed(T.const(True)), a.context(FACTS | {T.make("lt", i, H)}))
    assert not agree(a, held, weighed(T.const(True)), a.context(FACTS | {T.make("le", i, H)}))


L = Axis("l", N)


def product(inside: bool, power: int = 1, bound: Term = P) -> Term:
    """sum[k] x[k] (sum[l] y[l])^power, where k < bound: a condition of the inner sum or of the outer one."""
    c = T.make("lt", k, bound)
    inner = T.fold("sum", L, T.where(c, X(T.axis(L), k), 0) if inside else X(T.axis(L), k))
    body = T.mul(
        T.read("z", [k]), T.recip(inner) if power < 0 else inner, T.make("exp", inner) if power == 2 else T.const(1)
    )
    return summed(T.const(True) if inside else c, body)


def test_a_condition_of_an_inner_sum_is_one_of_the_outer() -> None:
    squared = lambda inside: summed(  # noqa: E731
        T.const(True) if inside else T.make("lt", k, P),
        T.mul(*(T.fold("sum", L, T.where(T.make("lt", k, P), T.read("w", [T.axis(L), k, n]), 0) if inside
                       else T.read("w", [T.axis(L), k, n])) for n in (T.const(0), T.const(1)))),
    )  # fmt: skip
    assert shown((), squared(True), squared(False))
    assert not shown((), product(True), product(False, bound=H))
    assert not shown((), product(True, -1), product(False, -1)), "1 / 0 where the condition fails"
    assert not shown((), product(True, 2), T.mul(2, product(False, 2)))


def test_what_is_no_guard_of_a_sum() -> None:
    """where(a and b, 0, x) is x where a or b fails: neither of them may move out."""
    bound = Axis("%1", ALL)
    both = T.node("and", (T.make("lt", T.axis(bound), N), T.make("lt", k, P)), None, T.BOOL)
    body = X(T.axis(bound))
    for x, y, expected in ((body, T.const(0), {*both.args}), (T.const(0), body, set())):
        held = T.fold("sum", bound, T.node("where", (both, x, y), None, T.REAL))
        assert {*_conditions(held)} == expected
        _, loose = _loosened(((held.id, 1),), {K})
        assert loose == ({T.make("lt", k, P)} if expected else set())


@pytest.mark.parametrize("grid, last", [(T.mul(M, H, N), M), (T.mul(H, N), T.const(1)), (T.mul(M, N), None)])
def test_the_digits_of_a_program_id_are_bounded(grid: Term, last: Term | None) -> None:
    """pid = (m H + h) N + n below M H N: m < M. Of another grid nothing is said of m."""
    pid = PIDS[0]
    sizes = [T.make("le", 1, s) for s in (M, N, H)]
    names = Names(frozenset([*sizes, T.make("and", T.make("le", 0, pid), T.make("lt", pid, grid))]), Solver())
    m = names.replaced(T.make("floordiv", T.make("floordiv", pid, N), H))
    above = {f.args[1] for f in names.facts if f.op == "lt" and f.args[0] is m}
    assert names.plain(m) is T.make("floordiv", T.make("floordiv", pid, N), H)
    assert above == ({last} if last is not None else set())
