"""The fuzzer: its programs, their two renderings, its mutants, its judge, and a sample of its verdicts."""

from __future__ import annotations

import ast
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from trilift.lift.terms import construct as T
from trilift.reports.experiments.fuzz import judge, prover, runs, shrink, tally
from trilift.reports.experiments.fuzz.grammar import (
    DTYPES,
    OPS,
    Expr,
    Input,
    Program,
    Schedule,
    Stage,
    features,
    promoted,
)
from trilift.reports.experiments.fuzz.mutate import every, mutants
from trilift.reports.experiments.fuzz.page import COLUMNS, read, result
from trilift.reports.experiments.fuzz.prover import Told
from trilift.reports.experiments.fuzz.random_programs import program
from trilift.reports.experiments.fuzz.reference import source

X = Expr("load", "i8", (), ("x", ("N",)))
ADDED = Expr("add", "i8", (X, Expr("const", "i8", (), 1)))
SMALL = Program("small", (Input("x", "i8", ("N",)),), (), (Stage("map", "t0", ("N",), ADDED, schedule=Schedule(16)),))
PROVED = Told("PROVED")


def changed(**fields: object) -> Program:
    """SMALL with a fault of its schedule."""
    (s,) = SMALL.stages
    return SMALL.put(0, replace(s, schedule=replace(s.schedule, **fields)))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def server() -> Iterator[runs.Server]:
    """Triton's interpreter, started once."""
    found = runs.Server()
    yield found
    found.stop()


@pytest.mark.smoke
def test_a_seed_names_a_program() -> None:
    assert [source(program(3, k)) for k in range(20)] == [source(program(3, k)) for k in range(20)]
    assert len({source(program(3, k)) for k in range(20)}) == 20


@pytest.mark.smoke
def test_every_rendering_is_python() -> None:
    for k in range(60):
        p = program(1, k)
        for text in (source(p), source(p, precise=True), *(source(p, m.program) for m in mutants(p, k, 4))):
            ast.parse(text)


@pytest.mark.smoke
def test_programs_cover_the_grammar() -> None:
    found = Counter(f for k in range(600) for f in features(program(0, k)))
    assert not [op for op in OPS if not found[f"op {op}"]]
    assert not [d for d in DTYPES if not found[f"input {d}"]]
    kinds = ("map", "tile", "row", "scan", "dot", "atomic")
    assert all(found[f"stage {k}"] >= 15 for k in kinds), {k: found[f"stage {k}"] for k in kinds}


@pytest.mark.smoke
def test_a_mutant_is_another_kernel_with_the_same_reference() -> None:
    for k in range(25):
        p = program(2, k)
        for m in every(p):
            text = source(p, m.program)
            assert text != source(p), (m.kind, m.text)
            assert text[text.index(".reference") :] == source(p)[source(p).index(".reference") :]


@pytest.mark.smoke
def test_dtypes_are_promoted_as_in_triton() -> None:
    table = {
        ("i8", "i32"): "i32",
        ("u8", "i8"): "u8",
        ("u8", "i16"): "i16",
        ("f16", "i64"): "f16",
        ("f16", "f32"): "f32",
    }
    assert all(promoted(a, b) == promoted(b, a) == c for (a, b), c in table.items())


def test_triton_agrees_with_the_references_and_tells_mutants(server: runs.Server) -> None:
    told: Counter[str] = Counter()
    for k in range(6):
        p = program(4, k)
        plan = [r.plain() for r in runs.planned(p, k, 6)]
        answer = server.ask(source(p, precise=True), p, plan)
        assert not answer["error"] and {r[0] for r in answer["runs"]} <= {"same", "skipped"}, (k, answer)
        for m in mutants(p, k, 3):
            answer = server.ask(source(p, m.program, precise=True), p, plan)
            told.update(r[0] for r in answer["runs"][-1:])
    assert told["differs"] >= 6, told


