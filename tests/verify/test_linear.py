"""Linear arithmetic without a solver: never wrong on small boxes, confirmed by z3, and able to decide the usual."""

from __future__ import annotations

import itertools
import random

import pytest

from trilift.lift.runtime.budget import BUDGETS
from trilift.lift.terms import construct as T
from trilift.lift.terms.ops import OPS
from trilift.lift.terms.term import Axis, Term
from trilift.verify.integers import linear
from trilift.verify.integers.conditions import core, negation, question, value
from trilift.verify.integers.linear_forms import polynomial, to_term
from trilift.verify.integers.logical_index import asking
from trilift.verify.integers.solver import Solver, decided_by_z3

N, M, S, PID = map(T.size, ("N", "M", "S", "pid0"))
LANE, STEP, J, ROW = (T.axis(Axis(name, N)) for name in ("lane", "n", "j", "i"))
BOX = range(-3, 5)


def lt(a, b):
    return T.make("lt", a, b)


def le(a, b):
    return T.make("le", a, b)


def within(x, n):
    return {le(0, x), lt(x, n)}


def cdiv(a, b):
    return T.make("floordiv", T.add(a, b, -1), b)


def implied(facts, goal):
    return linear.contradictory(question(facts, T.const(goal)))


TILES = cdiv(N, 64)
TILED = {le(1, N)} | within(LANE, 64) | within(STEP, TILES)
GRID = within(ROW, M) | within(J, S)
# facts, goal, and the goal one off: true and false
PAIRS = [
    (TILED, lt(STEP * 64 + LANE, N + 63), lt(STEP * 64 + LANE, N + 62)),
    (TILED, le(STEP * 64 + 1, N), le(STEP * 64 + 2, N)),
    ({lt(J, N)}, lt(J, TILES * 64), lt(J, TILES * 64 - 1)),
    ({lt(J, N), lt(STEP, TILES), le(J, 64 * STEP + 63)}, lt(J, 64 * (STEP + 1)), lt(J, 64 * STEP + 63)),
    (GRID, lt(ROW * S + J, M * S), lt(ROW * S + J, M * S - 1)),
    (GRID | {le(1, M)}, le(J, M * S), lt(J, M * S - 1)),
    (within(LANE, 64), T.make("eq", T.make("mod", STEP * 64 + LANE, 64), LANE),
     T.make("eq", T.make("mod", STEP * 64 + LANE, 64), LANE + 1)),
    (within(LANE, 64), T.make("eq", T.make("floordiv", STEP * 64 + LANE, 64), STEP),
     T.make("eq", T.make("floordiv", STEP * 64 + LANE + 1, 64), STEP)),
    ({le(0, M)}, T.make("eq", T.make("truncdiv", M, 8), T.make("floordiv", M, 8)),
     T.make("eq", T.make("truncdiv", M - 1, 8), T.make("floordiv", M - 1, 8))),
    (within(J, N), lt(J, T.make("next_power_of_2", N)), lt(J, T.make("next_power_of_2", N) - 1)),
    ({le(2, N)}, le(T.make("next_power_of_2", N), 2 * N - 2), le(T.make("next_power_of_2", N), 2 * N - 3)),
    ({le(1, N)}, le(T.make("min", N, M), N), lt(T.make("min", N, M), N)),
    (within(PID, cdiv(N, 64) * M) | {le(1, M)}, lt(T.make("floordiv", PID, M), cdiv(N, 64)),
     lt(T.make("floordiv", PID, M), cdiv(N, 64) - 1)),
    ({le(1, M)}, lt(T.make("mod", PID, M), M), lt(T.make("mod", PID, M), M - 1)),
]  # fmt: skip


@pytest.mark.parametrize("k", range(len(PAIRS)))
def test_decides_what_is_usual(k):
    facts, right, wrong = PAIRS[k]
    assert implied(facts, right)
    assert not implied(facts, wrong)
    assert decided_by_z3(question(facts, wrong), BUDGETS.solver.resources) is False


def test_products_of_three():
    b, h, s = (T.axis(Axis(name, N)) for name in "bhs")
    B, H, S = map(T.size, "BHS")
    facts = within(b, B) | within(h, H) | within(s, S)
    at = b * H * S + h * S + s
    assert implied(facts, lt(at, B * H * S)) and implied(facts, le(0, at))
    assert not implied(facts, lt(at, B * H * S - 1))


