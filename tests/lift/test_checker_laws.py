"""The laws of the checker: each row holds, by z3 for integers, else at many points; its wrong twin does not."""

import ast
import random
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import islice
from pathlib import Path

import pytest
import z3

from trilift.lift import checker
from trilift.lift.checker import algebra, identities, polynomials

mpmath = pytest.importorskip("mpmath")
mpmath.mp.dps = 50
LAWS = (*identities.DEFINITIONS, *identities.PROCEDURES)
TRIED = 1500  # points, of which those are taken that meet the condition
POINTS = 60  # at which a law must hold, and its twin must not somewhere
LEAST = 15  # points that must meet the condition of a law


def names(law):
    tree = ast.parse(f"({law.left}, {law.right}, {law.given or 1}, {law.wrong or 1})")
    bound = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)} - bound


def real(f):
    """A function of which real numbers alone are values."""

    def of(x):
        if x < 0:
            raise ValueError("it is not defined")
        return f(x)

    return of


def floordiv(p, d):
    return p // d


def truncdiv(p, d):
    return abs(p) // abs(d) * (1 if (p < 0) == (d < 0) else -1)


def first(f, elements):
    return max(sorted(elements), key=f)


OPERATIONS = {
    "exp": mpmath.exp, "log": real(mpmath.log), "sqrt": real(mpmath.sqrt), "tanh": mpmath.tanh,
    "recip": lambda x: 1 / x,
    "exp2": lambda x: mpmath.mpf(2) ** x, "log2": real(lambda x: mpmath.log(x, 2)), "log10": real(mpmath.log10),
    "floordiv": floordiv, "truncdiv": truncdiv, "mod": lambda p, d: p % d, "bitxor": lambda p, q: p ^ q,
    "truncmod": lambda p, d: abs(p) % abs(d) * (1 if p >= 0 else -1),
    "maximum": lambda f, elements: max(map(f, elements)), "first": first,
    "first_minimum": lambda f, elements: min(sorted(elements), key=f), "max": max, "min": min,
}  # fmt: skip


def point(rng):
    """Random values of all letters."""
    table = [[Fraction(rng.randint(-3, 3), rng.randint(1, 3)) for _ in range(41)] for _ in range(2)]
    f, g = ((lambda i, t=t: t[i % 41]) for t in table)
    numbers = {n: rng.randint(-7, 7) for n in "pqdkn"}
    reals = {n: Fraction(rng.randint(-40, 40), rng.randint(1, 9)) for n in "cxyz"}
    sets = {n: set(rng.sample(range(-8, 9), rng.randint(0, 5))) for n in "AB"}
    return {**numbers, **reals, **sets, "f": f, "g": g}


def valued(said, values):
    inexact = {n: mpmath.mpf(v.numerator) / v.denominator for n, v in values.items() if isinstance(v, Fraction)}
    if "exp(" in said and "f(" in said:
        inexact["exp"] = lambda x: mpmath.exp(mpmath.mpf(x.numerator) / x.denominator)
        inexact["f"] = values["f"]
    return eval(said, {**OPERATIONS, **values, **inexact})


def agrees(law, values):
    """Whether the two sides are equal at a point; False also where one is not defined."""
    try:
        left, right = (valued(s, values) for s in (law.left, law.right))
        if isinstance(left, int | Fraction) and isinstance(right, int | Fraction):
            return left == right
        return abs(left - right) <= mpmath.mpf(10) ** -14 * (1 + abs(left))  # of LN2 as a constant
    except (ZeroDivisionError, ValueError, TypeError):
        return False


def points(law):
    met = (v for v in every() if not law.given or _meets(law.given, v))
    return [*islice(met, POINTS)]


@cache
def every():
    rng = random.Random(0)
    return [point(rng) for _ in range(TRIED)]


def _meets(given, values):
    try:
        return bool(valued(given, values))
    except (ValueError, ZeroDivisionError):
        return False


def twin(law):
    """The law with a wrong right side, or without its condition."""
    return replace(law, right=law.wrong) if law.wrong else replace(law, given="")


