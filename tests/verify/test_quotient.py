"""Integer polynomials over atoms: a rewritten term keeps its value wherever its side conditions hold, a bound is one.

Side conditions are asked of an oracle that tries every number of a box, so that no solver stands behind an answer."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable

import pytest

from trilift.lift.terms import construct as T
from trilift.lift.terms.ops import OPS
from trilift.lift.terms.term import Axis, Term
from trilift.verify.integers.bounds import at_most, bounded, upper
from trilift.verify.integers.quotient import (
    between,
    canonical,
    divide,
    equalities,
    expand,
    minus,
    plus,
    reduce,
    replace,
    same,
    times,
    to_term,
)

N, M = T.size("N"), T.size("M")
J = T.axis(Axis("j", N))
SYMBOLS = (N, M, J)
BOX = [dict(zip(SYMBOLS, v, strict=True)) for v in itertools.product(range(-3, 7), repeat=3)]
le, lt = (lambda a, b, op=op: T.make(op, a, b) for op in ("le", "lt"))
FACTS = [
    frozenset({le(1, N), le(1, M), le(0, J), lt(J, N)}),
    frozenset({le(2, M), le(0, J), lt(J, T.mul(2, M))}),
    frozenset({le(0, J), lt(J, 4), lt(M, 0)}),
    frozenset({le(1, N), lt(M, N), le(0, M)}),
    frozenset[Term](),
]


def evaluate(t: Term, env: dict[Term, int]) -> int | bool | None:
    """The value of a term; None where a divisor is 0."""
    if t.op == "const":
        return t.attr
    if t in env:
        return env[t]
    args = [evaluate(a, env) for a in t.args]
    if t.op == "where":
        return args[1] if args[0] else args[2]
    return None if None in args else OPS[t.op].on_numbers(*args)


def meeting(facts: Iterable[Term]) -> list[dict[Term, int]]:
    facts = list(facts)
    return [env for env in BOX if all(evaluate(f, env) for f in facts)]


def oracle(facts: Iterable[Term]) -> Callable[[Term], bool]:
    """Whether a goal holds at all numbers of the box that meet the facts."""
    there = meeting(facts)
    known: dict[Term, bool] = {}

    def ask(goal: Term) -> bool:
        if goal not in known:
            known[goal] = all(evaluate(goal, env) is True for env in there)
        return known[goal]

    return ask


def number(rng: random.Random, depth: int) -> Term:
    if depth == 0 or rng.random() < 0.2:
        return rng.choice(SYMBOLS) if rng.random() < 0.7 else T.const(rng.randint(-3, 6))
    op = rng.choice(["add", "add", "mul", "scaled", "floordiv", "mod", "truncdiv", "truncmod", "min", "max", "where",
                     "bitand", "shl", "shr", "multiple"])  # fmt: skip
    a = number(rng, depth - 1)
    if op == "scaled":
        return T.mul(rng.randint(-4, 4), a)
    if op in ("floordiv", "mod", "truncdiv", "truncmod"):
        return T.make(op, a, rng.choice([N, M, T.const(rng.choice([-3, 2, 3, 4])), T.mul(2, M)]))
    if op in ("bitand", "shl", "shr"):
        return T.make(op, a, rng.choice([1, 2, 3, 5, 7]) if op == "bitand" else rng.randint(0, 3))
    b = number(rng, depth - 1)
    if op == "where":
        return T.where(le(number(rng, 1), b), a, b)
    if op == "multiple":  # q * n + r, as offsets are
        n = rng.choice([N, M, T.const(4)])
        return T.make(rng.choice(["floordiv", "mod"]), T.add(T.mul(a, n), b), n)
    return T.make(op, a, b)


def agree(a: Term, b: Term, facts: Iterable[Term]) -> None:
    """Equal wherever the facts hold and the first is defined."""
    for env in meeting(facts):
        v = evaluate(a, env)
        assert v is None or evaluate(b, env) == v, (a, b, {str(k): x for k, x in env.items()})


@pytest.mark.parametrize("k", range(len(FACTS)))
def test_rewriting_keeps_values(k: int) -> None:
    rng, ask, shorter = random.Random(k), oracle(FACTS[k]), 0
    for _ in range(30):
        t = number(rng, 3)
        agree(t, canonical(t), FACTS[4])
        simpler = reduce(t, ask)
        agree(t, simpler, FACTS[k])
        shorter += len(list(simpler.walk())) < len(list(canonical(t).walk()))
    assert shorter >= 4


@pytest.mark.parametrize("k", range(len(FACTS)))
def test_same_means_equal(k: int) -> None:
    rng, ask, found = random.Random(10 + k), oracle(FACTS[k]), 0
    for _ in range(60):
        t = number(rng, 2)
        x, n = number(rng, 1), rng.choice([N, M, T.const(3)])
        other = rng.choice([number(rng, 2), T.add(t, 0), T.sub(x, T.mul(n, T.make("floordiv", x, n)))])
        t = T.make("mod", x, n) if rng.random() < 0.5 else t
        if same(t, other, ask):
            found += 1
            agree(t, other, FACTS[k])
    assert found


def test_division_is_an_identity() -> None:
    rng = random.Random(3)
    for _ in range(100):
        p, n = expand(number(rng, 2)), expand(number(rng, 1))
        if n:
            q, r = divide(p, n)
            assert plus(times(q, n), r) == p


def test_masks_are_remainders_for_runs_of_ones_only() -> None:
    for c in range(-3, 20):
        t = T.make("bitand", N, c)
        agree(t, canonical(t), ())
        assert (canonical(t).op == "mod") == (c in (0, 1, 3, 7, 15)), c


def test_between_has_both_ends() -> None:
    values = {v for v in range(-3, 7) if evaluate(between(T.const(v), T.const(4)), {})}
    assert values == {0, 1, 2, 3}


def test_equalities_replace_sizes_by_what_they_are() -> None:
    known = equalities([T.make("eq", N, T.mul(2, M)), le(1, M)])
    assert known in ({N: T.mul(2, M)}, {})
    agree(T.add(N, J), replace(T.add(N, J), known), [T.make("eq", N, T.mul(2, M))])


@pytest.mark.parametrize("k", range(len(FACTS)))
def test_bounds_are_bounds(k: int) -> None:
    """Of terms without lanes, and of products."""
    rng, ask, found = random.Random(20 + k), oracle(FACTS[k]), 0
    lanes = lambda t: J in set(t.walk())  # noqa: E731
    for _ in range(60):
        t = number(rng, 2)
        top = upper(t, lanes, FACTS[k], ask)
        if top is None:
            continue
        assert J not in set(top.walk())
        found += J in set(t.walk())
        for env in meeting(FACTS[k]):
            v, most = evaluate(t, env), evaluate(top, env)
            assert v is None or most is None or v <= most, (t, top)
    assert found or k > 2


@pytest.mark.parametrize("k", range(len(FACTS)))
def test_what_is_at_most_is(k: int) -> None:
    rng, ask, found = random.Random(30 + k), oracle(FACTS[k]), 0
    for _ in range(50):
        a, b = T.mul(number(rng, 1), number(rng, 1)), T.mul(number(rng, 1), number(rng, 1))
        b = rng.choice([b, T.add(b, 1), T.mul(M, N), T.mul(M, T.sub(N, 1))])
        for goal in (le(a, b), lt(a, b)):
            if not goal.is_const and (bounded(goal, ask) or (goal.op == "le" and at_most(a, b, ask))):
                found += 1
                assert all(evaluate(goal, env) in (True, None) for env in meeting(FACTS[k])), goal
    assert found or k > 1


def test_the_usual_bounds_are_found() -> None:
    ask = oracle(FACTS[0])
    assert bounded(le(T.mul(M, T.make("min", J, N)), T.mul(N, M)), oracle([le(0, M)]))
    assert not bounded(le(T.mul(M, T.make("min", J, N)), T.mul(N, M)), oracle([le(M, 0)]))
    assert not bounded(lt(T.mul(N, M), T.mul(N, M)), ask) and not bounded(le(T.mul(N, M), T.mul(J, M)), ask)
    assert not minus(expand(T.mul(N, M)), expand(T.mul(M, N))) and to_term({}) is T.const(0)