def test_divisors_of_unknown_sign():
    assert not implied({le(0, PID)}, le(0, T.make("floordiv", PID, M)))
    assert implied({le(0, PID), le(1, M)}, le(0, T.make("floordiv", PID, M)))
    assert not implied(set(), lt(T.make("mod", PID, M), M))
    assert not implied(set(), T.make("eq", T.make("mod", PID, T.const(0)), PID))


# ---- random questions ------------------------------------------------------------------------------------------------

SYMBOLS = (N, M, J)


def number(rng: random.Random, depth: int) -> Term:
    if depth == 0 or rng.random() < 0.25:
        return rng.choice(SYMBOLS) if rng.random() < 0.7 else T.const(rng.randint(-4, 6))
    op = rng.choice(["add", "add", "add", "mul", "mul", "scaled", "floordiv", "mod", "truncdiv", "truncmod", "min",
                     "max", "where", "abs", "next_power_of_2", "bitand", "shr", "sign", "wrap8"])  # fmt: skip
    a = number(rng, depth - 1)
    match op:
        case "scaled":
            return T.mul(rng.randint(-5, 5), a)
        case "floordiv" | "mod" | "truncdiv" | "truncmod":
            c = T.const(rng.choice([-5, -2, 2, 3, 4])) if rng.random() < 0.75 else number(rng, depth - 1)
            return a if c is T.const(0) else T.make(op, a, c)
        case "where":
            return T.where(condition(rng, depth - 1), a, number(rng, depth - 1))
        case "abs" | "next_power_of_2" | "sign" | "wrap8":
            return T.make(op, a)
        case "bitand":
            return T.make(op, a, rng.randint(-8, 12))
        case "shr":
            return T.make(op, a, rng.randint(0, 3))
    return T.make(op, a, number(rng, depth - 1))


def condition(rng: random.Random, depth: int) -> Term:
    if depth > 0 and rng.random() < 0.25:
        op = rng.choice(["and", "or", "not"])
        args = [condition(rng, depth - 1) for _ in range(1 if op == "not" else 2)]
        return T.make(op, *args)
    return T.make(rng.choice(["lt", "le", "le", "eq", "ne"]), number(rng, depth), number(rng, depth))


def evaluate(t: Term, env: dict[Term, int]):
    """By the meanings in the operation table, which the code under test does not use; None: undefined."""
    memo: dict[int, int | bool | None] = {}
    for s in t.walk():
        args = [memo[a.id] for a in s.args]
        if not s.args:
            memo[s.id] = s.attr if s.op == "const" else env[s]
        elif s.op == "where":
            memo[s.id] = None if args[0] is None else args[1] if args[0] else args[2]
        elif None in args or (s.op in ("floordiv", "mod", "truncdiv", "truncmod") and args[1] == 0):
            memo[s.id] = None
        else:
            memo[s.id] = OPS[s.op].on_numbers(*args)
    return memo[t.id]


ENVIRONMENTS = [dict(zip(SYMBOLS, v, strict=True)) for v in itertools.product(BOX, repeat=len(SYMBOLS))]


def random_question(seed: int, depth: int = 2) -> list[Term]:
    rng = random.Random(seed)
    out = [condition(rng, depth) for _ in range(rng.randint(2, 5))]
    return [
        *out,
        *(le(0, s) for s in SYMBOLS if rng.random() < 0.6),
        *(lt(s, 5) for s in SYMBOLS if rng.random() < 0.5),
    ]


@pytest.mark.parametrize("part", range(4))
def test_a_contradiction_has_no_solution_in_the_box(part):
    found = 0
    for seed in range(part * 150, part * 150 + 150):
        literals = random_question(seed)
        if linear.contradictory([core(t) for t in literals]):
            found += 1
            for env in ENVIRONMENTS:
                assert not all(evaluate(t, env) in (True, 1) for t in literals), (seed, literals, env)
    assert found > 20


def test_contradictions_are_confirmed_by_z3():
    confirmed = 0
    for seed in range(1000, 1500):
        literals = [core(t) for t in random_question(seed)]
        if linear.contradictory(literals):
            answer = decided_by_z3(literals, BUDGETS.solver.resources)
            assert answer is not False, (seed, literals)
            confirmed += answer is True
    assert confirmed > 80


