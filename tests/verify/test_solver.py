"""Answers about integers: right, recorded, with small models, and confirmed by a second solver."""

from __future__ import annotations

import random

import pytest
import z3
from test_linear import (
    ENVIRONMENTS,
    LANE,
    PAIRS,
    PID,
    STEP,
    SYMBOLS,
    TILED,
    J,
    M,
    N,
    cdiv,
    condition,
    evaluate,
    le,
    lt,
    random_question,
    within,
)

from trilift.lift.runtime.budget import Guard, Meter, OutOfSteps, OutOfTime, stage
from trilift.lift.terms import construct as T
from trilift.verify.integers.smt import recheck, smt_text, write_smt
from trilift.verify.integers.solver import UNDECIDED, Solver, decided_by_z3

X = T.scalar("x")


def eq(a, b):
    return T.make("eq", a, b)


@pytest.mark.parametrize("k", range(len(PAIRS)))
def test_right_and_one_off(k):
    facts, right, wrong = PAIRS[k]
    solver = Solver()
    assert solver.implies(facts, right, "right")
    assert not solver.implies(facts, wrong, "wrong")
    assert [c.holds for c in solver.records] == [True, False]
    assert solver.records[0].by == "linear" and solver.records[1].why == "not implied by the facts"


def grouped(short):
    """Program ids in groups of 8 rows: the row and the column, and the facts."""
    rows, columns = T.size("rows"), T.size("columns")
    width = columns * 8
    first = T.make("floordiv", PID, width) * 8
    height = T.const(8) if short else T.make("min", rows - first, 8)
    inside = T.make("mod", PID, width)
    row, column = first + T.make("mod", inside, height), T.make("floordiv", inside, height)
    return {le(1, rows), le(1, columns)} | within(PID, rows * columns), row, column, rows, columns


def test_grouped_program_ids():
    facts, row, column, rows, columns = grouped(short=False)
    solver = Solver(resources=25_000_000)
    for goal in (le(0, row), lt(row, rows), le(0, column), lt(column, columns)):
        assert solver.implies(facts, goal)
    assert not solver.implies(facts, lt(row, rows - 1))
    facts, row, column, rows, columns = grouped(short=True)
    assert not solver.implies(facts, lt(row, rows))


def test_a_question_is_answered_once():
    solver = Solver()
    facts, right, _ = PAIRS[0]
    assert solver.implies(facts, right) and solver.implies(facts, right)
    assert solver.asked == {"linear": 1, "cache": 1} and solver.records == []


def test_random_implications_hold_in_the_box():
    solver = Solver(resources=1_500_000)
    held = 0
    for seed in range(2000, 2250):
        facts, goal = random_question(seed), condition(random.Random(-seed), 1)
        if solver.implies(facts, goal):
            held += 1
            for env in ENVIRONMENTS:
                if all(evaluate(f, env) in (True, 1) for f in facts):
                    assert evaluate(goal, env) in (True, 1, None), (seed, facts, goal, env)
    assert held > 40


def test_models_are_models():
    solver = Solver(resources=2_500_000)
    found = 0
    for seed in range(3000, 3060):
        facts = random_question(seed)
        model = solver.model(facts)
        if model is None:
            continue
        found += 1
        env = {s: model.get(repr(s), 0) for s in SYMBOLS}
        assert all(evaluate(f, env) in (True, 1) for f in facts), (seed, facts, model)
        assert not solver.contradictory(facts)
    assert found > 20


def test_models_are_small():
    solver = Solver()
    assert solver.model({le(1, N), le(1, M), lt(N, M)}) == {"N": 1, "M": 2}
    assert solver.model({lt(100, N), eq(T.make("mod", N, 64), 0)}) == {"N": 128}
    assert solver.model({lt(N, 3), lt(3, N)}) is None


def test_symbols_without_meaning():
    solver = Solver()
    label = T.read("labels", (J,), T.INT)
    assert solver.implies({le(0, label), lt(label, N)}, lt(label, N + 1))
    assert not solver.implies({le(0, label), lt(label, N)}, lt(T.read("labels", (LANE,), T.INT), N))
    assert solver.implies({lt(X, 1.5)}, lt(X, 1.5)) and not solver.implies({lt(X, 1.5)}, lt(X, 2.5))
    assert solver.contradictory({lt(X, 1.5), le(1.5, X)})
    b = T.scalar("flag", T.BOOL)
    assert solver.implies({T.make("or", b, lt(N, 3)), T.make("not", b)}, lt(N, 5))
    assert not solver.implies({T.make("or", b, lt(N, 3))}, lt(N, 5))


def test_undefined_values_prove_nothing():
    solver = Solver()
    u = T.node("add", (T.undef("load", T.INT), N), None, T.INT)
    other = T.node("lt", (u, T.const(3)), None, T.BOOL)
    assert not solver.implies({other}, lt(N, 3))
    assert not solver.contradictory({other, T.node("le", (T.const(3), u), None, T.BOOL)})
    assert solver.model({other}) is None


def test_equal_under():
    solver = Solver()
    assert solver.equal_under({le(0, N)}, cdiv(N, 8), T.make("truncdiv", N + 7, 8))
    assert not solver.equal_under({le(-20, N)}, cdiv(N, 8), T.make("truncdiv", N + 7, 8))