@pytest.mark.parametrize(
    ("wrong", "outcome", "what"),
    [
        ({}, "right", ""),
        ({"bound": 1}, "wrong PROVED", "out of bounds"),
        ({"store_mask": False}, "wrong PROVED", "out of bounds"),
        ({"bound": -1}, "wrong PROVED", "output 0"),
        ({"cells": -1}, "wrong PROVED", "output 0"),
    ],
    ids=str,
)
def test_a_wrong_proof_is_told(server: runs.Server, wrong: dict[str, object], outcome: str, what: str) -> None:
    found = judge.verdict(server, SMALL, _mutant(changed(**wrong)), PROVED, runs.planned(SMALL, 1))
    assert found.outcome == outcome and what in found.detail


def _mutant(p: Program) -> judge.Mutant:
    return judge.Mutant("test", "", p)


def test_what_differs_outside_of_the_contract_is_right(server: runs.Server) -> None:
    plan = runs.planned(SMALL, 1)
    told = replace(PROVED, within=("out",) * len(plan))
    found = judge.verdict(server, SMALL, _mutant(changed(bound=-1)), told, plan)
    data = judge.verdict(server, SMALL, _mutant(changed(bound=-1)), replace(told, within=("data",) * len(plan)), plan)
    assert (found.outcome, found.execution) == ("right", "outside")
    assert data.outcome == judge.EXCLUDED


@pytest.mark.smoke
def test_a_wrong_program_is_shrunk() -> None:
    found = 0
    for k in range(40):
        p = program(5, k)
        if any(s.kind == "dot" for s in p.stages) or not any("op mul" in features(p) for _ in (0,)):
            continue
        small, _ = shrink.shrunk(p, p, lambda a, b: "op mul" in features(a), tries=300)
        assert "op mul" in features(small) and len(source(small)) <= len(source(p))
        found += len(source(small)) < len(source(p))
        ast.parse(source(small))
    assert found > 3


@pytest.mark.smoke
def test_the_page_has_a_row_for_each_kind_and_feature() -> None:
    row = judge.Judged(SMALL, None, PROVED, "same", "right", features=features(SMALL))
    bad = replace(row, mutant=_mutant(changed(bound=1)), outcome="wrong PROVED", execution="differs", detail="x")
    made = result([tally.of([row.record(), bad.record()])])
    tables = {t.heading: t.rows for t in made.tables}
    assert made.code == 1 and tables.keys() == COLUMNS.keys()
    assert [r[0] for r in tables["by kind"]] == ["original", "test", "all"] and len(tables["wrong verdicts"]) == 1
    row = next(r for r in tables["by feature"] if r[0] == "op add")
    assert row[:4] == ("op add", "1", "1", "2")


def test_records_are_read_again(tmp_path: Path) -> None:
    row = judge.Judged(SMALL, _mutant(changed(bound=1)), PROVED, "differs", "wrong PROVED", "x", features=("op add",))
    (tmp_path / "r.jsonl").write_text(json.dumps(row.record().plain()) + "\n")
    (again,) = read(tmp_path / "r.jsonl")
    assert again.kind == "test" and tuple(again.features) == ("op add",) and again.outcome == "wrong PROVED"


@pytest.mark.smoke
def test_runs_add_up_and_a_record_tried_again_counts_once(tmp_path: Path) -> None:
    named = replace(SMALL, name="fuzz_7_0")
    row = judge.Judged(named, None, PROVED, "same", "right", features=("op add",))
    bad = replace(row, mutant=_mutant(changed(bound=1)), outcome="wrong PROVED", execution="differs", detail="x")
    mended = replace(bad, outcome="right", execution="outside")
    one = tally.of([r.record() for r in (row, bad, mended)])
    assert (one.programs, one.mutants, one.wrong) == (1, 1, ())
    other = replace(one, seeds=(99,), wrong=(("a",) * len(COLUMNS["wrong verdicts"]),))
    path = tmp_path / "runs.json"
    tally.add(path, replace(one, counts=one.counts + one.counts))
    assert tally.add(path, other)[0].programs == 2
    runs = tally.add(path, one)  # in place of the run with its seed
    assert tally.read(path) == runs and [r.programs for r in runs] == [1, 1]
    tables = {t.heading: t.rows for t in result(runs).tables}
    assert result(runs).code == 1 and len(tables["runs"]) == 2
    assert next(r for r in tables["by feature"] if r[0] == "op add")[:4] == ("op add", "2", "2", "4")