@pytest.mark.parametrize("law", LAWS, ids=lambda x: x.name)
def test_a_law_holds(law):
    found = points(law)
    assert len(found) >= LEAST and all(agrees(law, v) for v in found)
    assert law.source and (law.given or law.wrong)


@pytest.mark.parametrize("law", LAWS, ids=lambda x: x.name)
def test_the_twin_of_a_law_does_not_hold(law):
    wrong = twin(law)
    assert not all(agrees(wrong, v) for v in points(wrong))


def _divided(p, d):
    return z3.If(d > 0, p / d, (-p) / (-d))  # z3 divides so that remainders are not negative


def _divided_to_zero(p, d):
    size = z3.If(p < 0, -p, p) / z3.If(d < 0, -d, d)
    return z3.If((p < 0) == (d < 0), size, -size)


SYMBOLS = {
    "floordiv": _divided, "truncdiv": _divided_to_zero, "mod": lambda p, d: z3.If(d > 0, p % d, -(-p % -d)),
    "truncmod": lambda p, d: z3.If(p < 0, -1, 1) * (z3.If(p < 0, -p, p) % z3.If(d < 0, -d, d)),
    **{n: z3.Int(n) for n in "pqdkn"},
}  # fmt: skip
WHOLE = [x for x in LAWS if names(x) <= SYMBOLS.keys()]


def refuted(law, **values):
    """What z3 says of numbers that meet the condition, and where the sides differ. `values`: of some letters."""
    solver = z3.Solver()
    solver.set("timeout", 3_000)
    solver.add(*(SYMBOLS[n] == v for n, v in values.items()))
    given = law.given.replace("0 <= p < d", "p >= 0 and p < d").split(" and ") if law.given else []
    for f in given:
        solver.add(eval(f, dict(SYMBOLS)))
    left, right = (eval(s, dict(SYMBOLS)) for s in (law.left, law.right))
    solver.add(left != right)
    return str(solver.check())


@pytest.mark.parametrize("law", WHOLE, ids=lambda x: x.name)
def test_z3_proves_a_law_of_integers(law):
    said = refuted(law)
    assert said == "unsat" or (said == "unknown" and {refuted(law, d=d) for d in range(-9, 10)} == {"unsat"})


def test_z3_refutes_twins_of_laws_of_integers():
    assert len(WHOLE) >= 5
    twins = [replace(law, given=law.given.replace(old, new)) for law in WHOLE for old, new in (("p < d", "p < d + 2"),)]
    assert [refuted(x) for x in twins if x not in WHOLE] == ["sat"]


def test_every_law_is_used_where_it_says():
    folder = Path(checker.__file__).parent
    trees = [ast.parse((folder / f"{n}.py").read_text(encoding="utf-8")) for n in ("algebra", "polynomials")]
    functions = {n.name for tree in trees for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}
    assert {x.by for x in identities.PROCEDURES} <= functions
    assert len({x.name for x in LAWS}) == len(LAWS)


@pytest.mark.parametrize("said", ["x - y * recip(x)", "log(x + 1)"])
def test_a_definition_is_read(said):
    assert isinstance(identities.read(said), tuple)


@pytest.mark.parametrize("said", ["x ** y", "x if y else 0", "'x'", "x.y(1)"])
def test_another_text_is_no_definition(said):
    with pytest.raises(ValueError):
        identities.read(said)


def test_sums_over_many_blocks_cancel_against_one():
    v = polynomials.of(polynomials.variable())
    block = lambda k, n: polynomials.within(polynomials.minus(v, polynomials.number(4 * k)), polynomials.number(n))  # noqa: E731
    blocks, whole = [(1, block(k, 4)) for k in range(8)], (-1, block(0, 32))
    a = algebra.Algebra()
    assert a._cancel([*blocks, whole], a.none)
    assert not a._cancel([*blocks[:3], *blocks[4:], whole], a.none)
    assert not a._cancel([*blocks, (1, block(3, 1)), whole], a.none)
    assert not a._cancel([*blocks[1:], (1, block(0, 5)), whole], a.none)
