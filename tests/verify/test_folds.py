"""Normal forms of random terms have the values of the terms."""

from __future__ import annotations

import math
import random
from collections import Counter

import pytest
from random_terms import Draw, Numbers

import trilift.verify.loops.invariant  # noqa: F401 - registers every rule
from trilift.lift.runtime.budget import Meter
from trilift.lift.terms import construct as T
from trilift.lift.terms.term import Axis, Term
from trilift.verify.integers.solver import Solver
from trilift.verify.normal_form.algebra import Algebra, Split, Undecided
from trilift.verify.normal_form.poly import Poly
from trilift.verify.normal_form.rules.fold import close, open_fold
from trilift.verify.normal_form.rules.unrolling import multiplied_out, unrolled

TERMS = 240
LARGE = 1e9
N, P = T.size("N"), T.size("pid0")


def normal(t: Term, numbers: Numbers) -> Poly | None:
    """The normal form in the case that holds at the numbers; None where there is none."""
    a = Algebra(Solver(resources=1_000_000), meter=Meter("test", 2_000_000))
    facts = set(numbers.facts)
    for _ in range(14):
        try:
            return a.normal(t, a.context(facts))
        except Undecided:
            return None
        except Split as split:
            if split.literal.free:
                return None
            facts.add(split.literal if numbers.holds(split.literal) else T.make("not", split.literal))
    return None


def outcome(seed: int) -> str:
    """ "equal", "differs", or why there is nothing to compare."""
    rng = random.Random(seed)
    numbers, draw = Numbers.drawn(rng), Draw(rng)
    t = draw.fold((), 2) if rng.random() < 0.7 else draw.real((), 2)
    if sum(1 for _ in t.walk()) > 40:
        return "long"
    p = normal(t, numbers)
    if p is None:
        return "no normal form"
    x, y = numbers.of(t), numbers.of(p.term)
    if math.isnan(x) or math.isnan(y) or LARGE < abs(x) < math.inf or LARGE < abs(y) < math.inf:
        return "no number"
    a = Algebra(Solver(resources=1_000_000))
    opened = [form(a, p.term, a.context(numbers.facts)) for form in (unrolled, multiplied_out)]
    return "equal" if all(near(x, numbers.of(z)) for z in (p.term, *opened)) else "differs"


def near(x: float, y: float) -> bool:
    return x == y or (math.isfinite(x) and math.isfinite(y) and abs(x - y) <= 1e-6 * max(1, abs(x), abs(y)))


@pytest.mark.parametrize("part", range(4))
def test_normal_forms_have_the_value_of_the_term(part: int) -> None:
    found = {seed: outcome(seed) for seed in range(part * TERMS // 4, (part + 1) * TERMS // 4)}
    assert not [seed for seed, said in found.items() if said == "differs"]
    assert Counter(found.values())["equal"] > TERMS // 6, Counter(found.values())


@pytest.mark.parametrize("seed", [1313, 4518, 6991, 11093, 11859])
def test_few_values_may_move_with_another_variable(seed: int) -> None:
    """Opened sums that had a free variable once."""
    assert outcome(seed) == "equal"


def test_the_evaluation_tells_terms_apart() -> None:
    """A term and one with a mistake have other values: the comparison above can fail."""
    numbers = Numbers({"N": 4, "M": 3, "p": 1}, 7)
    j = Axis("j", T.size("N"))
    x = T.fold("sum", j, T.read("x", [T.axis(j)]))
    assert numbers.of(x) != numbers.of(T.fold("sum", j, T.read("x", [T.axis(j) + 1])))
    assert numbers.of(x) == pytest.approx(sum(numbers.of(T.read("x", [k])) for k in range(4)))


def test_a_guard_without_the_variable_counts() -> None:
    """sum[j < N] where(pid0 = 0, 3, 0) is 3 N in the first program only."""
    a = Algebra(Solver())
    facts = [T.make("le", 1, N), T.make("le", 0, P), T.make("lt", P, N)]
    t = T.fold("sum", Axis("j", N), T.where(T.make("eq", P, 0), 3, 0))
    with pytest.raises(Split):
        a.normal(t, a.context(facts))
    assert a.normal(t, a.context([*facts, T.make("lt", 0, P)])).constant == 0
    assert a.normal(t, a.context([*facts, T.make("eq", P, 0)])).term is a.normal(T.mul(3, N), a.context(facts)).term


def test_a_fold_opened_and_closed_is_itself() -> None:
    a = Algebra(Solver())
    i, j = Axis("i", N), Axis("j", N)
    t = T.fold("sum", i, T.fold("sum", j, T.read("z", [T.axis(i), T.axis(j)])))
    ctx = a.context([T.make("le", 1, N)])
    ((factors, _),) = a.normal(t, ctx).terms
    atom = T.TERMS[factors[0][0]]
    assert close("sum", open_fold(a, atom, ctx)) is atom