def test_a_refutation_that_no_execution_shows_is_told(server: runs.Server) -> None:
    given = {"numbers": {"N": 3}, "style": "given", "seed": 0, "values": {"x": [1, 2, 3]}, "why": "out[0]: 1, not 2"}
    told = replace(PROVED, verdict="REFUTED", given=given)
    wrong = judge.verdict(server, SMALL, None, told, ())
    right = judge.verdict(server, SMALL, _mutant(changed(bound=-1)), told, ())
    assert (wrong.outcome, right.outcome) == ("wrong REFUTED", "right") and wrong.detail == given["why"]


@pytest.mark.slow
def test_no_verdict_of_a_sample_is_wrong() -> None:
    """Twelve programs with two mutants each. Those that a known limit makes wrong are in tests/regressions."""
    rows = list(judge.judged(11, range(12), 2, judge.How(jobs=1, quick=True)))
    assert len(rows) >= 20
    assert not [
        (r.program.name, r.outcome, r.detail) for r in rows if r.outcome in ("wrong PROVED", "wrong REFUTED", "crash")
    ]
    assert any(r.told.way == "shared" for r in rows)
    assert sum(r.told.verdict == "PROVED" for r in rows) >= 5


def test_what_wraps_in_a_kernel_is_noted(server: runs.Server) -> None:
    quotient = Expr("quo", "i8", (ADDED, X))
    (stage,) = SMALL.stages
    small, large = ({"numbers": {"N": 2}, "style": "given", "seed": 0, "values": {"x": x}} for x in ([1, 2], [127, 0]))
    notes = [
        [r[2] for r in server.ask(source(SMALL, p, precise=True), p, [small, large], first=False)["runs"]]
        for p in (SMALL, SMALL.put(0, replace(stage, expr=quotient)))
    ]
    assert notes[0] == ["", "add"] and "divided by 0" in notes[1][1]


def test_clauses_over_data_are_evaluated() -> None:
    x = T.read("x", (T.size("N"),))
    arrays = {"x": np.array([1.0, 0.0]), "y": np.array([1.0, 2.0])}
    assert prover._everywhere(T.make("ne", x, 0), arrays, {}) is False
    assert prover._everywhere(T.make("ne", T.read("y", (T.size("N"),)), 0), arrays, {}) is True
    assert prover._everywhere(T.make("ne", T.read("z", (T.size("N"),)), 0), arrays, {}) is None


@pytest.mark.parametrize(("op", "outcome"), [("sub", "right"), ("add", "wrong PROVED")])
def test_a_load_that_the_compiler_leaves_out_may_be_out_of_bounds(op: str, outcome: str, server: runs.Server) -> None:
    (stage,) = SMALL.stages
    p = SMALL.put(0, replace(stage, expr=Expr(op, "i8", (X, X))))
    unmasked = p.put(0, replace(p.stages[0], schedule=replace(stage.schedule, load_mask=False)))
    m = _mutant(unmasked)
    row = judge.verdict(server, p, m, PROVED, [runs.Run({"N": 5}, "edge", 0)])
    assert row.outcome == outcome and (outcome == "right" or "out of bounds at line" in row.detail)


@pytest.mark.smoke
def test_a_cap_is_tried_beyond_it() -> None:
    m = _mutant(changed(cap=300))
    assert judge._runs(SMALL, m, ())[0].numbers == {"N": 300 * 16 + 5} and not judge._runs(SMALL, None, ())