def test_the_core_has_the_same_values():
    rng = random.Random(5)
    for _ in range(300):
        t = number(rng, 3)
        for env in rng.sample(ENVIRONMENTS, 5):
            expected = evaluate(t, env)
            got = value(core(t), env)
            assert expected is None or got == expected, (t, env)


def test_polynomials_have_the_same_values():
    rng = random.Random(6)
    for _ in range(300):
        t = core(number(rng, 3))
        p = to_term(polynomial(t)) if t.type == T.INT else t
        for env in rng.sample(ENVIRONMENTS, 5):
            assert value(t, env) is None or value(core(p), env) == value(t, env), (t, p, env)


def test_long_numbers_are_exact():
    shift = T.node("shl", (T.const(1), T.const(64)), None, T.INT)
    assert core(shift) is T.const(1 << 64)
    big = T.node("mul", (T.const(1 << 40), T.const(1 << 40)), None, T.INT)
    assert implied({lt(big, N)}, T.node("lt", (T.const(1 << 79), N), None, T.BOOL))
    assert not implied({lt(big, N)}, T.node("lt", (T.const((1 << 80) + 1), N), None, T.BOOL))


def test_negation_is_the_opposite():
    rng = random.Random(7)
    for _ in range(200):
        t = core(condition(rng, 2))
        for env in rng.sample(ENVIRONMENTS, 5):
            v = value(t, env)
            assert v is None or value(negation(t), env) is (not v)


# ---- bounds ----------------------------------------------------------------------------------------------------------


def test_bounds_are_bounds():
    assert linear.bounds(STEP * 64 + LANE, within(LANE, 64) | within(STEP, T.const(10))) == (0, 639)
    assert linear.bounds(T.make("mod", N, 7), set()) == (0, 6)
    assert linear.bounds(N, {le(3, N)}) == (3, None)
    rng = random.Random(8)
    for _ in range(150):
        t, facts = number(rng, 2), [condition(rng, 1), le(0, N), lt(N, 4), le(-2, M), lt(M, 4)]
        low, high = linear.bounds(t, facts)
        for env in ENVIRONMENTS[::3]:
            if all(evaluate(f, env) in (True, 1) for f in facts) and (v := evaluate(t, env)) is not None:
                assert (low is None or low <= v) and (high is None or v <= high), (t, facts, env)


def test_bounds_without_lanes():
    facts = {le(1, N)} | within(LANE, 64) | within(PID, cdiv(N, 64))
    lower, upper = linear.upper_terms(PID * 64 + LANE, facts, {PID, LANE})
    assert T.const(0) in lower and T.add(N, 62) in upper
    assert all(not {PID, LANE} & set(u.walk()) for u in (*lower, *upper))
    for u in upper:
        assert decided_by_z3(question(facts, le(PID * 64 + LANE, u)), BUDGETS.solver.resources) is True
    assert decided_by_z3(question(facts, le(PID * 64 + LANE, N + 61)), BUDGETS.solver.resources) is False


# ---- what one fact says by itself ------------------------------------------------------------------------------------


def test_a_fact_about_a_real_is_no_fact_about_integers():
    """i < x gives i + 1 <= x where x is an integer: 2 < 2.5, and not 3 <= 2.5."""
    real, ask = T.scalar("x"), lambda fact, goal: asking(frozenset({fact}), Solver())(goal)
    assert ask(lt(LANE, N), le(T.add(LANE, 1), N)) and ask(lt(LANE, real), lt(LANE, real))
    for fact, goal in [
        (lt(LANE, real), le(T.add(LANE, 1), real)),
        (lt(real, LANE), le(T.add(real, 1), LANE)),
        (lt(LANE, T.mul(2, real)), lt(T.mul(2, LANE), T.mul(4, real))),
        (T.make("and", lt(LANE, real), le(0, LANE)), le(T.add(LANE, 1), real)),
    ]:
        assert not ask(fact, goal), (fact, goal)


def test_one_fact_entails_weaker_ones_only():
    ask = asking(frozenset({le(T.add(LANE, 3), N), lt(STEP, M)}), Solver())
    assert ask(le(T.add(LANE, 2), N)) and ask(lt(LANE, N)) and ask(le(T.add(STEP, 1), M))
    for goal in (le(T.add(LANE, 4), N), lt(T.add(LANE, 3), N), lt(T.add(STEP, 1), M), le(LANE, M), le(N, LANE)):
        assert not ask(goal), goal