def test_unrelated_facts_are_not_sent():
    text = smt_text({le(1, M), lt(N, 4)}, lt(N, 5))
    assert "N" in text and "M" not in text
    S = T.size("S")
    assert Solver().implies({lt(N, M), lt(M, S), lt(S, 5), le(1, J)}, lt(N, 3))  # connected through M and S
    assert not Solver().implies({lt(N, M), lt(M, S), lt(S, 6), le(1, J)}, lt(N, 3))


def test_texts_do_not_depend_on_the_order_of_creation():
    facts = [lt(J, N), le(0, J), le(cdiv(N, 64) * 64, J)]
    assert smt_text(facts, lt(N, 5), "a") == smt_text(reversed(facts), lt(N, 5), "a")


def test_cvc5_confirms_what_was_proved(tmp_path):
    pytest.importorskip("cvc5")
    solver = Solver()
    for k, (facts, right, wrong) in enumerate(PAIRS):
        solver.implies(facts, right, f"pair {k} right")
        solver.implies(facts, wrong, f"pair {k} wrong")
    paths = write_smt(solver.records, tmp_path)
    assert paths[0].name == "0000-pair-0-right.smt2" and len(paths) == 2 * len(PAIRS)
    for row in recheck(tmp_path):
        assert row.confirmed if "right" in row.file else row.status != "unsat", row


def test_cvc5_confirms_the_linear_arithmetic(tmp_path):
    pytest.importorskip("cvc5")
    solver = Solver(resources=500_000)
    for seed in range(4000, 4120):
        solver.implies(random_question(seed), T.const(False), f"question {seed}")
    write_smt([c for c in solver.records if c.by == "linear" and c.holds], tmp_path)
    rows = recheck(tmp_path)
    assert all(row.status != "sat" for row in rows)
    assert sum(row.confirmed for row in rows) >= 20


def test_a_wrong_text_is_not_confirmed(tmp_path):
    pytest.importorskip("cvc5")
    (tmp_path / "wrong.smt2").write_text(smt_text(TILED, lt(STEP * 64 + LANE, N)))
    assert [row.status for row in recheck(tmp_path)] == ["sat"]


def test_resources_and_not_the_clock_end_a_question() -> None:
    """A sum of three cubes: hard for every solver."""
    x, y, z = (T.size(n) for n in "xyz")
    hard = [T.make("eq", x * x * x + y * y * y + z * z * z, 42), T.make("lt", 100, x)]
    few = Solver(resources=20_000)
    assert not few.implies(hard, lt(y, 0), "no cubes") and few.records[0].why == UNDECIDED
    with pytest.raises(OutOfTime, match="time ran out after 0 s, during the proof"):
        Solver(meter=Meter("proof", guard=Guard(0.0))).implies(hard, lt(y, 0))


def test_all_questions_of_a_stage_share_its_steps() -> None:
    """Each within its own resources, they would take as long as there are questions."""
    x, y, z = (T.size(n) for n in "xyz")
    cubes = T.add(x * x * x, y * y * y, z * z * z)
    questions = [[T.make("eq", cubes, n), T.make("lt", 100, x)] for n in (33, 42, 74)]
    with stage("proof", 1_000) as meter:
        solver = Solver(resources=20_000, meter=meter)
        for question in questions[:2]:  # the first one spends them
            with pytest.raises(OutOfSteps, match="out of steps: the proof may take 1,000"):
                solver.implies(question, lt(y, 0))
        assert meter.exhausted
        assert solver.implies([lt(x, 3)], lt(x, 4))  # what elimination answers is not asked
    assert not solver.implies(questions[2], lt(y, 0))  # the stage is over: its steps are no limit to others


def test_powers_are_left_to_the_arithmetic_that_takes_no_roots(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other one did not come back from a question with M * M * N, whatever its limits."""
    made: list[dict[str, object]] = []

    def solver() -> z3.Solver:
        found, options = z3.Solver(), dict[str, object]()
        own = found.set
        monkeypatch.setattr(found, "set", lambda k, v: (options.update({k: v}), own(k, v)))
        made.append(options)
        return found

    monkeypatch.setattr(z3, "SimpleSolver", solver)
    assert decided_by_z3([le(2, M), le(2, N), lt(T.mul(M, M, N), N)], 10**6) is True
    assert made and all(o["arith.solver"] == 2 for o in made)
    made.clear()
    assert decided_by_z3([le(2, M), le(2, N), lt(T.mul(M, N), N)], 10**6) is True
    assert made and all("arith.solver" not in o for o in made)


def test_what_holds_of_near_numbers_alone_does_not_hold() -> None:
    """Non-linear questions are asked of numbers up to 2^256, which ends z3's search for ever larger bounds."""
    far = 1 << 600
    assert decided_by_z3([le(1, M), le(1, N), le(far, T.mul(M, N))], 10**6) is not True
    assert decided_by_z3([le(1, M), le(1, N), le(far, T.make("floordiv", M, N))], 10**6) is not True
    assert decided_by_z3([le(1, M), le(1, N), le(M, far), le(far, T.mul(M, N)), lt(N, 1)], 10**6) is True
    assert decided_by_z3([le(2, M), le(2, N), lt(T.mul(M, N), 2 * N)], 10**6) is True
