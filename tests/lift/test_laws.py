"""Every law holds: on random float64 samples, and the polynomial ones by Z3."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
import pytest
import z3

from trilift.lift.language.definitions import ROWS
from trilift.lift.language.evaluate import evaluate
from trilift.lift.language.parse import pattern
from trilift.lift.language.unfolding import expand, instantiate, unfold
from trilift.lift.simplify.egraph import operations, program, reachable, rows
from trilift.lift.simplify.laws import FACTS, LAWS, Law
from trilift.lift.terms import construct as T
from trilift.lift.terms.constants import recover
from trilift.lift.terms.term import Axis, Term

AXES = {name: Axis(name, T.size(f"S{name}")) for name in "ijk"}
SIZES = {"Si": 3, "Sj": 4, "Sk": 2}


def variables(*sides: Term) -> set[Term]:
    return {s for t in sides for s in t.walk() if s.op == "scalar"}


def without(condition: str) -> dict[str, set[str]]:
    """`c without i` as {"c": {"i"}}."""
    out: dict[str, set[str]] = {}
    for name, axis in re.findall(r"(\w+) without (\w)", condition):
        out.setdefault(name, set()).add(axis)
    return out


def sampled(law: Law, seed: int) -> tuple[list[Term], dict[str, np.ndarray]]:
    """The sides with arrays for variables: numbers for u and v, else a tensor over the axes i and j that the
    condition allows."""
    rng, bare = np.random.default_rng(seed), without(law.condition)
    terms: dict[str, Term] = {}
    arrays: dict[str, np.ndarray] = {}
    for s in sorted(variables(pattern(law.left), pattern(law.right)), key=repr):
        axes = [a for a in "ij" if s.attr not in "uv" and a not in bare.get(s.attr, ())]
        shape = tuple(SIZES[f"S{a}"] for a in axes)
        positive = f"{s.attr} > 0" in law.condition or f"{s.attr} >= 0" in law.condition or seed % 3 == 2
        if s.type != T.REAL:
            arrays[s.attr] = rng.integers(0, 2, shape).astype(bool if s.type == T.BOOL else int)
        else:
            arrays[s.attr] = rng.uniform(0.2 if positive else -2, 2, shape)
        terms[s.attr] = T.read(s.attr, [T.axis(AXES[a]) for a in axes], s.type)
    return [instantiate(pattern(side), terms, AXES) for side in (law.left, law.right)], arrays


def values(law: Law, seed: int) -> list[np.ndarray]:
    sides, arrays = sampled(law, seed)
    return [np.asarray(evaluate(t, (AXES["i"], AXES["j"]), arrays, SIZES), float) for t in sides]


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
def test_law_holds_on_samples(law):
    compared = 0
    for seed in range(9):
        left, right = values(law, seed)
        both = np.isfinite(left) & np.isfinite(right)
        compared += both.sum()
        np.testing.assert_allclose(left[both], right[both], rtol=1e-7, atol=1e-9, err_msg=str(law))
        assert not (np.isfinite(left) & np.isnan(right)).any(), f"{law}: undefined on the right only"
    assert compared >= 12, f"{law}: nothing compared"


@pytest.mark.parametrize("derived, given", FACTS, ids=[f for f, _ in FACTS])
def test_fact_holds_on_samples(derived, given):
    body, sign = re.fullmatch(r"(.+?) (>=?) 0", derived).groups()
    for seed in range(6):
        value, _ = values(Law("fact", body, "->", body, given), seed)
        finite = value[np.isfinite(value)]
        assert (finite > 0).all() if sign == ">" else (finite >= 0).all()


def polynomial(t: Term, names: Mapping[str, z3.ArithRef]) -> z3.ArithRef | None:
    """The term for Z3, if it has only numbers, variables, +, * and 1 / x."""
    args = [polynomial(a, names) for a in t.args]
    if any(a is None for a in args):
        return None
    match t.op:
        case "const":
            return z3.RealVal(repr(t.attr)) if np.isfinite(t.attr) else None
        case "scalar":
            return names[t.attr]
        case "add":
            return z3.Sum(args)
        case "mul":
            return z3.Product(args)
        case "recip":
            return 1 / args[0]
    return None


def test_polynomial_laws_by_smt():
    proved = []
    for law in LAWS:
        left, right = pattern(law.left), pattern(law.right)
        names = {s.attr: z3.Real(s.attr) for s in variables(left, right)}
        a, b = polynomial(left, names), polynomial(right, names)
        if a is None or b is None:
            continue
        solver = z3.Solver()
        solver.set("timeout", 5000)
        solver.add(*(v != 0 for v in names.values()), a != b)
        assert solver.check() == z3.unsat, law
        proved.append(law.name)
    assert {"factor", "cancel", "recip-mul", "square-difference"} <= set(proved)


def test_names_are_distinct():
    assert len({law.name for law in LAWS}) == len(LAWS)
    assert len({row.name for row in ROWS}) == len(ROWS)


def test_program_is_accepted():
    from egglog.bindings import EGraph

    engine = EGraph()
    engine.run_program(*engine.parse_program(program()))


@pytest.mark.parametrize("ops", [("exp",), ("exp", "add"), ("sum", "mul", "recip"), ("where", "lt")], ids="-".join)
def test_rules_left_out_cannot_match(ops):
    """What the rules that are kept make is known, and those left out need an operation that is never made."""
    every = reachable(frozenset(ops))
    kept = [r for r in rows() if r.applies(every)]
    assert set(ops) <= every and all(r.made <= every for r in kept)
    assert all(side - every for r in rows() if r not in kept for side in r.sides)
    assert operations(program(frozenset(ops))) <= operations(program())
    assert len(program(every)) < len(program())


@pytest.mark.parametrize("row", [row for row in ROWS if row.name != "take"], ids=lambda row: row.name)
def test_definition_unfolds_to_its_body(row):
    x = T.read("x", [T.axis(AXES["i"])])
    t = T.node(row.name, (x, *(T.scalar(p) for p in row.arguments[1:])), AXES["i"] if row.on_axis else None)
    assert unfold(t).op not in T.NAMED
    assert not any(s.op in T.NAMED for s in expand(t).walk())
    assert (AXES["i"] in t.free) == (not row.binds)
    assert row.latex.format(*"abc"[: len(row.arguments)], axis="n")


def test_renaming_keeps_a_name_and_indexing_unfolds_it():
    i, j = AXES["i"], Axis("j", AXES["i"].size)
    t = T.node("softmax", (T.read("x", [T.axis(i)]),), i)
    assert T.substitute(t, {i: T.axis(j)}) is T.node("softmax", (T.read("x", [T.axis(j)]),), j)
    assert T.substitute(t, {i: T.const(0)}).op == "mul"
    captured = T.node("softmax", (T.read("x", [T.axis(i), T.axis(j)]),), i)
    assert T.substitute(captured, {i: T.axis(j)}).op == "mul"


@pytest.mark.parametrize(
    "value, text",
    [
        (0.7978845608, "sqrt(2 / pi)"),
        (0.79788456, "sqrt(2 / pi)"),
        (0.7071067811865, "1 / sqrt(2)"),
        (1.4426950408889634, "log2(e)"),
        (0.18033688, "log2(e) / 8"),
        (0.6931471805599453, "log(2)"),
        (0.3333333432674408, "1 / 3"),
        (0.10000000149011612, "0.1"),
        (9.999999974752427e-07, "1e-06"),
        (0.08838834764, "1 / sqrt(128)"),
        (0.044715, "0.044715"),
        (1.702, "1.702"),
        (0.123456789, "0.123456789"),
        (1.0000001192092896, "1.0000001192092896"),
        (0.24999998509883880, "0.2499999850988388"),
        (-0.5, "-(1 / 2)"),
    ],
)
def test_constants_recovered(value, text):
    assert recover(value)[1] == text
    assert recover(recover(value)[0]) == recover(value)


def test_random_numbers_are_left_alone():
    rng = np.random.default_rng(0)
    changed = [v for v in rng.uniform(0.01, 10, 3000).tolist() if recover(v)[0] != v]
    assert len(changed) <= 6
